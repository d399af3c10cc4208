/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "opensm/lids/moves.h"

/* ---- their plans ---- */

static void drop_plan(struct vhca_osm_entry *e)
{
	vhca_osm_lid_plan_done(&e->plan);
	e->planned = false;
}

void vhca_osm_waiting_unplan(struct vhca_osm_mover *m, const struct vhca_osm_entry *begun)
{
	struct vhca_osm_entry *e;

	TAILQ_FOREACH (e, &m->queue, link)
		if (e->planned && vhca_osm_pairs_meet(&e->move.pair, &begun->move.pair))
			drop_plan(e);
}

static void drop_stale_plans(struct vhca_osm_mover *m)
{
	uint64_t sweeps = vhca_osm_gate_sweeps(m->gate);
	struct vhca_osm_entry *e;

	if (m->planned_after == sweeps)
		return;
	m->planned_after = sweeps;
	TAILQ_FOREACH (e, &m->queue, link)
		drop_plan(e);
}

/* Also at its turn: another one may have taken it while this one waited. */
static int lid_elsewhere(const struct vhca_osm_lid_move *move, struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_CONFLICT, "lid_elsewhere", 0,
			       "LID %u is port %s's, and not that of %s", move->want.lid,
			       VHCA_GUID_STR(move->pair.guid[0]),
			       VHCA_GUID_STR(move->want.from_port));

	vhca_error_hint(err, "it was moved meanwhile; PUT /v1/lids/%u takes it from whoever has it",
			move->want.lid);
	return r;
}

static int make_plan(struct vhca_osm_mover *m, const struct vhca_osm_lids_promised *promised,
		     struct vhca_osm_lid_move *move, struct vhca_osm_lid_plan *ret,
		     struct vhca_error *err)
{
	int r;

	*ret = (struct vhca_osm_lid_plan){.n = 0};
	r = m->ops->resolve(m->ctx, &move->want, promised, &move->pair, err);
	move->changes = r == 0;
	if (r == 0 && move->want.from_port && move->pair.guid[0] != move->want.from_port)
		r = lid_elsewhere(move, err);
	if (r == 0)
		r = m->ops->plan(m->ctx, &move->pair, move->mode, ret, &move->cost, err);
	return r < 0 ? r : 0;
}

int vhca_osm_mover_plan(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move,
			struct vhca_osm_lid_plan *ret, struct vhca_error *err)
{
	return make_plan(m, NULL, move, ret, err);
}

/* ---- dynamic LIDs ---- */

static bool is_given(const struct vhca_osm_entry *e)
{
	return e->move.want.dynamic == VHCA_OSM_LID_GIVEN;
}

static bool takes_lid(const struct vhca_osm_lid_move *move)
{
	return move->want.dynamic == VHCA_OSM_LID_GIVEN && move->changes && !move->pair.old_pf;
}

static void promise(struct vhca_osm_lids_promised *promised, const struct vhca_osm_entry *e)
{
	if (!takes_lid(&e->move))
		return;
	vhca_osm_lid_set_add(&promised->lids, e->move.pair.lid[0]);
	promised->n++;
}

/* Those that are planned have chosen, the others will. */
static void look_at_promises(struct vhca_osm_mover *m)
{
	const struct vhca_osm_entry *e;

	m->promised = (struct vhca_osm_lids_promised){.n = 0};
	TAILQ_FOREACH (e, &m->queue, link)
		if (e->planned)
			promise(&m->promised, e);
		else if (m->promised.n + m->promised.wanted < VHCA_OSM_LIDS_TOGETHER)
			m->promised.wanted += is_given(e);
}

/* Of a vGUID whose LID is waited for already that counts, and not this one. */
int vhca_osm_mover_check(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move, size_t promised,
			 struct vhca_error *err)
{
	struct vhca_osm_lids_promised others = {.ahead = promised};
	const struct vhca_osm_entry *e;
	struct vhca_osm_lid_plan plan;
	bool waits = false;
	int r;

	TAILQ_FOREACH (e, &m->queue, link)
		if (is_given(e) && e->move.want.vguid == move->want.vguid)
			waits |= e->move.want.is_new;
		else if (e->planned)
			promise(&others, e);
		else
			others.ahead += e->move.want.is_new;
	r = make_plan(m, &others, move, &plan, err);
	vhca_osm_lid_plan_done(&plan);
	move->want.is_new = r == 0 && takes_lid(move) && !waits;
	return r;
}

/* Is an earlier one of the same vGUID's LID on its way? What it will have then is not known yet. */
static bool follows(const struct vhca_osm_mover *m, const struct vhca_osm_entry *e)
{
	const struct vhca_osm_entry *other;

	if (!e->move.want.dynamic)
		return false;
	TAILQ_FOREACH (other, &m->batch, link)
		if (other->move.want.dynamic && other->move.want.vguid == e->move.want.vguid)
			return true;
	TAILQ_FOREACH (other, &m->queue, link) {
		if (other == e)
			return false;
		if (other->move.want.dynamic && other->move.want.vguid == e->move.want.vguid)
			return true;
	}
	return false;
}

/* ---- who may begin ---- */

/* together: as if they began at once, where dynamic LIDs share their switches. */
static bool meets_any(const struct vhca_osm_queue *queue, const struct vhca_osm_entry *e,
		      bool together)
{
	const struct vhca_osm_entry *other;

	TAILQ_FOREACH (other, queue, link) {
		bool share = together && other->move.pair.dynamic && e->move.pair.dynamic;

		if (other == e) /* in the queue: those before it */
			return false;
		if (vhca_osm_pairs_meet(&other->move.pair, &e->move.pair) ||
		    (!share && vhca_osm_switch_set_meets(&other->plan.switches, &e->plan.switches)))
			return true;
	}
	return false;
}

void vhca_osm_waiting_tell(struct vhca_osm_mover *m)
{
	vhca_osm_gate_queued(m->gate, m->stats.queued > 0 && !m->stats.paused);
}

void vhca_osm_waiting_remove(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	TAILQ_REMOVE(&m->queue, e, link);
	m->settled = false;
	m->stats.queued--;
	vhca_osm_waiting_tell(m);
}

static bool may_look(const struct vhca_osm_mover *m, const struct vhca_osm_entry *e, size_t seen,
		     size_t chosen)
{
	size_t ahead = VHCA_OSM_MOVES_AHEAD, most = VHCA_OSM_MOVES_AT_ONCE;

	if (e->move.want.dynamic)
		ahead = most = VHCA_OSM_LIDS_TOGETHER;
	return seen < ahead && m->stats.under_way + chosen < most;
}

/*
 * What it would change now. That stays true until a sweep, or until a move begins that shares a
 * port with it: then it is planned anew, and as the tables change when a move begins, not when it
 * ends, the new plan holds for the time after that. False: it was refused.
 */
static bool plan(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (e->planned)
		return true;
	e->planned = make_plan(m, &m->promised, &e->move, &e->plan, &err) == 0;
	m->promised.wanted -= is_given(e) && m->promised.wanted > 0;
	if (e->planned) {
		promise(&m->promised, e);
		return true;
	}
	vhca_osm_waiting_remove(m, e);
	vhca_osm_entry_refuse(m, e, &err);
	return false;
}

void vhca_osm_waiting_choose(struct vhca_osm_mover *m)
{
	struct vhca_osm_entry *e = TAILQ_FIRST(&m->queue), *next;
	size_t n = 0;

	drop_stale_plans(m);
	look_at_promises(m);
	for (size_t seen = 0; e && may_look(m, e, seen, n); seen++, e = next) {
		next = TAILQ_NEXT(e, link);
		if (follows(m, e) || !plan(m, e) || meets_any(&m->active, e, false) ||
		    meets_any(&m->batch, e, true) || meets_any(&m->queue, e, false))
			continue;
		vhca_osm_waiting_remove(m, e);
		TAILQ_INSERT_TAIL(&m->batch, e, link);
		n++;
	}
}

/* ---- who waits for too long ---- */

/*
 * The sweep in which OpenSM gives way to another master has no end: who waits for that asks the
 * wrong one.
 */
void vhca_osm_waiting_standby(struct vhca_osm_mover *m)
{
	struct vhca_osm_lid_pair pair;
	struct vhca_osm_entry *e, *next;

	if (m->ops->is_master(m->ctx))
		return;
	for (e = TAILQ_FIRST(&m->queue); e; e = next) {
		struct vhca_error err = VHCA_ERROR_INIT;

		next = TAILQ_NEXT(e, link);
		if (m->ops->resolve(m->ctx, &e->move.want, NULL, &pair, &err) >= 0)
			continue;
		vhca_osm_waiting_remove(m, e);
		vhca_osm_entry_refuse(m, e, &err);
	}
}

static void say_what_it_waited_for(const struct vhca_osm_mover *m, struct vhca_error *err)
{
	if (m->stats.paused) {
		(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "moves_paused", 0,
				     "moves of LIDs are still paused after %d s",
				     VHCA_OSM_MOVE_WAIT_MS / 1000);
		vhca_error_hint(err, "nothing was changed; vhcasmctl resume lets them go on");
		return;
	}
	(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "sweep_in_progress", 0,
			     "OpenSM's sweep did not end in %d s", VHCA_OSM_MOVE_WAIT_MS / 1000);
	vhca_error_hint(err, "nothing was changed; see OpenSM's log, and ask again");
}

void vhca_osm_waiting_late(struct vhca_osm_mover *m, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_entry *e;

	TAILQ_FOREACH (e, &m->queue, link)
		if (!e->until)
			e->until = now + VHCA_OSM_MOVE_WAIT_MS;
	say_what_it_waited_for(m, &err);
	while ((e = TAILQ_FIRST(&m->queue)) && now >= e->until) {
		vhca_osm_waiting_remove(m, e);
		vhca_osm_entry_refuse(m, e, &err);
	}
}

/* ---- who comes ---- */

/*
 * Takes the place of the last that waits for this vGUID's LID, if it is the same. An agent does not
 * wait for as long as a pause or a sweep may last: it asks again, and would have one more place in
 * the queue each time.
 */
static bool take_place(struct vhca_osm_mover *m, const struct vhca_osm_lid_want *want,
		       vhca_osm_move_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_entry *e, before;

	TAILQ_FOREACH_REVERSE(e, &m->queue, vhca_osm_queue, link)
	if (e->move.want.dynamic && e->move.want.vguid == want->vguid)
		break;
	if (!e || e->move.want.dynamic != want->dynamic ||
	    e->move.want.port_guid != want->port_guid)
		return false;
	before = *e;
	e->fn = fn;
	e->arg = arg;
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_CHANGED_MEANWHILE, 0,
			     "the same was asked for again, and that is answered");
	before.fn(before.arg, &before.move, &err);
	return true;
}

static int check_room(const struct vhca_osm_mover *m, const struct vhca_osm_lid_want *want,
		      struct vhca_error *err)
{
	const struct vhca_osm_entry *e;
	size_t n = 0;

	TAILQ_FOREACH (e, &m->queue, link)
		n += want->dynamic != VHCA_OSM_LID_FREED &&
		     e->move.want.dynamic != VHCA_OSM_LID_FREED &&
		     e->move.want.port_guid == want->port_guid;
	if (m->stats.queued < VHCA_OSM_MOVES_MAX && n < VHCA_OSM_MOVES_TO_ONE)
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_moves", 0,
			      "%zu moves are queued, %zu of them to this port", m->stats.queued, n);
}

int vhca_osm_mover_queue(struct vhca_osm_mover *m, const struct vhca_osm_lid_move *want,
			 vhca_osm_move_fn fn, void *arg, struct vhca_error *err)
{
	struct vhca_osm_entry *e;
	int r;

	if (want->want.dynamic && take_place(m, &want->want, fn, arg))
		return 0;
	r = check_room(m, &want->want, err);
	if (r < 0)
		return r;
	e = calloc(1, sizeof(*e));
	if (!e)
		return vhca_error_no_memory(err, "move");
	e->move = (struct vhca_osm_lid_move){.want = want->want, .mode = want->mode};
	e->fn = fn;
	e->arg = arg;
	e->asked_us = vhca_now_us();
	TAILQ_INSERT_TAIL(&m->queue, e, link);
	m->settled = false;
	m->stats.queued++;
	vhca_osm_waiting_tell(m);
	return 0;
}

int vhca_osm_mover_submit(struct vhca_osm_mover *m, const struct vhca_osm_lid_move *want,
			  vhca_osm_move_fn fn, void *arg, struct vhca_error *err)
{
	struct vhca_osm_lid_pair pair;
	int r = m->ops->resolve(m->ctx, &want->want, NULL, &pair, err);

	return r < 0 ? r : vhca_osm_mover_queue(m, want, fn, arg, err);
}

bool vhca_osm_mover_has_queued(const struct vhca_osm_mover *m, uint64_t vguid)
{
	const struct vhca_osm_entry *e;

	TAILQ_FOREACH (e, &m->queue, link)
		if (e->move.want.dynamic && e->move.want.vguid == vguid)
			return true;
	return false;
}
