/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/dynamic.h"

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/lock.h"
#include "opensm/osm/vports.h"

#include <errno.h>
#include <stdlib.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_ptr_vector.h>
#include <complib/cl_qmap.h>
#include <opensm/osm_db.h>
#include <opensm/osm_db_pack.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_sm.h>
#include <opensm/osm_switch.h>

#define LIDS (IB_LID_UCAST_END_HO + 1)

/* ---- which LIDs are free ---- */

/* LIDs that ports have, or show. */
static void add_port_lids(const osm_opensm_t *osm, struct vhca_osm_lid_set *ret)
{
	VHCA_OSM_FOREACH_PORT (port, &osm->subn) {
		vhca_osm_lid_set_add(ret, cl_ntoh16(port->lid));
		if (port->p_physp)
			vhca_osm_lid_set_add(ret, cl_ntoh16(port->p_physp->port_info.base_lid));
	}
}

/*
 * By LID, up to `top`: kept for a port that is here or away, or that of a port. The caller frees;
 * NULL: no memory.
 */
static bool *taken_lids(const osm_opensm_t *osm, uint16_t top)
{
	struct vhca_osm_lid_set ports = {0};
	bool *taken = calloc(LIDS, sizeof(*taken));

	if (!taken)
		return NULL;
	add_port_lids(osm, &ports);
	for (size_t lid = 1; lid < LIDS; lid++)
		taken[lid] = vhca_osm_lid_set_has(&ports, (uint16_t)lid) ||
			     (lid <= top && osm->sm.lid_mgr.used_lids[lid]);
	return taken;
}

size_t vhca_osm_free_lids(const struct osm_opensm *osm)
{
	VHCA_AUTO_FREE bool *taken = taken_lids(osm, osm->subn.max_ucast_lid_ho);
	size_t n = 0;

	for (size_t lid = 1; taken && lid <= osm->subn.max_ucast_lid_ho && lid < LIDS; lid++)
		n += !taken[lid];
	return n;
}

/* The highest LID that all switches have a place for. */
static uint16_t highest_lid(const osm_opensm_t *osm)
{
	uint16_t highest = osm->subn.max_ucast_lid_ho;

	VHCA_OSM_FOREACH_SWITCH (sw, &osm->subn)
		highest = sw->max_lid_ho < highest ? sw->max_lid_ho : highest;
	return highest;
}

/* What a choice looks at. */
struct choice {
	const osm_opensm_t *osm;
	const struct vhca_osm_lid_set *ports; /* LIDs that ports have, or show */
	const struct vhca_osm_lids_promised *promised;
	uint16_t highest;
};

/* Bits of a block of 64. */
static uint64_t free_in_block(const struct choice *c, size_t block)
{
	const uint8_t *used = &c->osm->sm.lid_mgr.used_lids[block * VHCA_OSM_LFT_BLOCK];
	size_t above = c->highest + (size_t)1 - block * VHCA_OSM_LFT_BLOCK;
	uint64_t taken = c->ports->bits[block] | (block == 0); /* a word for each block */

	if (c->promised)
		taken |= c->promised->lids.bits[block];
	for (size_t i = 0; i < VHCA_OSM_LFT_BLOCK; i++)
		taken |= (uint64_t)(used[i] != 0) << i;
	return above < VHCA_OSM_LFT_BLOCK ? ~taken & ((1ULL << above) - 1) : ~taken;
}

static uint16_t first_lid(size_t block, uint64_t bits)
{
	return (uint16_t)(block * VHCA_OSM_LFT_BLOCK + (size_t)__builtin_ctzll(bits));
}

/* In the lowest block with room for all that wait, or in the one with most. 0 = none. */
static uint16_t choose_apart(const struct choice *c)
{
	size_t wanted = c->promised && c->promised->wanted > 1 ? c->promised->wanted : 1, most = 0;
	uint16_t best = 0;

	if (wanted > VHCA_OSM_LFT_BLOCK)
		wanted = VHCA_OSM_LFT_BLOCK;
	for (size_t block = 0; most < wanted && block * VHCA_OSM_LFT_BLOCK <= c->highest; block++) {
		uint64_t bits = free_in_block(c, block);
		size_t n = (size_t)__builtin_popcountll(bits);

		if (n > most) {
			best = first_lid(block, bits);
			most = n;
		}
	}
	return best;
}

/*
 * The lowest one in a block that is sent in any case, or else apart. 0 = none. A move only
 * exchanges LIDs, so what ports have changes in heavy sweeps; what one has shown until a late
 * answer counts for as long.
 */
static uint16_t free_lid(const osm_opensm_t *osm, struct vhca_osm_kept_snapshot *kept,
			 const struct vhca_osm_lids_promised *promised)
{
	struct vhca_osm_kept_lids *k = &kept->port_lids;
	uint64_t sweeps = atomic_load(&kept->sweeps);
	uint16_t highest = highest_lid(osm);
	size_t ahead = promised ? promised->ahead : 0, n = 0;
	const struct choice c = {.osm = osm,
				 .ports = &k->has,
				 .promised = promised,
				 .highest = highest < LIDS ? highest : LIDS - 1};

	if (!k->looked || k->at != sweeps || atomic_load(&kept->sweeping)) {
		*k = (struct vhca_osm_kept_lids){.looked = true, .at = sweeps};
		add_port_lids(osm, &k->has);
	}
	for (size_t block = 0; n < ahead + 1 && block * VHCA_OSM_LFT_BLOCK <= c.highest; block++)
		n += ahead ? (size_t)__builtin_popcountll(free_in_block(&c, block)) : 1;
	if (n < ahead + 1)
		return 0;
	for (size_t block = 0; promised && block * VHCA_OSM_LFT_BLOCK <= c.highest; block++) {
		uint64_t bits = promised->lids.bits[block] ? free_in_block(&c, block) : 0;

		if (bits)
			return first_lid(block, bits);
	}
	return choose_apart(&c);
}

static bool known_lid(const osm_opensm_t *osm, uint64_t guid, uint16_t *ret)
{
	uint16_t max = 0;

	return osm_db_guid2lid_get(osm->sm.lid_mgr.p_g2l, guid, ret, &max) == 0;
}

static int keep_lid(osm_opensm_t *osm, uint64_t guid, uint16_t lid)
{
	if (osm_db_guid2lid_set(osm->sm.lid_mgr.p_g2l, guid, lid, lid) != 0)
		return -ENOMEM;
	osm->sm.lid_mgr.used_lids[lid] = 1;
	return 0;
}

/* Does OpenSM no longer keep it for this GUID? */
static bool is_lost(const osm_opensm_t *osm, uint64_t guid, uint16_t lid)
{
	uint16_t known = 0;

	return !known_lid(osm, guid, &known) || known != lid;
}

/* Has OpenSM given it to another port, which may be away now? */
static bool is_taken(const osm_opensm_t *osm, uint64_t guid, uint16_t lid)
{
	const osm_port_t *has = osm_get_port_by_lid_ho(&osm->subn, lid);

	if (has)
		return cl_ntoh64(has->guid) != guid;
	return osm->sm.lid_mgr.used_lids[lid] && is_lost(osm, guid, lid);
}

bool vhca_osm_dynamic_may_drop(const struct osm_opensm *osm, const struct vhca_osm_dynamic_lid *row)
{
	return !osm_get_port_by_guid(&osm->subn, cl_hton64(row->vguid)) &&
	       !is_taken(osm, row->vguid, row->lid);
}

static bool has_port(const osm_opensm_t *osm, uint64_t guid)
{
	return osm_get_port_by_guid(&osm->subn, cl_hton64(guid)) != NULL;
}

static void take_out(osm_opensm_t *osm, const struct vhca_osm_dynamic_lid *row,
		     struct vhca_osm_lid_set *out)
{
	if (!vhca_osm_dynamic_may_drop(osm, row) || is_lost(osm, row->vguid, row->lid))
		return;
	(void)osm_db_guid2lid_delete(osm->sm.lid_mgr.p_g2l, row->vguid);
	vhca_osm_lid_set_add(out, row->lid);
}

void vhca_osm_dynamic_free(struct osm_opensm *osm, const struct vhca_osm_lid_set *out)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(out->bits); i++)
		for (uint64_t bits = out->bits[i]; bits; bits &= bits - 1)
			osm->sm.lid_mgr.used_lids[i * 64 + (size_t)__builtin_ctzll(bits)] = 0;
}

/*
 * A port that is there goes on with its LID as any other one. (The guest has mostly gone a moment
 * ago, and OpenSM has not seen it.)
 */
static void free_or_leave(osm_opensm_t *osm, struct vhca_osm_dynamic_lids *t,
			  const struct vhca_osm_dynamic_lid *row, struct vhca_osm_lid_set *out)
{
	vhca_osm_dynamic_lids_remove(t, row->vguid);
	vhca_osm_dynamic_lids_return(t, row->vguid);
	if (!has_port(osm, row->vguid))
		take_out(osm, row, out);
	else if (vhca_osm_dynamic_lids_leave(t, row) < 0)
		vhca_log_error("out of memory: LID %u stays reserved for %s", row->lid,
			       VHCA_GUID_STR(row->vguid));
}

void vhca_osm_dynamic_let_go(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t)
{
	struct vhca_osm_lid_set out = {0};

	vhca_osm_lock_exclusive(osm);
	for (size_t i = t->leaving ? t->leaving->n : 0; i > 0; i--) {
		const struct vhca_osm_dynamic_lid row = t->leaving->rows[i - 1];

		if (has_port(osm, row.vguid))
			continue;
		if (!vhca_osm_dynamic_lids_find(t, row.vguid)) /* else it was given again */
			take_out(osm, &row, &out);
		vhca_osm_dynamic_lids_return(t, row.vguid);
	}
	vhca_osm_dynamic_free(osm, &out);
	vhca_osm_unlock(osm);
}

void vhca_osm_dynamic_limit(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t, size_t max)
{
	vhca_osm_lock_exclusive(osm);
	t->max = max;
	vhca_osm_unlock(osm);
}

void vhca_osm_dynamic_forget(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t)
{
	size_t n = t->n;

	vhca_osm_lock_exclusive(osm);
	vhca_osm_dynamic_lids_clear(t);
	vhca_osm_unlock(osm);
	if (n)
		vhca_log_notice("%zu dynamic LIDs of an earlier time as master are forgotten; the "
				"agents report those that there are",
				n);
}

static void say_lost(const struct vhca_osm_dynamic_lid *row)
{
	vhca_log_error("LID %u of %s now belongs to another port; it gets a new one when it is "
		       "asked for again",
		       row->lid, VHCA_GUID_STR(row->vguid));
}

void vhca_osm_dynamic_reserve(struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *t)
{
	bool forgets = osm->subn.coming_out_of_standby;

	vhca_osm_lock_exclusive(osm);
	for (size_t i = 0; i < t->n && !forgets; i++) {
		const struct vhca_osm_dynamic_lid *row = &t->rows[i];
		uint16_t lid = 0;

		if (known_lid(osm, row->vguid, &lid))
			continue;
		if (osm->sm.lid_mgr.used_lids[row->lid] || keep_lid(osm, row->vguid, row->lid) < 0)
			say_lost(row);
	}
	vhca_osm_unlock(osm);
}

/* ---- room ahead in the switches' tables ---- */

/* So that `more` LIDs up to it are free. */
static uint16_t top_for(const bool *taken, uint16_t max, size_t more)
{
	uint16_t top = 0;

	for (uint16_t lid = 1; lid <= max && lid < LIDS && more > 0; lid++)
		if (!taken[lid]) {
			top = lid;
			more--;
		}
	return top;
}

/*
 * OpenSM sizes the tables by its table of ports by LID; it has prepared them for the engine before
 * this.
 */
static int raise_top(osm_opensm_t *osm, uint16_t top)
{
	cl_ptr_vector_t *by_lid = &osm->subn.port_lid_tbl;

	if (cl_ptr_vector_get_size(by_lid) > top)
		return 0;
	if (cl_ptr_vector_set_size(by_lid, (size_t)top + 1) != CL_SUCCESS)
		return -ENOMEM;
	VHCA_OSM_FOREACH_SWITCH (sw, &osm->subn)
		if (osm_switch_prepare_path_rebuild(sw, top) != 0)
			return -ENOMEM;
	return 0;
}

void vhca_osm_dynamic_make_room(struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *t)
{
	VHCA_AUTO_FREE bool *taken =
		t->n < t->max ? taken_lids(osm, osm->subn.max_ucast_lid_ho) : NULL;
	uint16_t max = osm->subn.max_ucast_lid_ho, top = 0, more = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->rows[i].lid > top)
			top = t->rows[i].lid;
	if (taken)
		more = top_for(taken, max, t->max - t->n);
	if (more > top)
		top = more;
	if (top > max)
		top = max;
	if ((t->n < t->max && !taken) || raise_top(osm, top) < 0)
		vhca_log_error("out of memory: no room for more dynamic LIDs");
}

void vhca_osm_dynamic_keep_room(struct osm_opensm *osm)
{
	size_t size = cl_ptr_vector_get_size(&osm->subn.port_lid_tbl);

	VHCA_OSM_FOREACH_SWITCH (sw, &osm->subn)
		if (size > (size_t)sw->max_lid_ho + 1 && size <= sw->lft_size)
			sw->max_lid_ho = (uint16_t)(size - 1);
}

/* ---- who, and may they ---- */

static int find_pf(const osm_opensm_t *osm, uint64_t guid, const osm_port_t **ret,
		   struct vhca_error *err)
{
	const osm_port_t *pf = osm_get_port_by_guid(&osm->subn, cl_hton64(guid));
	const osm_physp_t *there = vhca_osm_switch_port(pf);
	int r;

	if (!pf || !there || !pf->lid)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
				      "port %s is not in the subnet now", VHCA_GUID_STR(guid));
	/* A hypervisor's cables to switches all lead to one: what is behind has no other. */
	if (osm_node_get_type(pf->p_node) == IB_NODE_TYPE_CA &&
	    vhca_osm_switch_leaves(there->p_node) == 1) {
		*ret = pf;
		return 0;
	}
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "no_vswitch", 0,
			   "port %s is at no switch that is its hypervisor", VHCA_GUID_STR(guid));
	vhca_error_hint(err, "virtual functions that share their host's port share its LID, too");
	return r;
}

static int new_lid(const osm_opensm_t *osm, const struct vhca_osm_dynamic_lids *t,
		   struct vhca_osm_kept_snapshot *kept, uint64_t vguid,
		   const struct vhca_osm_lids_promised *promised, uint16_t *ret,
		   struct vhca_error *err)
{
	size_t used = t->n + (promised ? promised->n + promised->ahead : 0);
	int r;

	if (used >= t->max) {
		r = vhca_error_set(err, VHCA_ERR_EXHAUSTED, "no_free_lid", 0,
				   "%zu dynamic LIDs are in use, %zu are allowed", used, t->max);
		vhca_error_hint(err, "`dynamic` in section [lids] of vhcasm.conf, or withdraw one");
		return r;
	}
	if (known_lid(osm, vguid, ret) && *ret <= highest_lid(osm))
		return 0; /* that of a port which is here, or was */
	*ret = free_lid(osm, kept, promised);
	if (*ret)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_EXHAUSTED, "no_free_lid", 0, "no LID up to %u is free",
			   highest_lid(osm));
	vhca_error_hint(err, "the next heavy sweep makes room for more, up to LID %u",
			osm->subn.max_ucast_lid_ho);
	return r;
}

static int resolve_freed(const osm_opensm_t *osm, const struct vhca_osm_dynamic_lid *row,
			 uint64_t gone_guid, struct vhca_osm_lid_pair *ret, struct vhca_error *err)
{
	const osm_port_t *pf = osm_get_port_by_guid(&osm->subn, cl_hton64(row->pf_guid));

	if (osm_get_port_by_guid(&osm->subn, cl_hton64(gone_guid)))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "port_is_there", 0,
				      "port %s is in the subnet now", VHCA_GUID_STR(gone_guid));
	*ret = (struct vhca_osm_lid_pair){
		.guid = {row->vguid, row->pf_guid},
		.lid = {row->lid, pf ? cl_ntoh16(pf->lid) : 0},
		.dynamic = VHCA_OSM_LID_FREED,
	};
	return 0;
}

int vhca_osm_dynamic_resolve(const struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *t,
			     struct vhca_osm_kept_snapshot *kept,
			     const struct vhca_osm_lid_want *want,
			     const struct vhca_osm_lids_promised *promised,
			     struct vhca_osm_lid_pair *ret, struct vhca_error *err)
{
	const struct vhca_osm_dynamic_lid *row = vhca_osm_dynamic_lids_find(t, want->vguid);
	const osm_port_t *pf = NULL;
	int r;

	if (want->dynamic == VHCA_OSM_LID_FREED)
		return resolve_freed(osm, row, want->port_guid, ret, err);
	r = find_pf(osm, want->port_guid, &pf, err);
	if (!pf)
		return r;
	*ret = (struct vhca_osm_lid_pair){
		.guid = {want->vguid, want->port_guid},
		.lid = {row ? row->lid : 0, cl_ntoh16(pf->lid)},
		.dynamic = VHCA_OSM_LID_GIVEN,
	};
	(void)known_lid(osm, want->vguid, &ret->old_lid);
	if (row && !is_lost(osm, row->vguid, row->lid)) {
		ret->old_pf = row->pf_guid;
		return row->pf_guid == want->port_guid;
	}
	return new_lid(osm, t, kept, want->vguid, promised, &ret->lid[0], err);
}

int vhca_osm_dynamic_check(const struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			   struct vhca_error *err)
{
	const osm_port_t *has = osm_get_port_by_lid_ho(&osm->subn, pair->lid[0]);
	const osm_port_t *pf = NULL;
	int r;

	if (pair->dynamic == VHCA_OSM_LID_FREED)
		return 0;
	r = find_pf(osm, pair->guid[1], &pf, err);
	if (!pf)
		return r;
	if (cl_ntoh16(pf->lid) != pair->lid[1] || (has && cl_ntoh64(has->guid) != pair->guid[0]))
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_CHANGED_MEANWHILE, 0,
				      "LID %u or %u has moved meanwhile", pair->lid[0],
				      pair->lid[1]);
	return 0;
}

/* ---- the ways ---- */

bool vhca_osm_dynamic_copy(const struct osm_opensm *osm, const struct vhca_osm_dynamic_lid *row,
			   const struct vhca_osm_snapshot *s, struct vhca_osm_copy *ret)
{
	const osm_port_t *own = osm_get_port_by_guid(&osm->subn, cl_hton64(row->vguid));
	const osm_port_t *pf = osm_get_port_by_guid(&osm->subn, cl_hton64(row->pf_guid));
	const osm_port_t *has = osm_get_port_by_lid_ho(&osm->subn, row->lid);
	struct vhca_osm_place at, own_at = {0};

	if (!pf || !pf->lid || (has && has != own) || !vhca_osm_snapshot_place(s, pf, &at))
		return false;
	if (own && (own->lid != cl_hton16(row->lid) || !vhca_osm_snapshot_place(s, own, &own_at) ||
		    own_at.sw != at.sw))
		return false;
	*ret = (struct vhca_osm_copy){
		.lid = row->lid, .from = cl_ntoh16(pf->lid), .sw = at.sw, .own = own_at.port};
	return true;
}

int vhca_osm_dynamic_plan(const struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			  const struct vhca_osm_snapshot *s, struct vhca_osm_lid_plan *ret)
{
	const struct vhca_osm_dynamic_lid row = {
		.vguid = pair->guid[0], .pf_guid = pair->guid[1], .lid = pair->lid[0]};
	struct vhca_osm_copy copy = {.lid = row.lid};
	bool changes;

	if (pair->dynamic == VHCA_OSM_LID_FREED)
		changes = vhca_osm_dynamic_may_drop(osm, &row);
	else
		changes = vhca_osm_dynamic_copy(osm, &row, s, &copy);
	*ret = (struct vhca_osm_lid_plan){.mode = VHCA_OSM_DETERMINISTIC};
	return changes ? vhca_osm_lid_copy_plan(&s->fabric, &copy, ret) : 0;
}

/* ---- the change ---- */

/*
 * Of a LID that was the vGUID's before, only the row goes; one that had no place in the switches'
 * tables is kept for it again.
 */
static int take_back(osm_opensm_t *osm, struct vhca_osm_dynamic_lids *t,
		     const struct vhca_osm_lid_pair *pair, struct vhca_osm_lid_set *out)
{
	const struct vhca_osm_dynamic_lid row = {.vguid = pair->guid[0], .lid = pair->lid[0]};
	uint16_t known = 0;

	if (pair->old_lid == row.lid) {
		vhca_osm_dynamic_lids_remove(t, row.vguid);
		return 0;
	}
	free_or_leave(osm, t, &row, out);
	if (!pair->old_lid || known_lid(osm, row.vguid, &known) ||
	    osm->sm.lid_mgr.used_lids[pair->old_lid] ||
	    osm_get_port_by_lid_ho(&osm->subn, pair->old_lid))
		return 0;
	return keep_lid(osm, row.vguid, pair->old_lid);
}

/* What was kept for the vGUID, and had no place in the switches' tables, is free. */
static void leave_old(const osm_opensm_t *osm, const struct vhca_osm_lid_pair *pair,
		      struct vhca_osm_lid_set *out)
{
	if (pair->old_lid && pair->old_lid != pair->lid[0] &&
	    !is_lost(osm, pair->guid[0], pair->old_lid) &&
	    !osm_get_port_by_lid_ho(&osm->subn, pair->old_lid))
		vhca_osm_lid_set_add(out, pair->old_lid);
}

/* A sweep that did not wait for the disk may have found the vGUID's port, and given it another. */
static bool is_lost_to_others(const osm_opensm_t *osm, const struct vhca_osm_dynamic_lid *row)
{
	uint16_t known = row->lid;

	return is_taken(osm, row->vguid, row->lid) ||
	       (known_lid(osm, row->vguid, &known) && known != row->lid);
}

int vhca_osm_dynamic_set(struct osm_opensm *osm, struct vhca_osm_dynamic_lids *t,
			 const struct vhca_osm_lid_pair *pair, bool undo,
			 struct vhca_osm_lid_set *out)
{
	bool given = pair->dynamic == VHCA_OSM_LID_GIVEN;
	const struct vhca_osm_dynamic_lid row = {.vguid = pair->guid[0],
						 .pf_guid = given && undo ? pair->old_pf
									  : pair->guid[1],
						 .lid = pair->lid[0]};
	const struct vhca_osm_dynamic_lid *lost;

	if (!given && !undo) {
		free_or_leave(osm, t, &row, out);
		return 0;
	}
	if (!row.pf_guid)
		return take_back(osm, t, pair, out);
	if (undo && is_lost_to_others(osm, &row)) {
		vhca_osm_dynamic_lids_remove(t, row.vguid);
		say_lost(&row);
		return 0;
	}
	/* What somebody else is given was lost to its vGUID, which gets another one when it is
	 * reported again. */
	lost = vhca_osm_dynamic_lids_find_lid(t, row.lid);
	if (lost && lost->vguid != row.vguid)
		vhca_osm_dynamic_lids_remove(t, lost->vguid);
	if (vhca_osm_dynamic_lids_set(t, &row) < 0)
		return -ENOMEM;
	if (given && !undo)
		leave_old(osm, pair, out);
	return keep_lid(osm, row.vguid, row.lid);
}
