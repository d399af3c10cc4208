/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/log.h"
#include "opensm/lids/moves.h"

static void ask_for_sweep(struct vhca_osm_mover *m, uint64_t now, unsigned int times_before)
{
	m->resweep_at = now + VHCA_OSM_RESWEEP_EVERY;
	m->resweeps = times_before + 1;
	m->ops->sweep(m->ctx);
}

const struct vhca_osm_lid_pair *vhca_osm_repairs_find(const struct vhca_osm_mover *m,
						      const struct vhca_osm_lid_pair *pair)
{
	uint16_t lid = pair->lid[0], block = lid / VHCA_OSM_LFT_BLOCK;

	for (size_t i = 0; i < m->stats.repairing; i++) {
		const struct vhca_osm_lid_pair *left = &m->repairs[i];

		if (vhca_osm_same(left->lid[0], lid) || vhca_osm_same(left->lid[1], lid))
			return left;
		/* Of dynamic LIDs the same SMP is missing, which may be hundreds of LIDs'. */
		if (lid && left->dynamic && pair->dynamic &&
		    left->lid[0] / VHCA_OSM_LFT_BLOCK == block)
			return left;
	}
	return NULL;
}

void vhca_osm_repairs_add(struct vhca_osm_mover *m, const struct vhca_osm_entry *e, uint64_t now)
{
	const struct vhca_osm_lid_pair *known = vhca_osm_repairs_find(m, &e->move.pair);

	/* Who finds it so asks again and again. */
	if (!e->move.changes && (known || m->stats.repairing == VHCA_OSM_REPAIRS_MAX))
		return;
	/* Said, and asked for, a moment ago for another one that was given with it. */
	if (known && e->move.pair.dynamic && m->resweep_at == now + VHCA_OSM_RESWEEP_EVERY)
		return;
	vhca_log_error("LIDs %u and %u: %zu SMPs were not acknowledged; left to a heavy sweep",
		       e->move.pair.lid[0], e->move.pair.lid[1], e->move.missing);
	if (m->stats.repairing < VHCA_OSM_REPAIRS_MAX && !(known && e->move.pair.dynamic))
		m->repairs[m->stats.repairing++] = e->move.pair;
	ask_for_sweep(m, now, 0);
}

/*
 * Gives up after a while: a device that never answers right must not cost a sweep every few seconds
 * for good.
 */
void vhca_osm_repairs_check(struct vhca_osm_mover *m, uint64_t now)
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
