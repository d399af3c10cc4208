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

/* Open: found by the ledger, cause not known yet. They are told; one that holds, or breaks another rule, fails the run. */
static const struct {
	uint64_t seed;
	enum chaos_rule rule;
} chaos_open[] = {
	{2000, CHAOS_RULE_PROOF}, {2493, CHAOS_RULE_GUEST},  {2745, CHAOS_RULE_PROOF},
	{3306, CHAOS_RULE_PROOF}, {3237, CHAOS_RULE_PULLED}, {4538, CHAOS_RULE_SM},
	{4877, CHAOS_RULE_PROOF},
};

/* Kinds of schedules that may break invariant 3 (docs/design/0006-chaos.md), and how many of each are played: from seed 1 on. */
static const struct chaos_known {
	enum chaos_unsafe unsafe;
	unsigned int seeds;
	const char *text;
} chaos_known[] = {
	{CHAOS_POWER_LOSSY, 20, "power fails, messages are lost"},
	{CHAOS_POWER_AWAY, 20, "power fails, the SM is away"},
	{CHAOS_BLIND, 20, "blind orchestrators"},
};

#endif
