/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_SRIOV_RECORDING_H
#define VHCA_TESTS_UNIT_SRIOV_RECORDING_H
/* Recordings of tools/collect-sysfs, unpacked and looked at. All functions fail the test. */
#include "pkey/identity.h"
#include "sriov/inventory.h"
#include "tests/sim/kernel/sysfs_tree.h"

/* Runs a program whose standard output is our standard error; returns its exit code. */
int recording_run(const char *const argv[]);
const char *recording_source_dir(void);
/* Into a tree that the caller ends with sim_tree_done(). */
void recording_unpack(const char *tarball, struct sim_tree *ret);
/* The caller frees the inventory. */
struct vhca_inventory *recording_scan(struct vhca_sysfs *sys);
void recording_read_vf(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t index,
		       struct vhca_identity_state *ret);
/* Asserts what holds on every host. */
void recording_replay(const char *root);

#endif
