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

/* Break invariant 3 as docs/design/0006-chaos.md says. One that does not any more is said so. */
static const struct {
	enum chaos_unsafe unsafe;
	uint64_t seed;
} chaos_known[] = {
	{CHAOS_POWER_LOSSY, 20},
	{CHAOS_POWER_LOSSY, 45},
	{CHAOS_POWER_LOSSY, 56},
	{CHAOS_POWER_LOSSY, 63},
};

#endif
