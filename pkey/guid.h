/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_GUID_H
#define VHCA_PKEY_GUID_H
/* GUID policy. */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/text.h"

/*
 * "auto": stable for a domain and a VF name inside the site's prefix. The top prefix_bits (8..48)
 * of prefix are kept, the rest comes from SHA-256 over the domain UUID and the name. The result is
 * always a valid unicast GUID.
 */
int vhca_guid_auto(uint64_t prefix, unsigned int prefix_bits, const struct vhca_uuid *domain,
		   const char *vf_name, uint64_t *ret);

/*
 * "sm": the subnet manager chooses. Until it has, a stand-in takes the GUID's place: unique, and
 * with the multicast bit, so that nothing programs it. VHCA_GUID_BY_SM is one, too.
 */
int vhca_guid_stand_in(uint64_t *ret);
bool vhca_guid_is_stand_in(uint64_t guid);

#endif
