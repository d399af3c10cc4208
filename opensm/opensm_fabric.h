/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OPENSM_FABRIC_H
#define VHCA_OPENSM_OPENSM_FABRIC_H
/* The subnet's switches as OpenSM has them now, in the form that moves are planned on. The caller holds OpenSM's lock from
 * making it to the last use. */
#include "opensm/fabric.h"

struct osm_opensm;
struct osm_port;
struct osm_switch;

struct vhca_osm_snapshot {
	struct vhca_osm_fabric fabric;
	struct osm_switch **switches; /* by address; same index as in fabric */
};

/* -ENOMEM; -EAGAIN when a switch has no wanted table yet. */
int vhca_osm_snapshot_take(struct osm_opensm *osm, struct vhca_osm_snapshot *ret);
void vhca_osm_snapshot_done(struct vhca_osm_snapshot *s);
/* Where an end port is plugged in; false if that is no switch of the snapshot. */
bool vhca_osm_snapshot_place(const struct vhca_osm_snapshot *s, const struct osm_port *port,
			     struct vhca_osm_place *ret);

#endif
