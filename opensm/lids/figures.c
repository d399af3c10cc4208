/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/file.h"
#include "opensm/lids/moves.h"

void vhca_osm_figures_count(struct vhca_osm_mover_stats *stats,
			    const struct vhca_osm_lid_move *move)
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

void vhca_osm_mover_stats(const struct vhca_osm_mover *m, struct vhca_osm_mover_stats *ret)
{
	const struct vhca_osm_entry *e = TAILQ_FIRST(&m->queue);
	uint64_t now = vhca_now_us(), first = e ? e->asked_us : now;

	*ret = m->stats;
	ret->queued += m->stats.under_way;
	TAILQ_FOREACH (e, &m->active, link)
		first = e->asked_us < first ? e->asked_us : first;
	TAILQ_FOREACH (e, &m->batch, link) {
		first = e->asked_us < first ? e->asked_us : first;
		ret->queued++;
	}
	ret->oldest_us = now - first;
	ret->sweeps = vhca_osm_gate_sweeps(m->gate);
	ret->sweeps_waited_us = vhca_osm_gate_waited_us(m->gate);
}
