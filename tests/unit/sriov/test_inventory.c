/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "sriov/inventory.h"
#include "tests/sim/kernel/sysfs_tree.h"
#include "tests/unit/unit.h"

#define DEV "devices/pci0000:00/"

static const struct sim_pf cx3 = {
	"0000:03:00.0", "mlx4_core", "ibp3s0", 0x1003, 8, 2, UINT64_C(0x0002c90300a1b2c0)};
static const struct sim_pf cx5 = {
	"0000:01:00.0", "mlx5_core", "mlx5_0", 0x1017, 16, 1, UINT64_C(0x248a0703009c0000)};

struct fixture {
	struct sim_tree tree;
	struct vhca_sysfs *sys;
	struct vhca_inventory *inv;
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

	vhca_inventory_free(f->inv);
	vhca_sysfs_close(f->sys);
	sim_tree_done(&f->tree);
	return 0;
}

static void scan(struct fixture *f)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	f->inv = vhca_inventory_free(f->inv);
	assert_int_equal(vhca_inventory_scan(f->sys, &f->inv, &err), 0);
}

static void two_adapters(struct fixture *f)
{
	static const char *const drivers[] = {"mlx4_core", "mlx5_core", "vfio-pci"};

	for (size_t i = 0; i < 3; i++)
		sim_add_driver(&f->tree, drivers[i]);
	sim_add_pf(&f->tree, &cx3);
	sim_add_pf(&f->tree, &cx5);
}

static void empty_host_has_no_adapters(void **state)
{
	struct fixture *f = *state;

	scan(f);
	assert_int_equal(f->inv->n_pfs, 0);
}

static void adapters_are_sorted_and_complete(void **state)
{
	struct fixture *f = *state;
	const struct vhca_pf_facts *pf;

	two_adapters(f);
	sim_put(&f->tree, DEV "0000:03:00.0/numa_node", "1");
	scan(f);
	assert_int_equal(f->inv->n_pfs, 2);
	pf = &f->inv->pfs[0];
	assert_string_equal(VHCA_BDF_STR(pf->bdf), "0000:01:00.0");
	assert_int_equal(pf->family, VHCA_FAMILY_MLX5);
	assert_int_equal(pf->numa_node, -1);
	pf = &f->inv->pfs[1];
	assert_string_equal(VHCA_BDF_STR(pf->bdf), "0000:03:00.0");
	assert_int_equal(pf->family, VHCA_FAMILY_MLX4);
	assert_string_equal(pf->driver, "mlx4_core");
	assert_string_equal(pf->ibdev, "ibp3s0");
	assert_int_equal(pf->vendor, 0x15b3);
	assert_int_equal(pf->device, 0x1003);
	assert_int_equal(pf->numa_node, 1);
	assert_int_equal(pf->total_vfs, 8);
	assert_int_equal(pf->num_vfs, 0);
	assert_true(pf->autoprobe);
	assert_int_equal(pf->n_ports, 2);
	assert_true(pf->node_guid == cx3.node_guid);
}

static void cpus_are_on_nodes(void **state)
{
	struct fixture *f = *state;
	struct vhca_cpus cpus;

	scan(f);
	assert_int_equal(f->inv->n_nodes, 0);
	sim_put(&f->tree, "devices/system/node/node1/cpulist", "2-3,6");
	sim_put(&f->tree, "devices/system/node/node2/cpulist", "%s", ""); /* memory alone */
	sim_put(&f->tree, "devices/system/node/node3/cpulist", "nonsense");
	sim_put(&f->tree, "devices/system/node/has_cpu", "1");
	scan(f);
	assert_int_equal(f->inv->n_nodes, 1);
	assert_int_equal(f->inv->nodes[0].number, 1);
	assert_int_equal(vhca_cpus_parse("2,3,6", &cpus), 0);
	assert_memory_equal(&f->inv->nodes[0].cpus, &cpus, sizeof(cpus));
}

static enum vhca_ib_ports ib_ports_of(struct fixture *f, const char *first, const char *second)
{
	const char *dir = DEV "0000:03:00.0/infiniband/ibp3s0/ports";

	sim_put(&f->tree, SIM_PATH("%s/1/link_layer", dir), "%s", first);
	sim_put(&f->tree, SIM_PATH("%s/2/link_layer", dir), "%s", second);
	scan(f);
	return f->inv->pfs[1].ib_ports;
}

static void link_layers_tell_infiniband_from_ethernet(void **state)
{
	struct fixture *f = *state;

	two_adapters(f);
	assert_int_equal(ib_ports_of(f, "InfiniBand", "InfiniBand"), VHCA_IB_PORTS_SOME);
	assert_int_equal(ib_ports_of(f, "Ethernet", "InfiniBand"), VHCA_IB_PORTS_SOME);
	assert_int_equal(ib_ports_of(f, "Ethernet", "Ethernet"), VHCA_IB_PORTS_NONE);
	sim_remove(&f->tree, DEV "0000:03:00.0/infiniband/ibp3s0/ports/1/link_layer");
	scan(f);
	assert_int_equal(f->inv->pfs[1].ib_ports, VHCA_IB_PORTS_UNKNOWN);
}

static void vfs_follow_virtfn_links(void **state)
{
	struct fixture *f = *state;
	const struct vhca_pf_facts *pf;

	two_adapters(f);
	/* Index order is not address order, and the driver's list holds the VFs as well. */
	sim_add_vf(&f->tree, cx5.bdf, 0, "0000:01:00.3", 12);
	sim_add_vf(&f->tree, cx5.bdf, 1, "0000:01:00.2", -1);
	sim_bind(&f->tree, "0000:01:00.3", "mlx5_core");
	scan(f);
	assert_int_equal(f->inv->n_pfs, 2);
	pf = &f->inv->pfs[0];
	assert_int_equal(pf->n_vfs, 2);
	assert_string_equal(VHCA_BDF_STR(pf->vfs[0].bdf), "0000:01:00.3");
	assert_int_equal(pf->vfs[0].index, 0);
	assert_int_equal(pf->vfs[0].iommu_group, 12);
	assert_int_equal(pf->vfs[0].group_size, 1);
	assert_string_equal(pf->vfs[0].driver, "mlx5_core");
	assert_int_equal(pf->vfs[1].index, 1);
	assert_int_equal(pf->vfs[1].iommu_group, -1);
	assert_string_equal(pf->vfs[1].driver, "");
}

static void shared_group_is_counted(void **state)
{
	struct fixture *f = *state;

	two_adapters(f);
	sim_add_vf(&f->tree, cx5.bdf, 0, "0000:01:00.1", 5);
	sim_add_vf(&f->tree, cx5.bdf, 1, "0000:01:00.2", 5);
	scan(f);
	assert_int_equal(f->inv->pfs[0].vfs[1].group_size, 2);
}

/* mlx5 firmware goes up to 127 */
static void more_vfs_than_we_use_are_left_out(void **state)
{
	struct fixture *f = *state;
	char bdf[VHCA_BDF_STRLEN];

	two_adapters(f);
	for (unsigned int i = 0; i < VHCA_VFS_MAX + 1; i++)
		sim_add_vf(&f->tree, cx5.bdf, i, sim_vf_bdf(bdf, cx5.bdf, i), -1);
	scan(f);
	assert_int_equal(f->inv->pfs[0].num_vfs, VHCA_VFS_MAX + 1);
	assert_int_equal(f->inv->pfs[0].n_vfs, VHCA_VFS_MAX);
	assert_string_equal(VHCA_BDF_STR(f->inv->pfs[0].vfs[VHCA_VFS_MAX - 1].bdf), "0000:01:0f.6");
}

static void sriov_off_is_zero_vfs(void **state)
{
	struct fixture *f = *state;
	struct sim_pf off = cx5;

	off.total_vfs = 0;
	sim_add_driver(&f->tree, "mlx5_core");
	sim_add_pf(&f->tree, &off);
	scan(f);
	assert_int_equal(f->inv->n_pfs, 1);
	assert_int_equal(f->inv->pfs[0].total_vfs, 0);
	assert_int_equal(f->inv->pfs[0].num_vfs, 0);
}

static void adapter_without_rdma_device(void **state)
{
	struct fixture *f = *state;
	struct sim_pf bare = cx5;

	bare.ibdev = "";
	sim_add_driver(&f->tree, "mlx5_core");
	sim_add_pf(&f->tree, &bare);
	scan(f);
	assert_string_equal(f->inv->pfs[0].ibdev, "");
	assert_int_equal(f->inv->pfs[0].n_ports, 0);
	assert_true(f->inv->pfs[0].node_guid == 0);
}

/*
 * sriov_numvfs cannot be read while somebody takes VFs away that a guest holds; the link of that VF
 * is gone then.
 */
static void links_count_and_may_have_holes(void **state)
{
	struct fixture *f = *state;
	const struct vhca_pf_facts *pf;

	two_adapters(f);
	sim_add_vf(&f->tree, cx5.bdf, 1, "0000:01:00.2", 13);
	sim_add_vf(&f->tree, cx5.bdf, 3, "0000:01:00.4", 15);
	sim_remove(&f->tree, DEV "0000:01:00.0/sriov_numvfs");
	scan(f);
	pf = &f->inv->pfs[0];
	assert_int_equal(pf->num_vfs, 2);
	assert_int_equal(pf->n_vfs, 2);
	assert_int_equal(pf->vfs[0].index, 1);
	assert_int_equal(pf->vfs[1].index, 3);
	assert_string_equal(VHCA_BDF_STR(pf->vfs[1].bdf), "0000:01:00.4");
}

static void missing_vf_is_a_change_under_way(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_pf_facts pf = {.num_vfs = 77};
	struct vhca_bdf bdf = {.bus = 1};

	two_adapters(f);
	sim_add_vf(&f->tree, cx5.bdf, 0, "0000:01:00.1", 12);
	sim_remove(&f->tree, "bus/pci/devices/0000:01:00.1");
	assert_int_equal(vhca_inventory_read_pf(f->sys, bdf, &pf, &err), -EAGAIN);
	assert_string_equal(err.code, "vfs_changing");
	assert_int_equal(pf.num_vfs, 77);
}

static bool is_plugged(const struct fixture *f, const char *text)
{
	struct vhca_bdf bdf;

	assert_int_equal(vhca_bdf_parse(text, &bdf), 0);
	for (size_t i = 0; i < f->inv->n_plugged; i++)
		if (vhca_bdf_cmp(f->inv->plugged[i].bdf, bdf) == 0)
			return true;
	return false;
}

/* It has not been pulled out. */
static void adapter_without_its_driver_is_plugged(void **state)
{
	struct fixture *f = *state;

	two_adapters(f);
	sim_add_vf(&f->tree, cx5.bdf, 0, "0000:01:00.1", 12);
	sim_unbind(&f->tree, cx3.bdf);
	scan(f);
	assert_int_equal(f->inv->n_pfs, 1);
	assert_int_equal(f->inv->n_plugged, 2);
	assert_true(is_plugged(f, cx3.bdf));
	assert_true(is_plugged(f, cx5.bdf));
	for (size_t i = 0; i < f->inv->n_plugged; i++)
		assert_int_not_equal(f->inv->plugged[i].device, 0);
	sim_put(&f->tree, DEV "0000:03:00.0/vendor", "0x8086"); /* another card in its slot */
	scan(f);
	assert_false(is_plugged(f, cx3.bdf));
	sim_remove(&f->tree, "bus/pci/devices/0000:01:00.0");
	scan(f);
	assert_int_equal(f->inv->n_plugged, 0);
}

static void gone_adapter_and_foreign_driver_are_not_found(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_pf_facts pf;

	two_adapters(f);
	assert_int_equal(vhca_inventory_read_pf(f->sys, (struct vhca_bdf){.bus = 9}, &pf, &err),
			 -ENOENT);
	assert_int_equal(err.kind, VHCA_ERR_NOT_FOUND);
	sim_unbind(&f->tree, cx5.bdf);
	sim_bind(&f->tree, cx5.bdf, "vfio-pci");
	assert_int_equal(vhca_inventory_read_pf(f->sys, (struct vhca_bdf){.bus = 1}, &pf, &err),
			 -ENOENT);
}

/* Trailing text in a number is a kernel we do not know: an error, never a guess. */
static void garbage_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	two_adapters(f);
	sim_put(&f->tree, DEV "0000:01:00.0/sriov_totalvfs", "16 or so");
	assert_int_equal(vhca_inventory_scan(f->sys, &f->inv, &err), -EBADMSG);
	assert_int_equal(err.kind, VHCA_ERR_DEVICE);
	assert_non_null(strstr(err.msg, "0000:01:00.0"));
	assert_null(f->inv);
}

static void family_names(void **state)
{
	(void)state;
	assert_string_equal(vhca_family_to_string(VHCA_FAMILY_MLX4), "mlx4");
	assert_string_equal(vhca_family_to_string(VHCA_FAMILY_MLX5), "mlx5");
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(empty_host_has_no_adapters),
		T(adapters_are_sorted_and_complete),
		T(link_layers_tell_infiniband_from_ethernet),
		T(cpus_are_on_nodes),
		T(vfs_follow_virtfn_links),
		T(shared_group_is_counted),
		T(more_vfs_than_we_use_are_left_out),
		T(sriov_off_is_zero_vfs),
		T(adapter_without_rdma_device),
		T(links_count_and_may_have_holes),
		T(missing_vf_is_a_change_under_way),
		T(adapter_without_its_driver_is_plugged),
		T(gone_adapter_and_foreign_driver_are_not_found),
		T(garbage_is_an_error),
		cmocka_unit_test(family_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
