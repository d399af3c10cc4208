/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_CABLES_H
#define VHCA_OPENSM_LIDS_CABLES_H
/*
 * The cables between switches over which ways are balanced: not those to a switch with one
 * neighbour, as a hypervisor is, whose traffic has no other way.
 */
#include "opensm/lids/fabric.h"

struct vhca_osm_cable {
	uint64_t guid, peer; /* switches */
	uint8_t port;	     /* of the first one */
};

/* All zero: none. */
struct vhca_osm_cables {
	size_t n;
	struct vhca_osm_cable *rows; /* in order */
};

/*
 * Takes those of the fabric in place of what was seen last. 1: there is one that was not there
 * before; 0; -ENOMEM.
 */
int vhca_osm_cables_look(struct vhca_osm_cables *c, const struct vhca_osm_fabric *f);
void vhca_osm_cables_done(struct vhca_osm_cables *c);

#endif
