/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CHAOS_SEEDS_H
#define VHCA_CHAOS_SEEDS_H
/* Seeds of test_chaos that are played in each run. Schedules follow from what the agents draw, so that a seed says less with each change of the
 * product; what it found should have a unit test, too. */
#include "tests/sim/chaos_schedule.h"

/* Found once, mended since. */
static const struct {
	uint64_t seed;
	const char *found;
} chaos_regressions[] = {
	{140, "the SM's silence after a refusal was taken for consent"},
	{360, "the SM's silence after a refusal was taken for consent"},
	{434, "the SM's silence after a refusal was taken for consent"},
};

/* What docs/design/0006-chaos.md says of breaks invariant 3, in one of so many schedules from here on. */
static const struct chaos_known {
	enum chaos_unsafe unsafe;
	uint64_t first;
	unsigned int seeds;
	bool must; /* else none is known just now that does */
	const char *text;
} chaos_known[] = {
	{CHAOS_POWER_LOSSY, 1, 400, true, "power fails, messages are lost"},
	{CHAOS_POWER_AWAY, 1, 600, true, "power fails, the SM is away"},
	{CHAOS_BLIND, 1, 40, false, "blind orchestrators"},
};

#endif
