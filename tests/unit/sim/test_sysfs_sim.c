/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The simulator itself: the errnos and the blocking that the rest is tested against. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/sysfs/sysfs.h"
#include "tests/sim/kernel/sysfs_fixture.h"
#include "tests/unit/unit.h"

#define PF  "bus/pci/devices/0000:01:00.0"
#define IOV "bus/pci/devices/0000:03:00.0/infiniband/mlx4_0/iov"
#define FN1 IOV "/0000:03:00.1/ports/1"

static const struct sim_pf cx5 = {.bdf = "0000:01:00.0",
				  .driver = "mlx5_core",
				  .ibdev = "mlx5_0",
				  .device = 0x1017,
				  .total_vfs = 4,
				  .n_ports = 1};
static const struct sim_pf cx3 = {.bdf = "0000:03:00.0",
				  .driver = "mlx4_core",
				  .ibdev = "mlx4_0",
				  .device = 0x1003,
				  .total_vfs = 8,
				  .n_ports = 1,
				  .n_pkeys = 16};

struct fixture {
	struct sysfs_fixture base;
};

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	if (!sysfs_fixture_begin(&f.base))
		return 0;
	sysfs_sim_add_mlx5(f.base.sim, &cx5);
	sysfs_sim_add_mlx4(f.base.sim, &cx3, 2);
	return 0;
}

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

/* path is split at its last slash */
static int put(struct fixture *f, const char *path, const char *value)
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *dir = NULL;
	char parent[SIM_PATH_MAX];
	char *slash;
	int r;

	(void)snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	*slash = '\0';
	r = vhca_sysfs_opendir(f->base.sys, parent, &dir);
	return r < 0 ? r : vhca_sysfs_write(dir, slash + 1, value);
}

static const char *get(struct fixture *f, const char *path, char buf[static 64])
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *dir = NULL;
	char parent[SIM_PATH_MAX];
	char *slash;

	(void)snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	*slash = '\0';
	if (vhca_sysfs_opendir(f->base.sys, parent, &dir) < 0 ||
	    vhca_sysfs_read(dir, slash + 1, buf, 64) < 0)
		return "(unreadable)";
	return buf;
}
#define GET(f, path) get((f), (path), (char[64]){0})

static bool has(struct fixture *f, const char *path)
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *dir = NULL;

	return vhca_sysfs_opendir(f->base.sys, path, &dir) == 0;
}

static void numvfs_checks_in_the_kernels_order(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	assert_int_equal(put(f, PF "/sriov_numvfs", "x"), -EINVAL);
	assert_int_equal(put(f, PF "/sriov_numvfs", "-1"), -EINVAL);
	assert_int_equal(put(f, PF "/sriov_numvfs", "5"), -ERANGE);
	assert_int_equal(put(f, PF "/sriov_numvfs", "0x2"), 0);
	assert_true(has(f, "bus/pci/devices/0000:01:00.2/physfn"));
	assert_true(has(f, PF "/virtfn1/driver")); /* autoprobe is on */
	assert_int_equal(put(f, PF "/sriov_numvfs", "2"), 0);
	assert_int_equal(put(f, PF "/sriov_numvfs", "3"), -EBUSY);
	assert_int_equal(put(f, PF "/sriov_numvfs", "0"), 0);
	assert_false(has(f, "bus/pci/devices/0000:01:00.1"));
	assert_string_equal(GET(f, PF "/sriov_numvfs"), "0");
	/* mlx4 has no .sriov_configure; the same number is a no-op all the same */
	assert_int_equal(put(f, "bus/pci/devices/0000:03:00.0/sriov_numvfs", "2"), 0);
	assert_int_equal(put(f, "bus/pci/devices/0000:03:00.0/sriov_numvfs", "0"), -ENOENT);
	assert_int_equal(put(f, PF "/sriov_totalvfs", "9"), -EACCES);
}

static void binding_rules(void **state)
{
	static const char vf[] = "0000:01:00.1";
	struct fixture *f = sysfs_fixture_ready(state);

	assert_int_equal(put(f, PF "/sriov_drivers_autoprobe", "0"), 0);
	assert_int_equal(put(f, PF "/sriov_numvfs", "1"), 0);
	/* no override: vfio-pci matches nothing, and with autoprobe off nobody may probe */
	assert_int_equal(put(f, "bus/pci/drivers/vfio-pci/bind", vf), -ENODEV);
	assert_int_equal(put(f, "bus/pci/drivers/mlx5_core/bind", vf), -ENODEV);
	assert_int_equal(put(f, "bus/pci/drivers_probe", vf), 0); /* "success", nothing bound */
	assert_false(has(f, "bus/pci/devices/0000:01:00.1/driver"));
	assert_int_equal(put(f, "bus/pci/devices/0000:01:00.1/driver_override", "vfio-pci"), 0);
	assert_int_equal(put(f, "bus/pci/drivers/mlx5_core/bind", vf), -ENODEV);
	assert_int_equal(put(f, "bus/pci/drivers/vfio-pci/bind", vf), 0);
	assert_int_equal(put(f, "bus/pci/drivers/vfio-pci/bind", vf), -EBUSY);
	assert_int_equal(put(f, "bus/pci/drivers/mlx5_core/unbind", vf), -ENODEV);
	assert_int_equal(put(f, "bus/pci/drivers/vfio-pci/unbind", vf), 0);
	assert_int_equal(put(f, "bus/pci/devices/0000:01:00.1/driver_override", ""), 0);
	assert_string_equal(GET(f, "bus/pci/devices/0000:01:00.1/driver_override"), "(null)");
	assert_int_equal(put(f, "bus/pci/drivers_probe", "0000:09:00.0"), -ENODEV);
}

static void without_iommu_vfio_refuses(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	sysfs_sim_set_groups(f->base.sim, SIM_GROUPS_NONE);
	assert_int_equal(put(f, PF "/sriov_drivers_autoprobe", "0"), 0);
	assert_int_equal(put(f, PF "/sriov_numvfs", "1"), 0);
	assert_int_equal(put(f, "bus/pci/devices/0000:01:00.1/driver_override", "vfio-pci"), 0);
	assert_int_equal(put(f, "bus/pci/drivers/vfio-pci/bind", "0000:01:00.1"), -EINVAL);
}

static void iov_map_semantics(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	assert_string_equal(GET(f, FN1 "/pkey_idx/0"), "0"); /* the default partition */
	assert_int_equal(put(f, FN1 "/pkey_idx/0", "None"), 0);
	assert_string_equal(GET(f, FN1 "/pkey_idx/0"), "none");
	assert_int_equal(put(f, FN1 "/pkey_idx/0", "010"), 0); /* %i is octal */
	assert_string_equal(GET(f, FN1 "/pkey_idx/0"), "8");
	assert_int_equal(put(f, FN1 "/pkey_idx/0", "16"), -EINVAL);
	assert_int_equal(put(f, FN1 "/pkey_idx/0", "-1"), -EINVAL);
	assert_int_equal(put(f, FN1 "/pkey_idx/0", "x"), -EINVAL);
	assert_int_equal(put(f, IOV "/0000:03:00.0/ports/1/pkey_idx/0", "none"), -EINVAL);
	assert_int_equal(put(f, IOV "/ports/1/pkeys/0", "0x8001"), -EACCES);
	sim_put(sysfs_sim_tree(f->base.sim), "class/infiniband/mlx4_0/ports/1/link_layer",
		"Ethernet");
	assert_int_equal(put(f, FN1 "/pkey_idx/0", "0"), -EACCES);
}

static void guid_requests_and_grants(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	assert_int_equal(put(f, IOV "/ports/1/admin_guids/0", "1"), 0); /* swallowed */
	assert_string_equal(GET(f, IOV "/ports/1/admin_guids/0"), "2c90300a1b2c3");
	assert_int_equal(put(f, IOV "/ports/1/admin_guids/1", "0225c90000000001"), 0);
	assert_string_equal(GET(f, IOV "/ports/1/admin_guids/1"), "225c90000000001");
	assert_string_equal(GET(f, IOV "/ports/1/gids/1"),
			    "fe80:0000:0000:0000:0225:c900:0000:0001");
	sysfs_sim_set_auto_grant(f->base.sim, false);
	assert_int_equal(put(f, IOV "/ports/1/admin_guids/1", "ffffffffffffffff"), 0);
	assert_string_equal(GET(f, IOV "/ports/1/gids/1"),
			    "fe80:0000:0000:0000:0225:c900:0000:0001");
	sysfs_sim_grant(f->base.sim, &cx3, 1, 1);
	assert_string_equal(GET(f, IOV "/ports/1/gids/1"),
			    "fe80:0000:0000:0000:0000:0000:0000:0000");
}

/* ---- blocking ---- */

struct access {
	struct fixture *f;
	const char *path, *value; /* value NULL = read */
	int r;
	pthread_t thread;
	uint64_t ended_ms;
};

static void *run_access(void *arg)
{
	struct access *a = arg;

	if (a->value != NULL)
		a->r = put(a->f, a->path, a->value);
	else
		a->r = strcmp(GET(a->f, a->path), "(unreadable)") == 0 ? -EIO : 0;
	a->ended_ms = vhca_now_ms();
	return NULL;
}

static void start(struct access *a)
{
	assert_int_equal(pthread_create(&a->thread, NULL, run_access, a), 0);
}

/* An open group holds up the removal of its VF; the removal holds up readers and every other PF. */
static void removal_waits_for_the_user_and_all_wait_for_it(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	struct access off = {f, PF "/sriov_numvfs", "0", -1, 0, 0};
	struct access read = {f, PF "/sriov_numvfs", NULL, -1, 0, 0};
	uint64_t released;

	assert_int_equal(put(f, PF "/sriov_drivers_autoprobe", "0"), 0);
	assert_int_equal(put(f, PF "/sriov_numvfs", "1"), 0);
	assert_int_equal(put(f, "bus/pci/devices/0000:01:00.1/driver_override", "vfio-pci"), 0);
	assert_int_equal(put(f, "bus/pci/drivers/vfio-pci/bind", "0000:01:00.1"), 0);
	for (int group = 0; group < 64; group++) /* whichever it is in */
		sysfs_sim_hold_group(f->base.sim, group, true);
	start(&off);
	usleep(30000);
	start(&read);
	usleep(30000);
	assert_string_equal(GET(f, PF "/vendor"), "0x15b3"); /* others can be read */
	released = vhca_now_ms();
	for (int group = 0; group < 64; group++)
		sysfs_sim_hold_group(f->base.sim, group, false);
	assert_int_equal(pthread_join(off.thread, NULL), 0);
	assert_int_equal(pthread_join(read.thread, NULL), 0);
	assert_int_equal(off.r, 0);
	assert_int_equal(read.r, 0);
	assert_true(off.ended_ms >= released && read.ended_ms >= released);
	assert_false(has(f, "bus/pci/devices/0000:01:00.1"));
}

static void faults_strike_where_and_when_told(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault second = {.pattern = "*/pkey_idx/*", .nth = 2, .errnum = ENOSPC};
	const struct sim_fault slow = {
		.on_read = true, .pattern = "*/vendor", .nth = 1, .delay_ms = 40};
	uint64_t before;
	char line[256];

	sysfs_sim_inject(f->base.sim, &second);
	assert_int_equal(put(f, FN1 "/pkey_idx/1", "1"), 0);
	assert_int_equal(put(f, FN1 "/pkey_idx/1", "2"), -ENOSPC);
	assert_int_equal(put(f, FN1 "/pkey_idx/1", "3"), 0);
	assert_true(sysfs_sim_log(f->base.sim, 1, line, sizeof(line)));
	assert_non_null(strstr(line, "/pkey_idx/1=2 -> 28"));
	assert_int_equal(sysfs_sim_n_writes(f->base.sim), 3);
	sysfs_sim_inject(f->base.sim, &slow);
	before = vhca_now_ms();
	assert_string_equal(GET(f, PF "/vendor"), "0x15b3");
	assert_true(vhca_now_ms() - before >= 40);
	assert_int_equal(sysfs_sim_fault_hits(f->base.sim), 2);
}

static void a_hanging_write_can_be_released(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault hang = {.pattern = "*/sriov_numvfs", .nth = 1, .hang = true};
	struct access on = {f, PF "/sriov_numvfs", "2", -1, 0, 0};
	uint64_t released;

	sysfs_sim_inject(f->base.sim, &hang);
	start(&on);
	usleep(30000);
	assert_false(has(f, PF "/virtfn0"));
	released = vhca_now_ms();
	sysfs_sim_release(f->base.sim);
	assert_int_equal(pthread_join(on.thread, NULL), 0);
	assert_int_equal(on.r, 0);
	assert_true(on.ended_ms >= released);
	assert_true(has(f, PF "/virtfn1"));
}

/* Stopping with somebody still hanging must not hang the test program. */
static void stop_lets_everybody_go(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_fault hang = {.pattern = "*/sriov_numvfs", .nth = 1, .hang = true};
	struct access on = {f, PF "/sriov_numvfs", "2", -1, 0, 0};

	sysfs_sim_inject(f->base.sim, &hang);
	start(&on);
	usleep(30000);
	f->base.sim = sysfs_sim_stop(f->base.sim);
	assert_int_equal(pthread_join(on.thread, NULL), 0);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, sysfs_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(numvfs_checks_in_the_kernels_order),
		T(binding_rules),
		T(without_iommu_vfio_refuses),
		T(iov_map_semantics),
		T(guid_requests_and_grants),
		T(removal_waits_for_the_user_and_all_wait_for_it),
		T(faults_strike_where_and_when_told),
		T(a_hanging_write_can_be_released),
		T(stop_lets_everybody_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
