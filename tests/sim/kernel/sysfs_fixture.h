/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SYSFS_FIXTURE_H
#define VHCA_TESTS_SIM_KERNEL_SYSFS_FIXTURE_H
/*
 * What the tests on the FUSE /sys have in common: the first member of their fixture.
 */
#include "common/sysfs/sysfs.h"
#include "tests/sim/kernel/sysfs_sim.h"
#include "tests/unit/unit.h"

struct sysfs_fixture {
	struct sysfs_sim *sim; /* NULL where FUSE is not available */
	struct vhca_sysfs *sys;
};

/* False, and the test's output says why, where FUSE is not available. */
static inline bool sysfs_fixture_begin(struct sysfs_fixture *f)
{
	const char *reason;

	if (!sysfs_sim_available(&reason)) {
		print_message("# skipped: %s\n", reason);
		return false;
	}
	f->sim = sysfs_sim_start();
	assert_int_equal(vhca_sysfs_open(sysfs_sim_root(f->sim), &f->sys), 0);
	return true;
}

static inline int sysfs_fixture_teardown(void **state)
{
	struct sysfs_fixture *f = *state;

	vhca_sysfs_close(f->sys);
	sysfs_sim_stop(f->sim);
	return 0;
}

/* The fixture as a test uses it; skips the test where there is none. */
static inline void *sysfs_fixture_ready(void **state)
{
	struct sysfs_fixture *f = *state;

	if (!f->sim)
		skip();
	return f;
}

#endif
