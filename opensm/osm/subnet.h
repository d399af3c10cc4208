/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_SUBNET_H
#define VHCA_OPENSM_OSM_SUBNET_H
/*
 * The subnet as OpenSM's own tables show it: the real operations of subnet.h. Only opensm_*.c and
 * plugin.c know OpenSM.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "opensm/bindings/subnet.h"
#include "opensm/lids/gate.h"
#include "opensm/osm/pkeys.h"
#include "opensm/osm/vports.h"

struct osm_opensm;

/* ctx of the operations. */
struct vhca_osm_opensm {
	struct osm_opensm *osm; /* borrowed */
	struct vhca_osm_gate *gate;
	/*
	 * A heavy sweep of this mastership is complete. OpenSM's own flag says so for a moment
	 * before the first one, too: it becomes master before it sets the flag.
	 */
	atomic_bool swept;
	/* The plugin's thread only. */
	uint64_t guid_info_smps; /* of evictions */
	uint64_t master_guid,
		seen_ms; /* as of the last look into OpenSM's tables, and when that was */
	struct vhca_osm_pkey_watch pkeys;
	struct vhca_osm_physical physical; /* under OpenSM's lock */
};

extern const struct vhca_osm_subnet_ops vhca_osm_opensm_ops;

/*
 * From OpenSM's sweeper, without the lock: a sweep begins or the state has changed (else: a sweep
 * is complete).
 */
void vhca_osm_opensm_swept(struct vhca_osm_opensm *o, bool complete);

#endif
