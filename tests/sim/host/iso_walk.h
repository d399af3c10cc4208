/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_ISO_WALK_H
#define VHCA_TESTS_SIM_HOST_ISO_WALK_H
/*
 * Random steps of people, guests and accidents on a host of iso.h, with the checker of truth.h
 * after every event. VHCA_ISO_SEED and VHCA_ISO_STEPS set another run, VHCA_ISO_LOG=1 shows what
 * the agent says; the same seed is the same run.
 */
#include "tests/sim/host/iso.h"

/* False: something was violated, and printed; or the host did not come to rest. */
bool iso_walk(struct iso *it, const struct iso_plan *plan, unsigned int n_steps);
/* The proof: in n_runs runs, from plan->seed on, nothing is violated, and much happens. */
bool iso_walk_sound(const struct iso_plan *plan, unsigned int n_runs, unsigned int n_steps);
/* The test of the test: an agent broken in this way is caught in one of eight runs at least. */
bool iso_walk_catches(const struct iso_plan *plan, unsigned int n_steps);

#endif
