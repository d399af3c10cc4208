/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LID_OPS_H
#define VHCA_OPENSM_LID_OPS_H
/*
 * What a move of a LID needs of OpenSM, as an ops table: everything above is tested without OpenSM; opensm_lids.c is the real one.
 * Called by the plugin's thread only, without OpenSM's lock; each call takes and releases it. None waits for an answer from
 * the fabric.
 */
#include "common/base/error.h"
#include "opensm/lid_plan.h"

/* guid[i] has lid[i]; they exchange them. */
struct vhca_osm_lid_pair {
	uint64_t guid[2];
	uint16_t lid[2];
};

struct vhca_osm_lid_cost {
	enum vhca_osm_move_mode mode; /* the one taken */
	size_t switches;
	size_t lft_smps, port_smps;
};

struct vhca_osm_lid_place {
	uint64_t port_guid,
		switch_guid; /* switch: what the port is plugged into; 0 = none, or a switch itself */
	uint8_t switch_port;
	bool is_switch;
	char node[65]; /* NodeDescription */
};

struct vhca_osm_fabric_info {
	size_t switches, ports; /* ports: end ports, switches' own included */
	uint16_t max_lid, sm_lid;
	uint64_t sm_port_guid;
	const char *engine; /* routing engine in use, "none" before the first sweep */
};

struct vhca_osm_lid_ops {
	/* Who has to exchange LIDs so that port_guid gets lid. 1: it has it already. Errors: see libvhcasm(7). */
	int (*resolve)(void *ctx, uint16_t lid, uint64_t port_guid, struct vhca_osm_lid_pair *ret,
		       struct vhca_error *err);
	/* What the exchange would cost now. */
	int (*plan)(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		    struct vhca_osm_lid_cost *ret, struct vhca_error *err);
	/* Writes the LIDs as they will be (or, with `undo`, as they are) to OpenSM's guid2lid file. Blocking (fsync). */
	int (*remember)(void *ctx, const struct vhca_osm_lid_pair *pair, bool undo);
	/* Changes OpenSM's tables and queues the SMPs. An error means that nothing was changed. */
	int (*send)(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		    struct vhca_osm_lid_cost *ret, struct vhca_error *err);
	/* How many of its SMPs were not acknowledged; resend: and queues those again. */
	size_t (*missing)(void *ctx, const struct vhca_osm_lid_pair *pair, bool resend);
	/* After this time an SMP that has no answer gets none. */
	unsigned int (*timeout_ms)(void *ctx);
	bool (*find)(void *ctx, uint16_t lid, struct vhca_osm_lid_place *ret);
	void (*info)(void *ctx, struct vhca_osm_fabric_info *ret);
	void (*sweep)(void *ctx);
};

#endif
