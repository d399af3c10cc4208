/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings of tools/collect-sysfs, replayed: one of a simulated host, compared with the original, and those of real ones. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "pkey/identity.h"
#include "sriov/inventory.h"
#include "tests/sim/sysfs_tree.h"

VHCA_DEFINE_CLEANUP(struct vhca_inventory, vhca_inventory_free)

static const struct sim_pf cx3 = {.bdf = "0000:03:00.0",
				  .driver = "mlx4_core",
				  .ibdev = "ibp3s0",
				  .device = 0x1003,
				  .total_vfs = 16,
				  .n_ports = 2,
				  .node_guid = UINT64_C(0x0002c90300a1b2c0),
				  .n_pkeys = 16};
static const struct sim_pf cx5 = {.bdf = "0000:41:00.0",
				  .driver = "mlx5_core",
				  .ibdev = "mlx5_0",
				  .device = 0x1017,
				  .total_vfs = 8,
				  .n_ports = 1,
				  .node_guid = UINT64_C(0x0002c90300a1b2f0)};

static int run(const char *const argv[])
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;

	/* Our own standard output is TAP. */
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 2, 1), 0);
	assert_int_equal(posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ),
			 0);
	(void)posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *source_dir(void)
{
	const char *dir = getenv("VHCA_SOURCE_DIR");

	return dir ? dir : ".";
}

static int record(const char *root, const char *out)
{
	char tool[512];
	const char *const argv[] = {"/usr/bin/python3", tool, "--root", root, out, NULL};

	(void)snprintf(tool, sizeof(tool), "%s/tools/collect-sysfs", source_dir());
	return run(argv);
}

static void unpack(const char *tarball, struct sim_tree *ret)
{
	const char *const argv[] = {"tar", "-xzf", tarball, "-C", ret->root, NULL};

	sim_tree_init(ret);
	assert_int_equal(run(argv), 0);
}

static struct vhca_inventory *scan(struct vhca_sysfs *sys)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_inventory *inv = NULL;

	if (vhca_inventory_scan(sys, &inv, &err) < 0)
		fail_msg("%s", err.msg);
	return inv;
}

static void read_vf(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t index,
		    struct vhca_identity_state *ret)
{
	struct vhca_identity_at at = {.sys = sys,
				      .pf = pf->bdf,
				      .ibdev = pf->ibdev,
				      .vf_index = index,
				      .port = 1,
				      .n_ports = pf->n_ports};
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_identity_mlx4.read(&at, ret, &err) < 0)
		fail_msg("%s VF %u: %s", VHCA_BDF_STR(pf->bdf), index, err.msg);
}

/* What holds on every host. */
static void replay(const char *root)
{
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *inv = NULL;
	struct vhca_identity_state state;
	struct vhca_sysfs *sys = NULL;

	assert_int_equal(vhca_sysfs_open(root, &sys), 0);
	inv = scan(sys);
	assert_true(inv->n_pfs > 0);
	for (unsigned int i = 0; i < inv->n_pfs; i++) {
		const struct vhca_pf_facts *pf = &inv->pfs[i];
		struct sim_tree tree;
		char text[16] = "0";

		(void)snprintf(tree.root, sizeof(tree.root), "%s", root);
		(void)sim_get(&tree,
			      SIM_PATH("bus/pci/devices/%s/sriov_numvfs", VHCA_BDF_STR(pf->bdf)),
			      text, sizeof(text));
		assert_int_equal(pf->num_vfs, strtoul(text, NULL, 10));
		for (unsigned int v = 0; pf->family == VHCA_FAMILY_MLX4 && v < pf->n_vfs; v++)
			read_vf(sys, pf, pf->vfs[v].index, &state);
	}
	assert_int_equal(vhca_sysfs_writes(sys), 0);
	vhca_sysfs_close(sys);
}

static void make_host(struct sim_tree *tree)
{
	char bdf[VHCA_BDF_STRLEN];

	sim_tree_init(tree);
	sim_add_driver(tree, "mlx4_core");
	sim_add_driver(tree, "mlx5_core");
	sim_add_driver(tree, "vfio-pci");
	sim_add_pf(tree, &cx3);
	sim_add_pf(tree, &cx5);
	sim_add_iov(tree, &cx3, 3);
	for (unsigned int i = 0; i < 3; i++)
		sim_add_vf(tree, cx3.bdf, i, sim_vf_bdf(bdf, cx3.bdf, i), (int)i + 7);
	sim_bind(tree, "0000:03:00.2", "vfio-pci");
	sim_put(tree, "bus/pci/devices/0000:03:00.0/sriov_numvfs", "3");
	sim_put(tree, "module/mlx4_core/parameters/num_vfs", "3");
	sim_add_netdev(tree, cx5.bdf, "ib0", 32, 5);
	/* What a recording shall not hold. */
	sim_put(tree, "bus/pci/devices/0000:41:00.0/vpd", "SERIAL123");
	sim_put(tree, "bus/pci/devices/0000:41:00.0/infiniband/mlx5_0/ports/1/counters/x", "1");
}

static void assert_same(struct vhca_sysfs *a, struct vhca_sysfs *b)
{
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *x = scan(a);
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *y = scan(b);
	struct vhca_identity_state s, t;

	assert_int_equal(x->n_pfs, 2);
	assert_int_equal(y->n_pfs, 2);
	/* Both were allocated cleared, so padding compares, too. */
	assert_memory_equal(x->pfs, y->pfs, 2 * sizeof(x->pfs[0]));
	assert_int_equal(x->pfs[0].n_vfs, 3);
	assert_string_equal(y->pfs[0].vfs[1].driver, "vfio-pci");
	for (uint16_t v = 0; v < 3; v++) {
		memset(&s, 0, sizeof(s));
		memset(&t, 0, sizeof(t));
		read_vf(a, &x->pfs[0], v, &s);
		read_vf(b, &y->pfs[0], v, &t);
		assert_int_equal(s.requested, t.requested);
		assert_int_equal(s.gid_index, t.gid_index);
		assert_memory_equal(s.map, t.map, sizeof(s.map));
		assert_memory_equal(s.value, t.value, sizeof(s.value));
	}
}

static void recording_shows_what_the_host_shows(void **state)
{
	struct vhca_sysfs *sys = NULL, *copy_sys = NULL;
	struct sim_tree host, copy;
	char tarball[96], text[16];

	(void)state;
	make_host(&host);
	(void)snprintf(tarball, sizeof(tarball), "%s/recording.tar.gz", host.root);
	assert_int_equal(record(host.root, tarball), 0);
	unpack(tarball, &copy);
	assert_int_equal(vhca_sysfs_open(host.root, &sys), 0);
	assert_int_equal(vhca_sysfs_open(copy.root, &copy_sys), 0);
	assert_same(sys, copy_sys);
	replay(copy.root);
	assert_true(sim_get(&copy, "module/mlx4_core/parameters/num_vfs", text, sizeof(text)));
	assert_true(sim_get(&copy, SIM_PCI "/0000:41:00.0/net/ib0/type", text, sizeof(text)));
	assert_string_equal(text, "32");
	assert_false(sim_get(&copy, SIM_PCI "/0000:41:00.0/vpd", text, sizeof(text)));
	assert_false(sim_get(&copy, SIM_PCI "/0000:41:00.0/infiniband/mlx5_0/ports/1/counters/x",
			     text, sizeof(text)));
	vhca_sysfs_close(sys);
	vhca_sysfs_close(copy_sys);
	sim_tree_done(&host);
	sim_tree_done(&copy);
}

static void host_without_adapters_is_not_recorded(void **state)
{
	struct sim_tree host;
	char tarball[96];

	(void)state;
	sim_tree_init(&host);
	(void)snprintf(tarball, sizeof(tarball), "%s/recording.tar.gz", host.root);
	assert_int_not_equal(record(host.root, tarball), 0);
	assert_int_equal(access(tarball, F_OK), -1);
	sim_tree_done(&host);
}

static void recordings_of_real_hosts(void **state)
{
	char folder[512], path[1024];
	const struct dirent *d;
	struct sim_tree tree;
	unsigned int n = 0;
	DIR *dir;

	(void)state;
	(void)snprintf(folder, sizeof(folder), "%s/tests/data/sysfs", source_dir());
	dir = opendir(folder);
	assert_non_null(dir);
	while ((d = readdir(dir))) {
		if (!strstr(d->d_name, ".tar.gz"))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		print_message("# %s\n", d->d_name);
		unpack(path, &tree);
		replay(tree.root);
		sim_tree_done(&tree);
		n++;
	}
	(void)closedir(dir);
	print_message("# %u recordings of real hosts replayed\n", n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recording_shows_what_the_host_shows),
		cmocka_unit_test(host_without_adapters_is_not_recorded),
		cmocka_unit_test(recordings_of_real_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
