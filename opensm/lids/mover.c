/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a move goes. A LID moves by exchange: two ports swap their LIDs, or two virtual ports their
 * places, so no LID is ever free or given twice. Little changes by that: the LIDs of two ports, and
 * on some switches the blocks of 64 entries in which the two LIDs are. It is hard all the same,
 * because OpenSM's sweeper changes the same tables in a thread of its own, and because an SMP can
 * be lost without a word.
 *
 * A move is resolved (who has to exchange what) and planned (which switches change) in the request
 * if that has to know what the move would be refused for, and once more at its turn. The plan of
 * its turn is the one that is carried out. It holds as long as nobody else changes what is under
 * these LIDs, and only two can: a heavy sweep (drop_stale_plans), and a move with one of the same
 * LIDs or ports, which changes OpenSM's tables when it begins (drop_conflicting_plans).
 *
 * Moves go together if they share neither a switch nor a LID nor a port. A switch is sent whole
 * blocks, so two moves meet in a block even where they change different entries of it. No move
 * overtakes an earlier one that it meets; else one through half of the subnet would wait for ever.
 *
 * What a move will have done is on disk before its first SMP. Until OpenSM's tables change it can
 * be refused: the file is written back, and what was drained is sent again (roll_back). After that
 * there is no way back: a crash, a lost SMP and a dead port all end in a heavy sweep, which gives
 * the ports the LIDs of that file. So missing answers make a move "repairing" and never undo it.
 *
 * The gate is entered from the first move that begins to the last one that ends. A sweep that
 * begins in between waits for them, not for long: answers that come in extend a move's time, but
 * not beyond PATIENCE_MS. While a sweep goes on, moves wait in the queue; the sweep in which OpenSM
 * gives way to another master has no end, so those are refused (refuse_as_standby).
 *
 * Nothing here blocks but the file. Answers are looked for in OpenSM's own tables: every POLL_MS,
 * and when it has told of as many acknowledged blocks as are missing; of ports it tells nothing.
 */
#include "opensm/lids/mover.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"

#define SENDINGS 2 /* then it is left to a heavy sweep */
/* While answers come in, none is sent again; a sweep waits no longer than VHCA_OSM_GATE_END_MS. */
#define PATIENCE_MS 3000
#define POLL_MS	    1
#define LOOK_MS	    1000 /* nor does OpenSM say that it has given way to another master */

struct entry {
	struct vhca_osm_lid_move move;
	vhca_osm_move_fn fn;
	void *arg;
	/* queued: when it is refused, 0 = run() has not seen it; sent: when it is sent again */
	uint64_t until;
	uint64_t latest; /* sent: `until` goes no further while answers come in */
	size_t seen;	 /* draining, sent: what was missing at the last look ... */
	size_t ports;	 /* ... and so many of that at most are ports */
	unsigned int sendings;
	uint64_t asked_us, sent_us;
	bool draining;
	bool planned;		       /* queued: pair and plan are what they would be now */
	struct vhca_osm_lid_plan plan; /* nobody else changes its switches meanwhile */
	TAILQ_ENTRY(entry) link;
};

TAILQ_HEAD(queue, entry);

struct vhca_osm_mover {
	const struct vhca_osm_lid_ops *ops;
	void *ctx;
	struct vhca_osm_gate *gate;
	struct queue queue;	/* in the order in which they were asked for */
	struct queue active;	/* sent, and inside the gate */
	atomic_ullong answers;	/* of switches, to anybody's SMPs */
	atomic_ullong awaited;	/* so many, and what is under way may be at its end; 0 = nothing */
	bool settled;		/* nothing has ended or come since the queue was looked through */
	uint64_t planned_after; /* so many sweeps */
	struct vhca_osm_mover_stats stats;
	struct vhca_osm_lid_pair repairs[VHCA_OSM_REPAIRS_MAX];
	uint64_t resweep_at; /* only while something is repaired */
	unsigned int resweeps;
};

/* ---- ends ---- */

/* A PF that is away has no LID, and a vGUID without a dynamic LID has neither that nor a PF. */
static bool are_same(uint64_t a, uint64_t b)
{
	return a && a == b;
}

static void finish(struct entry *e, const struct vhca_error *err)
{
	e->fn(e->arg, &e->move, err);
	vhca_osm_lid_plan_done(&e->plan);
	free(e);
}

static void refuse(struct vhca_osm_mover *m, struct entry *e, const struct vhca_error *err)
{
	m->stats.refused++;
	finish(e, err);
}

static void ask_for_sweep(struct vhca_osm_mover *m, uint64_t now, unsigned int times_before)
{
	m->resweep_at = now + VHCA_OSM_RESWEEP_EVERY;
	m->resweeps = times_before + 1;
	m->ops->sweep(m->ctx);
}

/* What an earlier move of the LID has left to a sweep. */
static const struct vhca_osm_lid_pair *find_repair(const struct vhca_osm_mover *m, uint16_t lid)
{
	for (size_t i = 0; i < m->stats.repairing; i++)
		if (are_same(m->repairs[i].lid[0], lid) || are_same(m->repairs[i].lid[1], lid))
			return &m->repairs[i];
	return NULL;
}

static void repair(struct vhca_osm_mover *m, const struct entry *e, uint64_t now)
{
	/* Who finds it so asks again and again. */
	if (!e->move.changes &&
	    (find_repair(m, e->move.pair.lid[0]) || m->stats.repairing == VHCA_OSM_REPAIRS_MAX))
		return;
	vhca_log_error("LIDs %u and %u: %zu SMPs were not acknowledged; left to a heavy sweep",
		       e->move.pair.lid[0], e->move.pair.lid[1], e->move.missing);
	if (m->stats.repairing < VHCA_OSM_REPAIRS_MAX)
		m->repairs[m->stats.repairing++] = e->move.pair;
	ask_for_sweep(m, now, 0);
}

static void count(struct vhca_osm_mover_stats *stats, const struct vhca_osm_lid_move *move)
{
	if (move->missing) {
		stats->lost++;
	} else if (move->changes) {
		stats->applied++;
		stats->by_mode[move->cost.mode]++;
	} else {
		stats->unchanged++;
	}
	if (move->changes)
		vhca_histogram_add(&stats->latency, move->duration_us);
}

/* ---- sending; it is remembered already ---- */

static bool share_a_port(const struct vhca_osm_lid_pair *a, const struct vhca_osm_lid_pair *b)
{
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			if (are_same(a->lid[i], b->lid[j]) || are_same(a->guid[i], b->guid[j]))
				return true;
	return false;
}

static void drop_plan(struct entry *e)
{
	vhca_osm_lid_plan_done(&e->plan);
	e->planned = false;
}

static void drop_conflicting_plans(struct vhca_osm_mover *m, const struct entry *begun)
{
	struct entry *e;

	TAILQ_FOREACH (e, &m->queue, link)
		if (e->planned && share_a_port(&e->move.pair, &begun->move.pair))
			drop_plan(e);
}

static size_t missing(const struct vhca_osm_mover *m, const struct entry *e, bool resend)
{
	return m->ops->missing(m->ctx, &e->move.pair, &e->plan.switches, resend);
}

static void deactivate(struct vhca_osm_mover *m, struct entry *e)
{
	TAILQ_REMOVE(&m->active, e, link);
	m->stats.under_way--;
	m->settled = false;
}

static void roll_back(struct vhca_osm_mover *m, struct entry *e, struct vhca_error *err)
{
	vhca_error_hint(err, "rolled back: the LIDs are where they were; ask again");
	(void)m->ops->remember(m->ctx, &e->move.pair, 1, true);
	if (e->draining) {
		(void)missing(m, e, true);
		m->ops->sweep(m->ctx); /* looks whether that has arrived */
	}
	deactivate(m, e);
	m->stats.rolled_back++;
	finish(e, err);
}

static void send(struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	struct vhca_osm_lid_move *move = &e->move;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (m->ops->send(m->ctx, &move->pair, move->mode, &e->plan, &move->cost, &err) < 0) {
		roll_back(m, e, &err);
		return;
	}
	drop_conflicting_plans(m, e);
	e->draining = false;
	m->stats.lft_smps += move->cost.lft_smps;
	m->stats.port_smps += move->cost.port_smps;
	e->sendings = 1;
	e->until = now + m->ops->timeout_ms(m->ctx);
	e->latest = now + PATIENCE_MS;
	e->ports = move->cost.port_smps;
	e->seen = missing(m, e, false);
}

/* ---- one that is under way ---- */

static void end_active(struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	bool done = m->ops->check_done(m->ctx, &e->move.pair, &err) == 0;

	deactivate(m, e);
	e->move.duration_us = vhca_now_us() - e->sent_us;
	if (done || e->move.missing)
		count(&m->stats, &e->move);
	/* OpenSM does not know its keys yet, or not the port any more */
	else
		m->stats.refused++;
	if (e->move.missing)
		repair(m, e, now);
	finish(e, done ? NULL : &err);
}

/*
 * Thousands of SMPs take longer than one; to send them again while they are on their way only makes
 * more of them.
 */
static void wait_for_more(const struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	uint64_t until = now + m->ops->timeout_ms(m->ctx);

	if (e->move.missing >= e->seen)
		return;
	e->seen = e->move.missing;
	if (until > e->latest)
		until = e->latest;
	if (until > e->until)
		e->until = until;
}

static void look(struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	bool late = now >= e->until, done;

	if (e->draining) {
		/* What does not drop in time is changed all the same: nothing is wrong then that
		 * would not be without this step. */
		e->seen = m->ops->drain(m->ctx, &e->move.pair, &e->plan.switches, false);
		if (late || e->seen == 0)
			send(m, e, now);
		return;
	}
	e->move.missing = missing(m, e, late && e->sendings < SENDINGS);
	done = e->move.missing == 0 && m->ops->check_done(m->ctx, &e->move.pair, NULL) == 0;
	if (done || (late && e->sendings == SENDINGS)) {
		end_active(m, e, now);
	} else if (late) {
		e->sendings++;
		e->until = now + m->ops->timeout_ms(m->ctx);
	} else {
		wait_for_more(m, e, now);
	}
}

static void look_at_all(struct vhca_osm_mover *m, uint64_t now)
{
	struct entry *e, *next;

	if (TAILQ_EMPTY(&m->active))
		return;
	for (e = TAILQ_FIRST(&m->active); e; e = next) {
		next = TAILQ_NEXT(e, link);
		look(m, e, now);
	}
	if (TAILQ_EMPTY(&m->active))
		vhca_osm_gate_leave(m->gate);
}

/* ---- who may begin ---- */

/* Up to `end`, without it; NULL = all. */
static bool meets_any(const struct queue *queue, const struct entry *end, const struct entry *e)
{
	const struct entry *other;

	TAILQ_FOREACH (other, queue, link) {
		if (other == end)
			return false;
		if (share_a_port(&other->move.pair, &e->move.pair) ||
		    vhca_osm_switch_set_meets(&other->plan.switches, &e->plan.switches))
			return true;
	}
	return false;
}

static void drop_stale_plans(struct vhca_osm_mover *m)
{
	uint64_t sweeps = vhca_osm_gate_sweeps(m->gate);
	struct entry *e;

	if (m->planned_after == sweeps)
		return;
	m->planned_after = sweeps;
	TAILQ_FOREACH (e, &m->queue, link)
		drop_plan(e);
}

/* For those that are held here no sweep has to wait. */
static void tell_gate(struct vhca_osm_mover *m)
{
	vhca_osm_gate_queued(m->gate, m->stats.queued > 0 && !m->stats.paused);
}

static void dequeue(struct vhca_osm_mover *m, struct entry *e)
{
	TAILQ_REMOVE(&m->queue, e, link);
	m->settled = false;
	m->stats.queued--;
	tell_gate(m);
}

/* Takes those that may begin together. A later one never overtakes one that it meets. */
static void choose(struct vhca_osm_mover *m, struct queue *ret)
{
	struct entry *e = TAILQ_FIRST(&m->queue), *next;
	size_t n = 0;

	drop_stale_plans(m);
	for (size_t seen = 0;
	     e && seen < VHCA_OSM_MOVES_AHEAD && m->stats.under_way + n < VHCA_OSM_MOVES_AT_ONCE;
	     seen++, e = next) {
		struct vhca_error err = VHCA_ERROR_INIT;
		int r;

		next = TAILQ_NEXT(e, link);
		/*
		 * What it would change now. That stays true until a sweep, or until a move begins
		 * that shares a port with it: then it is planned anew, and as the tables change
		 * when a move begins, not when it ends, the new plan holds for the time after that.
		 */
		r = e->planned ? 0 : vhca_osm_mover_plan(m, &e->move, &e->plan, &err);
		e->planned = r == 0;
		if (r < 0) {
			dequeue(m, e);
			refuse(m, e, &err);
		} else if (!meets_any(&m->active, NULL, e) && !meets_any(ret, NULL, e) &&
			   !meets_any(&m->queue, e, e)) {
			dequeue(m, e);
			TAILQ_INSERT_TAIL(ret, e, link);
			n++;
		}
	}
}

/* ---- beginning ---- */

static void activate(struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	struct vhca_osm_mover_stats *stats = &m->stats;

	stats->together += stats->under_way > 0;
	stats->under_way++;
	if (stats->most_at_once < stats->under_way)
		stats->most_at_once = stats->under_way;
	TAILQ_INSERT_TAIL(&m->active, e, link);
	e->sent_us = vhca_now_us();
	e->until = now + m->ops->timeout_ms(m->ctx);
}

static void change(struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	struct vhca_osm_lid_move *move = &e->move;

	activate(m, e, now);
	move->cost.drain_smps = m->ops->drain(m->ctx, &move->pair, &e->plan.switches, true);
	m->stats.drain_smps += move->cost.drain_smps;
	e->seen = move->cost.drain_smps;
	e->draining = e->seen > 0;
	if (!e->draining)
		send(m, e, now);
}

/* One file and one fsync for all that begin together. */
static int remember(struct vhca_osm_mover *m, const struct queue *batch, struct vhca_error *err)
{
	struct vhca_osm_lid_pair pairs[VHCA_OSM_MOVES_AT_ONCE];
	const struct entry *e;
	size_t n = 0;
	int r = 0;

	TAILQ_FOREACH (e, batch, link)
		if (e->move.changes)
			pairs[n++] = e->move.pair;
	if (n > 0)
		r = m->ops->remember(m->ctx, pairs, n, false);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "state_not_saved", -r,
				      "OpenSM's guid2lid file");
	return 0;
}

/*
 * What a sweep has sent and lost, or somebody else a moment ago, is waited for like what a move has
 * sent.
 */
static void confirm(struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	const struct vhca_osm_lid_pair *left;

	if (m->ops->check_done(m->ctx, &e->move.pair, NULL) < 0) {
		activate(m, e, now);
		e->latest = e->until;
		e->sendings = SENDINGS; /* they are not this one's to send */
		return;
	}
	m->stats.unchanged++;
	/* Asked for again, it is there in the tables, and perhaps not in the fabric. */
	left = find_repair(m, e->move.pair.lid[0]);
	e->move.missing = left ? m->ops->missing(m->ctx, left, NULL, false) : 0;
	finish(e, NULL);
}

static void begin(struct vhca_osm_mover *m, struct queue *batch, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = remember(m, batch, &err);
	struct entry *e;

	while ((e = TAILQ_FIRST(batch))) {
		TAILQ_REMOVE(batch, e, link);
		if (!e->move.changes)
			confirm(m, e, now);
		else if (r == 0)
			change(m, e, now);
		else
			refuse(m, e, &err);
	}
}

/* ---- the queue ---- */

/*
 * The sweep in which OpenSM gives way to another master has no end: who waits for that asks the
 * wrong one.
 */
static void refuse_as_standby(struct vhca_osm_mover *m)
{
	struct vhca_osm_lid_pair pair;
	struct entry *e, *next;

	if (m->ops->is_master(m->ctx))
		return;
	for (e = TAILQ_FIRST(&m->queue); e; e = next) {
		struct vhca_error err = VHCA_ERROR_INIT;

		next = TAILQ_NEXT(e, link);
		if (m->ops->resolve(m->ctx, &e->move.want, &pair, &err) >= 0)
			continue;
		dequeue(m, e);
		refuse(m, e, &err);
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

static void refuse_late(struct vhca_osm_mover *m, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct entry *e;

	TAILQ_FOREACH (e, &m->queue, link)
		if (!e->until)
			e->until = now + VHCA_OSM_MOVE_WAIT_MS;
	say_what_it_waited_for(m, &err);
	while ((e = TAILQ_FIRST(&m->queue)) && now >= e->until) {
		dequeue(m, e);
		refuse(m, e, &err);
	}
}

/*
 * Gives up after a while: a device that never answers right must not cost a sweep every few seconds
 * for good.
 */
static void check_repairs(struct vhca_osm_mover *m, uint64_t now)
{
	size_t kept = 0;

	if (m->stats.repairing == 0 || vhca_osm_gate_is_sweeping(m->gate))
		return;
	for (size_t i = 0; i < m->stats.repairing; i++)
		if (m->ops->missing(m->ctx, &m->repairs[i], NULL, false) > 0)
			m->repairs[kept++] = m->repairs[i];
		else
			m->stats.repaired++;
	if (kept < m->stats.repairing)
		vhca_log_notice("%zu moves are repaired, %zu are not yet",
				m->stats.repairing - kept, kept);
	m->stats.repairing = kept;
	if (kept == 0 || now < m->resweep_at)
		return;
	if (m->resweeps < VHCA_OSM_RESWEEPS_MAX) {
		ask_for_sweep(m, now, m->resweeps);
		return;
	}
	vhca_log_error("%zu moves are still not acknowledged; OpenSM's own sweeps go on", kept);
	m->resweep_at = UINT64_MAX; /* until one more is lost */
}

/* True if something has begun, or was answered. */
static bool begin_some(struct vhca_osm_mover *m, uint64_t now)
{
	struct queue batch = TAILQ_HEAD_INITIALIZER(batch);

	if (TAILQ_EMPTY(&m->queue))
		return false;
	if (m->stats.paused || !vhca_osm_gate_enter(m->gate)) {
		refuse_as_standby(m);
		refuse_late(m, now);
		m->settled = false;
		return false;
	}
	if (!m->settled) {
		m->settled = true;
		choose(m, &batch);
		begin(m, &batch, now);
	}
	if (TAILQ_EMPTY(&m->active))
		vhca_osm_gate_leave(m->gate);
	return !m->settled;
}

void vhca_osm_mover_run(struct vhca_osm_mover *m, uint64_t now)
{
	const struct entry *e;
	uint64_t awaited;
	bool more;

	do {
		awaited = atomic_load(&m->answers); /* before: one look too many is none lost */
		look_at_all(m, now);
		more = begin_some(m, now);
		m->ops->send_keys(m->ctx);
	} while (more);
	TAILQ_FOREACH (e, &m->active, link)
		awaited += e->seen > e->ports ? e->seen - e->ports : 1;
	atomic_store(&m->awaited, TAILQ_EMPTY(&m->active) ? 0 : awaited);
	check_repairs(m, now);
}

bool vhca_osm_mover_answered(struct vhca_osm_mover *m)
{
	return atomic_fetch_add(&m->answers, 1) + 1 == atomic_load(&m->awaited);
}

uint64_t vhca_osm_mover_deadline(const struct vhca_osm_mover *m, uint64_t now)
{
	const struct entry *first = TAILQ_FIRST(&m->queue);

	if (!TAILQ_EMPTY(&m->active))
		return atomic_load(&m->answers) < atomic_load(&m->awaited) ? now + POLL_MS : now;
	if (first)
		return first->until < now + LOOK_MS ? first->until : now + LOOK_MS; /* 0: at once */
	/* What is due in a sweep waits for its end, which calls run(). */
	return m->stats.repairing && !vhca_osm_gate_is_sweeping(m->gate) ? m->resweep_at
									 : UINT64_MAX;
}

int vhca_osm_mover_submit(struct vhca_osm_mover *m, const struct vhca_osm_lid_move *want,
			  vhca_osm_move_fn fn, void *arg, struct vhca_error *err)
{
	struct vhca_osm_lid_pair pair;
	int r = m->ops->resolve(m->ctx, &want->want, &pair, err);

	return r < 0 ? r : vhca_osm_mover_queue(m, want, fn, arg, err);
}

/*
 * Takes the place of the last that waits for this vGUID's LID, if it is the same. An agent does not
 * wait for as long as a pause or a sweep may last: it asks again, and would have one more place in
 * the queue each time.
 */
static bool take_place(struct vhca_osm_mover *m, const struct vhca_osm_lid_want *want,
		       vhca_osm_move_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct entry *e, before;

	TAILQ_FOREACH_REVERSE(e, &m->queue, queue, link)
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
	const struct entry *e;
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
	struct entry *e;
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
	tell_gate(m);
	return 0;
}

bool vhca_osm_mover_has_queued(const struct vhca_osm_mover *m, uint64_t vguid)
{
	const struct entry *e;

	TAILQ_FOREACH (e, &m->queue, link)
		if (e->move.want.dynamic && e->move.want.vguid == vguid)
			return true;
	return false;
}

int vhca_osm_mover_plan(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move,
			struct vhca_osm_lid_plan *ret, struct vhca_error *err)
{
	int r;

	*ret = (struct vhca_osm_lid_plan){.n = 0};
	r = m->ops->resolve(m->ctx, &move->want, &move->pair, err);
	move->changes = r == 0;
	if (r == 0)
		r = m->ops->plan(m->ctx, &move->pair, move->mode, ret, &move->cost, err);
	return r < 0 ? r : 0;
}

int vhca_osm_mover_check(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move,
			 struct vhca_error *err)
{
	struct vhca_osm_lid_plan plan;
	int r = vhca_osm_mover_plan(m, move, &plan, err);

	vhca_osm_lid_plan_done(&plan);
	return r;
}

/* ---- life ---- */

int vhca_osm_mover_new(const struct vhca_osm_lid_ops *ops, void *ctx, struct vhca_osm_gate *gate,
		       struct vhca_osm_mover **ret)
{
	struct vhca_osm_mover *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->ops = ops;
	m->ctx = ctx;
	m->gate = gate;
	TAILQ_INIT(&m->queue);
	TAILQ_INIT(&m->active);
	*ret = m;
	return 0;
}

struct vhca_osm_mover *vhca_osm_mover_free(struct vhca_osm_mover *m)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct entry *e;

	if (!m)
		return NULL;
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "ending", 0, "OpenSM ends");
	vhca_error_hint(&err, "ask again: a move that was begun is carried out by the next sweep");
	if (!TAILQ_EMPTY(&m->active))
		vhca_osm_gate_leave(m->gate);
	while ((e = TAILQ_FIRST(&m->active))) {
		TAILQ_REMOVE(&m->active, e, link);
		finish(e, &err);
	}
	while ((e = TAILQ_FIRST(&m->queue))) {
		dequeue(m, e);
		finish(e, &err);
	}
	free(m);
	return NULL;
}

void vhca_osm_mover_stats(const struct vhca_osm_mover *m, struct vhca_osm_mover_stats *ret)
{
	const struct entry *e = TAILQ_FIRST(&m->queue);
	uint64_t now = vhca_now_us(), first = e ? e->asked_us : now;

	TAILQ_FOREACH (e, &m->active, link)
		first = e->asked_us < first ? e->asked_us : first;
	*ret = m->stats;
	ret->queued += m->stats.under_way;
	ret->oldest_us = now - first;
	ret->sweeps = vhca_osm_gate_sweeps(m->gate);
	ret->sweeps_waited_us = vhca_osm_gate_waited_us(m->gate);
}

void vhca_osm_mover_counts(const struct vhca_osm_mover *m, struct vhca_osm_lid_counts *ret)
{
	m->ops->counts(m->ctx, ret);
}

bool vhca_osm_mover_find(const struct vhca_osm_mover *m, uint16_t lid,
			 struct vhca_osm_lid_place *ret)
{
	return m->ops->find(m->ctx, lid, ret);
}

void vhca_osm_mover_list(const struct vhca_osm_mover *m, struct vhca_osm_lid_set *ret)
{
	m->ops->list(m->ctx, ret);
}

void vhca_osm_mover_info(const struct vhca_osm_mover *m, struct vhca_osm_fabric_info *ret)
{
	m->ops->info(m->ctx, ret);
}

void vhca_osm_mover_pause(struct vhca_osm_mover *m, bool paused)
{
	struct entry *e;

	if (paused == m->stats.paused)
		return; /* who asks again and again makes nobody wait for longer */
	vhca_log_notice("moves of LIDs %s", paused ? "are paused" : "go on");
	m->stats.paused = paused;
	m->settled = false;
	TAILQ_FOREACH (e, &m->queue, link)
		e->until = 0; /* looked at now, and waits anew */
	tell_gate(m);
}

int vhca_osm_mover_rebalance(struct vhca_osm_mover *m, struct vhca_error *err)
{
	return m->ops->rebalance(m->ctx, err);
}
