/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/routing.h"

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "opensm/lids/cables.h"
#include "opensm/osm/dynamic.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_qmap.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_sm.h>
#include <opensm/osm_switch.h>

#define ENGINES_MAX 16
#define LIDS	    (IB_LID_UCAST_END_HO + 1)

/* Takes the place of an engine's context; `own` is the engine as it was. */
struct wrapped {
	struct vhca_osm_routing *routing;
	osm_routing_engine_t *engine; /* in OpenSM's list */
	osm_routing_engine_t own;
};

struct vhca_osm_routing {
	osm_opensm_t *osm;
	const struct vhca_osm_dynamic_lids *dynamic;
	size_t n;
	struct wrapped engines[ENGINES_MAX];
	bool kept[LIDS];      /* moved by a skyline plan */
	atomic_size_t n_kept; /* of those */
	const atomic_bool *sweeping;
	struct vhca_osm_cables cables; /* as the engine has seen them last */
	bool rebalance;		       /* asked for, and no ways were computed since */
	ib_net16_t path_of[LIDS];      /* whose path a LID has since the engine computed */
	uint64_t computations;	       /* of ways that have begun; under OpenSM's lock */
};

/* ---- which engines ---- */

static const struct {
	osm_routing_engine_type_t type;
	bool skyline;
} movable[] = {
	{OSM_ROUTING_ENGINE_TYPE_MINHOP, true},	 {OSM_ROUTING_ENGINE_TYPE_UPDN, true},
	{OSM_ROUTING_ENGINE_TYPE_DNUP, true},	 {OSM_ROUTING_ENGINE_TYPE_FTREE, true},
	{OSM_ROUTING_ENGINE_TYPE_DFSSSP, false}, /* its SLs belong to its own paths */
};

/* When OpenSM ends it destroys the engines while the plugin still runs. */
static const osm_routing_engine_t *engine_used(const struct vhca_osm_routing *r)
{
	return osm_exit_flag ? NULL : r->osm->routing_engine_used;
}

static bool can_move(const osm_routing_engine_t *engine, bool skyline)
{
	for (size_t i = 0; engine && i < VHCA_ARRAY_SIZE(movable); i++)
		if (movable[i].type == engine->type)
			return movable[i].skyline || !skyline;
	return false;
}

bool vhca_osm_routing_can_move(const struct vhca_osm_routing *r)
{
	return can_move(engine_used(r), false);
}

bool vhca_osm_routing_can_skyline(const struct vhca_osm_routing *r)
{
	return can_move(engine_used(r), true);
}

uint64_t vhca_osm_routing_computations(const struct vhca_osm_routing *r)
{
	return r->computations;
}

const char *vhca_osm_routing_name(const struct vhca_osm_routing *r)
{
	const osm_routing_engine_t *used = engine_used(r);

	return used ? used->name : "none";
}

/* ---- which LIDs keep their ways ---- */

static void set_kept(struct vhca_osm_routing *r, uint16_t lid, bool kept)
{
	if (kept && !r->kept[lid])
		atomic_fetch_add(&r->n_kept, 1);
	if (!kept && r->kept[lid])
		atomic_fetch_sub(&r->n_kept, 1);
	r->kept[lid] = kept;
}

size_t vhca_osm_routing_kept(const struct vhca_osm_routing *r)
{
	return atomic_load(&r->n_kept);
}

static void keep_none(struct vhca_osm_routing *r, const char *why)
{
	size_t n = vhca_osm_routing_kept(r);

	if (n > 0)
		vhca_log_notice("%zu LIDs get the routing engine's ways: %s", n, why);
	(void)memset(r->kept, false, sizeof(r->kept));
	atomic_store(&r->n_kept, 0);
}

/* As OpenSM's console does it. */
void vhca_osm_routing_rebalance(struct vhca_osm_routing *r)
{
	r->rebalance = true;
	r->osm->subn.force_reroute = TRUE;
	osm_sm_signal(&r->osm->sm, OSM_SIGNAL_SWEEP);
}

void vhca_osm_routing_moved(struct vhca_osm_routing *r, const uint16_t lid[2],
			    enum vhca_osm_move_mode mode)
{
	bool kept = r->kept[lid[0]] || r->kept[lid[1]] || mode == VHCA_OSM_SKYLINE;
	ib_net16_t path = r->path_of[lid[0]];

	set_kept(r, lid[0], kept);
	set_kept(r, lid[1], kept);
	if (mode != VHCA_OSM_DETERMINISTIC)
		return;
	r->path_of[lid[0]] = r->path_of[lid[1]];
	r->path_of[lid[1]] = path;
}

void vhca_osm_routing_copied(struct vhca_osm_routing *r, const uint16_t lid[2], bool has)
{
	set_kept(r, lid[0], false);
	r->path_of[lid[0]] = has ? r->path_of[lid[1]] : cl_hton16(lid[0]);
}

/* ---- on top of the engine's tables ---- */

struct kept {
	struct vhca_osm_place place;
	uint16_t lid;
};

static int by_switch(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return (x->place.sw > y->place.sw) - (x->place.sw < y->place.sw);
}

/* Also forgets LIDs that nobody has any more. */
static size_t find_kept(struct vhca_osm_routing *r, const struct vhca_osm_snapshot *s,
			struct kept *ret)
{
	size_t n = 0;

	for (uint16_t lid = 1; lid < LIDS; lid++) {
		const osm_port_t *port =
			r->kept[lid] ? osm_get_port_by_lid_ho(&r->osm->subn, lid) : NULL;

		set_kept(r, lid, port && vhca_osm_snapshot_place(s, port, &ret[n].place));
		if (r->kept[lid])
			ret[n++].lid = lid;
	}
	qsort(ret, n, sizeof(*ret), by_switch);
	return n;
}

/* buf: two ports a switch. false: it has the engine's ways now. */
static bool keep_lid(const struct vhca_osm_snapshot *s, uint16_t lid,
		     const struct vhca_osm_goal *goal, struct vhca_osm_channels *channels,
		     uint8_t *buf)
{
	uint8_t *now = buf, *want = buf + s->fabric.n;

	for (size_t i = 0; i < s->fabric.n; i++)
		now[i] = lid < s->switches[i]->lft_size ? s->switches[i]->lft[lid]
							: VHCA_OSM_NO_PATH;
	if (vhca_osm_lid_keep(&s->fabric, lid, goal, channels, now, want) <= 0)
		return false;
	for (size_t i = 0; i < s->fabric.n; i++)
		if (lid < s->switches[i]->lft_size)
			s->switches[i]->new_lft[lid] = want[i];
	return true;
}

/* One search for all LIDs at a switch. channels: all zero. */
static int keep_all(struct vhca_osm_routing *r, const struct vhca_osm_snapshot *s,
		    struct vhca_osm_channels *channels)
{
	VHCA_AUTO_FREE struct kept *kept = calloc(LIDS, sizeof(*kept));
	VHCA_AUTO_FREE uint16_t *distance = calloc(s->fabric.n + 1, sizeof(*distance));
	VHCA_AUTO_FREE uint8_t *buf = calloc(s->fabric.n + 1, 2);
	struct vhca_osm_goal goal = {.place = {.sw = VHCA_OSM_NO_SWITCH}, .distance = distance};
	size_t n;

	if (!kept || !distance || !buf)
		return -ENOMEM;
	n = find_kept(r, s, kept);
	if (n > 0 && vhca_osm_channels_number(channels, &s->fabric) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (kept[i].place.sw != goal.place.sw &&
		    vhca_osm_fabric_distances(&s->fabric, kept[i].place.sw, distance) < 0)
			return -ENOMEM;
		goal.place = kept[i].place;
		set_kept(r, kept[i].lid, keep_lid(s, kept[i].lid, &goal, channels, buf));
	}
	return 0;
}

static void copy_all(struct vhca_osm_routing *r, const struct vhca_osm_snapshot *s, uint8_t *buf)
{
	for (size_t i = 0; i < r->dynamic->n; i++) {
		const struct vhca_osm_dynamic_lid *row = &r->dynamic->rows[i];
		struct vhca_osm_copy copy;

		if (!vhca_osm_dynamic_copy(r->osm, row, s, &copy))
			continue;
		vhca_osm_lid_copy(&s->fabric, &copy, buf);
		for (size_t sw = 0; sw < s->fabric.n; sw++)
			if (row->lid < s->switches[sw]->lft_size)
				s->switches[sw]->new_lft[row->lid] = buf[sw];
		r->path_of[row->lid] = cl_hton16(copy.from);
	}
}

/* What moves have left behind first: a PF may be among them. */
static int put_on_top(struct vhca_osm_routing *r, const struct vhca_osm_snapshot *s)
{
	VHCA_AUTO_FREE uint8_t *buf = calloc(s->fabric.n + 1, 1);
	struct vhca_osm_channels channels = {.known = false};
	int ret = buf ? keep_all(r, s, &channels) : -ENOMEM;

	vhca_osm_channels_done(&channels);
	if (ret == 0)
		copy_all(r, s, buf);
	return ret;
}

static void after_engine(struct vhca_osm_routing *r, const osm_routing_engine_t *engine)
{
	struct vhca_osm_snapshot s;
	int seen;

	/* A fallback, as lash or dfsssp, has SLs that go with its own ways. */
	if (!can_move(engine, true))
		keep_none(r, "this one has SLs for them");

	vhca_osm_dynamic_keep_room(r->osm);
	for (size_t lid = 0; lid < LIDS; lid++)
		r->path_of[lid] = cl_hton16((uint16_t)lid);
	if (r->rebalance || !atomic_load(r->sweeping))
		keep_none(r, "OpenSM was asked to reroute");
	r->rebalance = false;
	if (vhca_osm_snapshot_take(r->osm, &s) < 0)
		return;
	seen = vhca_osm_cables_look(&r->cables, &s.fabric);
	if (seen > 0)
		keep_none(r, "there is another cable between switches");
	if (seen < 0 || put_on_top(r, &s) < 0)
		vhca_log_error("out of memory: moved and dynamic LIDs get the routing engine's "
			       "paths");
	vhca_osm_snapshot_done(&s);
}

/* ---- the engine's functions; OpenSM holds its lock exclusively in the first two ---- */

static int build_lid_matrices(void *context)
{
	struct wrapped *w = context;

	w->routing->computations++;
	/* A heavy sweep that comes first has forgotten the reroute. OpenSM takes it back itself. */
	if (w->routing->rebalance)
		w->routing->osm->subn.ignore_existing_lfts = TRUE;
	vhca_osm_dynamic_make_room(w->routing->osm, w->routing->dynamic);
	return w->own.build_lid_matrices ? w->own.build_lid_matrices(w->own.context)
					 : 1; /* OpenSM's own */
}

static const struct wrapped *find(const struct vhca_osm_routing *r,
				  const osm_routing_engine_t *engine)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->engines[i].engine == engine)
			return &r->engines[i];
	return NULL;
}

/*
 * What OpenSM does for an engine that leaves the tables to it: its default engine's function is the
 * same.
 */
static int build_default_tables(const struct vhca_osm_routing *r)
{
	const struct wrapped *w = find(r, r->osm->default_routing_engine);

	return w && w->own.ucast_build_fwd_tables ? w->own.ucast_build_fwd_tables(w->own.context)
						  : -1;
}

static int build_fwd_tables(void *context)
{
	struct wrapped *w = context;
	int ret = 1;

	if (w->own.ucast_build_fwd_tables)
		ret = w->own.ucast_build_fwd_tables(w->own.context);
	if (ret > 0)
		ret = build_default_tables(w->routing);
	if (ret == 0)
		after_engine(w->routing, &w->own);
	return ret;
}

static void dump_tables(void *context)
{
	struct wrapped *w = context;

	w->own.ucast_dump_tables(w->own.context);
}

static void update_sl2vl(void *context, osm_physp_t *port, uint8_t in, uint8_t out,
			 ib_slvl_table_t *t)
{
	struct wrapped *w = context;

	w->own.update_sl2vl(w->own.context, port, in, out, t);
}

static void update_vlarb(void *context, osm_physp_t *port, uint8_t port_num,
			 ib_vl_arb_table_t *block, unsigned int length, unsigned int num)
{
	struct wrapped *w = context;

	w->own.update_vlarb(w->own.context, port, port_num, block, length, num);
}

static ib_net16_t path_of(const struct vhca_osm_routing *r, ib_net16_t lid)
{
	return cl_ntoh16(lid) < LIDS ? r->path_of[cl_ntoh16(lid)] : lid;
}

static uint8_t path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	struct wrapped *w = context;

	return w->own.path_sl(w->own.context, hint, path_of(w->routing, slid),
			      path_of(w->routing, dlid));
}

static ib_api_status_t mcast_build_stree(void *context, osm_mgrp_box_t *mgb)
{
	struct wrapped *w = context;

	return w->own.mcast_build_stree(w->own.context, mgb);
}

static void destroy(void *context)
{
	struct wrapped *w = context;

	w->own.destroy(w->own.context);
}

/* Absent functions stay absent: OpenSM looks at that. */
static void wrap(struct vhca_osm_routing *r, osm_routing_engine_t *engine)
{
	struct wrapped *w = &r->engines[r->n];

	if (find(r, engine) || r->n == ENGINES_MAX)
		return;
	*w = (struct wrapped){.routing = r, .engine = engine, .own = *engine};
	engine->context = w;
	engine->build_lid_matrices = build_lid_matrices;
	engine->ucast_build_fwd_tables = build_fwd_tables;
	engine->ucast_dump_tables = w->own.ucast_dump_tables ? dump_tables : NULL;
	engine->update_sl2vl = w->own.update_sl2vl ? update_sl2vl : NULL;
	engine->update_vlarb = w->own.update_vlarb ? update_vlarb : NULL;
	engine->path_sl = w->own.path_sl ? path_sl : NULL;
	engine->mcast_build_stree = w->own.mcast_build_stree ? mcast_build_stree : NULL;
	engine->destroy = w->own.destroy ? destroy : NULL;
	r->n++;
	vhca_log_notice("the routing engine %s is wrapped, so that LIDs can move", engine->name);
}

void vhca_osm_routing_wrap(struct vhca_osm_routing *r)
{
	osm_opensm_t *osm = r->osm;

	vhca_osm_lock_exclusive(osm);
	if (osm->default_routing_engine)
		wrap(r, osm->default_routing_engine);
	for (osm_routing_engine_t *e = osm->routing_engine_list; e; e = e->next)
		wrap(r, e);
	vhca_osm_unlock(osm);
}

/* ---- life ---- */

int vhca_osm_routing_new(struct osm_opensm *osm, const struct vhca_osm_dynamic_lids *dynamic,
			 const atomic_bool *sweeping, struct vhca_osm_routing **ret)
{
	struct vhca_osm_routing *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->osm = osm;
	r->dynamic = dynamic;
	r->sweeping = sweeping;
	for (size_t lid = 0; lid < LIDS; lid++)
		r->path_of[lid] = cl_hton16((uint16_t)lid);
	*ret = r;
	return 0;
}

struct vhca_osm_routing *vhca_osm_routing_free(struct vhca_osm_routing *r)
{
	if (r)
		vhca_osm_cables_done(&r->cables);
	free(r);
	return NULL;
}
