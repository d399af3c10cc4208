/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/gate.h"

#include <errno.h>

#include "common/base/cond.h"
#include "common/base/file.h"

int vhca_osm_gate_init(struct vhca_osm_gate *gate)
{
	int r;

	*gate = (struct vhca_osm_gate){.sweeping = false};
	r = vhca_cond_init(&gate->changed);
	return r < 0 ? r : -pthread_mutex_init(&gate->lock, NULL);
}

void vhca_osm_gate_done(struct vhca_osm_gate *gate)
{
	(void)pthread_cond_destroy(&gate->changed);
	(void)pthread_mutex_destroy(&gate->lock);
}

static bool take(struct vhca_osm_gate *gate, bool *ret_inside, bool until_all_end)
{
	bool free;

	(void)pthread_mutex_lock(&gate->lock);
	free = !gate->sweeping || (until_all_end && gate->ending);
	if (free)
		*ret_inside = true;
	(void)pthread_mutex_unlock(&gate->lock);
	return free;
}

static void give_back(struct vhca_osm_gate *gate, bool *inside)
{
	(void)pthread_mutex_lock(&gate->lock);
	*inside = false;
	(void)pthread_cond_broadcast(&gate->changed);
	(void)pthread_mutex_unlock(&gate->lock);
}

bool vhca_osm_gate_enter(struct vhca_osm_gate *gate)
{
	return take(gate, &gate->moving, false);
}

void vhca_osm_gate_leave(struct vhca_osm_gate *gate)
{
	give_back(gate, &gate->moving);
}

bool vhca_osm_gate_hold(struct vhca_osm_gate *gate)
{
	return take(gate, &gate->held, true);
}

void vhca_osm_gate_release(struct vhca_osm_gate *gate)
{
	give_back(gate, &gate->held);
}

void vhca_osm_gate_queued(struct vhca_osm_gate *gate, bool waiting)
{
	(void)pthread_mutex_lock(&gate->lock);
	if (gate->waiting != waiting)
		(void)pthread_cond_broadcast(&gate->changed);
	gate->waiting = waiting;
	(void)pthread_mutex_unlock(&gate->lock);
}

bool vhca_osm_gate_is_sweeping(struct vhca_osm_gate *gate)
{
	bool sweeping;

	(void)pthread_mutex_lock(&gate->lock);
	sweeping = gate->sweeping;
	(void)pthread_mutex_unlock(&gate->lock);
	return sweeping;
}

uint64_t vhca_osm_gate_sweeps(struct vhca_osm_gate *gate)
{
	uint64_t sweeps;

	(void)pthread_mutex_lock(&gate->lock);
	sweeps = gate->sweeps;
	(void)pthread_mutex_unlock(&gate->lock);
	return sweeps;
}

uint64_t vhca_osm_gate_waited_us(struct vhca_osm_gate *gate)
{
	uint64_t waited_us;

	(void)pthread_mutex_lock(&gate->lock);
	waited_us = gate->waited_us;
	(void)pthread_mutex_unlock(&gate->lock);
	return waited_us;
}

static bool is_inside(const struct vhca_osm_gate *gate)
{
	return gate->moving || gate->held;
}

static bool is_wanted(const struct vhca_osm_gate *gate)
{
	return is_inside(gate) || gate->waiting;
}

static bool is_held(const struct vhca_osm_gate *gate)
{
	return gate->held;
}

/* With the lock, which it gives back meanwhile. */
static void wait_while(struct vhca_osm_gate *gate, bool (*is_so)(const struct vhca_osm_gate *),
		       uint32_t ms)
{
	const struct timespec until = vhca_cond_deadline(ms);

	while (is_so(gate) &&
	       pthread_cond_timedwait(&gate->changed, &gate->lock, &until) != ETIMEDOUT)
		;
}

bool vhca_osm_gate_sweep_begin(struct vhca_osm_gate *gate)
{
	uint64_t begin = vhca_now_us();
	bool ended;

	(void)pthread_mutex_lock(&gate->lock);
	wait_while(gate, is_wanted, VHCA_OSM_GATE_YIELD_MS);
	gate->sweeping = gate->ending = true;
	wait_while(gate, is_inside, VHCA_OSM_GATE_END_MS);
	gate->ending = false;
	wait_while(gate, is_held, VHCA_OSM_GATE_HOLD_MS);
	ended = !is_inside(gate);
	gate->waited_us += vhca_now_us() - begin;
	(void)pthread_mutex_unlock(&gate->lock);
	return ended;
}

void vhca_osm_gate_sweep_end(struct vhca_osm_gate *gate)
{
	(void)pthread_mutex_lock(&gate->lock);
	gate->sweeping = false;
	gate->sweeps++;
	(void)pthread_mutex_unlock(&gate->lock);
}
