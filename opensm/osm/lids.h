/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_LIDS_H
#define VHCA_OPENSM_OSM_LIDS_H
/* Moving LIDs in OpenSM's own tables and on the wire: the real operations of lid_ops.h. */
#include "opensm/lids/dynamic.h"
#include "opensm/lids/lid_ops.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/routing.h"
#include "opensm/osm/subnet.h"

struct osm_opensm;

/*
 * What a move asks of those who know which keys a port needs, both without OpenSM's lock; plugin.c
 * sets it. Error of both: keys_on_the_way.
 */
struct vhca_osm_key_checks {
	/* Has OpenSM read all that was reported about the port's keys? */
	int (*check_shown)(void *ctx, uint64_t port_guid, struct vhca_error *err);
	/* Has the port got all that it needs, as far as OpenSM knows? */
	int (*check_keys)(void *ctx, uint64_t port_guid, struct vhca_error *err);
	void *ctx;
};

/* ctx of the operations. */
struct vhca_osm_lids {
	struct osm_opensm *osm;		/* borrowed */
	struct vhca_osm_opensm *subnet; /* borrowed */
	struct vhca_osm_key_checks keys;
	struct vhca_osm_routing *routing;	   /* borrowed */
	struct vhca_osm_dynamic_lids *dynamic;	   /* borrowed */
	const char *dynamic_path;		   /* its file; borrowed */
	struct vhca_osm_kept_snapshot *kept;	   /* borrowed */
	const struct vhca_osm_lid_counts *counted; /* borrowed */
	bool enabled;				   /* else none moves */
	bool drain;	/* moves drop packets to their LIDs before they change ways */
	bool keys_lack; /* vports have exchanged places since keys were sent */
};

extern const struct vhca_osm_lid_ops vhca_osm_opensm_lid_ops;

#endif
