/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_IDLE_H
#define VHCA_OPENSM_OSM_IDLE_H
/*
 * Lines of guid2lid that are given back (opensm/lids/idle.h says which). A dynamic LID's line is
 * its table's. All of it is the plugin's thread's, without OpenSM's lock.
 */
#include "opensm/lids/gate.h"
#include "opensm/lids/idle.h"
#include "opensm/lids/lid_ops.h"

struct osm_opensm;
struct vhca_osm_dynamic_lids;

struct vhca_osm_idle {
	struct osm_opensm *osm;			     /* borrowed */
	struct vhca_osm_gate *gate;		     /* borrowed */
	const struct vhca_osm_dynamic_lids *dynamic; /* borrowed */
	struct vhca_osm_lid_claims claims;
	struct vhca_osm_idle_lids lids;
	struct vhca_osm_lid_counts counts;
	bool errors; /* the last sweep that has ended had some: the caller says so before a look */
};

/*
 * Counts, and notes which lines are idle: of ports that a sweep with errors misses no more than
 * before, because these may only not have answered. For the end of a sweep. 0 or -ENOMEM.
 */
int vhca_osm_idle_look(struct vhca_osm_idle *idle, uint64_t now);
/*
 * Takes out the lines whose grace is over, if they still are idle: of the file first, so that no
 * LID is kept for two GUIDs after a crash. Blocking (an fsync, if there is one). -EAGAIN: a sweep
 * is under way; -errno: the file could not be written, and nothing has changed.
 */
int vhca_osm_idle_give_back(struct vhca_osm_idle *idle, uint64_t grace, uint64_t now);
void vhca_osm_idle_done(struct vhca_osm_idle *idle);

#endif
