/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/guid.h"

#include <errno.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#define PREFIX_BITS_MIN 8
#define PREFIX_BITS_MAX 48
#define STAND_IN_MASK	(UINT64_MAX >> 8)
#define SHA256_LEN	32

/*
 * First eight bytes of SHA-256 over UUID and name. The UUID has a fixed length, so that no two
 * inputs run together.
 */
static int hash(const struct vhca_uuid *domain, const char *vf_name, uint64_t *ret)
{
	unsigned char input[sizeof(domain->b) + VHCA_NAME_MAX], digest[SHA256_LEN];
	size_t len = strlen(vf_name);

	memcpy(input, domain->b, sizeof(domain->b));
	memcpy(input + sizeof(domain->b), vf_name, len);
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, input, sizeof(domain->b) + len, digest) < 0)
		return -EIO;
	*ret = 0;
	for (size_t i = 0; i < sizeof(*ret); i++)
		*ret = *ret << 8 | digest[i];
	return 0;
}

int vhca_guid_auto(uint64_t prefix, unsigned int prefix_bits, const struct vhca_uuid *domain,
		   const char *vf_name, uint64_t *ret)
{
	uint64_t low, mask, guid;
	int r;

	if (prefix_bits < PREFIX_BITS_MIN || prefix_bits > PREFIX_BITS_MAX ||
	    !vhca_name_is_valid(vf_name))
		return -EINVAL;
	mask = UINT64_MAX >> prefix_bits;
	if ((prefix & ~mask) == 0)
		return -EINVAL;
	r = hash(domain, vf_name, &low);
	if (r < 0)
		return r;
	guid = (prefix & ~mask) | (low & mask);
	/*
	 * The first byte is the prefix's own (at least 8 bits): a multicast prefix can only be
	 * refused.
	 */
	if (!vhca_guid_is_valid(guid))
		return -EINVAL;
	*ret = guid;
	return 0;
}

int vhca_guid_stand_in(uint64_t *ret)
{
	struct vhca_uuid random;
	int r = vhca_uuid_random(&random);

	if (r < 0)
		return r;
	*ret = 0;
	for (unsigned int i = 0; i < sizeof(*ret); i++)
		*ret = *ret << 8 | random.b[sizeof(random.b) - 1 - i];
	*ret = VHCA_GUID_BY_SM | (*ret & STAND_IN_MASK);
	return 0;
}

bool vhca_guid_is_stand_in(uint64_t guid)
{
	return (guid & ~STAND_IN_MASK) == VHCA_GUID_BY_SM && guid != VHCA_GUID_ALL1;
}
