/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_FABRIC_H
#define VHCA_OPENSM_OSM_FABRIC_H
/*
 * The subnet's switches as OpenSM has them now, in the form that moves are planned on. The caller
 * holds OpenSM's lock from making it to the last use.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "opensm/lids/channels.h"
#include "opensm/lids/fabric.h"
#include "opensm/lids/lid_ops.h"

struct osm_opensm;
struct osm_physp;
struct osm_port;
struct osm_switch;

/* OpenSM's own tables begin with their links, so a row is its link. */
#define VHCA_OSM_FOREACH(type, row, map)                                                      \
	for (type *row = (type *)cl_qmap_head(map); (cl_map_item_t *)row != cl_qmap_end(map); \
	     row = (type *)cl_qmap_next((cl_map_item_t *)row))
#define VHCA_OSM_FOREACH_PORT(port, subn) \
	VHCA_OSM_FOREACH (osm_port_t, port, &(subn)->port_guid_tbl)
#define VHCA_OSM_FOREACH_SWITCH(sw, subn) VHCA_OSM_FOREACH (osm_switch_t, sw, &(subn)->sw_guid_tbl)

/* The switch's port that this one is plugged into; NULL if it is at no switch, or NULL itself. */
struct osm_physp *vhca_osm_switch_port(const struct osm_port *port);

struct vhca_osm_snapshot {
	struct vhca_osm_fabric fabric;
	struct osm_switch **switches; /* by address; same index as in fabric */
};

/* -ENOMEM; -EAGAIN when a switch has no wanted table yet. */
int vhca_osm_snapshot_take(struct osm_opensm *osm, struct vhca_osm_snapshot *ret);
void vhca_osm_snapshot_done(struct vhca_osm_snapshot *s);
/* LIDs that ports have, or show; to look at all ports is nearly all that a choice of one costs. */
struct vhca_osm_kept_lids {
	bool looked;
	uint64_t at; /* as of the snapshot */
	struct vhca_osm_lid_set has;
};

/*
 * A snapshot that is kept from move to move: all but the tables, which are looked at anew, changes
 * in heavy sweeps, and where OpenSM computes ways without one (routing.h). To make one is nearly
 * all that a plan costs in a large subnet.
 */
struct vhca_osm_kept_snapshot {
	atomic_bool sweeping;
	atomic_uint_fast64_t sweeps; /* begun and ended */
	uint64_t at;		     /* of these the snapshot */
	struct vhca_osm_snapshot s;
	struct vhca_osm_channels channels;   /* of its tables ... */
	uint64_t computations;		     /* ... after so many computations of ways */
	struct vhca_osm_kept_lids port_lids; /* dynamic.c's */
};

/* From OpenSM's sweeper: a heavy sweep begins (else: has ended), before it changes anything. */
void vhca_osm_kept_snapshot_swept(struct vhca_osm_kept_snapshot *k, bool begins);
/*
 * From one thread only, with OpenSM's lock; what it returns is the caller's only as long as it
 * holds that. Errors: as of snapshot_take().
 */
int vhca_osm_kept_snapshot_get(struct vhca_osm_kept_snapshot *k, struct osm_opensm *osm,
			       const struct vhca_osm_snapshot **ret);
/* Is the snapshot that get() made when `at` was this still good? Not after a heavy sweep. */
bool vhca_osm_kept_snapshot_holds(const struct vhca_osm_kept_snapshot *k, uint64_t at);
void vhca_osm_kept_snapshot_done(struct vhca_osm_kept_snapshot *k);
/* Where an end port is plugged in; false if that is no switch of the snapshot. */
bool vhca_osm_snapshot_place(const struct vhca_osm_snapshot *s, const struct osm_port *port,
			     struct vhca_osm_place *ret);

#endif
