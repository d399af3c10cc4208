/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CHAOS_SEEDS_H
#define VHCA_CHAOS_SEEDS_H
/*
 * Seeds of test_chaos that are played in each run. Schedules follow from what the agents draw, so
 * that a seed says less with each change of the product; what it found should have a unit test,
 * too.
 */
#include "tests/sim/hosts/chaos_schedule.h"

/* Found once, mended since. */
static const struct {
	uint64_t seed;
	const char *found;
} chaos_regressions[] = {
	{1061, "a claim that had ended was written back with a migration's state"},
	{1402, "a claim that had ended was written back with a migration's state"},
	{971, "a line to the SM that is down was taken for its silence after patience"},
	{1364, "a line to the SM that is down was taken for its silence after patience"},
	{140, "the SM's silence after a refusal was taken for consent"},
	{360, "the SM's silence after a refusal was taken for consent"},
	{434, "the SM's silence after a refusal was taken for consent"},
	{2000,
	 "an operator's start was taken for a migration's arrival, after a restart of the agent"},
	{4877,
	 "an operator's start was taken for a migration's arrival, after a restart of the agent"},
	{3306, "a refusal was not heard because a newer report was queued"},
	{2493, "a lease ran out while nobody could say whether the guest had come"},
	{2745, "the ledger took an older migration's end for the newer one's"},
	{777002135, "the ledger held a promise against a host that the SM has told of its end"},
	{888001306, "the ledger took a hand-over that was said once more for a new one"},
	{999003617, "the ledger called back what had been begun before the SM's no was heard"},
	{777003653, "the simulation let a commit overtake another one when a stall was cut short"},
	{111006990, "the operator forgot a guest whose agent was killed as soon as he had vouched"},
	{111001640, "the ledger took going on from what was given up for a take-over"},
	{2254, "a host that had lost its power used an epoch for itself that it had promised"},
	{3593924596027,
	 "three failures in a row ended the claim of a VF that its guest was to have back"},
	{7000093, "the false SM took a guest that was saved and started for one that moves to "
		  "another vport"},
	{566246417279, "a killed source promised an epoch above the one that its peer took"},
	{2672,
	 "a source whose guest is started there again programmed what it handed over, unheard"},
	{3035, "a restarted destination took the vGUID from a guest that had stayed at the source"},
	{566246417198, "a VF was pulled from under a guest that was started again at the source"},
	{998877665544218, "what another host had withdrawn was asked for again minutes later"},
	{1545,
	 "a host that had lost its power reported its take-over when the guest was elsewhere"},
	{3237, "not known: held when the four above were mended"},
	{4538, "not known: held when the four above were mended"},
};

/*
 * Kinds of schedules that may break invariant 3 (docs/design/0006-chaos.md), and how many of each
 * are played: from seed 1 on.
 */
static const struct chaos_known {
	enum chaos_unsafe unsafe;
	unsigned int seeds;
	const char *text;
} chaos_known[] = {
	{CHAOS_POWER_LOSSY, 20, "power fails, messages are lost"},
	{CHAOS_POWER_AWAY, 20, "power fails, the SM is away"},
	{CHAOS_BLIND, 20, "blind orchestrators"},
	{CHAOS_TAKEN, 20, "a node binds others' vGUIDs to its own port"},
};

#endif
