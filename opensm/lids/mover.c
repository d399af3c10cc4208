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
 * LIDs or ports, which changes OpenSM's tables when it begins (vhca_osm_waiting_unplan).
 *
 * Moves go together if they share neither a switch nor a LID nor a port. A switch is sent whole
 * blocks, so two moves meet in a block even where they change different entries of it. No move
 * overtakes an earlier one that it meets; else one through half of the subnet would wait for ever.
 * Dynamic LIDs change all switches: those that wait are sent as one, each block once.
 *
 * What a move will have done is on disk before its first SMP. Until OpenSM's tables change it can
 * be refused: the file is written back, and what was drained is sent again (roll_back). After that
 * there is no way back: a crash, a lost SMP and a dead port all end in a heavy sweep, which gives
 * the ports the LIDs of that file. So missing answers make a move "repairing" and never undo it.
 *
 * The gate is entered from the first move that begins to the last one that ends. A sweep that
 * begins in between waits for them, not for long: answers that come in extend a move's time, but
 * not beyond PATIENCE_MS. While a sweep goes on, moves wait in the queue; the sweep in which OpenSM
 * gives way to another master has no end, so those are refused (vhca_osm_waiting_standby).
 *
 * Nothing here blocks but the file. Answers are looked for in OpenSM's own tables: every POLL_MS,
 * and when it has told of as many acknowledged blocks as are missing; of ports it tells nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "opensm/lids/moves.h"

#define POLL_MS 1
#define LOOK_MS 1000 /* nor does OpenSM say that it has given way to another master */

/* True if something has begun, or was answered. */
static bool begin_some(struct vhca_osm_mover *m)
{
	if (TAILQ_EMPTY(&m->queue))
		return false;
	if (m->stats.paused || !vhca_osm_gate_enter(m->gate)) {
		vhca_osm_waiting_standby(m);
		vhca_osm_waiting_late(m, m->now);
		m->settled = false;
		return false;
	}
	if (!m->settled) {
		m->settled = true;
		vhca_osm_waiting_choose(m);
		vhca_osm_batch_begin(m);
	}
	if (TAILQ_EMPTY(&m->active))
		vhca_osm_gate_leave(m->gate);
	return !m->settled;
}

void vhca_osm_mover_run(struct vhca_osm_mover *m, uint64_t now)
{
	const struct vhca_osm_entry *e;
	size_t lids = 0; /* may lack a port alone, of whose answer nobody tells */
	uint64_t awaited;
	bool more;

	m->now = now;
	do {
		awaited = atomic_load(&m->answers); /* before: one look too many is none lost */
		vhca_osm_active_look(m);
		more = begin_some(m);
		m->ops->send_keys(m->ctx);
	} while (more);
	TAILQ_FOREACH (e, &m->active, link)
		if (!e->move.pair.dynamic)
			awaited += e->seen > e->ports ? e->seen - e->ports : 1;
		else if (e->seen > 0)
			lids = 1;
	/* of several LIDs in one block once */
	awaited += m->lids_missing > 0 ? m->lids_missing : lids;
	atomic_store(&m->awaited, TAILQ_EMPTY(&m->active) ? 0 : awaited);
	vhca_osm_repairs_check(m, m->now);
}

bool vhca_osm_mover_answered(struct vhca_osm_mover *m)
{
	return atomic_fetch_add(&m->answers, 1) + 1 == atomic_load(&m->awaited);
}

uint64_t vhca_osm_mover_deadline(const struct vhca_osm_mover *m, uint64_t now)
{
	const struct vhca_osm_entry *first = TAILQ_FIRST(&m->queue);

	if (!TAILQ_EMPTY(&m->active))
		return atomic_load(&m->answers) < atomic_load(&m->awaited) ? now + POLL_MS : now;
	if (first)
		return first->until < now + LOOK_MS ? first->until : now + LOOK_MS; /* 0: at once */
	/* What is due in a sweep waits for its end, which calls run(). */
	return m->stats.repairing && !vhca_osm_gate_is_sweeping(m->gate) ? m->resweep_at
									 : UINT64_MAX;
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
	TAILQ_INIT(&m->batch);
	TAILQ_INIT(&m->active);
	*ret = m;
	return 0;
}

struct vhca_osm_mover *vhca_osm_mover_free(struct vhca_osm_mover *m)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_entry *e;

	if (!m)
		return NULL;
	(void)vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "ending", 0, "OpenSM ends");
	vhca_error_hint(&err, "ask again: a move that was begun is carried out by the next sweep");
	if (!TAILQ_EMPTY(&m->active))
		vhca_osm_gate_leave(m->gate);
	while ((e = TAILQ_FIRST(&m->active))) {
		TAILQ_REMOVE(&m->active, e, link);
		vhca_osm_entry_finish(e, &err);
	}
	while ((e = TAILQ_FIRST(&m->queue))) {
		vhca_osm_waiting_remove(m, e);
		vhca_osm_entry_finish(e, &err);
	}
	free(m);
	return NULL;
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
	struct vhca_osm_entry *e;

	if (paused == m->stats.paused)
		return; /* who asks again and again makes nobody wait for longer */
	vhca_log_notice("moves of LIDs %s", paused ? "are paused" : "go on");
	m->stats.paused = paused;
	m->settled = false;
	TAILQ_FOREACH (e, &m->queue, link)
		e->until = 0; /* looked at now, and waits anew */
	vhca_osm_waiting_tell(m);
}

int vhca_osm_mover_rebalance(struct vhca_osm_mover *m, struct vhca_error *err)
{
	return m->ops->rebalance(m->ctx, err);
}
