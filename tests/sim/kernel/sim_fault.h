/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SIM_FAULT_H
#define VHCA_TESTS_SIM_KERNEL_SIM_FAULT_H
/*
 * Inside of the simulator: armed faults. Has its own lock, so that a hanging access holds up
 * nothing else.
 */
#include "tests/sim/kernel/sysfs_sim.h"

struct sim_faults;

struct sim_faults *sim_faults_new(void);
struct sim_faults *sim_faults_free(struct sim_faults *faults);
void sim_faults_add(struct sim_faults *faults, const struct sim_fault *fault);
void sim_faults_clear(struct sim_faults *faults);
void sim_faults_release(struct sim_faults *faults, bool for_ever);
unsigned int sim_faults_hits(struct sim_faults *faults);
/*
 * Counts this access; sleeps or hangs if a fault says so. True: *ret is the fault that strikes
 * (pattern is NULL).
 */
bool sim_faults_strike(struct sim_faults *faults, bool on_read, const char *path,
		       struct sim_fault *ret);

#endif
