/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/subnet.h"

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/guid_tables.h"
#include "opensm/osm/lock.h"
#include "opensm/osm/vports.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_ptr_vector.h>
#include <complib/cl_qmap.h>
#include <opensm/osm_guid.h>
#include <opensm/osm_mcm_port.h>
#include <opensm/osm_multicast.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_remote_sm.h>
#include <opensm/osm_sm.h>
#include <opensm/osm_version.h>

#define LOCK_TRIES    10
#define LOCK_PAUSE_NS 10000

static osm_opensm_t *opensm_of(void *ctx)
{
	struct vhca_osm_opensm *o = ctx;

	return o->osm;
}

/* ---- status ---- */

/* Caller holds the lock. */
static uint64_t find_master(const osm_subn_t *subn)
{
	if (subn->sm_state == IB_SMINFO_STATE_MASTER)
		return cl_ntoh64(subn->sm_port_guid);
	VHCA_OSM_FOREACH (const osm_remote_sm_t, sm, &subn->sm_guid_tbl)
		if (ib_sminfo_get_state(&sm->smi) == IB_SMINFO_STATE_MASTER)
			return cl_ntoh64(sm->smi.guid);
	return 0;
}

void vhca_osm_opensm_swept(struct vhca_osm_opensm *o, bool complete)
{
	const osm_subn_t *subn = &o->osm->subn;

	if (complete) {
		vhca_osm_lock_exclusive(o->osm);
		vhca_osm_physical_note(subn, &o->physical);
		vhca_osm_unlock(o->osm);
		atomic_store(&o->swept, true);
	} else if (subn->sm_state != IB_SMINFO_STATE_MASTER || subn->coming_out_of_standby) {
		atomic_store(&o->swept, false);
	}
}

/* False if somebody has OpenSM's lock to change something. */
static bool look(struct vhca_osm_opensm *o)
{
	if (!vhca_osm_lock_try_shared(o->osm))
		return false;
	o->master_guid = find_master(&o->osm->subn);
	o->seen_ms = vhca_now_ms();
	vhca_osm_unlock(o->osm);
	return true;
}

/*
 * Outside of sweeps nobody has it for long: but who tells of an answer still has it when that has
 * woken the plugin's thread.
 */
static bool is_busy(void *ctx)
{
	struct vhca_osm_opensm *o = ctx;

	for (int i = 0; !look(o); i++) {
		if (i == LOCK_TRIES || vhca_osm_gate_is_sweeping(o->gate))
			return true;
		(void)nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
	}
	return false;
}

static void get_status(void *ctx, struct vhca_osm_status *ret)
{
	static const char *const names[] = {[IB_SMINFO_STATE_NOTACTIVE] = "not-active",
					    [IB_SMINFO_STATE_DISCOVERING] = "discovering",
					    [IB_SMINFO_STATE_STANDBY] = "standby",
					    [IB_SMINFO_STATE_MASTER] = "master"};
	struct vhca_osm_opensm *o = ctx;
	const osm_subn_t *subn = &o->osm->subn; /* flags of OpenSM's that need no lock */
	uint8_t state = subn->sm_state;
	bool fresh = look(o);
	bool ready = subn->sm_state == IB_SMINFO_STATE_MASTER && !subn->first_time_master_sweep &&
		     !subn->force_first_time_master_sweep && atomic_load(&o->swept);

	*ret = (struct vhca_osm_status){.sm_state = state < VHCA_ARRAY_SIZE(names) ? names[state]
										   : "initializing",
					.master = state == IB_SMINFO_STATE_MASTER,
					.ready = ready,
					.master_guid = o->master_guid,
					.version = OSM_VERSION,
					.age_ms = fresh ? 0 : vhca_now_ms() - o->seen_ms};
}

/* ---- ports ---- */

/* False of none. Caller holds the lock. */
static bool read_port(const osm_port_t *port, struct vhca_osm_port_info *ret)
{
	if (!port || !port->p_physp)
		return false;
	ret->lid = cl_ntoh16(osm_port_get_base_lid(port));
	ret->state = osm_physp_get_port_state(port->p_physp);
	ret->pkey_cap = cl_ntoh16(port->p_node->node_info.partition_cap);
	return true;
}

static bool find_port(void *ctx, uint64_t port_guid, struct vhca_osm_port_info *ret)
{
	osm_opensm_t *osm = opensm_of(ctx);
	const osm_port_t *port;
	bool found;

	vhca_osm_lock_shared(osm);
	port = osm_get_port_by_guid(&osm->subn, cl_hton64(port_guid));
	found = read_port(port, ret);
	vhca_osm_unlock(osm);
	return found;
}

static bool find_vport(void *ctx, uint64_t hca_port_guid, uint16_t vport,
		       struct vhca_osm_port_info *ret)
{
	osm_opensm_t *osm = opensm_of(ctx);
	bool found;

	vhca_osm_lock_shared(osm);
	found = read_port(vhca_osm_vport_at(&osm->subn, hca_port_guid, vport), ret);
	vhca_osm_unlock(osm);
	return found;
}

/* Index of an alias in the port's GUID table as OpenSM keeps it, or -1. Caller holds the lock. */
static int index_of(const osm_port_t *port, ib_net64_t guid)
{
	const osm_physp_t *physp = port->p_physp;
	unsigned int blocks;

	if (port->guid == guid)
		return 0;
	if (!physp || !physp->p_guids)
		return -1;
	blocks = (physp->port_info.guid_cap + VHCA_OSM_GUIDS_IN_BLOCK - 1U) /
		 VHCA_OSM_GUIDS_IN_BLOCK;
	for (unsigned int i = 1; i < blocks * VHCA_OSM_GUIDS_IN_BLOCK; i++)
		if ((*physp->p_guids)[i] == guid)
			return (int)i;
	return -1;
}

static bool find_alias(void *ctx, uint64_t guid, struct vhca_osm_alias *ret)
{
	osm_opensm_t *osm = opensm_of(ctx);
	const osm_port_t *port;

	vhca_osm_lock_shared(osm);
	port = osm_get_port_by_alias_guid(&osm->subn, cl_hton64(guid));
	if (port) {
		ret->port_guid = cl_ntoh64(port->guid);
		ret->gid_index = index_of(port, cl_hton64(guid));
	}
	vhca_osm_unlock(osm);
	return port != NULL;
}

static bool is_vport_of(void *ctx, uint64_t port_guid, uint64_t hca_port_guid)
{
	osm_opensm_t *osm = opensm_of(ctx);
	bool is;

	vhca_osm_lock_shared(osm);
	is = vhca_osm_vport_is_of(&osm->subn, port_guid, hca_port_guid);
	vhca_osm_unlock(osm);
	return is;
}

static bool is_physical(void *ctx, uint64_t port_guid)
{
	const struct vhca_osm_opensm *o = ctx;
	bool is;

	vhca_osm_lock_shared(o->osm);
	is = vhca_osm_physical_has(&o->osm->subn, &o->physical, port_guid);
	vhca_osm_unlock(o->osm);
	return is;
}

/* ---- eviction; the caller holds the lock exclusively ---- */

/* Else the SA would refuse the next owner's joins: it takes them for those of another port. */
static void leave_groups(osm_opensm_t *osm, const osm_port_t *port, ib_net64_t guid)
{
	const cl_list_item_t *item = cl_qlist_head(&port->mcm_list);

	while (item != cl_qlist_end(&port->mcm_list)) {
		const osm_mcm_port_t *member = vhca_osm_member_of(item);
		osm_mcm_alias_guid_t *alias = osm_mgrp_get_mcm_alias_guid(member->mgrp, guid);
		ib_member_rec_t all = {.scope_state = 0xf};

		item = cl_qlist_next(item); /* the item goes with the port's last member */
		if (alias && alias->p_base_mcm_port == member)
			(void)osm_mgrp_remove_port(&osm->subn, &osm->log, member->mgrp, alias,
						   &all);
	}
}

static bool clear_block(ib_net64_t *block, ib_net64_t guid)
{
	bool found = false;

	for (size_t i = 0; i < VHCA_OSM_GUIDS_IN_BLOCK; i++)
		if (block[i] == guid) {
			block[i] = 0;
			found = true;
		}
	return found;
}

/* Returns the number of blocks that OpenSM has to write. */
static int clear_table(osm_opensm_t *osm, osm_port_t *port, ib_net64_t guid)
{
	const osm_physp_t *physp = port->p_physp;
	int n = 0;

	if (!physp || !physp->p_guids)
		return 0;
	for (unsigned int b = 0; b * VHCA_OSM_GUIDS_IN_BLOCK < physp->port_info.guid_cap; b++)
		if (clear_block(&(*physp->p_guids)[(size_t)b * VHCA_OSM_GUIDS_IN_BLOCK], guid))
			n += osm_queue_guidinfo(&osm->sa, port, (uint8_t)b);
	return n;
}

/*
 * The map's entry and the port's table go together. With the entry alone gone, OpenSM's next Set at
 * that index would insert and remove the alias in one go (or free what it never allocated); with
 * the table alone cleared, every other port's Set would be declined.
 */
static int remove_alias(osm_opensm_t *osm, osm_alias_guid_t *alias)
{
	osm_port_t *port = alias->p_base_port;
	ib_net64_t guid = alias->alias_guid;
	int n;

	leave_groups(osm, port, guid);
	n = clear_table(osm, port, guid);
	cl_qmap_remove_item(&osm->subn.alias_port_guid_tbl, &alias->map_item);
	osm_alias_guid_delete(&alias);
	osm->sa.dirty = TRUE;
	return n;
}

static bool stands_at(const osm_alias_guid_t *alias, const struct vhca_osm_alias *at)
{
	const osm_port_t *port = alias->p_base_port;

	return port->guid != alias->alias_guid && cl_ntoh64(port->guid) == at->port_guid &&
	       index_of(port, alias->alias_guid) == at->gid_index;
}

static int evict(void *ctx, uint64_t guid, const struct vhca_osm_alias *at)
{
	struct vhca_osm_opensm *o = ctx;
	osm_opensm_t *osm = o->osm;
	osm_alias_guid_t *alias;
	int n = -ENOENT;

	vhca_osm_lock_exclusive(osm);
	alias = osm_get_alias_guid_by_guid(&osm->subn, cl_hton64(guid));
	if (alias && stands_at(alias, at))
		n = remove_alias(osm, alias);
	vhca_osm_unlock(osm);
	if (n > 0) {
		o->guid_info_smps += (unsigned int)n;
		osm_sm_signal(&osm->sm, OSM_SIGNAL_GUID_PROCESS_REQUEST);
	}
	return n;
}

/* ---- keys ---- */

static bool has_pkey(void *ctx, uint64_t port_guid, uint16_t pkey)
{
	osm_opensm_t *osm = opensm_of(ctx);
	const osm_port_t *port;
	bool found;

	vhca_osm_lock_shared(osm);
	port = osm_get_port_by_guid(&osm->subn, cl_hton64(port_guid));
	found = port && port->p_physp && vhca_osm_key_table_has(port->p_physp, cl_hton16(pkey));
	vhca_osm_unlock(osm);
	return found;
}

/* Keys of a port's table, without empty entries. */
static size_t read_table(const osm_pkey_tbl_t *table, uint16_t ret[static VHCA_OSM_TABLE_MAX])
{
	size_t n = 0;

	for (uint16_t i = 0; i < osm_pkey_tbl_get_num_blocks(table); i++) {
		const ib_pkey_table_t *block = osm_pkey_tbl_block_get(table, i);

		for (size_t k = 0; block && k < IB_NUM_PKEY_ELEMENTS_IN_BLOCK; k++)
			if (!ib_pkey_is_invalid(block->pkey_entry[k]) && n < VHCA_OSM_TABLE_MAX)
				ret[n++] = cl_ntoh16(block->pkey_entry[k]);
	}
	return n;
}

static void each_port(void *ctx, vhca_osm_port_fn fn, void *arg)
{
	osm_opensm_t *osm = opensm_of(ctx);
	uint16_t pkeys[VHCA_OSM_TABLE_MAX];

	vhca_osm_lock_shared(osm);
	VHCA_OSM_FOREACH_PORT (port, &osm->subn)
		if (port->p_physp && osm_node_get_type(port->p_node) == IB_NODE_TYPE_CA)
			fn(arg, cl_ntoh64(port->guid), pkeys,
			   read_table(&port->p_physp->pkeys, pkeys));
	vhca_osm_unlock(osm);
}

static int apply(void *ctx)
{
	struct vhca_osm_opensm *o = ctx;
	struct vhca_osm_status status;
	int r = -EAGAIN;

	/* One that ends sends nothing any more, and tells of each SMP as an error. */
	if (osm_exit_flag || !vhca_osm_gate_hold(o->gate))
		return -EBUSY;
	get_status(ctx, &status);
	if (status.ready && vhca_osm_pkeys_apply(o->osm, &o->pkeys))
		r = 0;
	vhca_osm_gate_release(o->gate);
	return r;
}

static size_t unanswered(void *ctx)
{
	struct vhca_osm_opensm *o = ctx;

	if (vhca_osm_pkeys_may_revert(o->osm, &o->pkeys))
		(void)apply(ctx); /* if not now, they stay without an answer */
	return vhca_osm_pkeys_unanswered(o->osm, &o->pkeys);
}

/* As OpenSM's own SIGHUP handler does it: the flag is a plain word that the sweeper polls. */
static void sweep(void *ctx)
{
	osm_opensm_t *osm = opensm_of(ctx);

	osm->subn.force_heavy_sweep = TRUE;
	osm_sm_signal(&osm->sm, OSM_SIGNAL_SWEEP);
}

static void get_smps(void *ctx, struct vhca_osm_smps *ret)
{
	const struct vhca_osm_opensm *o = ctx;

	*ret = (struct vhca_osm_smps){.guid_info = o->guid_info_smps,
				      .pkey_table = atomic_load(&o->pkeys.sent)};
}

const struct vhca_osm_subnet_ops vhca_osm_opensm_ops = {
	.is_busy = is_busy,
	.status = get_status,
	.find_port = find_port,
	.find_vport = find_vport,
	.find_alias = find_alias,
	.evict = evict,
	.is_vport_of = is_vport_of,
	.is_physical = is_physical,
	.has_pkey = has_pkey,
	.each_port = each_port,
	.apply = apply,
	.unanswered = unanswered,
	.sweep = sweep,
	.smps = get_smps,
};
