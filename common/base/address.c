/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The address types of text.h: PCI, GUID, GID, P_Key, UUID. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "common/base/text.h"

#define LABEL_MAX 127 /* of a domain's name that is kept: one that is as long may have been cut */

/* Exactly n hex digits at s, no more is looked at. n <= 16. */
static int hex_digits(const char *s, size_t n, uint64_t *ret)
{
	char digits[17];

	if (strnlen(s, n) < n)
		return -EINVAL;
	memcpy(digits, s, n);
	digits[n] = '\0';
	if (n > 1 && (digits[1] == 'x' || digits[1] == 'X')) /* "0x" would count as a prefix */
		return -EINVAL;
	return vhca_parse_u64(digits, 16, UINT64_MAX, ret);
}

/* `groups` groups of `width` hex digits (16 in all) joined by colons, nothing after them. */
static int hex_groups(const char *s, unsigned int groups, unsigned int width, uint64_t *ret)
{
	char digits[16];

	if (strlen(s) != groups * (width + 1) - 1)
		return -EINVAL;
	for (unsigned int i = 0; i < groups; i++, s += width + 1) {
		if (i + 1 < groups && s[width] != ':')
			return -EINVAL;
		memcpy(digits + i * width, s, width);
	}
	return hex_digits(digits, groups * width, ret);
}

int vhca_bdf_parse(const char *s, struct vhca_bdf *ret)
{
	uint64_t domain, bus, dev, fn;

	if (strlen(s) != sizeof("0000:00:00.0") - 1 || s[4] != ':' || s[7] != ':' || s[10] != '.')
		return -EINVAL;
	if (hex_digits(s, 4, &domain) < 0 || hex_digits(s + 5, 2, &bus) < 0 ||
	    hex_digits(s + 8, 2, &dev) < 0 || hex_digits(s + 11, 1, &fn) < 0)
		return -EINVAL;
	if (dev > 31 || fn > 7)
		return -EINVAL;
	*ret = (struct vhca_bdf){.domain = (uint16_t)domain,
				 .bus = (uint8_t)bus,
				 .dev = (uint8_t)dev,
				 .fn = (uint8_t)fn};
	return 0;
}

char *vhca_bdf_format(char buf[static VHCA_BDF_STRLEN], struct vhca_bdf bdf)
{
	(void)snprintf(buf, VHCA_BDF_STRLEN, "%04x:%02x:%02x.%x", bdf.domain, bdf.bus,
		       bdf.dev & 0x1fU, bdf.fn & 0x7U);
	return buf;
}

static uint32_t bdf_rank(struct vhca_bdf bdf)
{
	return (uint32_t)bdf.domain << 16 | (uint32_t)bdf.bus << 8 | (bdf.dev & 0x1fU) << 3 |
	       (bdf.fn & 0x7U);
}

int vhca_bdf_cmp(struct vhca_bdf a, struct vhca_bdf b)
{
	uint32_t x = bdf_rank(a), y = bdf_rank(b);

	return (x > y) - (x < y);
}

const struct vhca_bdf *vhca_bdf_find(const struct vhca_bdf *bdfs, size_t n, struct vhca_bdf bdf)
{
	for (size_t i = 0; i < n; i++)
		if (vhca_bdf_cmp(bdfs[i], bdf) == 0)
			return &bdfs[i];
	return NULL;
}

int vhca_guid_parse(const char *s, uint64_t *ret)
{
	if (s[0] == '0' && s[1] == 'x')
		return strlen(s) <= 18 ? vhca_parse_u64(s, 16, UINT64_MAX, ret) : -EINVAL;
	if (hex_groups(s, 1, 16, ret) == 0 || hex_groups(s, 8, 2, ret) == 0)
		return 0;
	return hex_groups(s, 4, 4, ret);
}

int vhca_guid_wish_parse(const char *s, uint64_t *ret)
{
	static const char mac[] = "mac:";
	uint64_t guid = 0;
	int r;

	if (strcmp(s, "auto") == 0) {
		*ret = 0;
		return 0;
	}
	if (strcmp(s, "sm") == 0) {
		*ret = VHCA_GUID_BY_SM;
		return 0;
	}
	if (strncmp(s, mac, strlen(mac)) == 0) {
		r = hex_groups(s + strlen(mac), 6, 2, &guid);
		guid = guid >> 24 << 40 | (guid & 0xffffff);
	} else {
		r = vhca_guid_parse(s, &guid);
	}
	if (r < 0 || !vhca_guid_is_valid(guid))
		return -EINVAL;
	*ret = guid;
	return 0;
}

bool vhca_guid_is_of_mac(uint64_t guid)
{
	return vhca_guid_is_valid(guid) && !(guid >> 24 & 0xffff);
}

char *vhca_guid_format(char buf[static VHCA_GUID_STRLEN], uint64_t guid)
{
	(void)snprintf(buf, VHCA_GUID_STRLEN, "0x%016llx", (unsigned long long)guid);
	return buf;
}

int vhca_gid_parse(const char *s, uint64_t *ret_prefix, uint64_t *ret_guid)
{
	uint64_t prefix, guid;
	char half[20];

	if (strlen(s) != 39 || s[19] != ':')
		return -EINVAL;
	memcpy(half, s, 19);
	half[19] = '\0';
	if (hex_groups(half, 4, 4, &prefix) < 0 || hex_groups(s + 20, 4, 4, &guid) < 0)
		return -EINVAL;
	*ret_prefix = prefix;
	*ret_guid = guid;
	return 0;
}

bool vhca_guid_is_valid(uint64_t guid)
{
	return guid != VHCA_GUID_NONE && guid != VHCA_GUID_ALL1 && !(guid >> 56 & 0x01);
}

int vhca_pkey_parse(const char *s, uint16_t *ret)
{
	uint64_t value;
	int r = vhca_parse_u64(s, 0, UINT16_MAX, &value);

	if (r < 0)
		return r;
	if (vhca_pkey_base((uint16_t)value) == 0)
		return -EINVAL;
	*ret = (uint16_t)value;
	return 0;
}

char *vhca_pkey_format(char buf[static VHCA_PKEY_STRLEN], uint16_t pkey)
{
	(void)snprintf(buf, VHCA_PKEY_STRLEN, "0x%04x", pkey);
	return buf;
}

int vhca_uuid_parse(const char *s, struct vhca_uuid *ret)
{
	struct vhca_uuid u;
	uint64_t byte;

	if (strlen(s) != VHCA_UUID_STRLEN - 1)
		return -EINVAL;
	for (unsigned int i = 0; i < sizeof(u.b); i++, s += 2) {
		if ((i == 4 || i == 6 || i == 8 || i == 10) && *s++ != '-')
			return -EINVAL;
		if (hex_digits(s, 2, &byte) < 0)
			return -EINVAL;
		u.b[i] = (uint8_t)byte;
	}
	*ret = u;
	return 0;
}

char *vhca_uuid_format(char buf[static VHCA_UUID_STRLEN], const struct vhca_uuid *u)
{
	const uint8_t *b = u->b;

	(void)snprintf(buf, VHCA_UUID_STRLEN,
		       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
		       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		       b[13], b[14], b[15]);
	return buf;
}

const char *vhca_domain_word(char buf[static VHCA_UUID_STRLEN], const char *name,
			     const struct vhca_uuid *uuid)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
	size_t len = strspn(name, plain);

	/* virsh takes a number for an ID, and a UUID goes before a name. */
	bool is_name = name[strspn(name, "0123456789")] &&
		       (len < 32 || name[strspn(name, "0123456789abcdefABCDEF-")]);

	if (is_name && name[0] != '-' && !name[len] && len < LABEL_MAX)
		return name;
	return vhca_uuid_format(buf, uuid);
}

int vhca_uuid_random(struct vhca_uuid *ret)
{
	struct vhca_uuid u;
	ssize_t n = getrandom(u.b, sizeof(u.b), 0);

	if (n < 0)
		return -errno;
	if ((size_t)n != sizeof(u.b)) /* never for 16 bytes once the pool is ready (random(7)) */
		return -EIO;
	u.b[6] = (uint8_t)((u.b[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
	u.b[8] = (uint8_t)((u.b[8] & 0x3f) | 0x80); /* ... and variant */
	*ret = u;
	return 0;
}

bool vhca_uuid_equal(const struct vhca_uuid *a, const struct vhca_uuid *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

/* ---- hosts ---- */

bool vhca_is_loopback(const char *authority)
{
	bool bracket = *authority == '[';
	const char *start = authority + bracket;
	size_t len = strcspn(start, bracket ? "]" : ":/");
	char host[INET6_ADDRSTRLEN];
	struct in6_addr v6;
	struct in_addr v4;

	if (len >= sizeof(host) || memchr(authority, '@', strcspn(authority, "/")))
		return false;
	memcpy(host, start, len);
	host[len] = '\0';
	if (strcasecmp(host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	/* Where any other name leads is up to a resolver. */
	return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}
