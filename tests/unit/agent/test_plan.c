/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `vhcad --plan` says of a host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/plan.h"
#include "common/base/cleanup.h"
#include "tests/sim/kernel/sysfs_tree.h"
#include "tests/unit/unit.h"

#define PF "0000:01:00.0"

struct fixture {
	struct sim_tree tree;
	char dev[128]; /* as /dev: vfio groups, of which nobody has one open */
	char said[4096];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	sim_tree_init(&f->tree);
	(void)snprintf(f->dev, sizeof(f->dev), "%s/dev", f->tree.root);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	sim_tree_done(&f->tree);
	free(f);
	return 0;
}

static void adapter(struct fixture *f, const char *driver, unsigned int n_vfs)
{
	const struct sim_pf pf = {PF, driver, "mlx4_0", 0x1003, 8, 1, 1};
	char bdf[VHCA_BDF_STRLEN];

	sim_add_driver(&f->tree, driver);
	sim_add_driver(&f->tree, "vfio-pci");
	sim_add_pf(&f->tree, &pf);
	for (unsigned int i = 0; i < n_vfs; i++)
		sim_add_vf(&f->tree, PF, i, sim_vf_bdf(bdf, PF, i), i == 3 ? -1 : (int)i);
	sim_put(&f->tree, "bus/pci/devices/" PF "/sriov_numvfs", "%u", n_vfs);
}

/* What is printed for a host with this configuration, from a file in place of stdout. */
static const char *plan(struct fixture *f, const char *conf_text)
{
	VHCA_AUTO_FREE struct vhca_conf *conf = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	int out = dup(STDOUT_FILENO), file = memfd_create("plan", 0), r;
	ssize_t n;

	assert_int_equal(vhca_conf_parse("test", conf_text, strlen(conf_text), &conf, &err), 0);
	(void)fflush(stdout);
	assert_int_equal(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
	r = vhca_plan_print(conf, f->tree.root, f->dev, &err);
	(void)fflush(stdout);
	assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
	n = pread(file, f->said, sizeof(f->said) - 1, 0);
	(void)close(file);
	(void)close(out);
	assert_int_equal(r, 0);
	assert_true(n > 0);
	f->said[n] = '\0';
	return f->said;
}

static void assert_said(const char *said, const char *words)
{
	if (!strstr(said, words))
		fail_msg("\"%s\" is not in:\n%s", words, said);
}

static void host_without_adapter(void **state)
{
	assert_said(plan(*state, ""), "no ConnectX physical function");
}

static void unmanaged_adapter_is_not_touched(void **state)
{
	const char *said;

	adapter(*state, "mlx4_core", 2);
	said = plan(*state, "");
	assert_said(said, PF " (mlx4_core, mlx4_0): 2 of at most 8 VFs\n");
	assert_said(said, "not managed by the configuration: not touched");
	assert_null(strstr(said, "0000:01:00.1"));
}

static void each_vf_has_its_line(void **state)
{
	struct fixture *f = *state;
	const char *said;

	adapter(f, "mlx4_core", 5);
	sim_bind(&f->tree, "0000:01:00.1", "mlx4_core");
	sim_bind(&f->tree, "0000:01:00.2", "vfio-pci");
	sim_put(&f->tree, "dev/vfio/1", "%s", "");
	sim_link(&f->tree, "kernel/iommu_groups/4/devices/0000:02:00.0",
		 "../../../../devices/none");
	said = plan(f, "[hca " PF "]\nmanage = yes\n");
	assert_said(said, "0000:01:00.1: from mlx4_core to vfio-pci; its identity is withdrawn: no "
			  "GUID, P_Key map none");
	assert_said(said, "0000:01:00.2: on vfio-pci already; its identity is withdrawn");
	assert_said(said, "0000:01:00.3: from no driver to vfio-pci");
	assert_said(said, "0000:01:00.4: cannot be used: no IOMMU group");
	sim_put(&f->tree, SIM_PCI "/0000:01:00.1/net/ib1/flags", "0x1003");
	assert_said(plan(f, "[hca " PF "]\nmanage = yes\n"),
		    "  in use: 0000:01:00.1: its network device ib1 is up");
	sim_remove(&f->tree, "dev/vfio/1");
	assert_said(plan(f, "[hca " PF "]\nmanage = yes\n"),
		    "  in use: 0000:01:00.2: nothing says whether somebody has it by vfio-pci: ");
	sim_put(&f->tree, "dev/vfio/1", "%s", "");
	said = plan(f, "[hca " PF "]\nmanage = yes\n");
	assert_said(said, "0000:01:00.5: cannot be used: IOMMU group 4 holds 2 devices");
	said = plan(f, "[hca " PF "]\nmanage = yes\nexclude = 0000:01:00.1\n");
	assert_said(said, "0000:01:00.1: left out by the configuration (exclude): not touched");
}

static void ports_are(const struct fixture *f, const char *link_layer)
{
	sim_put(&f->tree, SIM_PCI "/" PF "/infiniband/mlx4_0/ports/1/link_layer", "%s", link_layer);
}

static void ethernet_adapter_is_not_touched(void **state)
{
	struct fixture *f = *state;
	const char *said;

	adapter(f, "mlx5_core", 2);
	ports_are(f, "Ethernet");
	said = plan(f, "[hca default]\nmanage = yes\nvfs = 4\n");
	assert_said(said, "  none of its ports is InfiniBand: not touched\n");
	assert_null(strstr(said, "VFs are removed"));
	assert_null(strstr(said, "0000:01:00.1"));
}

static void adapter_without_rdma_device_is_not_touched_yet(void **state)
{
	struct fixture *f = *state;
	const char *said;

	adapter(f, "mlx5_core", 2);
	sim_remove(&f->tree, SIM_PCI "/" PF "/infiniband");
	said = plan(f, "[hca default]\nmanage = yes\nvfs = 4\n");
	assert_said(said, "  not touched before it has an RDMA device");
	assert_null(strstr(said, "0000:01:00.1"));
}

static void count_of_an_mlx5_is_changed(void **state)
{
	adapter(*state, "mlx5_core", 2);
	assert_said(plan(*state, "[hca default]\nmanage = yes\nvfs = 2\n"), "  has its 2 VFs\n");
	assert_said(plan(*state, "[hca default]\nmanage = yes\nvfs = 4\n"),
		    "its 2 VFs are removed and 4 made, if no guest has one of them");
	assert_said(plan(*state, "[hca default]\nmanage = yes\nvfs = 9\n"), "  not changed: ");
}

static void first_vfs_are_enabled(void **state)
{
	adapter(*state, "mlx5_core", 0);
	assert_said(plan(*state, "[hca default]\nmanage = yes\nvfs = 4\n"),
		    "4 VFs are enabled (sriov_numvfs");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(host_without_adapter),
		CASE(unmanaged_adapter_is_not_touched),
		CASE(each_vf_has_its_line),
		CASE(count_of_an_mlx5_is_changed),
		CASE(first_vfs_are_enabled),
		CASE(ethernet_adapter_is_not_touched),
		CASE(adapter_without_rdma_device_is_not_touched_yet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
