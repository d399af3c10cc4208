/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "opensm/lids/moves.h"

bool vhca_osm_pairs_meet(const struct vhca_osm_lid_pair *a, const struct vhca_osm_lid_pair *b)
{
	bool lend = a->dynamic && b->dynamic;

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			if (!(lend && i == 1 && j == 1) && (vhca_osm_same(a->lid[i], b->lid[j]) ||
							    vhca_osm_same(a->guid[i], b->guid[j])))
				return true;
	return false;
}

void vhca_osm_entry_finish(struct vhca_osm_entry *e, const struct vhca_error *err)
{
	e->fn(e->arg, &e->move, err);
	vhca_osm_lid_plan_done(&e->plan);
	free(e);
}

void vhca_osm_entry_refuse(struct vhca_osm_mover *m, struct vhca_osm_entry *e,
			   const struct vhca_error *err)
{
	m->stats.refused++;
	vhca_osm_entry_finish(e, err);
}

/* A disk can take longer than a time-out, which is that of what is sent after it. */
int vhca_osm_mover_remember(struct vhca_osm_mover *m, const struct vhca_osm_lid_pair *pairs,
			    size_t n, bool undo)
{
	uint64_t begin = m->ops->now_ms(m->ctx);
	int r = m->ops->remember(m->ctx, pairs, n, undo);

	m->now += m->ops->now_ms(m->ctx) - begin;
	return r;
}
