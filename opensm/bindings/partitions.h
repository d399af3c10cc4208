/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_PARTITIONS_H
#define VHCA_OPENSM_BINDINGS_PARTITIONS_H
/*
 * The text of OpenSM's partition file: the base part, then one statement per partition that ports
 * need because of their bindings and declarations. The same table and base always give the same
 * text, so that an unchanged file means: no sweep.
 *
 * What a port needs stands after the base part and so decides the port's membership in that
 * partition. The default partition (0x7fff) belongs to the base part: OpenSM puts every port into
 * it; a need for it writes something only if the policy allows the key, and never makes a full
 * member limited.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opensm/bindings/base_file.h"
#include "opensm/bindings/table.h"

#define VHCA_OSM_RANGES_MAX 64

struct vhca_osm_range {
	uint16_t first, last; /* without the membership bit */
};

struct vhca_osm_policy {
	size_t n_allowed;
	struct vhca_osm_range allowed[VHCA_OSM_RANGES_MAX];
	bool ipoib; /* new partitions get an IPoIB broadcast group */
	/* without a base file: all ports are limited members of the default partition */
	bool default_limited;
	bool both_memberships; /* allow_both_pkeys of opensm.conf */
};

/* Parses "0x0001-0x7ffe 0x7fff" (blank-separated keys and ranges, without the membership bit). */
int vhca_osm_policy_parse_allowed(struct vhca_osm_policy *policy, const char *text,
				  struct vhca_error *err);
/* True if agents may ask for this key. */
bool vhca_osm_policy_allows(const struct vhca_osm_policy *policy, uint16_t pkey);

/*
 * Renders into a malloc'ed buffer that the caller frees. base NULL = OpenSM's built-in rule.
 * Returns 0 or -ENOMEM.
 */
int vhca_osm_partitions_render(const struct vhca_osm_table *t, const struct vhca_osm_base *base,
			       const struct vhca_osm_policy *policy, char **ret_text,
			       size_t *ret_len);

#endif
