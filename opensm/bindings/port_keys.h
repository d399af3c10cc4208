/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_PORT_KEYS_H
#define VHCA_OPENSM_BINDINGS_PORT_KEYS_H
/*
 * The keys that one port needs, and why: declared for it, used by bindings (counted), or inherited.
 * A key is *inherited* when a subnet manager that has just become master found it on the port
 * without knowing why: taking it away could break a guest whose agent has not reported yet, so it
 * stays until a time-out; on a vGUID's own port, until the report of that vGUID. What adds keys to
 * a port works on a draft of it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* A ConnectX-3 port's table has 128 entries; the default partition takes one or two of them. */
#define VHCA_OSM_PORT_PKEYS_MAX 126

struct vhca_osm_need {
	uint16_t pkey; /* with the membership bit */
	bool declared; /* by PUT /v1/members */
	bool inherited;
	uint32_t bindings; /* number of bindings that use it */
};

struct vhca_osm_port {
	uint64_t guid; /* key of the table; must stay first */
	size_t n_needs, room;
	struct vhca_osm_need *needs; /* sorted by pkey */
};

/* A copy with room for all keys that a port may need, to try something out. */
struct vhca_osm_port_draft {
	struct vhca_osm_port port;
	struct vhca_osm_need needs[VHCA_OSM_PORT_PKEYS_MAX];
};
void vhca_osm_port_draft(struct vhca_osm_port_draft *ret, const struct vhca_osm_port *p);
/* The port becomes what the draft is. reserve() makes room for that, and changes nothing else: 0 or
 * -ENOMEM. */
int vhca_osm_port_reserve(struct vhca_osm_port *p, const struct vhca_osm_port_draft *draft);
void vhca_osm_port_assign(struct vhca_osm_port *p, const struct vhca_osm_port_draft *draft);

/*
 * Counts the keys of one more binding. both: full and limited form of one key may stand side by
 * side. On failure (both_memberships, table_full) the draft is half changed.
 */
int vhca_osm_port_acquire(struct vhca_osm_port *p, bool both, const uint16_t *pkeys, size_t n,
			  struct vhca_error *err);
/* The reverse for a binding that was counted; keys that nobody needs any more go. */
void vhca_osm_port_release(struct vhca_osm_port *p, const uint16_t *pkeys, size_t n);
/* Replaces the declared keys; errors as _acquire(). */
int vhca_osm_port_declare(struct vhca_osm_port *p, bool both, const uint16_t *pkeys, size_t n,
			  struct vhca_error *err);
/* Marks what fits beside the other keys as inherited; the rest is left out. */
void vhca_osm_port_inherit(struct vhca_osm_port *p, bool both, const uint16_t *pkeys, size_t n);
/* Ends that for all keys; those without another reason go. */
void vhca_osm_port_drop_inherited(struct vhca_osm_port *p);

/*
 * Refuses (table_full) if `after` has more keys than max, and more than `before`, beside the
 * default partition's.
 */
int vhca_osm_port_check_room(const struct vhca_osm_port *before, const struct vhca_osm_port *after,
			     size_t max, struct vhca_error *err);
/* Same keys, whatever the reasons; and same keys for the same reasons. */
bool vhca_osm_port_same_keys(const struct vhca_osm_port *a, const struct vhca_osm_port *b);
bool vhca_osm_port_same_needs(const struct vhca_osm_port *a, const struct vhca_osm_port *b);

#endif
