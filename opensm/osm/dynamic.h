/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_DYNAMIC_H
#define VHCA_OPENSM_OSM_DYNAMIC_H
/*
 * Dynamic LIDs in OpenSM's tables. A LID is kept for its vGUID by a line of `guid2lid`, as for a
 * port that is away: OpenSM gives it to no other port, and gives it to the port with that GUID as
 * soon as it finds one. Until then, and at all switches but the hypervisor after that, the way to
 * it is a copy of the way to the PF. Where the two contradict each other (the port is at another
 * hypervisor than the one that was reported), the ways are left to the routing engine: they lead to
 * the port.
 *
 * The table of dynamic LIDs is changed with OpenSM's lock held exclusively, by the plugin's thread
 * only; by the sweeper's, what is left of freed ones. Nothing in it outlives a time as standby: the
 * other master may have freed these LIDs and given them to others. The agents' reports make it
 * anew, and a port that is there keeps its LID meanwhile as any other.
 */
#include "opensm/lids/dynamic.h"
#include "opensm/lids/lid_ops.h"
#include "opensm/osm/fabric.h"

/* Locked: LIDs that are no port's, and kept for none. */
size_t vhca_osm_free_lids(const struct osm_opensm *osm);

/* Plugin's thread, without the lock: so many at most from now on. A sweep makes room for more. */
void vhca_osm_dynamic_limit(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t, size_t max);
/*
 * Plugin's thread, without the lock, while a sweep of the new master waits before OpenSM gives LIDs
 * to ports: knows none any more.
 */
void vhca_osm_dynamic_forget(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t);
/*
 * Sweeper, without the lock, before OpenSM gives LIDs to ports: OpenSM's file of them may be older
 * than ours. Does nothing for a new master that was a standby.
 */
void vhca_osm_dynamic_reserve(struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *t);
/*
 * Sweeper, without the lock, at the end of a sweep: LIDs that were freed while a port had them, and
 * whose port has gone, are free.
 */
void vhca_osm_dynamic_let_go(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t);
/*
 * Sweeper, exclusively locked, before a routing engine runs: the switches' tables get room for as
 * many LIDs as may still be given.
 */
void vhca_osm_dynamic_make_room(struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *t);
/* After it, the same: the engine may have lowered the switches' highest LID. */
void vhca_osm_dynamic_keep_room(struct osm_opensm *osm);

/* Locked, plugin's thread: who is who, see lid_ops.h. */
int vhca_osm_dynamic_resolve(const struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *t,
			     struct vhca_osm_kept_snapshot *kept,
			     const struct vhca_osm_lid_want *want,
			     const struct vhca_osm_lids_promised *promised,
			     struct vhca_osm_lid_pair *ret, struct vhca_error *err);
/* Locked: are these still who they were? */
int vhca_osm_dynamic_check(const struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			   struct vhca_error *err);
/* Locked: where the ways to the LID come from. False: they are left to the engine. */
bool vhca_osm_dynamic_copy(const struct osm_opensm *osm, const struct vhca_osm_dynamic_lid *row,
			   const struct vhca_osm_snapshot *s, struct vhca_osm_copy *ret);
/*
 * Locked: when it is freed, do the switches have to drop what is for it? Not if it is a port's, the
 * vGUID's or another one's.
 */
bool vhca_osm_dynamic_may_drop(const struct osm_opensm *osm,
			       const struct vhca_osm_dynamic_lid *row);
/*
 * Locked: what changes for the pair. Nothing where the vGUID is at another hypervisor, and where a
 * freed LID is a port's of its own. As vhca_osm_lid_copy_plan().
 */
int vhca_osm_dynamic_plan(const struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			  const struct vhca_osm_snapshot *s, struct vhca_osm_lid_plan *ret);
/*
 * Exclusively locked: as it will be, or with `undo` as it was, in OpenSM's tables and ours; what
 * another one has got meanwhile is not taken from it again. Adds to `out` what has lost its line:
 * that is nobody's, and given to nobody before vhca_osm_dynamic_free(). 0 or -ENOMEM.
 */
int vhca_osm_dynamic_set(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t,
			 const struct vhca_osm_lid_pair *pair, bool undo,
			 struct vhca_osm_lid_set *out);
/* Exclusively locked: OpenSM may give these to ports again. */
void vhca_osm_dynamic_free(struct osm_opensm *osm, const struct vhca_osm_lid_set *out);

#endif
