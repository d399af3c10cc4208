/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings of tools/collect-sysfs: one of a simulated host, compared with the original. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/unit/sriov/recording.h"
#include "tests/unit/unit.h"

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

static int record(const char *root, const char *out)
{
	char tool[512];
	const char *const argv[] = {"/usr/bin/python3", tool, "--root", root, out, NULL};

	(void)snprintf(tool, sizeof(tool), "%s/tools/collect-sysfs", recording_source_dir());
	return recording_run(argv);
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

/* Member by member: addresses have padding, which a compiler may leave as it was. */
static void assert_same_vf(const struct vhca_vf_facts *x, const struct vhca_vf_facts *y)
{
	assert_int_equal(vhca_bdf_cmp(x->bdf, y->bdf), 0);
	assert_int_equal(x->index, y->index);
	assert_int_equal(x->iommu_group, y->iommu_group);
	assert_int_equal(x->group_size, y->group_size);
	assert_string_equal(x->driver, y->driver);
}

static void assert_same_pf(const struct vhca_pf_facts *x, const struct vhca_pf_facts *y)
{
	assert_int_equal(vhca_bdf_cmp(x->bdf, y->bdf), 0);
	assert_int_equal(x->family, y->family);
	assert_string_equal(x->driver, y->driver);
	assert_string_equal(x->ibdev, y->ibdev);
	assert_int_equal(x->vendor, y->vendor);
	assert_int_equal(x->device, y->device);
	assert_int_equal(x->numa_node, y->numa_node);
	assert_int_equal(x->total_vfs, y->total_vfs);
	assert_int_equal(x->num_vfs, y->num_vfs);
	assert_int_equal(x->autoprobe, y->autoprobe);
	assert_int_equal(x->n_ports, y->n_ports);
	assert_int_equal(x->ib_ports, y->ib_ports);
	assert_int_equal(x->node_guid, y->node_guid);
	assert_int_equal(x->n_vfs, y->n_vfs);
	for (uint16_t v = 0; v < x->n_vfs; v++)
		assert_same_vf(&x->vfs[v], &y->vfs[v]);
}

static void assert_same(struct vhca_sysfs *a, struct vhca_sysfs *b)
{
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *x = recording_scan(a);
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *y = recording_scan(b);
	struct vhca_identity_state s, t;

	assert_int_equal(x->n_pfs, 2);
	assert_int_equal(y->n_pfs, 2);
	assert_same_pf(&x->pfs[0], &y->pfs[0]);
	assert_same_pf(&x->pfs[1], &y->pfs[1]);
	assert_int_equal(x->pfs[0].n_vfs, 3);
	assert_string_equal(y->pfs[0].vfs[1].driver, "vfio-pci");
	for (uint16_t v = 0; v < 3; v++) {
		memset(&s, 0, sizeof(s));
		memset(&t, 0, sizeof(t));
		recording_read_vf(a, &x->pfs[0], v, &s);
		recording_read_vf(b, &y->pfs[0], v, &t);
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
	recording_unpack(tarball, &copy);
	assert_int_equal(vhca_sysfs_open(host.root, &sys), 0);
	assert_int_equal(vhca_sysfs_open(copy.root, &copy_sys), 0);
	assert_same(sys, copy_sys);
	recording_replay(copy.root);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recording_shows_what_the_host_shows),
		cmocka_unit_test(host_without_adapters_is_not_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
