/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_AGENT_ONE_GUEST_H
#define VHCA_TESTS_UNIT_AGENT_ONE_GUEST_H
/*
 * What tests have in common that follow one guest with one VF, which begins at host 0, through what
 * is done at a step to whole agents on a simulated fabric (docs/design/0006-chaos.md).
 */
#include "tests/sim/hosts/chaos.h"
#include "tests/unit/unit.h"

static inline void one_guest_begin(struct chaos *c, unsigned int hosts,
				   void (*on_step)(struct chaos *c, struct chaos_host *h,
						   enum chaos_when when, const char *label))
{
	const struct chaos_size size = {.hosts = hosts, .guests = 1, .vfs = 1};

	chaos_init(c, 1, &size);
	c->on_step = on_step;
	c->wants_labels = true;
}

static inline void one_guest_run(struct chaos *c, uint64_t ms)
{
	chaos_run(c, ms);
	if (c->broken)
		fail_msg("%s", c->why);
}

/* The step has come. */
static inline void one_guest_run_until(struct chaos *c, const bool *has_come)
{
	for (unsigned int ms = 0; ms < 60000 && !*has_come; ms++)
		one_guest_run(c, 1);
	assert_true(*has_come);
	one_guest_run(c, 1); /* what it has led to is done */
}

static inline void one_guest_settle(struct chaos *c)
{
	if (!chaos_settle(c, 600000))
		fail_msg("%s", c->why);
}

/* The guest, which has lost its host, is started again elsewhere. */
static inline void one_guest_start(struct chaos *c, unsigned int host)
{
	c->guests[0].lost++; /* no operator of the simulation's looks after it */
	assert_true(chaos_virt_start(c, 0, host));
}

static inline const struct vhca_osm_binding *one_guest_binding(struct chaos *c)
{
	return sim_sm_find(chaos_master(c), c->guests[0].vfs[0].guid);
}

#endif
