/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/publisher.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void vhca_osm_publisher_changed(struct vhca_osm_publisher *p, uint64_t now)
{
	if (!p->first_change)
		p->first_change = now;
	p->last_change = now;
}

static uint64_t write_at(const struct vhca_osm_publisher *p)
{
	if (!p->first_change)
		return UINT64_MAX;
	if (p->retry_at)
		return p->retry_at;
	return earlier(p->last_change + VHCA_OSM_QUIET_MS, p->first_change + VHCA_OSM_BURST_MS);
}

static uint64_t look_at(const struct vhca_osm_publisher *p)
{
	return p->look_at && !vhca_osm_publisher_settled(p) ? p->look_at : UINT64_MAX;
}

static uint64_t resweep_at(const struct vhca_osm_publisher *p)
{
	if (vhca_osm_publisher_settled(p))
		return UINT64_MAX;
	if (p->look_at)
		return p->asked + VHCA_OSM_ANSWER_MS;
	if (p->postponed)
		return p->asked + VHCA_OSM_SWEEP_MAX_MS;
	return p->asked + (atomic_load(&p->read) == atomic_load(&p->written) ? VHCA_OSM_SWEEP_MAX_MS
									     : VHCA_OSM_RESWEEP_MS);
}

bool vhca_osm_publisher_write_due(const struct vhca_osm_publisher *p, uint64_t now)
{
	return now >= write_at(p);
}

bool vhca_osm_publisher_written(struct vhca_osm_publisher *p, bool failed, bool replaced,
				uint64_t now)
{
	p->retry_at = failed ? now + VHCA_OSM_REWRITE_MS : 0;
	if (failed)
		return false;
	p->first_change = p->last_change = 0;
	if (!replaced)
		return false;
	p->asked = now;
	p->look_at = 0; /* what was applied is no longer the current file */
	p->postponed = false;
	/*
	 * The order matters: a sweep that is seen discovering after this samples the new generation
	 * when it ends discovery.
	 */
	atomic_fetch_add(&p->written, 1);
	return !atomic_load(&p->discovering);
}

void vhca_osm_publisher_applied(struct vhca_osm_publisher *p, uint64_t now)
{
	p->asked = p->look_at = now;
	p->applied = atomic_load(&p->written);
}

void vhca_osm_publisher_postponed(struct vhca_osm_publisher *p)
{
	p->postponed = true;
}

bool vhca_osm_publisher_apply_due(struct vhca_osm_publisher *p)
{
	if (!atomic_exchange(&p->swept, false) || !p->postponed)
		return false;
	p->postponed = false;
	return !vhca_osm_publisher_settled(p);
}

bool vhca_osm_publisher_look_due(const struct vhca_osm_publisher *p, uint64_t now)
{
	return now >= look_at(p);
}

void vhca_osm_publisher_looked(struct vhca_osm_publisher *p, bool all_answered, uint64_t now)
{
	if (all_answered) {
		atomic_store(&p->read, atomic_load(&p->written));
		atomic_store(&p->in_effect, atomic_load(&p->written));
	}
	p->look_at = all_answered ? 0 : now + VHCA_OSM_LOOK_MS;
}

bool vhca_osm_publisher_resweep_due(struct vhca_osm_publisher *p, uint64_t now)
{
	if (now < resweep_at(p))
		return false;
	p->asked = now;
	p->look_at = 0;
	p->postponed = false;
	return true;
}

uint64_t vhca_osm_publisher_deadline(const struct vhca_osm_publisher *p)
{
	return earlier(write_at(p), earlier(look_at(p), resweep_at(p)));
}

uint64_t vhca_osm_publisher_generation(const struct vhca_osm_publisher *p)
{
	return atomic_load(&p->written);
}

uint64_t vhca_osm_publisher_read(const struct vhca_osm_publisher *p)
{
	uint64_t swept = atomic_load(&p->in_effect);

	return swept > p->applied ? swept : p->applied;
}

bool vhca_osm_publisher_settled(const struct vhca_osm_publisher *p)
{
	return atomic_load(&p->in_effect) == atomic_load(&p->written);
}

void vhca_osm_publisher_on_sweep_start(struct vhca_osm_publisher *p)
{
	atomic_store(&p->discovering, true);
}

void vhca_osm_publisher_on_discovered(struct vhca_osm_publisher *p)
{
	atomic_store(&p->discovering, false);
	atomic_store(&p->read, atomic_load(&p->written));
}

void vhca_osm_publisher_on_subnet_up(struct vhca_osm_publisher *p)
{
	atomic_store(&p->in_effect, atomic_load(&p->read));
}

void vhca_osm_publisher_on_sweep_over(struct vhca_osm_publisher *p)
{
	atomic_store(&p->swept, true);
}
