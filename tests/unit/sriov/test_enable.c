/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "sriov/enable.h"
#include "tests/sim/kernel/sysfs_tree.h"
#include "tests/unit/unit.h"

#define PARAMS "module/mlx4_core/parameters/"

struct fixture {
	struct sim_tree tree;
	struct vhca_sysfs *sys;
	struct vhca_pf_facts pf, after;
	struct vhca_error err;
};

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	sim_tree_init(&f.tree);
	assert_int_equal(vhca_sysfs_open(f.tree.root, &f.sys), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	vhca_sysfs_close(f->sys);
	sim_tree_done(&f->tree);
	return 0;
}

static void adapter(struct fixture *f, const char *driver, uint16_t total, uint16_t num)
{
	const struct sim_pf pf = {"0000:01:00.0", driver, "ib0", 0x1003, total, 1, 1};
	char bdf[VHCA_BDF_STRLEN];

	sim_add_driver(&f->tree, driver);
	sim_add_pf(&f->tree, &pf);
	for (unsigned int i = 0; i < num; i++)
		sim_add_vf(&f->tree, pf.bdf, i, sim_vf_bdf(bdf, pf.bdf, i), (int)i);
	if (total > 0)
		sim_put(&f->tree, "bus/pci/devices/0000:01:00.0/sriov_numvfs", "%u", num);
	assert_int_equal(
		vhca_inventory_read_pf(f->sys, (struct vhca_bdf){.bus = 1}, &f->pf, &f->err), 0);
}

static enum vhca_enable_action plan(struct fixture *f, uint16_t count)
{
	f->err = (struct vhca_error)VHCA_ERROR_INIT;
	return vhca_enable_plan(f->sys, &f->pf, count, &f->err);
}

static void same_count_needs_nothing(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx5_core", 8, 3);
	assert_int_equal(plan(f, 3), VHCA_ENABLE_NOTHING);
	assert_int_equal(vhca_enable_vfs(f->sys, &f->pf, 3, &f->after, &f->err), 0);
	assert_int_equal(f->after.n_vfs, 3);
	assert_int_equal(vhca_sysfs_writes(f->sys), 0);
}

static void mlx5_without_vfs_is_written(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx5_core", 8, 0);
	assert_int_equal(plan(f, 8), VHCA_ENABLE_WRITE);
}

static void existing_vfs_are_never_replaced(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx5_core", 8, 3);
	assert_int_equal(plan(f, 4), VHCA_ENABLE_REPLACE);
	assert_int_equal(vhca_enable_vfs(f->sys, &f->pf, 4, &f->after, &f->err), -EBUSY);
	assert_int_equal(f->err.kind, VHCA_ERR_CONFLICT);
	assert_string_equal(f->err.code, "vf_count_differs");
	assert_non_null(strstr(f->err.hint, "vfs = 3"));
	assert_int_equal(vhca_enable_vfs(f->sys, &f->pf, 0, &f->after, &f->err), -EBUSY);
	assert_int_equal(vhca_sysfs_writes(f->sys), 0);
}

static void a_vf_on_the_hosts_driver_is_in_use(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx5_core", 8, 3);
	sim_bind(&f->tree, "0000:01:00.2", "mlx5_core");
	assert_int_equal(
		vhca_inventory_read_pf(f->sys, (struct vhca_bdf){.bus = 1}, &f->pf, &f->err), 0);
	assert_int_equal(plan(f, 4), VHCA_ENABLE_REFUSED);
	assert_non_null(strstr(f->err.msg, "0000:01:00.2 is on mlx5_core"));
	assert_int_equal(vhca_enable_clear(f->sys, "/dev", &f->pf, &f->err), -EBUSY);
	assert_int_equal(vhca_sysfs_writes(f->sys), 0);
}

/* VFs of mlx4 come and go with its driver. */
static void mlx4_vfs_are_never_cleared(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx4_core", 8, 3);
	sim_put(&f->tree, PARAMS "num_vfs", "3");
	assert_int_equal(vhca_enable_clear(f->sys, "/dev", &f->pf, &f->err), -EBUSY);
	assert_int_equal(vhca_sysfs_writes(f->sys), 0);
}

static void limits_are_refused_with_the_number(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx5_core", 8, 0);
	assert_int_equal(plan(f, 9), VHCA_ENABLE_REFUSED);
	assert_string_equal(f->err.code, "too_many_vfs");
	assert_non_null(strstr(f->err.msg, "offers 8"));
	f->pf.total_vfs = 200;
	assert_int_equal(plan(f, VHCA_VFS_MAX + 1), VHCA_ENABLE_REFUSED);
	assert_int_equal(f->err.kind, VHCA_ERR_EXHAUSTED);
}

static void sriov_off_names_the_firmware_tool(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx5_core", 0, 0);
	assert_int_equal(plan(f, 4), VHCA_ENABLE_REFUSED);
	assert_string_equal(f->err.code, "sriov_off");
	assert_non_null(strstr(f->err.hint, "NUM_OF_VFS=4"));
}

/* param_array_get: empty when the parameter was not given */
static void mlx4_parameters_decide_and_the_hint_says_the_line(void **state)
{
	static const char *const wrong[] = {"", "2", "4,0", "2,2,0", "0000:01:00.0-4"};
	struct fixture *f = *state;

	adapter(f, "mlx4_core", 8, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		sim_put(&f->tree, PARAMS "num_vfs", "%s", wrong[i]);
		assert_int_equal(plan(f, 4), VHCA_ENABLE_RELOAD);
		assert_string_equal(f->err.code, "module_params_differ");
		assert_non_null(strstr(f->err.hint, "options mlx4_core num_vfs=4 probe_vf=0"));
		assert_non_null(strstr(f->err.hint, "/etc/modprobe.d/vhcad-mlx4.conf"));
		assert_non_null(strstr(f->err.hint, "update-initramfs -u"));
		assert_non_null(strstr(f->err.hint, "reboot"));
	}
	assert_int_equal(vhca_enable_vfs(f->sys, &f->pf, 4, &f->after, &f->err), -EINVAL);
	assert_int_equal(vhca_sysfs_writes(f->sys), 0);
}

static void mlx4_parameters_right_but_no_vfs(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx4_core", 8, 0);
	sim_put(&f->tree, PARAMS "num_vfs", "4");
	assert_int_equal(plan(f, 4), VHCA_ENABLE_RELOAD);
	assert_string_equal(f->err.code, "params_without_effect");
	assert_non_null(strstr(f->err.hint, "dmesg"));
}

static void mlx4_with_the_wanted_vfs_is_done(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx4_core", 8, 4);
	sim_put(&f->tree, PARAMS "num_vfs", "4");
	sim_put(&f->tree, PARAMS "probe_vf", "4");
	assert_int_equal(vhca_enable_vfs(f->sys, &f->pf, 4, &f->after, &f->err), 0);
	assert_int_equal(f->after.n_vfs, 4);
}

static void mlx4_other_count_keeps_the_vfs(void **state)
{
	struct fixture *f = *state;

	adapter(f, "mlx4_core", 8, 2);
	sim_put(&f->tree, PARAMS "num_vfs", "2");
	assert_int_equal(plan(f, 4), VHCA_ENABLE_RELOAD);
	assert_non_null(strstr(f->err.hint, "num_vfs=4"));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(same_count_needs_nothing),
		T(mlx5_without_vfs_is_written),
		T(existing_vfs_are_never_replaced),
		T(a_vf_on_the_hosts_driver_is_in_use),
		T(mlx4_vfs_are_never_cleared),
		T(limits_are_refused_with_the_number),
		T(sriov_off_names_the_firmware_tool),
		T(mlx4_parameters_decide_and_the_hint_says_the_line),
		T(mlx4_parameters_right_but_no_vfs),
		T(mlx4_with_the_wanted_vfs_is_done),
		T(mlx4_other_count_keeps_the_vfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
