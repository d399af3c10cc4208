/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_SUBNET_H
#define VHCA_OPENSM_BINDINGS_SUBNET_H
/*
 * The questions that the plugin asks OpenSM about the subnet, and the two things that it tells it.
 * An ops table, so that everything above is tested without OpenSM; opensm/osm/subnet.c is the real
 * one. GUIDs are in host order. Each call takes OpenSM's lock for a short time and releases it:
 * never call one with that lock held (LFT_CHANGE and TRAP events). OpenSM keeps it for minutes
 * while it computes the ways through a large fabric; only is_busy(), status() and smps() do not
 * wait for it. Who waits in the plugin's thread answers for its health meanwhile (osm/lock.h).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define VHCA_OSM_PORT_ACTIVE 4 /* PortInfo:PortState */

struct vhca_osm_port_info {
	uint16_t lid;
	uint8_t state;	   /* PortInfo:PortState: 1 Down, 2 Initialize, 3 Armed, 4 Active */
	uint16_t pkey_cap; /* entries of the port's P_Key table */
};

struct vhca_osm_alias {
	uint64_t port_guid;
	int gid_index; /* -1: at this port, but in no entry of its GUID table that OpenSM knows */
};

struct vhca_osm_status {
	const char *sm_state; /* "master", "standby", "discovering", "not-active" */
	bool master;
	bool ready;	      /* master, and the first sweep is complete */
	uint64_t master_guid; /* port GUID of the master as far as known, 0 = unknown */
	const char *version;  /* OpenSM's version string */
	/* Since OpenSM's tables could be read; above 0 while it changes them, as when it computes
	 * ways. What is above is as of now, but for another master's GUID. */
	uint64_t age_ms;
};

/*
 * What OpenSM was handed for sending on the plugin's account, beside the SMPs of moves (mover.h).
 */
struct vhca_osm_smps {
	uint64_t guid_info; /* GUID tables from which aliases were evicted */
	/* what the partition file says, to ports and to the switch ports in front of them */
	uint64_t pkey_table;
};

#define VHCA_OSM_TABLE_MAX 128
typedef void (*vhca_osm_port_fn)(void *arg, uint64_t port_guid, const uint16_t *pkeys, size_t n);

struct vhca_osm_subnet_ops {
	/* Would the others wait now? */
	bool (*is_busy)(void *ctx);
	void (*status)(void *ctx, struct vhca_osm_status *ret);
	bool (*find_port)(void *ctx, uint64_t port_guid, struct vhca_osm_port_info *ret);
	/* Who holds this GUID: as alias, or as its own port GUID (index 0). */
	bool (*find_alias)(void *ctx, uint64_t guid, struct vhca_osm_alias *ret);
	/* Takes an alias away from the place where it stands: all that the SA knows of it there
	 * goes at once (the alias, its index in the port's GUID table, its multicast
	 * memberships), and OpenSM is asked to write the table into the port. Returns the number
	 * of GUIDInfo blocks that it writes, or -ENOENT if the alias does not stand at *at any
	 * more or is the port's own GUID. */
	int (*evict)(void *ctx, uint64_t guid, const struct vhca_osm_alias *at);
	/* The same of the port that is the HCA's vport-th virtual one now (lid_ops.h). */
	bool (*find_vport)(void *ctx, uint64_t hca_port_guid, uint16_t vport,
			   struct vhca_osm_port_info *ret);
	/*
	 * True if the port is a virtual one of the HCA: after it, on the switch that is their
	 * hypervisor.
	 */
	bool (*is_vport_of)(void *ctx, uint64_t port_guid, uint64_t hca_port_guid);
	/* True of a port of the subnet that the last sweep has shown to be no virtual one. */
	bool (*is_physical)(void *ctx, uint64_t port_guid);
	bool (*has_pkey)(void *ctx, uint64_t port_guid, uint16_t pkey);
	/*
	 * Calls fn once for each HCA port with the keys of its table (at most VHCA_OSM_TABLE_MAX,
	 * without empty entries). fn is called with OpenSM's lock held: it must not call any of
	 * these operations.
	 */
	void (*each_port)(void *ctx, vhca_osm_port_fn fn, void *arg);
	/*
	 * Has OpenSM read the partition file, and send each port what has changed in its table.
	 * -EBUSY: a sweep is under way; -EAGAIN: OpenSM is not ready, or cannot, and has to be
	 * asked for a sweep.
	 */
	int (*apply)(void *ctx);
	/*
	 * Of the ports that have been sent something by the last apply(), how many have not
	 * answered. What an older SMP may have undone meanwhile is sent once more.
	 */
	size_t (*unanswered)(void *ctx);
	/* Asks for a heavy sweep, in which OpenSM reads the partition file. Returns at once. */
	void (*sweep)(void *ctx);
	void (*smps)(void *ctx, struct vhca_osm_smps *ret);
};

/* The operations with their first argument, as they are handed around. */
struct vhca_osm_subnet {
	const struct vhca_osm_subnet_ops *ops;
	void *ctx;
};

/* Error: not_master, which says where to go instead. */
int vhca_osm_check_master(const struct vhca_osm_subnet *subnet, struct vhca_error *err);

#endif
