/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an effect on a mlx5 VF does to a /sys and an rtnetlink that react, and that every access
 * failing once is told.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/effect.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "tests/sim/kernel/sim_rtnl.h"
#include "tests/sim/kernel/sysfs_fixture.h"
#include "tests/unit/unit.h"

#define PF    "0000:03:00.0"
#define VF    1
#define VF_AT "0000:03:00.2"
#define GUID  UINT64_C(0x02c9ab0000000001)
#define STALE UINT64_C(0x02c9ab00000000ff)

static const struct sim_pf cx6 = {.bdf = PF,
				  .driver = "mlx5_core",
				  .ibdev = "mlx5_0",
				  .device = 0x101b,
				  .total_vfs = 8,
				  .n_ports = 1};

struct fixture {
	struct sysfs_fixture base;
	struct sim_rtnl kernel;
	struct vhca_model model;
	struct vhca_vf *vf;
	struct vhca_claim *claim;
	struct vhca_effect_result res; /* of the effect that ran last */
	bool unbound;		       /* make_stale() takes the VF from vfio-pci, too */
};

static void put(struct fixture *f, const char *attr, const char *value)
{
	struct vhca_sysfs_dir *dir = NULL;

	assert_int_equal(vhca_sysfs_opendir(f->base.sys, "bus/pci/devices/" PF, &dir), 0);
	assert_int_equal(vhca_sysfs_write(dir, attr, value), 0);
	vhca_sysfs_closedir(dir);
}

static void add_to_model(struct fixture *f)
{
	struct vhca_hca *hca;

	vhca_model_init(&f->model);
	hca = vhca_model_add_hca(&f->model, (struct vhca_bdf){.bus = 3});
	assert_non_null(hca);
	hca->facts.family = VHCA_FAMILY_MLX5;
	hca->facts.n_ports = hca->port = 1;
	(void)snprintf(hca->facts.ibdev, sizeof(hca->facts.ibdev), "mlx5_0");
	f->vf = vhca_model_add_vf(hca, (struct vhca_bdf){.bus = 3, .fn = VF + 1}, VF);
	assert_non_null(f->vf);
	f->vf->iommu_group = 11;
	f->vf->claim = f->claim = vhca_model_add_claim(&f->model);
	assert_non_null(f->claim);
	f->claim->vf = f->vf;
	f->claim->sm_answer = VHCA_ANSWER_ACCEPTED; /* without that its link stays down */
	f->claim->identity = (struct vhca_identity){.guid = GUID, .n_pkeys = 1, .pkeys = {0x8001}};
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	if (!sysfs_fixture_begin(&f.base))
		return 0;
	vhca_log_set_level(VHCA_LOG_ERROR);
	sysfs_sim_add_mlx5(f.base.sim, &cx6);
	sim_add_netdev(sysfs_sim_tree(f.base.sim), PF, "ib0", 32, 5);
	put(&f, "sriov_drivers_autoprobe", "0");
	put(&f, "sriov_numvfs", "2"); /* groups 10 and 11 */
	sim_rtnl_init(&f.kernel, 5, PF, 2);
	add_to_model(&f);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->base.sim)
		vhca_model_done(&f->model);
	return sysfs_fixture_teardown(state);
}

static int run(struct fixture *f, enum vhca_effect effect)
{
	struct vhca_host_job *job = vhca_host_job_new(f->base.sys, sysfs_sim_dev(f->base.sim),
						      &f->model, f->vf, effect);

	assert_non_null(job);
	job->at.rtnl = &f->kernel.ops;
	vhca_host_job_work(job);
	f->res = job->result;
	free(job);
	return f->res.rc;
}

/* ---- ground truth ---- */

static struct sim_rtnl_vf *firmware(struct fixture *f)
{
	return &f->kernel.vfs[VF];
}

static bool is_clean(struct fixture *f)
{
	const struct sim_rtnl_vf *v = firmware(f);

	return (v->node == 0 || v->node == UINT64_MAX) && (v->port == 0 || v->port == UINT64_MAX) &&
	       v->policy == VHCA_LINK_DOWN;
}

static bool is_programmed(struct fixture *f)
{
	const struct sim_rtnl_vf *v = firmware(f);

	return v->node == GUID && v->port == GUID && v->policy == VHCA_LINK_AUTO;
}

static bool on_vfio(struct fixture *f)
{
	char target[SIM_PATH_MAX];

	return sim_readlink(sysfs_sim_tree(f->base.sim), SIM_PCI "/" VF_AT "/driver", target,
			    sizeof(target)) &&
	       strstr(target, "/vfio-pci");
}

static void unbind(struct fixture *f)
{
	const struct sim_tree *t = sysfs_sim_tree(f->base.sim);

	sim_unbind(t, VF_AT);
	sim_remove(t, "dev/vfio/11");
	sim_put(t, SIM_PCI "/" VF_AT "/driver_override", "(null)");
}

static void make_stale(struct fixture *f)
{
	if (f->unbound)
		unbind(f);
	sysfs_sim_clear_faults(f->base.sim);
	f->kernel.fail_at = f->kernel.calls = f->kernel.sets = 0;
	f->kernel.hit = false;
	*firmware(f) = (struct sim_rtnl_vf){
		.node = STALE, .port = STALE, .cached_node = STALE, .cached_port = STALE};
}

/* ---- tests ---- */

static void a_life(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	make_stale(f);
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
	assert_true(on_vfio(f) && is_clean(f));
	assert_true(f->res.has_hw && vhca_identity_is_clean(&f->res.hw));
	f->vf->state = VHCA_VF_CLAIMED;
	assert_int_equal(run(f, VHCA_EFFECT_PROGRAM), 0);
	assert_true(is_programmed(f) && f->res.has_hw && f->res.hw.requested == GUID);
	assert_int_equal(f->res.missing, 0);
	f->kernel.sets = 0;
	assert_int_equal(run(f, VHCA_EFFECT_READ), 0);
	assert_true(f->res.has_hw && f->res.hw.granted == GUID);
	assert_int_equal(run(f, VHCA_EFFECT_REREQUEST_GUID), 0);
	assert_int_equal(f->kernel.sets, 0);
	assert_int_equal(run(f, VHCA_EFFECT_SCRUB), 0);
	assert_true(is_clean(f) && f->res.has_hw && vhca_identity_is_clean(&f->res.hw));
}

/* Whatever the effect: a VF that a guest has open keeps what it shows. */
static void a_vf_in_use_is_not_touched(void **state)
{
	static const enum vhca_effect effects[] = {VHCA_EFFECT_PREPARE, VHCA_EFFECT_SCRUB};
	struct fixture *f = sysfs_fixture_ready(state);

	make_stale(f);
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
	make_stale(f);
	sysfs_sim_hold_group(f->base.sim, 11, true);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(effects); i++) {
		assert_int_equal(run(f, effects[i]), -EBUSY);
		assert_true(f->res.in_use);
	}
	assert_int_equal(f->kernel.calls, 0);
	assert_true(firmware(f)->port == STALE);
	sysfs_sim_hold_group(f->base.sim, 11, false);
}

/*
 * Somebody plugged a free VF into a guest of his own while a claim waited for the SM: an identity
 * would go to the wrong tenant.
 */
static void nobody_else_is_shown_an_identity(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	make_stale(f);
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
	f->vf->state = VHCA_VF_CLAIMED;
	sysfs_sim_hold_group(f->base.sim, 11, true);
	assert_int_equal(run(f, VHCA_EFFECT_PROGRAM), -EBUSY);
	assert_string_equal(f->res.err.code, "vf_in_use");
	assert_true(is_clean(f));
	f->vf->state = VHCA_VF_ATTACHED; /* now it is its own guest that has it */
	assert_int_equal(run(f, VHCA_EFFECT_PROGRAM), 0);
	assert_true(is_programmed(f));
	sysfs_sim_hold_group(f->base.sim, 11, false);
	f->vf->state = VHCA_VF_UNMANAGED;
	assert_int_equal(run(f, VHCA_EFFECT_SCRUB), 0);
}

/* A kernel with cdevs only, or a node that is hidden: nothing says who has the VF. */
static void a_vf_that_nobody_can_tell_about_is_not_touched(void **state)
{
	static const enum vhca_effect effects[] = {VHCA_EFFECT_PREPARE, VHCA_EFFECT_PROGRAM,
						   VHCA_EFFECT_SCRUB};
	struct fixture *f = sysfs_fixture_ready(state);

	make_stale(f);
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
	make_stale(f);
	f->vf->state = VHCA_VF_CLAIMED;
	sim_remove(sysfs_sim_tree(f->base.sim), "dev/vfio/11");
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(effects); i++) {
		assert_int_equal(run(f, effects[i]), -EBUSY);
		assert_true(f->res.in_use);
		assert_non_null(strstr(f->res.err.msg, "nothing says whether somebody has it"));
	}
	assert_int_equal(run(f, VHCA_EFFECT_PROBE), 0);
	assert_true(f->res.in_use);
	assert_int_equal(f->kernel.calls, 0);
	assert_true(firmware(f)->port == STALE);
}

static void a_group_without_iommu_is_looked_at(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	make_stale(f);
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
	make_stale(f);
	sim_remove(sysfs_sim_tree(f->base.sim), "dev/vfio/11");
	sim_put(sysfs_sim_tree(f->base.sim), "dev/vfio/noiommu-11", "%s", "");
	sysfs_sim_hold_group(f->base.sim, 11, true);
	assert_int_equal(run(f, VHCA_EFFECT_SCRUB), -EBUSY);
	assert_true(firmware(f)->port == STALE);
	sysfs_sim_hold_group(f->base.sim, 11, false);
	assert_int_equal(run(f, VHCA_EFFECT_SCRUB), 0);
}

/* ---- VFs that the host has ---- */

#define NATIVE SIM_PCI "/" VF_AT

static const struct sim_tree *bind_natively(struct fixture *f)
{
	const struct sim_tree *t = sysfs_sim_tree(f->base.sim);

	make_stale(f);
	sim_bind(t, VF_AT, "mlx5_core");
	/* It is just being taken over. */
	f->vf->use = VHCA_USE_NOBODY;
	f->vf->claim = NULL;
	f->claim->vf = NULL;
	return t;
}

static void assert_left_to_the_host(struct fixture *f, const char *why)
{
	assert_int_equal(run(f, VHCA_EFFECT_PROBE), 0);
	assert_true(f->res.in_use);
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), -EBUSY);
	assert_true(f->res.in_use);
	if (!strstr(f->res.err.msg, why))
		fail_msg("\"%s\" is not in: %s", why, f->res.err.msg);
	assert_false(on_vfio(f));
	assert_true(firmware(f)->port == STALE);
}

static void a_netdev_that_is_up_keeps_its_vf(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_tree *t = bind_natively(f);

	sim_put(t, NATIVE "/net/ib3/flags", "0x1002");
	sim_put(t, NATIVE "/net/ib4/flags", "0x1003");
	assert_left_to_the_host(f, "its network device ib4 is up");
	sim_put(t, NATIVE "/net/ib4/flags", "0x1002");
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
	assert_true(on_vfio(f));
}

/* libvirt has given it back to mlx5_core (managed='yes'), and a network manager was quick. */
static void a_netdev_that_is_up_keeps_no_vf_of_ours(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_tree *t = bind_natively(f);

	f->vf->use = VHCA_USE_UNKNOWN;
	sim_put(t, NATIVE "/net/ib3/flags", "0x1003");
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
	assert_true(on_vfio(f));
	assert_false(firmware(f)->port == STALE);
}

/* The directory of the class stays; its entry is shown in the other namespace only. */
static void a_device_in_another_namespace_keeps_its_vf(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_tree *t = bind_natively(f);

	sim_put(t, NATIVE "/net/ib3/flags", "0x1002");
	sim_remove(t, NATIVE "/net/ib3");
	assert_left_to_the_host(f, "its network device is in another network namespace");
	sim_put(t, NATIVE "/net/ib3/flags", "0x1002");
	sim_put(t, NATIVE "/infiniband/mlx5_1/node_type", "1: CA");
	sim_remove(t, NATIVE "/infiniband/mlx5_1");
	assert_left_to_the_host(f, "its RDMA device is in another network namespace");
	sim_remove(t, NATIVE "/infiniband");
	assert_int_equal(run(f, VHCA_EFFECT_PREPARE), 0);
}

static void a_netdev_that_cannot_be_read_keeps_its_vf(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);
	const struct sim_tree *t = bind_natively(f);
	const struct sim_fault fault = {
		.on_read = true, .pattern = "*/net/ib3/flags", .nth = 0, .errnum = EIO};

	sim_put(t, NATIVE "/net/ib3/flags", "0x1002");
	sysfs_sim_inject(f->base.sim, &fault);
	assert_left_to_the_host(f, "whether its network device ib3 is up cannot be read");
}

static void no_rdma_device_is_told(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	f->vf->hca->facts.ibdev[0] = '\0';
	make_stale(f);
	assert_int_equal(run(f, VHCA_EFFECT_SCRUB), -ENODEV);
	assert_string_equal(f->res.err.code, "no_rdma_device");
	assert_int_equal(f->kernel.calls, 0);
}

/* ---- every access fails once ---- */

enum where { READS, WRITES, NETLINK, WHERE_COUNT };

static void inject(struct fixture *f, enum where where, unsigned int nth, int errnum)
{
	const struct sim_fault fault = {
		.on_read = where == READS, .pattern = "*", .nth = nth, .errnum = errnum};

	if (where != NETLINK) {
		sysfs_sim_inject(f->base.sim, &fault);
		return;
	}
	f->kernel.fail_at = nth;
	f->kernel.fail_errno = errnum;
}

/* False when there is no nth access. Success is only ever the truth, and so is what was read. */
static bool one_failure(struct fixture *f, enum vhca_effect effect, enum where where,
			unsigned int nth, int errnum)
{
	bool struck, gives = effect == VHCA_EFFECT_PROGRAM;
	int r;

	make_stale(f);
	inject(f, where, nth, errnum);
	r = run(f, effect);
	struck = where == NETLINK ? f->kernel.hit : sysfs_sim_fault_hits(f->base.sim) > 0;
	if (r == 0)
		assert_true(on_vfio(f) && (gives ? is_programmed(f) : is_clean(f)));
	else
		assert_true(f->res.err.kind != VHCA_ERR_NONE && f->res.err.msg[0]);
	if (f->res.has_hw)
		assert_true(gives ? f->res.hw.requested == GUID
				  : vhca_identity_is_clean(&f->res.hw));
	if (!struck)
		assert_int_equal(r, 0);
	return struck;
}

static unsigned int all_failures(struct fixture *f, enum vhca_effect effect, enum where where)
{
	static const int errnums[] = {EBUSY, EOPNOTSUPP, EPERM, ENODEV, EINVAL};
	unsigned int runs = 0;

	for (size_t e = 0; e < VHCA_ARRAY_SIZE(errnums); e++) {
		unsigned int nth = 1;

		while (one_failure(f, effect, where, nth, errnums[e]))
			nth++;
		runs += nth - 1;
	}
	return runs;
}

static void every_access_failing_once(void **state)
{
	static const enum vhca_effect effects[] = {VHCA_EFFECT_PREPARE, VHCA_EFFECT_PROGRAM,
						   VHCA_EFFECT_SCRUB};
	struct fixture *f = sysfs_fixture_ready(state);

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(effects); i++) {
		f->vf->state =
			effects[i] == VHCA_EFFECT_PROGRAM ? VHCA_VF_CLAIMED : VHCA_VF_SCRUBBING;
		assert_true(all_failures(f, effects[i], READS) >= 5 * 10);
		assert_true(all_failures(f, effects[i], NETLINK) >= 5 * 5);
	}
	f->unbound = true;
	assert_true(all_failures(f, VHCA_EFFECT_PREPARE, WRITES) >= 5 * 2);
	f->vf->state = VHCA_VF_CLAIMED; /* programmed before anything prepared it */
	assert_true(all_failures(f, VHCA_EFFECT_PROGRAM, WRITES) >= 5 * 2);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_life),
		T(a_vf_in_use_is_not_touched),
		T(nobody_else_is_shown_an_identity),
		T(a_vf_that_nobody_can_tell_about_is_not_touched),
		T(a_group_without_iommu_is_looked_at),
		T(a_netdev_that_is_up_keeps_its_vf),
		T(a_netdev_that_is_up_keeps_no_vf_of_ours),
		T(a_device_in_another_namespace_keeps_its_vf),
		T(a_netdev_that_cannot_be_read_keeps_its_vf),
		T(no_rdma_device_is_told),
		T(every_access_failing_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
