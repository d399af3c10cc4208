/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_LID_OPS_H
#define VHCA_OPENSM_LIDS_LID_OPS_H
/*
 * What a move of a LID needs of OpenSM, as an ops table: everything above is tested without OpenSM;
 * opensm/osm/lids.c is the real one. Called by the plugin's thread only, without OpenSM's lock;
 * each call takes and releases it. None waits for an answer from the fabric.
 */
#include "common/base/error.h"
#include "opensm/lids/plan.h"

/*
 * A dynamic LID is the vGUID's, whether OpenSM knows a port with that GUID or not, and reached by
 * the ways to a PF.
 */
enum vhca_osm_dynamic {
	VHCA_OSM_NOT_DYNAMIC,
	VHCA_OSM_LID_GIVEN, /* the vGUID gets one, or the one that it has goes to another PF */
	VHCA_OSM_LID_FREED,
};

/*
 * What is asked for: a LID at a port; or, if vguid is not 0, a virtual port at another place, with
 * its LID; or a dynamic LID.
 */
struct vhca_osm_lid_want {
	uint16_t lid;	    /* 0 with a vguid: the one that it has */
	uint64_t from_port; /* a LID that is another one's is lid_elsewhere; 0 = any */
	/* with a vguid: of the HCA that it goes to; freed: only while it is away (0 = any) */
	uint64_t port_guid;
	uint64_t vguid;
	uint16_t vport; /* there: the vport-th port after the HCA's own on the same switch */
	enum vhca_osm_dynamic dynamic;
	bool is_new; /* given: vhca_osm_mover_check() has promised the vGUID its first one */
};

/*
 * guid[i] has lid[i]. They exchange their LIDs; or, if they are `vports`, their places, and each
 * keeps GUID and LID. Dynamic: the first is the vGUID with its LID, the second its PF with the PF's
 * LID (0 = not in the subnet now), of which nothing changes.
 */
struct vhca_osm_lid_pair {
	uint64_t guid[2];
	uint16_t lid[2];
	bool vports;
	uint64_t hca_guid; /* vports: the second is at this HCA's ... */
	uint16_t vport;	   /* ... vport-th, until somebody exchanges them: we or a sweep */
	enum vhca_osm_dynamic dynamic;
	uint64_t old_pf;  /* dynamic, given: where the LID was; 0 = it is a new one */
	uint16_t old_lid; /* given: what OpenSM kept for the vGUID before; 0 = nothing */
};

struct vhca_osm_lid_cost {
	enum vhca_osm_move_mode mode; /* the one taken */
	size_t switches;
	size_t lft_smps, port_smps;
	size_t drain_smps; /* LFT SMPs before those; 0 = is not drained */
	size_t groups;	   /* whose multicast trees OpenSM makes anew; not waited for */
};

struct vhca_osm_lid_place {
	/*
	 * whose dynamic LID this is, 0 = it is none; without a port of its own the place is the
	 * PF's
	 */
	uint64_t vguid;
	uint64_t port_guid, node_guid,
		/* switch: what the port is plugged into; 0 = none, or a switch itself */
		switch_guid;
	/* its switch, or, where that is a hypervisor, the leaf above; 0 = none */
	uint64_t leaf_guid;
	uint8_t switch_port;
	bool is_switch;
	char node[65]; /* NodeDescription */
};

/* LIDs of end points: 1 to 0xbfff. */
#define VHCA_OSM_LIDS 0xc000
struct vhca_osm_lid_set {
	uint64_t bits[VHCA_OSM_LIDS / 64];
};

static inline void vhca_osm_lid_set_add(struct vhca_osm_lid_set *set, uint16_t lid)
{
	if (lid < VHCA_OSM_LIDS)
		set->bits[lid / 64] |= 1ULL << lid % 64;
}

static inline bool vhca_osm_lid_set_has(const struct vhca_osm_lid_set *set, uint16_t lid)
{
	return lid < VHCA_OSM_LIDS && set->bits[lid / 64] & 1ULL << lid % 64;
}

/*
 * New dynamic LIDs of those that wait, which have theirs in mind already: nobody else is to get
 * them. Those that are given together are best of one block of 64, which is sent once for all.
 */
struct vhca_osm_lids_promised {
	struct vhca_osm_lid_set lids;
	size_t n;
	size_t wanted; /* so many are still to be chosen, this one included */
	size_t ahead;  /* and for so many that have come before it there have to be LIDs left */
};

/* One of several dynamic LIDs that are given, or freed, together. */
struct vhca_osm_lid_part {
	const struct vhca_osm_lid_pair *pair;
	const struct vhca_osm_lid_plan *plan;
	struct vhca_osm_lid_cost *cost;
	bool resend;	      /* what of it is missing is to be sent again */
	size_t blocks, ports; /* of its SMPs, so many were not acknowledged */
	int refused;	      /* 0, or negative: err says why */
	struct vhca_error err;
};

struct vhca_osm_fabric_info {
	size_t switches, ports; /* ports: end ports, switches' own included */
	uint16_t max_lid, sm_lid;
	size_t dynamic_lids, dynamic_max;
	uint64_t sm_port_guid;
	const char *engine; /* routing engine in use, "none" before the first sweep */
};

/* As of the end of the last sweep, but for the dynamic and the kept ones. */
struct vhca_osm_lid_counts {
	size_t dynamic; /* that are given */
	size_t lines;	/* of guid2lid */
	size_t free;	/* no port's, and kept for none */
	uint64_t freed; /* that were kept for GUIDs which have gone; since the start */
	size_t kept;	/* with ways that moves have left, not the routing engine, now */
};

struct vhca_osm_lid_ops {
	/*
	 * Who has to exchange what so that it is so. 1: it is so already, and both of the pair are
	 * the port that has it. promised: NULL is none. Errors: see libvhcasm(7).
	 */
	int (*resolve)(void *ctx, const struct vhca_osm_lid_want *want,
		       const struct vhca_osm_lids_promised *promised, struct vhca_osm_lid_pair *ret,
		       struct vhca_error *err);
	/*
	 * What the exchange would change now, and what that would cost. The caller releases the
	 * plan after success, by vhca_osm_lid_plan_done().
	 */
	int (*plan)(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		    struct vhca_osm_lid_plan *ret, struct vhca_osm_lid_cost *ret_cost,
		    struct vhca_error *err);
	/*
	 * Writes the LIDs of n pairs, of which no two share a port (but dynamic ones a PF), as they
	 * will be (or, with
	 * `undo`, as they are) to OpenSM's guid2lid file, dynamic ones to a file of our own: all or
	 * none. Blocking (one fsync for each file). Vports keep theirs: nothing to do.
	 */
	int (*remember)(void *ctx, const struct vhca_osm_lid_pair *pairs, size_t n, bool undo);
	/*
	 * Before anything else changes: these switches shall drop what is for the pair's LIDs.
	 * Returns how many blocks do not do so yet; send: queues those. 0 at once where that is not
	 * configured, and for dynamic LIDs. Not kept in OpenSM's tables: missing() with resend
	 * undoes it.
	 */
	size_t (*drain)(void *ctx, const struct vhca_osm_lid_pair *pair,
			const struct vhca_osm_switch_set *at, bool send);
	/*
	 * Carries out what plan() has made for the pair and the mode: changes OpenSM's tables and
	 * queues the SMPs, all but drain_smps of `ret`, and but the keys. An error means that
	 * nothing was changed. After a sweep it is planned anew; if other switches than the plan's,
	 * or more, have to change then, that is an error, too (changed_meanwhile).
	 */
	int (*send)(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		    const struct vhca_osm_lid_plan *plan, struct vhca_osm_lid_cost *ret,
		    struct vhca_error *err);
	/*
	 * The same of n dynamic LIDs under one take of OpenSM's lock: all tables first, then each
	 * block that differs once to each switch. What one is refused for (`refused`) concerns no
	 * other one. Fills cost, blocks and ports; returns how many LFT SMPs that is.
	 */
	size_t (*send_together)(void *ctx, struct vhca_osm_lid_part *parts, size_t n);
	/*
	 * Queues the P_Key tables of all vports that were sent to other places since it was last
	 * called. OpenSM looks at every port for that, so it is one call for all that begin
	 * together, before any of them is looked at again.
	 */
	void (*send_keys)(void *ctx);
	/*
	 * How many of its SMPs were not acknowledged; resend: and queues those again. Looks at
	 * these switches, or at all (NULL): a block in which the pair's LIDs are may be under way
	 * to another switch for somebody else.
	 */
	size_t (*missing)(void *ctx, const struct vhca_osm_lid_pair *pair,
			  const struct vhca_osm_switch_set *at, bool resend);
	/*
	 * The same of dynamic LIDs that were sent together, of their own blocks: fills blocks and
	 * ports, sends again once to each switch and port what of those with `resend` is missing,
	 * and returns how many blocks are missing in all.
	 */
	size_t (*missing_together)(void *ctx, struct vhca_osm_lid_part *parts, size_t n);
	/*
	 * May it be called done, even if something is missing? Not if that is a vport's keys: at
	 * its place are those of the one before it, and by that answer its agent would give it to a
	 * guest. Nor if OpenSM does not know yet which keys those are. Errors: keys_on_the_way.
	 */
	int (*check_done)(void *ctx, const struct vhca_osm_lid_pair *pair, struct vhca_error *err);
	/* Does not wait for OpenSM's lock, which a sweep holds for long. */
	bool (*is_master)(void *ctx);
	/* Of the scale of vhca_osm_mover_run(): how long remember() takes. */
	uint64_t (*now_ms)(void *ctx);
	/* After this time an SMP that has no answer gets none. */
	unsigned int (*timeout_ms)(void *ctx);
	/* Without OpenSM's lock, too. */
	void (*counts)(void *ctx, struct vhca_osm_lid_counts *ret);
	bool (*find)(void *ctx, uint16_t lid, struct vhca_osm_lid_place *ret);
	/* Of which find() knows a place; of a port with several LIDs (LMC) the first. */
	void (*list)(void *ctx, struct vhca_osm_lid_set *ret);
	void (*info)(void *ctx, struct vhca_osm_fabric_info *ret);
	void (*sweep)(void *ctx);
	/* All LIDs are to get the routing engine's ways. Errors: as of resolve(). */
	int (*rebalance)(void *ctx, struct vhca_error *err);
};

#endif
