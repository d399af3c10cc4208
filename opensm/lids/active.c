/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/file.h"
#include "opensm/lids/moves.h"

#define SENDINGS 2 /* then it is left to a heavy sweep */
/* While answers come in, none is sent again; a sweep waits no longer than VHCA_OSM_GATE_END_MS. */
#define PATIENCE_MS 3000

static size_t missing(const struct vhca_osm_mover *m, const struct vhca_osm_entry *e, bool resend)
{
	return m->ops->missing(m->ctx, &e->move.pair, &e->plan.switches, resend);
}

static void deactivate(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	TAILQ_REMOVE(&m->active, e, link);
	m->stats.under_way--;
	m->settled = false;
}

/* Its file is as before. */
static void give_up(struct vhca_osm_mover *m, struct vhca_osm_entry *e, struct vhca_error *err)
{
	vhca_error_hint(err, "rolled back: the LIDs are where they were; ask again");
	deactivate(m, e);
	m->stats.rolled_back++;
	vhca_osm_entry_finish(e, err);
}

static void roll_back(struct vhca_osm_mover *m, struct vhca_osm_entry *e, struct vhca_error *err)
{
	(void)vhca_osm_mover_remember(m, &e->move.pair, 1, true);
	if (e->draining) {
		(void)missing(m, e, true);
		m->ops->sweep(m->ctx); /* looks whether that has arrived */
	}
	give_up(m, e, err);
}

/* From here on its SMPs are waited for; so many of them are not acknowledged yet. */
static void await(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	vhca_osm_waiting_unplan(m, e);
	e->draining = false;
	m->stats.port_smps += e->move.cost.port_smps;
	e->sendings = 1;
	e->until = m->now + m->ops->timeout_ms(m->ctx);
	e->latest = m->now + PATIENCE_MS;
	e->ports = e->move.cost.port_smps;
}

static void send(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	struct vhca_osm_lid_move *move = &e->move;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (m->ops->send(m->ctx, &move->pair, move->mode, &e->plan, &move->cost, &err) < 0) {
		roll_back(m, e, &err);
		return;
	}
	m->stats.lft_smps += move->cost.lft_smps;
	await(m, e);
	e->seen = missing(m, e, false);
}

static void end_active(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	bool done = m->ops->check_done(m->ctx, &e->move.pair, &err) == 0;

	deactivate(m, e);
	e->move.duration_us = vhca_now_us() - e->sent_us;
	if (done || e->move.missing)
		vhca_osm_figures_count(&m->stats, &e->move);
	/* OpenSM does not know its keys yet, or not the port any more */
	else
		m->stats.refused++;
	if (e->move.missing)
		vhca_osm_repairs_add(m, e, m->now);
	vhca_osm_entry_finish(e, done ? NULL : &err);
}

/*
 * Thousands of SMPs take longer than one; to send them again while they are on their way only makes
 * more of them.
 */
static void wait_for_more(const struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	uint64_t until = m->now + m->ops->timeout_ms(m->ctx);

	if (until > e->latest)
		until = e->latest;
	if (until > e->until)
		e->until = until;
}

static bool is_late(const struct vhca_osm_mover *m, const struct vhca_osm_entry *e)
{
	return m->now >= e->until;
}

/* So many are missing. answered: fewer than before are, of all that were sent together. */
static void go_on(struct vhca_osm_mover *m, struct vhca_osm_entry *e, size_t missing, bool answered)
{
	bool late = is_late(m, e), done;

	answered |= missing < e->seen;
	e->move.missing = e->seen = missing;
	done = missing == 0 && m->ops->check_done(m->ctx, &e->move.pair, NULL) == 0;
	if (done || (late && e->sendings == SENDINGS)) {
		end_active(m, e);
	} else if (late) {
		e->sendings++;
		e->until = m->now + m->ops->timeout_ms(m->ctx);
	} else if (answered) {
		wait_for_more(m, e);
	}
}

static void look(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	bool late = is_late(m, e);

	if (e->draining) {
		/* What does not drop in time is changed all the same: nothing is wrong then that
		 * would not be without this step. */
		e->seen = m->ops->drain(m->ctx, &e->move.pair, &e->plan.switches, false);
		if (late || e->seen == 0)
			send(m, e);
		return;
	}
	go_on(m, e, missing(m, e, late && e->sendings < SENDINGS), false);
}

/* ---- dynamic LIDs, all at once ---- */

static struct vhca_osm_lid_part part_of(struct vhca_osm_entry *e, bool resend)
{
	return (struct vhca_osm_lid_part){.pair = &e->move.pair,
					  .plan = &e->plan,
					  .cost = &e->move.cost,
					  .resend = resend,
					  .err = VHCA_ERROR_INIT};
}

static bool is_dynamic(const struct vhca_osm_entry *e)
{
	return e->move.changes && e->move.pair.dynamic;
}

/*
 * To look at each alone would be to look at the same blocks again and again. The block of one waits
 * behind those of others: that is no reason to send it again.
 */
static void look_at_lids(struct vhca_osm_mover *m)
{
	struct vhca_osm_entry *e, *next;
	size_t n = 0, i = 0, before = m->lids_missing;

	TAILQ_FOREACH (e, &m->active, link)
		if (is_dynamic(e))
			m->parts[n++] = part_of(e, is_late(m, e) && e->sendings < SENDINGS);
	m->lids_missing = n > 0 ? m->ops->missing_together(m->ctx, m->parts, n) : 0;
	for (e = TAILQ_FIRST(&m->active); i < n; e = next) {
		next = TAILQ_NEXT(e, link);
		if (is_dynamic(e)) {
			go_on(m, e, m->parts[i].blocks + m->parts[i].ports,
			      m->lids_missing < before);
			i++;
		}
	}
}

void vhca_osm_active_look(struct vhca_osm_mover *m)
{
	struct vhca_osm_entry *e, *next;

	if (TAILQ_EMPTY(&m->active))
		return;
	for (e = TAILQ_FIRST(&m->active); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (!is_dynamic(e))
			look(m, e);
	}
	look_at_lids(m);
	if (!TAILQ_EMPTY(&m->active))
		return;
	m->lids_missing = 0; /* what is left of it is the sweeps' */
	vhca_osm_gate_leave(m->gate);
}

static void activate(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	struct vhca_osm_mover_stats *stats = &m->stats;

	stats->together += stats->under_way > 0;
	stats->under_way++;
	if (stats->most_at_once < stats->under_way)
		stats->most_at_once = stats->under_way;
	TAILQ_INSERT_TAIL(&m->active, e, link);
	e->sent_us = vhca_now_us();
	e->until = m->now + m->ops->timeout_ms(m->ctx);
}

void vhca_osm_active_change(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	struct vhca_osm_lid_move *move = &e->move;

	activate(m, e);
	move->cost.drain_smps = m->ops->drain(m->ctx, &move->pair, &e->plan.switches, true);
	m->stats.drain_smps += move->cost.drain_smps;
	e->seen = move->cost.drain_smps;
	e->draining = e->seen > 0;
	if (!e->draining)
		send(m, e);
}

void vhca_osm_active_give(struct vhca_osm_mover *m, struct vhca_osm_queue *lids)
{
	struct vhca_osm_entry *first = TAILQ_FIRST(lids), *e, *next;
	struct vhca_osm_lid_pair undone[VHCA_OSM_LIDS_TOGETHER];
	size_t n = 0, i = 0, refused = 0, smps;

	if (!first)
		return;
	while ((e = TAILQ_FIRST(lids))) {
		TAILQ_REMOVE(lids, e, link);
		activate(m, e);
		m->parts[n++] = part_of(e, false);
	}
	smps = m->ops->send_together(m->ctx, m->parts, n);
	m->stats.lft_smps += smps;
	m->lids_missing += smps;
	for (size_t p = 0; p < n; p++)
		if (m->parts[p].refused < 0)
			undone[refused++] = *m->parts[p].pair;
	if (refused > 0) /* one file for all of these */
		(void)vhca_osm_mover_remember(m, undone, refused, true);
	for (e = first; e; e = next, i++) {
		next = TAILQ_NEXT(e, link);
		if (m->parts[i].refused < 0) {
			give_up(m, e, &m->parts[i].err);
		} else {
			await(m, e);
			e->seen = m->parts[i].blocks + m->parts[i].ports;
		}
	}
}

void vhca_osm_active_watch(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	activate(m, e);
	e->latest = e->until;
	e->sendings = SENDINGS; /* they are not this one's to send */
}
