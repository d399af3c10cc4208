/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/mover.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"

#define SENDINGS 2 /* then it is left to a heavy sweep */
/* As long as answers come in, a move is not sent again; a sweep waits for it no longer than VHCA_OSM_GATE_END_MS. */
#define PATIENCE_MS 3000
#define POLL_MS	    1 /* answers to PortInfo raise no event */

const unsigned int vhca_osm_latency_ms[VHCA_OSM_LATENCIES] = {1,   2,	5,   10,   20,	 50,
							      100, 200, 500, 1000, 5000, 0};

struct entry {
	struct vhca_osm_lid_move move;
	vhca_osm_move_fn fn;
	void *arg;
	uint64_t
		until; /* queued: when it is refused, 0 = run() has not seen it; sent: when it is sent again */
	uint64_t latest; /* sent: `until` goes no further while answers come in */
	size_t seen;	 /* sent: what was missing at the last look */
	unsigned int sendings;
	uint64_t sent_us;
	TAILQ_ENTRY(entry) link;
};

TAILQ_HEAD(queue, entry);

struct vhca_osm_mover {
	const struct vhca_osm_lid_ops *ops;
	void *ctx;
	struct vhca_osm_gate *gate;
	struct queue queue;
	struct entry *active; /* sent, and inside the gate */
	struct vhca_osm_mover_stats stats;
	struct vhca_osm_lid_pair repairs[VHCA_OSM_REPAIRS_MAX];
	uint64_t resweep_at; /* only while something is repaired */
	unsigned int resweeps;
};

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- ends ---- */

static void finish(struct vhca_osm_mover *m, struct entry *e, const struct vhca_error *err)
{
	if (err)
		m->stats.refused++;
	e->fn(e->arg, &e->move, err);
	free(e);
}

static void ask_for_sweep(struct vhca_osm_mover *m, uint64_t now, unsigned int times_before)
{
	m->resweep_at = now + VHCA_OSM_RESWEEP_EVERY;
	m->resweeps = times_before + 1;
	m->ops->sweep(m->ctx);
}

static void repair(struct vhca_osm_mover *m, const struct entry *e, uint64_t now)
{
	vhca_log_error("LIDs %u and %u: %zu SMPs were not acknowledged; left to a heavy sweep",
		       e->move.pair.lid[0], e->move.pair.lid[1], e->move.missing);
	if (m->stats.repairing < VHCA_OSM_REPAIRS_MAX)
		m->repairs[m->stats.repairing++] = e->move.pair;
	ask_for_sweep(m, now, 0);
}

static void count(struct vhca_osm_mover_stats *stats, const struct vhca_osm_lid_move *move)
{
	size_t i = 0;

	if (move->missing) {
		stats->lost++;
	} else {
		stats->applied++;
		stats->by_mode[move->cost.mode]++;
	}
	while (vhca_osm_latency_ms[i] &&
	       move->duration_us > vhca_osm_latency_ms[i] * UINT64_C(1000))
		i++;
	stats->latency[i]++;
	stats->latency_us += move->duration_us;
}

static void end_active(struct vhca_osm_mover *m, uint64_t now)
{
	struct entry *e = m->active;

	m->active = NULL;
	e->move.duration_us = now_us() - e->sent_us;
	vhca_osm_gate_leave(m->gate);
	count(&m->stats, &e->move);
	if (e->move.missing)
		repair(m, e, now);
	finish(m, e, NULL);
}

/* ---- one move ---- */

/* Remembers and sends; an error means that all is as before. */
static int begin(struct vhca_osm_mover *m, struct entry *e, struct vhca_error *err)
{
	struct vhca_osm_lid_move *move = &e->move;
	int r = m->ops->resolve(m->ctx, &move->want, &move->pair, err);

	move->changes = r == 0;
	if (r != 0)
		return r < 0 ? r : 0;
	r = m->ops->remember(m->ctx, &move->pair, false);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "state_not_saved", -r,
				      "OpenSM's guid2lid file");
	e->sent_us = now_us();
	r = m->ops->send(m->ctx, &move->pair, move->mode, &move->cost, err);
	if (r < 0)
		(void)m->ops->remember(m->ctx, &move->pair, true);
	return r;
}

static void start(struct vhca_osm_mover *m, struct entry *e, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = begin(m, e, &err);

	if (r == 0 && e->move.changes) {
		m->stats.lft_smps += e->move.cost.lft_smps;
		m->stats.port_smps += e->move.cost.port_smps;
		e->sendings = 1;
		e->until = now + m->ops->timeout_ms(m->ctx);
		e->latest = now + PATIENCE_MS;
		e->seen = m->ops->missing(m->ctx, &e->move.pair, false);
		m->active = e;
		return;
	}
	vhca_osm_gate_leave(m->gate);
	if (r == 0)
		m->stats.unchanged++;
	finish(m, e, r < 0 ? &err : NULL);
}

/* Thousands of SMPs take longer than one; to send them again while they are on their way only makes more of them. */
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

/* True if it ended. */
static bool look(struct vhca_osm_mover *m, uint64_t now)
{
	struct entry *e = m->active;
	bool late = now >= e->until;

	e->move.missing = m->ops->missing(m->ctx, &e->move.pair, late && e->sendings < SENDINGS);
	if (e->move.missing && !late) {
		wait_for_more(m, e, now);
		return false;
	}
	if (e->move.missing && e->sendings < SENDINGS) {
		e->sendings++;
		e->until = now + m->ops->timeout_ms(m->ctx);
		return false;
	}
	end_active(m, now);
	return true;
}

/* ---- the queue ---- */

static struct entry *take(struct vhca_osm_mover *m)
{
	struct entry *e = TAILQ_FIRST(&m->queue);

	TAILQ_REMOVE(&m->queue, e, link);
	m->stats.queued--;
	vhca_osm_gate_queued(m->gate, m->stats.queued > 0);
	return e;
}

static void refuse_late(struct vhca_osm_mover *m, uint64_t now)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct entry *e;

	TAILQ_FOREACH (e, &m->queue, link)
		if (!e->until)
			e->until = now + VHCA_OSM_MOVE_WAIT_MS;
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "sweep_in_progress", 0,
			     "OpenSM's sweep did not end in %d s", VHCA_OSM_MOVE_WAIT_MS / 1000);
	vhca_error_hint(&err, "nothing was changed; see OpenSM's log, and ask again");
	while (!TAILQ_EMPTY(&m->queue) && now >= TAILQ_FIRST(&m->queue)->until)
		finish(m, take(m), &err);
}

/* Gives up after a while: a device that never answers right must not cost a sweep every few seconds for good. */
static void check_repairs(struct vhca_osm_mover *m, uint64_t now)
{
	size_t kept = 0;

	if (m->stats.repairing == 0 || vhca_osm_gate_is_sweeping(m->gate))
		return;
	for (size_t i = 0; i < m->stats.repairing; i++)
		if (m->ops->missing(m->ctx, &m->repairs[i], false) > 0)
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
	m->stats.repairing = 0;
}

void vhca_osm_mover_run(struct vhca_osm_mover *m, uint64_t now)
{
	while (m->active || !TAILQ_EMPTY(&m->queue)) {
		if (m->active && !look(m, now))
			return;
		if (TAILQ_EMPTY(&m->queue))
			break;
		if (!vhca_osm_gate_enter(m->gate)) {
			refuse_late(m, now);
			break;
		}
		start(m, take(m), now);
	}
	check_repairs(m, now);
}

uint64_t vhca_osm_mover_deadline(const struct vhca_osm_mover *m, uint64_t now)
{
	if (m->active)
		return now + POLL_MS;
	if (!TAILQ_EMPTY(&m->queue))
		return TAILQ_FIRST(&m->queue)->until; /* 0: at once */
	return m->stats.repairing ? m->resweep_at : UINT64_MAX;
}

int vhca_osm_mover_submit(struct vhca_osm_mover *m, const struct vhca_osm_lid_move *want,
			  vhca_osm_move_fn fn, void *arg, struct vhca_error *err)
{
	struct vhca_osm_lid_pair pair;
	struct entry *e;
	int r = m->ops->resolve(m->ctx, &want->want, &pair, err);

	if (r < 0)
		return r;
	if (m->stats.queued >= VHCA_OSM_MOVES_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_moves", 0,
				      "%d moves are queued", VHCA_OSM_MOVES_MAX);
	e = calloc(1, sizeof(*e));
	if (!e)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "out_of_memory", ENOMEM, "move");
	e->move = (struct vhca_osm_lid_move){.want = want->want, .mode = want->mode};
	e->fn = fn;
	e->arg = arg;
	TAILQ_INSERT_TAIL(&m->queue, e, link);
	m->stats.queued++;
	vhca_osm_gate_queued(m->gate, true);
	return 0;
}

int vhca_osm_mover_plan(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move,
			struct vhca_error *err)
{
	int r = m->ops->resolve(m->ctx, &move->want, &move->pair, err);

	move->changes = r == 0;
	if (r != 0)
		return r < 0 ? r : 0;
	return m->ops->plan(m->ctx, &move->pair, move->mode, &move->cost, err);
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
	*ret = m;
	return 0;
}

struct vhca_osm_mover *vhca_osm_mover_free(struct vhca_osm_mover *m)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!m)
		return NULL;
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "ending", 0, "OpenSM ends");
	vhca_error_hint(&err, "ask again: a move that was begun is carried out by the next sweep");
	if (m->active) {
		vhca_osm_gate_leave(m->gate);
		finish(m, m->active, &err);
	}
	while (!TAILQ_EMPTY(&m->queue))
		finish(m, take(m), &err);
	free(m);
	return NULL;
}

void vhca_osm_mover_stats(const struct vhca_osm_mover *m, struct vhca_osm_mover_stats *ret)
{
	*ret = m->stats;
	ret->queued += m->active ? 1 : 0;
	ret->sweeps = vhca_osm_gate_sweeps(m->gate);
}

bool vhca_osm_mover_find(const struct vhca_osm_mover *m, uint16_t lid,
			 struct vhca_osm_lid_place *ret)
{
	return m->ops->find(m->ctx, lid, ret);
}

void vhca_osm_mover_info(const struct vhca_osm_mover *m, struct vhca_osm_fabric_info *ret)
{
	m->ops->info(m->ctx, ret);
}
