/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_ROUTING_H
#define VHCA_OPENSM_OSM_ROUTING_H
/*
 * OpenSM's routing engines, wrapped: they compute as before, and what moves left behind is put on
 * top of the result, from what is true now and not from a record of the moves (replaying those is
 * wrong as soon as kinds of moves interleave).
 *
 *  - A LID that a skyline plan moved keeps the entries that still lie on shortest ways (vhca_osm_lid_keep()). It does so until OpenSM is
 *    asked to reroute, or a cable between switches has come back: then balance is worth more than SMPs. That it was moved so is
 *    remembered in memory only: a restarted OpenSM does not know what the switches have and writes all tables, as the engine made
 *    them. Right, and the same number of SMPs.
 *  - A dynamic LID has the ways of its PF's, whatever the engine has made of the port that it may belong to (vhca_osm_dynamic_copy()).
 *  - dfsssp assigns the SL by source and destination LID. Until it computes anew, a deterministically moved LID has the path of
 *    the LID that it was exchanged with, and so its SL.
 *
 * Wrapping happens in the sweeper's first heavy sweep. It is never undone: when OpenSM ends it
 * destroys the engines before the plugin.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "opensm/lids/plan.h"

struct osm_opensm;
struct vhca_osm_dynamic_lids;
struct vhca_osm_routing;

/*
 * osm, dynamic and sweeping are borrowed. sweeping: a heavy sweep goes on; ways that are computed
 * else are a reroute. 0 or -ENOMEM.
 */
int vhca_osm_routing_new(struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *dynamic,
			 const atomic_bool *sweeping, struct vhca_osm_routing **ret);
/* After OpenSM has destroyed its engines, or before it has any. NULL is fine. */
struct vhca_osm_routing *vhca_osm_routing_free(struct vhca_osm_routing *r);

/* Sweeper's thread, without the lock: wraps what is not wrapped yet. */
void vhca_osm_routing_wrap(struct vhca_osm_routing *r);

/* The rest: with OpenSM's lock held. */

/*
 * How often OpenSM has begun to compute ways: `reroute` on its console has it do so without a
 * sweep.
 */
uint64_t vhca_osm_routing_computations(const struct vhca_osm_routing *r);
/* Name of the engine in use; "none" before the first sweep. */
const char *vhca_osm_routing_name(const struct vhca_osm_routing *r);
/* May LIDs move under this engine? Some would undo it, or need more than tables. */
bool vhca_osm_routing_can_move(const struct vhca_osm_routing *r);
/* May they by skyline plans? */
bool vhca_osm_routing_can_skyline(const struct vhca_osm_routing *r);
/*
 * Asks OpenSM for a reroute. The next computation, be it that or a heavy sweep's, gives each LID
 * the engine's ways. Exclusively locked.
 */
void vhca_osm_routing_rebalance(struct vhca_osm_routing *r);
/* How many LIDs keep ways that the engine has not made. Needs no lock. */
size_t vhca_osm_routing_kept(const struct vhca_osm_routing *r);
/* Two LIDs were exchanged by a plan of this mode. Exclusively locked. */
void vhca_osm_routing_moved(struct vhca_osm_routing *r, const uint16_t lid[2],
			    enum vhca_osm_move_mode mode);
/*
 * The first LID has the second one's ways now, and so its path; or, if not, none. Exclusively
 * locked.
 */
void vhca_osm_routing_copied(struct vhca_osm_routing *r, const uint16_t lid[2], bool has);

#endif
