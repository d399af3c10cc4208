/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/moves.h"

/* One file and one fsync for all that begin together. */
static int remember(struct vhca_osm_mover *m, struct vhca_error *err)
{
	struct vhca_osm_lid_pair pairs[VHCA_OSM_LIDS_TOGETHER];
	const struct vhca_osm_entry *e;
	size_t n = 0;
	int r = 0;

	TAILQ_FOREACH (e, &m->batch, link)
		if (e->move.changes)
			pairs[n++] = e->move.pair;
	if (n > 0)
		r = vhca_osm_mover_remember(m, pairs, n, false);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "state_not_saved", -r,
				      "OpenSM's guid2lid file");
	return 0;
}

/*
 * What a sweep has sent and lost, or somebody else a moment ago, is waited for like what a move has
 * sent.
 */
static void confirm(struct vhca_osm_mover *m, struct vhca_osm_entry *e)
{
	const struct vhca_osm_lid_pair *left;

	if (m->ops->check_done(m->ctx, &e->move.pair, NULL) < 0) {
		vhca_osm_active_watch(m, e);
		return;
	}
	m->stats.unchanged++;
	/* Asked for again, it is there in the tables, and perhaps not in the fabric. */
	left = vhca_osm_repairs_find(m, &e->move.pair);
	e->move.missing = left ? m->ops->missing(m->ctx, left, NULL, false) : 0;
	vhca_osm_entry_finish(e, NULL);
}

void vhca_osm_batch_begin(struct vhca_osm_mover *m)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_queue lids = TAILQ_HEAD_INITIALIZER(lids);
	int r = remember(m, &err);
	struct vhca_osm_entry *e;

	while ((e = TAILQ_FIRST(&m->batch))) {
		TAILQ_REMOVE(&m->batch, e, link);
		e->move.begun = true;
		if (!e->move.changes)
			confirm(m, e);
		else if (r < 0)
			vhca_osm_entry_refuse(m, e, &err);
		else if (e->move.pair.dynamic)
			TAILQ_INSERT_TAIL(&lids, e, link);
		else
			vhca_osm_active_change(m, e);
	}
	vhca_osm_active_give(m, &lids);
}
