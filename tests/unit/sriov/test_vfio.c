/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Enabling and binding on a sysfs that reacts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sriov/enable.h"
#include "sriov/vfio.h"
#include "tests/sim/kernel/sysfs_fixture.h"
#include "tests/unit/unit.h"

#define PF	 "0000:01:00.0"
#define PF_PATH	 SIM_PCI "/" PF
#define VF0_PATH SIM_PCI "/0000:01:00.1"

static const struct sim_pf cx5 = {PF, "mlx5_core", "mlx5_0", 0x1017, 8, 1, 7};
static const struct vhca_bdf pf_bdf = {.bus = 1};
static const struct vhca_bdf vf0 = {.bus = 1, .fn = 1};

struct fixture {
	struct sysfs_fixture base;
	struct vhca_pf_facts pf, after;
	struct vhca_error err;
};

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	if (!sysfs_fixture_begin(&f.base))
		return 0;
	sysfs_sim_add_mlx5(f.base.sim, &cx5);
	assert_int_equal(vhca_inventory_read_pf(f.base.sys, pf_bdf, &f.pf, &f.err), 0);
	return 0;
}

static struct fixture *ready(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	f->err = (struct vhca_error)VHCA_ERROR_INIT;
	return f;
}

static int enable(struct fixture *f, uint16_t count)
{
	return vhca_enable_vfs(f->base.sys, &f->pf, count, &f->after, &f->err);
}

static void inject_write_error(struct fixture *f, const char *pattern, int errnum)
{
	const struct sim_fault fault = {.pattern = pattern, .nth = 1, .errnum = errnum};

	sysfs_sim_inject(f->base.sim, &fault);
}

/* ---- enabling ---- */

static void enable_turns_autoprobe_off_first(void **state)
{
	struct fixture *f = ready(state);
	char line[256];

	assert_int_equal(enable(f, 4), 0);
	assert_int_equal(f->after.n_vfs, 4);
	assert_false(f->after.autoprobe);
	assert_string_equal(f->after.vfs[0].driver, "");
	assert_true(sysfs_sim_log(f->base.sim, 0, line, sizeof(line)));
	assert_string_equal(line, PF_PATH "/sriov_drivers_autoprobe=0 -> 0");
	assert_true(sysfs_sim_log(f->base.sim, 1, line, sizeof(line)));
	assert_string_equal(line, PF_PATH "/sriov_numvfs=4 -> 0");
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 2);
}

static void enable_again_writes_nothing(void **state)
{
	struct fixture *f = ready(state);

	assert_int_equal(enable(f, 4), 0);
	sysfs_sim_clear_log(f->base.sim);
	f->pf = f->after;
	assert_int_equal(enable(f, 4), 0);
	assert_int_equal(enable(f, 5), -EBUSY);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
}

/* The facts were read before somebody else enabled VFs: the kernel's EBUSY is the last guard. */
static void stale_facts_do_not_replace_vfs(void **state)
{
	struct fixture *f = ready(state);

	assert_int_equal(enable(f, 4), 0);
	assert_int_equal(enable(f, 2), -EBUSY);
	assert_string_equal(f->err.code, "vf_count_differs");
	assert_int_equal(vhca_inventory_read_pf(f->base.sys, pf_bdf, &f->after, &f->err), 0);
	assert_int_equal(f->after.n_vfs, 4);
}

static void every_errno_has_a_sentence_and_a_way_out(void **state)
{
	static const int errnums[] = {EINVAL, ERANGE,	 ENOENT, EBUSY,	     ENOMEM,
				      EIO,    ENODEV,	 ENOSYS, EPERM,	     EACCES,
				      EROFS,  ETIMEDOUT, EAGAIN, EOPNOTSUPP, ENOLINK};
	struct fixture *f = ready(state);
	char seen[15][256];

	for (size_t i = 0; i < sizeof(errnums) / sizeof(errnums[0]); i++) {
		sysfs_sim_clear_faults(f->base.sim);
		inject_write_error(f, "*/sriov_numvfs", errnums[i]);
		assert_int_equal(enable(f, 4), -errnums[i]);
		assert_non_null(strstr(f->err.msg, PF ": enable 4 VFs: "));
		assert_string_not_equal(f->err.code, "sriov_failed");
		assert_true(strlen(f->err.hint) > 10);
		(void)snprintf(seen[i], sizeof(seen[i]), "%s", f->err.msg);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(seen[i], seen[j]);
	}
	sysfs_sim_clear_faults(f->base.sim);
	inject_write_error(f, "*/sriov_numvfs", EXDEV);
	assert_int_equal(enable(f, 4), -EXDEV);
	assert_string_equal(f->err.code, "sriov_failed");
}

/* A guest has one of the VFs: the kernel would wait for it, so nothing is written. */
static void vfs_in_use_stay_and_the_kernel_is_not_touched(void **state)
{
	struct fixture *f = ready(state);
	struct vhca_vf_facts vf;

	assert_int_equal(enable(f, 4), 0);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), 0);
	assert_int_equal(vhca_inventory_read_vf(f->base.sys, vf0, &vf, &f->err), 0);
	sysfs_sim_hold_group(f->base.sim, vf.iommu_group, true);
	sysfs_sim_clear_log(f->base.sim);
	assert_int_equal(
		vhca_enable_clear(f->base.sys, sysfs_sim_dev(f->base.sim), &f->after, &f->err),
		-EBUSY);
	assert_string_equal(f->err.code, "vf_in_use");
	assert_non_null(strstr(f->err.msg, "its VFs stay: in use: 0000:01:00.1: "));
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
	sysfs_sim_hold_group(f->base.sim, vf.iommu_group, false);
	assert_int_equal(
		vhca_enable_clear(f->base.sys, sysfs_sim_dev(f->base.sim), &f->after, &f->err), 0);
	assert_int_equal(enable(f, 2), 0);
	assert_int_equal(f->after.n_vfs, 2);
}

static void fewer_vfs_are_noticed_although_the_write_succeeds(void **state)
{
	struct fixture *f = ready(state);

	sysfs_sim_limit_vfs(f->base.sim, 3);
	assert_int_equal(enable(f, 4), -EIO);
	assert_string_equal(f->err.code, "fewer_vfs");
	assert_non_null(strstr(f->err.msg, "has 3"));
}

static void autoprobe_that_cannot_be_turned_off_stops_it(void **state)
{
	struct fixture *f = ready(state);

	inject_write_error(f, "*/sriov_drivers_autoprobe", EIO);
	assert_int_equal(enable(f, 4), -EIO);
	assert_string_equal(f->err.code, "autoprobe_failed");
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 1);
}

/* ---- binding ---- */

static void assert_driver(struct fixture *f, const char *expect)
{
	struct vhca_vf_facts vf;

	assert_int_equal(vhca_inventory_read_vf(f->base.sys, vf0, &vf, &f->err), 0);
	assert_string_equal(vf.driver, expect);
}

static void bind_uses_override_then_bind(void **state)
{
	struct fixture *f = ready(state);
	char line[256];

	assert_int_equal(enable(f, 2), 0);
	sysfs_sim_clear_log(f->base.sim);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), 0);
	assert_driver(f, "vfio-pci");
	assert_true(sysfs_sim_log(f->base.sim, 0, line, sizeof(line)));
	assert_string_equal(line, VF0_PATH "/driver_override=vfio-pci -> 0");
	assert_true(sysfs_sim_log(f->base.sim, 1, line, sizeof(line)));
	assert_string_equal(line, "bus/pci/drivers/vfio-pci/bind=0000:01:00.1 -> 0");
	sysfs_sim_clear_log(f->base.sim);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), 0);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
}

static void bind_takes_the_vf_from_the_host_driver(void **state)
{
	struct fixture *f = ready(state);

	f->pf.autoprobe = false; /* facts that are wrong: the host's driver gets the VFs */
	assert_int_equal(enable(f, 2), 0);
	assert_driver(f, "mlx5_core");
	sysfs_sim_clear_log(f->base.sim);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), 0);
	assert_driver(f, "vfio-pci");
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 3);
}

static void pf_is_never_bound(void **state)
{
	struct fixture *f = ready(state);

	assert_int_equal(vhca_vfio_bind(f->base.sys, pf_bdf, &f->err), -EINVAL);
	assert_string_equal(f->err.code, "not_a_vf");
	assert_int_equal(vhca_vfio_bind(f->base.sys, (struct vhca_bdf){.bus = 9}, &f->err),
			 -ENOENT);
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
}

static void bad_groups_are_refused_before_any_write(void **state)
{
	struct fixture *f = ready(state);

	sysfs_sim_set_groups(f->base.sim, SIM_GROUPS_NONE);
	assert_int_equal(enable(f, 2), 0);
	sysfs_sim_clear_log(f->base.sim);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), -ENODEV);
	assert_string_equal(f->err.code, "no_iommu_group");
	assert_non_null(strstr(f->err.hint, "intel_iommu=on"));
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 0);
}

static void shared_group_is_refused_with_its_size(void **state)
{
	struct fixture *f = ready(state);

	sysfs_sim_set_groups(f->base.sim, SIM_GROUPS_SHARED);
	assert_int_equal(enable(f, 2), 0);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), -EPERM);
	assert_string_equal(f->err.code, "iommu_group_shared");
	assert_non_null(strstr(f->err.msg, "2 devices"));
	assert_non_null(strstr(f->err.hint, "ACS"));
}

/*
 * Each step once with each errno, and once without effect: bound and success, or an error; nothing
 * in between.
 */
static void no_failing_step_is_a_false_success(void **state)
{
	static const char *const steps[] = {"*/driver_override", "*/mlx5_core/unbind",
					    "*/vfio-pci/bind"};
	static const int errnums[] = {EINVAL, EIO, ENODEV, EBUSY, EACCES, 0};
	struct fixture *f = ready(state);

	f->pf.autoprobe = false;
	assert_int_equal(enable(f, 2), 0);
	for (size_t s = 0; s < 3; s++) {
		for (size_t e = 0; e < 6; e++) {
			const struct sim_fault fault = {.pattern = steps[s],
							.nth = 1,
							.errnum = errnums[e],
							.lost = errnums[e] == 0};
			struct vhca_vf_facts vf;
			int r;

			/* start with the host's driver again */
			sim_put(sysfs_sim_tree(f->base.sim), VF0_PATH "/driver_override", "(null)");
			sim_unbind(sysfs_sim_tree(f->base.sim), "0000:01:00.1");
			sim_bind(sysfs_sim_tree(f->base.sim), "0000:01:00.1", "mlx5_core");
			sysfs_sim_clear_faults(f->base.sim);
			sysfs_sim_inject(f->base.sim, &fault);
			r = vhca_vfio_bind(f->base.sys, vf0, &f->err);
			assert_int_equal(sysfs_sim_fault_hits(f->base.sim), 1);
			assert_int_equal(vhca_inventory_read_vf(f->base.sys, vf0, &vf, NULL), 0);
			assert_int_equal(r == 0, strcmp(vf.driver, "vfio-pci") == 0);
			assert_true(r == 0 || *f->err.code);
		}
	}
}

/*
 * Somebody else was quicker (udev, another daemon): what was wanted is there, whatever the write
 * says.
 */
static void quicker_others_are_no_failure(void **state)
{
	const struct sim_fault unbound = {
		.pattern = "*/mlx5_core/unbind", .nth = 1, .errnum = ENODEV, .applied = true};
	const struct sim_fault bound = {
		.pattern = "*/vfio-pci/bind", .nth = 1, .errnum = EBUSY, .applied = true};
	struct fixture *f = ready(state);

	f->pf.autoprobe = false;
	assert_int_equal(enable(f, 2), 0);
	sysfs_sim_inject(f->base.sim, &unbound);
	sysfs_sim_inject(f->base.sim, &bound);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), 0);
	assert_int_equal(sysfs_sim_fault_hits(f->base.sim), 2);
	assert_driver(f, "vfio-pci");
}

/* vhcad loads no module: it says who does, and binds when the driver has come. */
static void missing_driver_is_told(void **state)
{
	struct fixture *f = ready(state);
	const struct sim_tree *tree = sysfs_sim_tree(f->base.sim);

	assert_int_equal(enable(f, 2), 0);
	sim_remove(tree, "bus/pci/drivers/vfio-pci");
	assert_true(vhca_vfio_bind(f->base.sys, vf0, &f->err) < 0);
	assert_string_equal(f->err.code, "no_vfio_pci");
	assert_non_null(strstr(f->err.hint, "modprobe@vfio_pci.service"));
	sim_put(tree, "bus/pci/drivers/vfio-pci/bind", "%s", "");
	sim_put(tree, "bus/pci/drivers/vfio-pci/unbind", "%s", "");
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), 0);
	assert_driver(f, "vfio-pci");
}

static void open_group_is_busy(void **state)
{
	struct fixture *f = ready(state);
	const char *dev = sysfs_sim_dev(f->base.sim);
	int group;

	assert_int_equal(enable(f, 2), 0);
	group = f->after.vfs[0].iommu_group;
	assert_int_equal(vhca_vfio_group_busy(dev, group), -ENOENT);
	assert_int_equal(vhca_vfio_bind(f->base.sys, vf0, &f->err), 0);
	assert_int_equal(vhca_vfio_group_busy(dev, group), 0);
	sysfs_sim_hold_group(f->base.sim, group, true);
	assert_int_equal(vhca_vfio_group_busy(dev, group), 1);
	sysfs_sim_hold_group(f->base.sim, group, false);
	assert_int_equal(vhca_vfio_group_busy(dev, group), 0);
	assert_int_equal(vhca_vfio_group_busy(dev, -1), -EINVAL);
	sim_put(sysfs_sim_tree(f->base.sim), "dev/vfio/noiommu-7", "%s", "");
	assert_int_equal(vhca_vfio_group_busy(dev, 7), 0);
	sysfs_sim_hold_group(f->base.sim, 7, true);
	assert_int_equal(vhca_vfio_group_busy(dev, 7), 1);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, sysfs_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(enable_turns_autoprobe_off_first),
		T(enable_again_writes_nothing),
		T(stale_facts_do_not_replace_vfs),
		T(every_errno_has_a_sentence_and_a_way_out),
		T(vfs_in_use_stay_and_the_kernel_is_not_touched),
		T(fewer_vfs_are_noticed_although_the_write_succeeds),
		T(autoprobe_that_cannot_be_turned_off_stops_it),
		T(bind_uses_override_then_bind),
		T(bind_takes_the_vf_from_the_host_driver),
		T(pf_is_never_bound),
		T(bad_groups_are_refused_before_any_write),
		T(shared_group_is_refused_with_its_size),
		T(no_failing_step_is_a_false_success),
		T(quicker_others_are_no_failure),
		T(missing_driver_is_told),
		T(open_group_is_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
