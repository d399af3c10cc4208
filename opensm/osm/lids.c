/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/lids.h"

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "opensm/osm/dynamic.h"
#include "opensm/osm/lid_file.h"
#include "opensm/osm/lock.h"
#include "opensm/osm/places.h"
#include "opensm/osm/smps.h"
#include "opensm/osm/vports.h"

#include <errno.h>
#include <string.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_ptr_vector.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_sm.h>
#include <opensm/osm_switch.h>

static osm_opensm_t *osm_of(void *ctx)
{
	struct vhca_osm_lids *lids = ctx;

	return lids->osm;
}

/* ---- who, and may they ---- */

/* Caller holds the lock. */
static int check_ready(const struct vhca_osm_lids *lids, struct vhca_error *err)
{
	const struct vhca_osm_subnet subnet = {&vhca_osm_opensm_ops, lids->subnet};
	struct vhca_osm_status status;
	int r;

	subnet.ops->status(subnet.ctx, &status);
	if (osm_exit_flag)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "ending", 0, "OpenSM ends");
	r = vhca_osm_check_master(&subnet, err);
	if (r == 0 && !status.ready)
		r = vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "sweep_in_progress", 0,
				   "the first sweep is not complete");
	return r;
}

static int check_movable(const struct vhca_osm_lids *lids, struct vhca_error *err)
{
	const osm_subn_opt_t *opt = &lids->osm->subn.opt;
	int r;

	if (!lids->enabled) {
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, "cannot_move", 0, "LIDs stay here");
		vhca_error_hint(err, "enable = yes in section [lids] of vhcasm.conf");
		return r;
	}
	if (opt->lmc || opt->use_ucast_cache)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "cannot_move", 0,
				      "LIDs cannot move with `%s` in opensm.conf",
				      opt->lmc ? "lmc" : "use_ucast_cache");
	if (vhca_osm_routing_can_move(lids->routing))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "cannot_move", 0,
			   "LIDs cannot move under the routing engine %s",
			   vhca_osm_routing_name(lids->routing));
	vhca_error_hint(err, "minhop, updn, dnup, ftree and dfsssp can");
	return r;
}

/* A guest ends whether LIDs can move or not: its own is freed in any case. Caller holds the
 * lock. */
static int check_subnet(const struct vhca_osm_lids *lids, enum vhca_osm_dynamic dynamic,
			struct vhca_error *err)
{
	int r = check_ready(lids, err);

	return r < 0 || dynamic == VHCA_OSM_LID_FREED ? r : check_movable(lids, err);
}

/* Caller holds the lock. */
static int check_port(const struct vhca_osm_lids *lids, const osm_port_t *port,
		      struct vhca_error *err)
{
	const osm_subn_t *subn = &lids->osm->subn;
	const char *guid = VHCA_GUID_STR(cl_ntoh64(port->guid));
	int r;

	if (osm_node_get_type(port->p_node) != IB_NODE_TYPE_CA)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "switch_lid", 0,
				      "port %s is no HCA's: its LID stays", guid);
	if (port->guid == subn->sm_port_guid)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "sm_port", 0,
				      "port %s is this subnet manager's own: its LID stays", guid);
	if (!vhca_osm_switch_port(port))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
				      "port %s is at no switch now", guid);
	if (!vhca_osm_dynamic_lids_find(lids->dynamic, cl_ntoh64(port->guid)))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "dynamic_lid", 0,
			   "port %s has a dynamic LID: it is not exchanged", guid);
	vhca_error_hint(err, "report where it is, with lid_policy \"dynamic\"");
	return r;
}

static int find_lid(const osm_subn_t *subn, const struct vhca_osm_lid_want *want,
		    osm_port_t *ret[static 2], struct vhca_error *err)
{
	ret[0] = vhca_osm_port_by_lid(subn, want->lid);
	ret[1] = osm_get_port_by_guid(subn, cl_hton64(want->port_guid));
	if (!ret[0])
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "unknown_lid", 0,
				      "LID %u belongs to no port now", want->lid);
	if (!ret[1])
		return vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
				      "port %s is not in the subnet now",
				      VHCA_GUID_STR(want->port_guid));
	return 0;
}

/*
 * What changes when a vport comes or goes, OpenSM finds out by itself: here both places are taken
 * before and after.
 */
static int find_vport(const osm_subn_t *subn, const struct vhca_osm_lid_want *want,
		      osm_port_t *ret[static 2], struct vhca_error *err)
{
	int r = 0;

	ret[0] = osm_get_port_by_guid(subn, cl_hton64(want->vguid));
	ret[1] = vhca_osm_vport_at(subn, want->port_guid, want->vport);
	if (!ret[0])
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
				   "no port has the GUID %s now", VHCA_GUID_STR(want->vguid));
	else if (!ret[1])
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
				   "nothing is at vport %u of the HCA with port %s now",
				   want->vport, VHCA_GUID_STR(want->port_guid));
	if (r < 0)
		vhca_error_hint(err, "OpenSM's next heavy sweep finds the GUID where it is, and "
				     "its LID with it");
	return r;
}

/* What OpenSM knows of a node goes with a vport: so that must be its only one. */
static int check_alone(osm_port_t *const port[static 2], struct vhca_error *err)
{
	int r = 0;

	for (int i = 0; i < 2 && r == 0 && port[0] != port[1]; i++)
		if (port[i]->p_node->node_info.num_ports > 1)
			r = vhca_error_set(err, VHCA_ERR_CONFLICT, "cannot_move", 0,
					   "port %s shares its node with another: virtual ports "
					   "cannot go from there, nor to there",
					   VHCA_GUID_STR(cl_ntoh64(port[i]->guid)));
	return r;
}

static int find_ports(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_want *want,
		      osm_port_t *ret[static 2], struct vhca_error *err)
{
	const osm_subn_t *subn = &lids->osm->subn;
	int r = check_subnet(lids, VHCA_OSM_NOT_DYNAMIC, err);

	if (r == 0)
		r = want->vguid ? find_vport(subn, want, ret, err) : find_lid(subn, want, ret, err);
	for (int i = 0; i < 2 && r == 0; i++)
		r = check_port(lids, ret[i], err);
	if (r == 0 && want->vguid)
		r = check_alone(ret, err);
	return r;
}

/* What nobody has is freed already, whatever OpenSM is at. */
static int resolve_dynamic(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_want *want,
			   const struct vhca_osm_lids_promised *promised,
			   struct vhca_osm_lid_pair *ret, struct vhca_error *err)
{
	osm_opensm_t *osm = lids->osm;
	int r;

	*ret = (struct vhca_osm_lid_pair){.guid = {want->vguid}, .dynamic = want->dynamic};
	if (want->dynamic == VHCA_OSM_LID_FREED &&
	    !vhca_osm_dynamic_lids_find(lids->dynamic, want->vguid))
		return 1;
	vhca_osm_lock_shared(osm);
	r = check_subnet(lids, want->dynamic, err);
	if (r == 0)
		r = vhca_osm_dynamic_resolve(osm, lids->dynamic, lids->kept, want, promised, ret,
					     err);
	vhca_osm_unlock(osm);
	return r;
}

static int refuse_pending_keys(uint64_t guid, struct vhca_error *err)
{
	return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_KEYS_ON_THE_WAY, 0,
			      "port %s has not acknowledged its P_Keys yet", VHCA_GUID_STR(guid));
}

/*
 * An SMP that is lost is sent again to the same place, where another port would be by then. The
 * lock is held.
 */
static int check_keys(const struct vhca_osm_lids *lids, osm_port_t *const port[static 2],
		      struct vhca_error *err)
{
	for (int i = 0; i < 2; i++) {
		uint64_t guid = cl_ntoh64(port[i]->guid);

		if (vhca_osm_pkeys_are_pending(lids->osm, &lids->subnet->pkeys, guid))
			return refuse_pending_keys(guid, err);
	}
	return 0;
}

static int resolve(void *ctx, const struct vhca_osm_lid_want *want,
		   const struct vhca_osm_lids_promised *promised, struct vhca_osm_lid_pair *ret,
		   struct vhca_error *err)
{
	osm_opensm_t *osm = osm_of(ctx);
	osm_port_t *port[2];
	int r;

	if (want->dynamic)
		return resolve_dynamic(ctx, want, promised, ret, err);
	vhca_osm_lock_shared(osm);
	r = find_ports(ctx, want, port, err);
	if (r == 0) {
		*ret = (struct vhca_osm_lid_pair){.vports = want->vguid != 0,
						  .hca_guid = want->port_guid,
						  .vport = want->vport};
		for (int i = 0; i < 2; i++) {
			ret->guid[i] = cl_ntoh64(port[i]->guid);
			ret->lid[i] = cl_ntoh16(port[i]->lid);
		}
		r = port[0] == port[1];
	}
	for (int i = 0; i < 2 && r == 0; i++)
		if (vhca_osm_port_by_lid(&osm->subn, ret->lid[i]) != port[i])
			r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
					   "port %s has no LID now", VHCA_GUID_STR(ret->guid[i]));
	if (r == 0 && want->vguid)
		r = check_keys(ctx, port, err);
	vhca_osm_unlock(osm);
	return r;
}

/*
 * Vports keep their LIDs, so these do not tell that a sweep has found both where they are to be: to
 * exchange them once more would undo that.
 */
static int check_vports(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair,
			osm_port_t *const port[static 2], struct vhca_error *err)
{
	const osm_subn_t *subn = &lids->osm->subn;

	if (!pair->vports)
		return 0;
	if (vhca_osm_vport_at(subn, pair->hca_guid, pair->vport) != port[1])
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_CHANGED_MEANWHILE, 0,
				      "vport %u of the HCA with port %s has changed meanwhile",
				      pair->vport, VHCA_GUID_STR(pair->hca_guid));
	return check_keys(lids, port, err);
}

/* The same two ports again, if they still are what they were. The lock is held. */
static int find_pair(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair,
		     osm_port_t *ret[static 2], struct vhca_error *err)
{
	const osm_subn_t *subn = &lids->osm->subn;
	int r = check_subnet(lids, VHCA_OSM_NOT_DYNAMIC, err);

	for (int i = 0; i < 2 && r == 0; i++) {
		ret[i] = osm_get_port_by_guid(subn, cl_hton64(pair->guid[i]));
		if (!ret[i] || cl_ntoh16(ret[i]->lid) != pair->lid[i])
			r = vhca_error_set(err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_CHANGED_MEANWHILE,
					   0, "LID %u has moved meanwhile", pair->lid[i]);
		else
			r = check_port(lids, ret[i], err);
	}
	return r == 0 ? check_vports(lids, pair, ret, err) : r;
}

/* ---- planning ---- */

static int check_mode(const struct vhca_osm_lids *lids, enum vhca_osm_move_mode *mode,
		      struct vhca_error *err)
{
	if (vhca_osm_routing_can_skyline(lids->routing))
		return 0;
	if (*mode == VHCA_OSM_SKYLINE)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "cannot_move", 0,
				      "no skyline moves under the routing engine %s",
				      vhca_osm_routing_name(lids->routing));
	*mode = VHCA_OSM_DETERMINISTIC;
	return 0;
}

/* The same two ports, or vGUID and PF, again. Of dynamic LIDs no port is returned. */
static int check_pair(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair,
		      osm_port_t *ret[static 2], struct vhca_error *err)
{
	int r;

	if (!pair->dynamic)
		return find_pair(lids, pair, ret, err);
	r = check_subnet(lids, pair->dynamic, err);
	return r < 0 ? r : vhca_osm_dynamic_check(lids->osm, pair, err);
}

static int plan_swap(const struct vhca_osm_lids *lids, struct vhca_osm_swap *swap,
		     osm_port_t *const port[static 2], const struct vhca_osm_snapshot *s,
		     struct vhca_osm_lid_plan *ret)
{
	uint64_t computations = vhca_osm_routing_computations(lids->routing);
	struct vhca_osm_kept_snapshot *kept = lids->kept;

	/* Moves leave the numbers right, other ways do not. */
	if (kept->computations != computations)
		vhca_osm_channels_done(&kept->channels);
	kept->computations = computations;
	for (int i = 0; i < 2; i++)
		if (!vhca_osm_snapshot_place(s, port[i], &swap->at[i]))
			return -ENODEV;
	return vhca_osm_lid_plan(&s->fabric, swap, &kept->channels, ret);
}

/* On tables as they are now. The lock is held; vhca_osm_lid_plan_done() after success. */
static int plan_now(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair,
		    enum vhca_osm_move_mode mode, struct vhca_osm_lid_plan *ret,
		    struct vhca_error *err)
{
	struct vhca_osm_swap swap = {.lid = {pair->lid[0], pair->lid[1]}, .mode = mode};
	const struct vhca_osm_snapshot *s;
	osm_port_t *port[2];
	int r = check_pair(lids, pair, port, err);

	if (r == 0 && !pair->dynamic)
		r = check_mode(lids, &swap.mode, err);
	if (r < 0)
		return r;
	r = vhca_osm_kept_snapshot_get(lids->kept, lids->osm, &s);
	if (r == 0)
		r = pair->dynamic ? vhca_osm_dynamic_plan(lids->osm, pair, s, ret)
				  : plan_swap(lids, &swap, port, s, ret);
	if (r == -ENOMEM)
		return vhca_error_no_memory(err, "move");
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "cannot_plan", -r, "LID %u",
				      pair->lid[0]);
	ret->tables = lids->kept->at;
	ret->computations = vhca_osm_routing_computations(lids->routing);
	return 0;
}

static int check_reserved(const struct vhca_osm_lid_plan *plan, const struct vhca_osm_lid_plan *old,
			  struct vhca_error *err)
{
	for (size_t i = 0; i < plan->switches.n; i++)
		if (!vhca_osm_switch_set_has(&old->switches, plan->switches.guids[i]))
			return vhca_error_set(err, VHCA_ERR_UNAVAILABLE,
					      VHCA_CODE_CHANGED_MEANWHILE, 0,
					      "the ways through the subnet have changed meanwhile");
	return 0;
}

/* Of a LID that goes to another port, the port stays where it is. The lock is held. */
static size_t count_groups(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair)
{
	osm_port_t *port[2];

	for (int i = 0; i < 2 && pair->vports; i++) {
		port[i] = osm_get_port_by_guid(&lids->osm->subn, cl_hton64(pair->guid[i]));
		if (!port[i])
			return 0;
	}
	return pair->vports ? vhca_osm_vports_groups(port) : 0;
}

static int plan(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		struct vhca_osm_lid_plan *ret, struct vhca_osm_lid_cost *ret_cost,
		struct vhca_error *err)
{
	const struct vhca_osm_lids *lids = ctx;
	osm_opensm_t *osm = lids->osm;
	bool one_block;
	size_t groups;
	int r;

	vhca_osm_lock_shared(osm);
	r = plan_now(lids, pair, mode, ret, err);
	groups = r == 0 ? count_groups(lids, pair) : 0;
	vhca_osm_unlock(osm);
	if (r < 0)
		return r;
	*ret_cost = (struct vhca_osm_lid_cost){.mode = ret->mode,
					       .groups = groups,
					       .switches = ret->n,
					       .lft_smps = ret->n_blocks,
					       .port_smps = pair->dynamic ? 0 : 2};
	if (!lids->drain || pair->dynamic)
		return 0;
	/* Both LIDs are drained at each switch, and each of their blocks is written again. */
	one_block = pair->lid[0] / VHCA_OSM_LFT_BLOCK == pair->lid[1] / VHCA_OSM_LFT_BLOCK;
	ret_cost->lft_smps = ret_cost->switches * (one_block ? 1 : 2);
	ret_cost->drain_smps = ret_cost->lft_smps;
	return 0;
}

/* ---- acknowledgements ---- */

/*
 * The keys belong to the GUID, their tables to the place. So those of a vport are part of its move.
 */
static size_t missing_keys(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair)
{
	size_t n = 0;

	for (int i = 0; i < 2 && pair->vports; i++)
		n += vhca_osm_pkeys_missing(lids->osm, &lids->subnet->pkeys, pair->guid[i]);
	return n;
}

static size_t missing(void *ctx, const struct vhca_osm_lid_pair *pair,
		      const struct vhca_osm_switch_set *at, bool resend)
{
	osm_opensm_t *osm = osm_of(ctx);
	size_t n;

	if (resend)
		vhca_osm_lock_exclusive(osm);
	else
		vhca_osm_lock_shared(osm);
	n = vhca_osm_smps_ports(osm, pair, resend) + vhca_osm_smps_blocks(osm, pair, at, resend) +
	    missing_keys(ctx, pair);
	/*
	 * A port that does not answer in a sweep is dropped: whether it has what it was sent is
	 * known after a sweep without errors.
	 */
	for (int i = 0; i < 2 && !at && osm->subn.subnet_initialization_error; i++)
		n += pair->guid[i] && !osm_get_port_by_guid(&osm->subn, cl_hton64(pair->guid[i]));
	vhca_osm_unlock(osm);
	return n;
}

/* The other one's keys hold up nobody but its own report: its hypervisor may be dead. */
static int check_done(void *ctx, const struct vhca_osm_lid_pair *pair, struct vhca_error *err)
{
	const struct vhca_osm_lids *lids = ctx;
	osm_opensm_t *osm = lids->osm;
	bool there;
	int r;

	if (!pair->vports)
		return 0;
	/* What OpenSM wants a port to have is of the file that it has read last. */
	r = lids->keys.check_shown(lids->keys.ctx, pair->guid[0], err);
	if (r < 0)
		return r;
	vhca_osm_lock_shared(osm);
	there = vhca_osm_pkeys_are_there(osm, &lids->subnet->pkeys, pair->guid[0]);
	vhca_osm_unlock(osm);
	if (!there)
		return refuse_pending_keys(pair->guid[0], err);
	return lids->keys.check_keys(lids->keys.ctx, pair->guid[0], err);
}

static size_t drain(void *ctx, const struct vhca_osm_lid_pair *pair,
		    const struct vhca_osm_switch_set *at, bool send)
{
	const struct vhca_osm_lids *lids = ctx;
	osm_opensm_t *osm = lids->osm;
	size_t n;

	if (!lids->drain || pair->dynamic)
		return 0;
	if (send)
		vhca_osm_lock_exclusive(osm);
	else
		vhca_osm_lock_shared(osm);
	n = vhca_osm_smps_undrained(osm, pair, at, send);
	vhca_osm_unlock(osm);
	return n;
}

/* ---- the change ---- */

static void change_ports(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair)
{
	osm_opensm_t *osm = lids->osm;
	osm_port_t *port[2];

	for (int i = 0; i < 2; i++)
		port[i] = osm_get_port_by_guid(&osm->subn, cl_hton64(pair->guid[i]));
	for (int i = 0; i < 2 && !pair->vports; i++) {
		port[i]->lid = cl_hton16(pair->lid[1 - i]);
		vhca_osm_smps_expect(port[i]);
		(void)cl_ptr_vector_set(&osm->subn.port_lid_tbl, pair->lid[1 - i], port[i]);
	}
	if (!pair->vports)
		return;
	for (int i = 0; i < 2; i++)
		vhca_osm_pkeys_moves(osm, &lids->subnet->pkeys, pair->guid[i]);
	vhca_osm_vports_exchange(osm, port);
}

/* Of a dynamic LID's pair, nothing changes for the PF. The plan is of the kept snapshot. */
static void change_tables(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair,
			  const struct vhca_osm_lid_plan *plan)
{
	int n = pair->dynamic ? 1 : 2;

	for (size_t c = 0; c < plan->n; c++) {
		const struct vhca_osm_lft_change *change = &plan->changes[c];
		osm_switch_t *sw = lids->kept->s.switches[change->sw];

		for (int i = 0; i < n; i++)
			if (pair->lid[i] < sw->lft_size)
				sw->new_lft[pair->lid[i]] = change->port[i];
	}
}

static void sweep(void *ctx)
{
	vhca_osm_opensm_ops.sweep(&(struct vhca_osm_opensm){.osm = osm_of(ctx)});
}

static int rebalance(void *ctx, struct vhca_error *err)
{
	struct vhca_osm_lids *lids = ctx;
	int r;

	vhca_osm_lock_exclusive(lids->osm);
	r = check_subnet(lids, VHCA_OSM_NOT_DYNAMIC, err);
	if (r == 0)
		vhca_osm_routing_rebalance(lids->routing);
	vhca_osm_unlock(lids->osm);
	return r;
}

static void send_keys(void *ctx)
{
	struct vhca_osm_lids *lids = ctx;

	if (lids->keys_lack && vhca_osm_opensm_ops.apply(lids->subnet) < 0)
		vhca_osm_opensm_ops.sweep(lids->subnet);
	lids->keys_lack = false;
}

/* The lock is held exclusively. at: the switches that are this move's. */
static void carry_out(struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair,
		      const struct vhca_osm_switch_set *at, const struct vhca_osm_lid_plan *plan,
		      struct vhca_osm_lid_cost *ret)
{
	osm_opensm_t *osm = lids->osm;
	enum vhca_osm_move_mode kept_as = plan->mode;

	/* Engines may choose ways by port, in the order of GUIDs: at other places those would not
	 * be quite the same ones. So vports keep theirs like skyline moves, where that can be. */
	if (pair->vports && vhca_osm_routing_can_skyline(lids->routing))
		kept_as = VHCA_OSM_SKYLINE;
	if (!pair->dynamic)
		change_ports(lids, pair);
	change_tables(lids, pair, plan);
	if (pair->dynamic)
		vhca_osm_routing_copied(lids->routing, pair->lid,
					pair->dynamic == VHCA_OSM_LID_GIVEN);
	else
		vhca_osm_routing_moved(lids->routing, pair->lid, kept_as);
	ret->groups = count_groups(lids, pair);
	ret->mode = plan->mode;
	ret->switches = plan->n;
	ret->port_smps = vhca_osm_smps_ports(osm, pair, true);
	ret->lft_smps = vhca_osm_smps_blocks(osm, pair, at, true);
	lids->keys_lack |= missing_keys(lids, pair) > 0;
}

static bool holds_still(const struct vhca_osm_lids *lids, const struct vhca_osm_lid_plan *plan)
{
	return vhca_osm_kept_snapshot_holds(lids->kept, plan->tables) &&
	       vhca_osm_routing_computations(lids->routing) == plan->computations;
}

/*
 * The plan holds until a sweep: nobody else changes what is under these LIDs meanwhile (mover.h). A
 * sweep begins in between only if our thread has kept the gate for too long.
 */
static int send_move(void *ctx, const struct vhca_osm_lid_pair *pair, enum vhca_osm_move_mode mode,
		     const struct vhca_osm_lid_plan *plan, struct vhca_osm_lid_cost *ret,
		     struct vhca_error *err)
{
	struct vhca_osm_lids *lids = ctx;
	osm_opensm_t *osm = lids->osm;
	struct vhca_osm_lid_plan renewed = {.n = 0};
	osm_port_t *port[2];
	bool holds;
	int r;

	vhca_osm_lock_exclusive(osm);
	holds = holds_still(lids, plan);
	r = holds ? check_pair(lids, pair, port, err) : plan_now(lids, pair, mode, &renewed, err);
	/* After a sweep: OpenSM may have computed other ways since `plan` reserved its switches. */
	if (r == 0 && !holds)
		r = check_reserved(&renewed, plan, err);
	if (r == 0)
		carry_out(lids, pair, &plan->switches, holds ? plan : &renewed, ret);
	vhca_osm_unlock(osm);
	vhca_osm_lid_plan_done(&renewed);
	return r;
}

/*
 * The tables of one. s: those of now, which are looked at once for all that go together: in a sweep
 * that is most of what a plan costs.
 */
static int change_part(struct vhca_osm_lids *lids, const struct vhca_osm_snapshot *s,
		       const struct vhca_osm_lid_part *part, struct vhca_error *err)
{
	const struct vhca_osm_lid_pair *pair = part->pair;
	bool holds = holds_still(lids, part->plan);
	struct vhca_osm_lid_plan renewed = {.n = 0};
	osm_port_t *port[2];
	int r = check_pair(lids, pair, port, err);

	if (r == 0 && !holds && vhca_osm_dynamic_plan(lids->osm, pair, s, &renewed) < 0)
		r = vhca_error_no_memory(err, "LID");
	if (r == 0 && !holds)
		r = check_reserved(&renewed, part->plan, err);
	if (r == 0) {
		change_tables(lids, pair, holds ? part->plan : &renewed);
		vhca_osm_routing_copied(lids->routing, pair->lid,
					pair->dynamic == VHCA_OSM_LID_GIVEN);
	}
	vhca_osm_lid_plan_done(&renewed);
	return r;
}

static size_t send_together(void *ctx, struct vhca_osm_lid_part *parts, size_t n)
{
	struct vhca_osm_lids *lids = ctx;
	osm_opensm_t *osm = lids->osm;
	const struct vhca_osm_snapshot *s;
	size_t smps;
	int r;

	vhca_osm_lock_exclusive(osm);
	r = vhca_osm_kept_snapshot_get(lids->kept, osm, &s);
	for (size_t i = 0; i < n; i++)
		parts[i].refused =
			r < 0 ? vhca_error_set(&parts[i].err, VHCA_ERR_UNAVAILABLE, "cannot_plan",
					       -r, "LID %u", parts[i].pair->lid[0])
			      : change_part(lids, s, &parts[i], &parts[i].err);
	smps = vhca_osm_smps_together(osm, parts, n, true);
	vhca_osm_unlock(osm);
	for (size_t i = 0; i < n; i++) {
		parts[i].cost->lft_smps = parts[i].blocks;
		parts[i].cost->port_smps = parts[i].ports;
	}
	return smps;
}

static size_t missing_together(void *ctx, struct vhca_osm_lid_part *parts, size_t n)
{
	osm_opensm_t *osm = osm_of(ctx);
	bool resend = false;
	size_t missing;

	for (size_t i = 0; i < n; i++)
		resend |= parts[i].resend;
	if (resend)
		vhca_osm_lock_exclusive(osm);
	else
		vhca_osm_lock_shared(osm);
	missing = vhca_osm_smps_together(osm, parts, n, false);
	vhca_osm_unlock(osm);
	return missing;
}

/* A byte that OpenSM's sweeper writes. */
static bool is_master(void *ctx)
{
	return osm_of(ctx)->subn.sm_state == IB_SMINFO_STATE_MASTER;
}

static void counts(void *ctx, struct vhca_osm_lid_counts *ret)
{
	const struct vhca_osm_lids *lids = ctx;

	*ret = *lids->counted;
	ret->dynamic = lids->dynamic->n;
	ret->kept = vhca_osm_routing_kept(lids->routing);
}

static uint64_t now_ms(void *ctx)
{
	(void)ctx;
	return vhca_now_ms();
}

static unsigned int timeout_ms(void *ctx)
{
	const osm_subn_opt_t *opt = &osm_of(ctx)->subn.opt;

	return opt->transaction_timeout * (opt->transaction_retries + 1) + 200;
}

const struct vhca_osm_lid_ops vhca_osm_opensm_lid_ops = {
	.resolve = resolve,
	.plan = plan,
	.remember = vhca_osm_lid_file_remember,
	.drain = drain,
	.send = send_move,
	.send_together = send_together,
	.send_keys = send_keys,
	.missing = missing,
	.missing_together = missing_together,
	.check_done = check_done,
	.is_master = is_master,
	.now_ms = now_ms,
	.timeout_ms = timeout_ms,
	.counts = counts,
	.find = vhca_osm_place_find,
	.list = vhca_osm_place_list,
	.info = vhca_osm_place_info,
	.sweep = sweep,
	.rebalance = rebalance,
};
