/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_IDLE_H
#define VHCA_OPENSM_LIDS_IDLE_H
/*
 * LIDs that nobody comes back for. OpenSM keeps a line of guid2lid for each GUID that it has once
 * seen. A line is idle while no port has its GUID, no other port its LID, and either
 *  - the vGUID had a port of its own, and was withdrawn by whoever had it last; or
 *  - its port was a virtual one when it was last seen, beside a PF to which guests with ports of
 *    their own are bound, and nobody reports it: the GUID that a VF shows while it has no guest.
 * A line that is idle for the whole grace goes. Whatever comes back within it, a port or a binding,
 * begins it anew. Of other GUIDs, as those of hosts that are switched off, the line stays.
 *
 * Nothing here is durable: after a restart each grace begins anew, and which ports were virtual is
 * known of those that are seen again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vhca_osm_lid_line {
	uint64_t guid;	  /* must stay first */
	uint64_t pf_guid; /* here: of the HCA whose virtual port it is, 0 = it is none */
	uint16_t lid;
	bool here;  /* a port has the GUID */
	bool taken; /* another port has the LID */
};

/* What agents say of a GUID. */
enum vhca_osm_lid_claim {
	VHCA_OSM_LID_UNCLAIMED,
	VHCA_OSM_LID_CLAIMED,
	VHCA_OSM_LID_WITHDRAWN,
};

struct vhca_osm_lid_claims {
	enum vhca_osm_lid_claim (*find)(void *ctx, uint64_t guid);
	bool (*has_guests)(void *ctx, uint64_t pf_guid);
	void *ctx;
};

struct vhca_osm_idle_lid {
	uint64_t guid;	  /* must stay first */
	uint64_t pf_guid; /* where it was seen last */
	uint64_t since;	  /* 0 = it is not idle */
	uint16_t lid;
};

/* In the order of GUIDs: of each line that is idle, or whose port was a virtual one. */
struct vhca_osm_idle_lids {
	struct vhca_osm_idle_lid *rows;
	size_t n;
};

/*
 * The lines as they are now, sorted here. begin: the time, where what is not here has gone; 0 if it
 * may only not have answered: that begins no grace, and ends none. 0, or -ENOMEM: all is as it was.
 */
int vhca_osm_idle_lids_look(struct vhca_osm_idle_lids *t, struct vhca_osm_lid_line *lines, size_t n,
			    const struct vhca_osm_lid_claims *claims, uint64_t begin);
/* When the first grace ends; UINT64_MAX = nothing is idle. */
uint64_t vhca_osm_idle_lids_deadline(const struct vhca_osm_idle_lids *t, uint64_t grace);
void vhca_osm_idle_lids_done(struct vhca_osm_idle_lids *t);

#endif
