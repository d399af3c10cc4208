/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mlx5 identities through both doors: order, proofs, stale tenants, and every read and write
 * failing once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "pkey/identity.h"
#include "tests/sim/kernel/sim_rtnl.h"
#include "tests/sim/kernel/sysfs_fixture.h"
#include "tests/unit/unit.h"

#define GUID  UINT64_C(0x02c9ab0000000001)
#define STALE UINT64_C(0x02c9ab00000000ff)
#define ALL1  UINT64_MAX
#define PF    "0000:03:00.0"
#define OFED  SIM_PCI "/" PF "/sriov/1"
#define N_VFS 4
#define VF    1

static const struct sim_pf cx6 = {.bdf = PF,
				  .driver = "mlx5_core",
				  .ibdev = "mlx5_0",
				  .device = 0x101b,
				  .total_vfs = 16,
				  .n_ports = 1,
				  .node_guid = 7};
static const struct vhca_identity_ops *ops = &vhca_identity_mlx5;
static const struct vhca_identity tenant = {.guid = GUID, .n_pkeys = 1, .pkeys = {0x8001}};

struct fixture {
	struct sysfs_fixture base; /* sysfs door; empty with netlink */
	struct sim_tree tree;	   /* netlink door */
	struct sim_rtnl kernel;	   /* its other side */
	struct vhca_identity_at at;
	struct vhca_identity_state hw;
	struct vhca_error err;
};

static struct fixture *new_fixture(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.at = (struct vhca_identity_at){
		.pf = {.bus = 3}, .ibdev = "mlx5_0", .vf_index = VF, .port = 1, .n_ports = 1};
	*state = &f;
	return &f;
}

static int setup_netlink(void **state)
{
	struct fixture *f = new_fixture(state);

	sim_tree_init(&f->tree);
	sim_add_driver(&f->tree, "mlx5_core");
	sim_add_pf(&f->tree, &cx6);
	sim_add_netdev(&f->tree, PF, "ib0.8001", 32, 12); /* a P_Key child */
	sim_add_netdev(&f->tree, PF, "ib0", 32, 5);
	sim_add_netdev(&f->tree, PF, "eth9", 1, 3);
	sim_rtnl_init(&f->kernel, 5, PF, N_VFS);
	f->at.rtnl = &f->kernel.ops;
	return vhca_sysfs_open(f->tree.root, &f->at.sys);
}

static int teardown_netlink(void **state)
{
	struct fixture *f = *state;

	vhca_sysfs_close(f->at.sys);
	sim_tree_done(&f->tree);
	return 0;
}

static int setup_sysfs(void **state)
{
	struct fixture *f = new_fixture(state);

	if (!sysfs_fixture_begin(&f->base))
		return 0;
	f->at.sys = f->base.sys;
	sysfs_sim_add_mlx5(f->base.sim, &cx6);
	for (unsigned int i = 0; i < N_VFS; i++)
		sim_add_ofed_vf(sysfs_sim_tree(f->base.sim), PF, i);
	sim_rtnl_init(&f->kernel, 5, PF, N_VFS);
	f->at.rtnl = &f->kernel.ops;
	return 0;
}

static int teardown_sysfs(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(f->kernel.calls,
			 0); /* where the files are, nobody asks for a network device */
	return sysfs_fixture_teardown(state);
}

static int program(struct fixture *f)
{
	unsigned int missing = 99;
	int r;

	f->err = (struct vhca_error)VHCA_ERROR_INIT;
	r = ops->program(&f->at, &tenant, &missing, &f->hw, &f->err);
	assert_true(r < 0 || missing == 0);
	return r;
}

static int scrub(struct fixture *f)
{
	f->err = (struct vhca_error)VHCA_ERROR_INIT;
	return ops->scrub(&f->at, &f->err);
}

static int look(struct fixture *f)
{
	f->err = (struct vhca_error)VHCA_ERROR_INIT;
	return ops->read(&f->at, &f->hw, &f->err);
}

/* ---- what is, past the code under test ---- */

static struct sim_rtnl_vf *truth(struct fixture *f)
{
	return &f->kernel.vfs[VF];
}

static uint64_t nobody_or(uint64_t guid)
{
	return guid == ALL1 ? 0 : guid;
}

static void read_ofed(struct fixture *f)
{
	static const char *const words[] = {"Follow", "Up", "Down"};
	char text[64];

	assert_true(sim_get(sysfs_sim_tree(f->base.sim), OFED "/node", text, sizeof(text)));
	assert_int_equal(vhca_guid_parse(text, &truth(f)->node), 0);
	assert_true(sim_get(sysfs_sim_tree(f->base.sim), OFED "/port", text, sizeof(text)));
	assert_int_equal(vhca_guid_parse(text, &truth(f)->port), 0);
	assert_true(sim_get(sysfs_sim_tree(f->base.sim), OFED "/policy", text, sizeof(text)));
	for (uint32_t i = 0; i < VHCA_ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i]))
			truth(f)->policy = i;
}

/* What firmware holds, through either door. */
static const struct sim_rtnl_vf *firmware(struct fixture *f)
{
	if (f->base.sim != NULL)
		read_ofed(f);
	return truth(f);
}

static bool is_programmed(struct fixture *f)
{
	const struct sim_rtnl_vf *v = firmware(f);

	return v->node == GUID && v->port == GUID && v->policy == VHCA_LINK_AUTO;
}

static bool is_scrubbed(struct fixture *f)
{
	const struct sim_rtnl_vf *v = firmware(f);

	return nobody_or(v->node) == 0 && nobody_or(v->port) == 0 && v->policy == VHCA_LINK_DOWN;
}

/* A former tenant's VF, or (fresh) one that nobody has had. */
static void make(struct fixture *f, uint64_t guid, enum vhca_link_policy policy)
{
	static const char *const words[] = {"Follow", "Up", "Down"};
	const struct sim_tree *t;
	unsigned int high = (unsigned int)(guid >> 40), low = (unsigned int)guid & 0xff;

	f->kernel.calls = f->kernel.sets = f->kernel.fail_at = 0;
	f->kernel.hit = false;
	*truth(f) = (struct sim_rtnl_vf){.node = guid,
					 .port = guid,
					 .cached_node = guid,
					 .cached_port = guid,
					 .policy = policy};
	if (f->base.sim == NULL)
		return;
	t = sysfs_sim_tree(f->base.sim);
	assert_true(high == 0 || high == 0x02c9ab);
	for (unsigned int i = 0; i < 2; i++)
		sim_put(t, i ? OFED "/node" : OFED "/port", "%s:00:00:00:00:%02x",
			high ? "02:c9:ab" : "00:00:00", low);
	sim_put(t, OFED "/policy", "%s", words[policy]);
	sysfs_sim_clear_faults(f->base.sim);
	sysfs_sim_clear_log(f->base.sim);
}

/* ---- both doors ---- */

static unsigned int writes(struct fixture *f)
{
	return f->base.sim != NULL ? (unsigned int)sysfs_sim_n_writes(f->base.sim) : f->kernel.sets;
}

static void a_life(struct fixture *f)
{
	unsigned int missing = 1;

	make(f, 0, VHCA_LINK_DOWN);
	assert_int_equal(program(f), 0);
	assert_true(is_programmed(f));
	assert_int_equal(writes(f), 3);
	assert_true(f->hw.requested == GUID && f->hw.granted == GUID && f->hw.node_guid == GUID);
	assert_int_equal(f->hw.n_virtual, 0);
	assert_true(f->hw.sm_pkeys);
	assert_true(vhca_identity_matches(&f->hw, &tenant, &missing));
	assert_int_equal(missing, 0);
	assert_false(vhca_identity_is_clean(&f->hw));

	assert_int_equal(program(f), 0); /* nothing differs */
	assert_int_equal(writes(f), 3);

	assert_int_equal(scrub(f), 0);
	assert_true(is_scrubbed(f));
	assert_int_equal(writes(f), 6);
	assert_int_equal(look(f), 0);
	assert_true(vhca_identity_is_clean(&f->hw));
	assert_false(vhca_identity_matches(&f->hw, &tenant, &missing));
}

/* A VF that a former tenant left behind, up: its link goes down before anything else. */
static void a_stale_tenant(struct fixture *f)
{
	make(f, STALE, VHCA_LINK_AUTO);
	assert_int_equal(look(f), 0);
	assert_false(vhca_identity_is_clean(&f->hw));
	assert_true(f->hw.requested == STALE);
	assert_int_equal(program(f), 0);
	assert_true(is_programmed(f));
	assert_int_equal(writes(f), 4);
	make(f, STALE, VHCA_LINK_ENABLE);
	assert_int_equal(scrub(f), 0);
	assert_true(is_scrubbed(f));
}

/*
 * Half of an identity is no clean VF: neither a GUID with the link down, nor a link that is up
 * without one.
 */
static void halves(struct fixture *f)
{
	make(f, STALE, VHCA_LINK_DOWN);
	assert_int_equal(look(f), 0);
	assert_false(vhca_identity_is_clean(&f->hw));
	assert_true(f->hw.granted == 0);
	make(f, 0, VHCA_LINK_AUTO);
	assert_int_equal(look(f), 0);
	assert_false(vhca_identity_is_clean(&f->hw));
	make(f, GUID, VHCA_LINK_DOWN);
	assert_int_equal(look(f), 0);
	assert_false(vhca_identity_matches(&f->hw, &tenant, &(unsigned int){0}));
	assert_int_equal(program(f), 0);
	assert_int_equal(writes(f), 1);
	assert_true(is_programmed(f));
}

static void netlink_life(void **state)
{
	a_life(*state);
	a_stale_tenant(*state);
	halves(*state);
}

static void sysfs_life(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	a_life(f);
	a_stale_tenant(f);
	halves(f);
}

static void bad_wishes_are_refused(void **state)
{
	struct fixture *f = *state;
	struct vhca_identity want = tenant;
	unsigned int missing;

	want.guid = ALL1;
	assert_int_equal(ops->program(&f->at, &want, &missing, &f->hw, &f->err), -EINVAL);
	assert_string_equal(f->err.code, "bad_guid");
	f->at.port = 2;
	assert_int_equal(program(f), -EINVAL);
	assert_string_equal(f->err.code, "bad_port");
	assert_int_equal(f->kernel.calls, 0);
}

/* ---- what only netlink has: a cache ---- */

/* Firmware may hold what the cache does not show: a scrub writes zero over zero. */
static void zero_in_the_cache_proves_nothing(void **state)
{
	struct fixture *f = *state;

	make(f, 0, VHCA_LINK_DOWN);
	truth(f)->node = truth(f)->port = STALE;
	assert_int_equal(scrub(f), 0);
	assert_true(is_scrubbed(f));
	assert_int_equal(f->kernel.sets, 2);
	/* And a refused write of it is not excused by the zero that was there before. */
	make(f, 0, VHCA_LINK_DOWN);
	truth(f)->port = STALE;
	f->kernel.fail_at = 2;
	f->kernel.fail_errno = EINVAL;
	assert_int_equal(scrub(f), 0);
	assert_true(f->kernel.hit);
	assert_true(truth(f)->port == ALL1); /* zero was refused: all ones */
}

/*
 * A command that timed out was done all the same: the driver does not remember that, and still
 * shows what was withdrawn before.
 */
static void all_ones_in_the_cache_prove_nothing(void **state)
{
	struct fixture *f = *state;

	make(f, ALL1, VHCA_LINK_DOWN);
	truth(f)->node = truth(f)->port = STALE;
	assert_int_equal(scrub(f), 0);
	assert_true(is_scrubbed(f));
	assert_true(truth(f)->node == ALL1 && truth(f)->port == ALL1);
	assert_int_equal(f->kernel.sets, 2);
}

static void recreated_vf_shows_the_former_tenant(void **state)
{
	struct fixture *f = *state;

	make(f, STALE, VHCA_LINK_DOWN);
	truth(f)->node = truth(f)->port = 0;
	sim_rtnl_recreate(&f->kernel); /* sriov_restore_guids */
	assert_true(truth(f)->port == STALE);
	assert_int_equal(program(f), 0);
	assert_true(is_programmed(f));
	assert_int_equal(scrub(f), 0);
	sim_rtnl_recreate(&f->kernel);
	assert_true(is_scrubbed(f)); /* nothing of a tenant comes back */
}

static void reload_is_a_drift(void **state)
{
	struct fixture *f = *state;

	make(f, 0, VHCA_LINK_DOWN);
	assert_int_equal(program(f), 0);
	sim_rtnl_reload(&f->kernel);
	assert_int_equal(look(f), 0);
	assert_false(vhca_identity_matches(&f->hw, &tenant, &(unsigned int){0}));
	assert_int_equal(program(f), 0);
	assert_true(is_programmed(f));
}

static void firmware_that_refuses_zero_gets_all_ones(void **state)
{
	struct fixture *f = *state;

	make(f, STALE, VHCA_LINK_AUTO);
	f->kernel.refuses_zero = true;
	assert_int_equal(scrub(f), 0);
	assert_true(is_scrubbed(f));
	assert_true(truth(f)->port == ALL1 && truth(f)->node == ALL1);
	assert_int_equal(look(f), 0);
	assert_true(vhca_identity_is_clean(&f->hw));
	f->kernel.sets = 0;
	assert_int_equal(scrub(f), 0); /* all ones again, and zero is not tried */
	assert_int_equal(f->kernel.sets, 2);
	assert_int_equal(program(f), 0);
	assert_true(is_programmed(f));
}

static void neighbours_are_not_touched(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < N_VFS; i++)
		f->kernel.vfs[i] = (struct sim_rtnl_vf){
			.node = i, .port = i, .cached_node = i, .cached_port = i};
	assert_int_equal(program(f), 0);
	assert_int_equal(scrub(f), 0);
	for (unsigned int i = 0; i < N_VFS; i++)
		assert_true(i == VF || (f->kernel.vfs[i].node == i && f->kernel.vfs[i].port == i &&
					f->kernel.vfs[i].policy == VHCA_LINK_AUTO));
}

/* ---- the reasons ---- */

static void assert_reason(struct fixture *f, int r, const char *code, const char *hint)
{
	assert_int_equal(scrub(f), r);
	assert_string_equal(f->err.code, code);
	assert_non_null(strstr(f->err.hint, hint));
	assert_int_equal(program(f), r);
	assert_string_equal(f->err.code, code);
}

static void netlink_says_what_is_missing(void **state)
{
	struct fixture *f = *state;

	make(f, 0, VHCA_LINK_DOWN);
	f->kernel.no_get_guid = true;
	assert_reason(f, -ENODATA, "no_vf_guids", "Linux 5.5");
	f->kernel.no_get_guid = false;
	f->at.vf_index = N_VFS; /* not enabled: the kernel would write past its table */
	assert_reason(f, -ENXIO, "no_vport", "mlx5_core");
	f->at.vf_index = VF;
	assert_int_equal(f->kernel.sets, 0);
	sim_remove(&f->tree, SIM_PCI "/" PF "/net/ib0");
	sim_remove(&f->tree, SIM_PCI "/" PF "/net/ib0.8001");
	assert_reason(f, -ENONET, "no_ipoib_device", "ib_ipoib");
	sim_remove(&f->tree, SIM_PCI "/" PF "/net");
	assert_reason(f, -ENONET, "no_ipoib_device", "ib_ipoib");
}

static void sysfs_says_what_is_missing(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	f->at.vf_index = N_VFS;
	assert_reason(f, -ENXIO, "no_vport", "mlx5_core");
	f->at.vf_index = VF;
	sim_put(sysfs_sim_tree(f->base.sim), OFED "/policy", "Invalid policy");
	assert_int_equal(look(f), -EBADMSG);
	sim_put(sysfs_sim_tree(f->base.sim), OFED "/policy", "Down");
	sim_put(sysfs_sim_tree(f->base.sim), OFED "/port", "00:00");
	assert_int_equal(look(f), -EBADMSG);
}

/* ---- every access fails once ---- */

enum mode { REFUSED, APPLIED, LOST, MODE_COUNT };

static void inject(struct fixture *f, unsigned int nth, int errnum, enum mode mode, bool on_read)
{
	const struct sim_fault fault = {.on_read = on_read,
					.pattern = "*",
					.nth = nth,
					.errnum = mode == LOST ? 0 : errnum,
					.applied = mode == APPLIED,
					.lost = mode == LOST};

	if (f->base.sim != NULL) {
		sysfs_sim_inject(f->base.sim, &fault);
		return;
	}
	f->kernel.fail_at = nth;
	f->kernel.fail_errno = errnum;
	f->kernel.fail_applied = mode == APPLIED;
	f->kernel.fail_lost = mode == LOST;
}

static bool struck(struct fixture *f)
{
	return f->base.sim != NULL ? sysfs_sim_fault_hits(f->base.sim) > 0 : f->kernel.hit;
}

/* The nth access fails; false when there is no such access. */
static bool one_failure(struct fixture *f, unsigned int nth, int errnum, enum mode mode,
			bool on_read, bool is_scrub)
{
	int r;

	make(f, STALE, VHCA_LINK_AUTO);
	inject(f, nth, errnum, mode, on_read);
	r = is_scrub ? scrub(f) : program(f);
	if (!struck(f)) {
		assert_int_equal(r, 0);
		return false;
	}
	if (r == 0) { /* success is only ever the truth */
		assert_true(is_scrub ? is_scrubbed(f) : is_programmed(f));
	} else { /* and after a failure nobody's link is up with a new address */
		assert_true(f->err.kind != VHCA_ERR_NONE);
		assert_true(firmware(f)->policy == VHCA_LINK_DOWN || firmware(f)->port != GUID ||
			    mode == APPLIED);
	}
	f->kernel.fail_at = 0;
	if (f->base.sim != NULL)
		sysfs_sim_clear_faults(f->base.sim);
	assert_int_equal(is_scrub ? scrub(f) : program(f), 0); /* the next try repairs it */
	assert_true(is_scrub ? is_scrubbed(f) : is_programmed(f));
	return true;
}

static unsigned int all_failures(struct fixture *f, bool on_read, bool is_scrub)
{
	static const int errnums[] = {EBUSY, EOPNOTSUPP, EPERM, ENODEV, EINVAL, EIO};
	unsigned int runs = 0;

	for (size_t e = 0; e < VHCA_ARRAY_SIZE(errnums); e++) {
		for (unsigned int mode = 0; mode < MODE_COUNT; mode++) {
			unsigned int nth = 1;

			if (mode != REFUSED && (on_read || errnums[e] != EIO))
				continue;
			while (one_failure(f, nth, errnums[e], (enum mode)mode, on_read, is_scrub))
				nth++;
			runs += nth - 1;
		}
	}
	return runs;
}

/*
 * With netlink reads and writes are calls alike: 4 writes and 3 reads to program, 3 and 2 to scrub.
 * A lost write makes one more.
 */
static void netlink_every_call_failing_once(void **state)
{
	assert_true(all_failures(*state, false, false) >= 7 * 8);
	assert_true(all_failures(*state, false, true) >= 5 * 8);
}

static void sysfs_every_write_failing_once(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	assert_true(all_failures(f, false, false) >= 4 * 8);
	assert_true(all_failures(f, false, true) >= 3 * 8);
}

static void sysfs_every_read_failing_once(void **state)
{
	struct fixture *f = sysfs_fixture_ready(state);

	assert_int_equal(all_failures(f, true, false), 9 * 6);
	assert_int_equal(all_failures(f, true, true), 6 * 6);
}

/* Whatever the first refusal was, the rest is still taken away. */
static void scrub_goes_on_after_a_failure(void **state)
{
	struct fixture *f = *state;

	make(f, STALE, VHCA_LINK_AUTO);
	inject(f, 2, EPERM, REFUSED, false); /* the link */
	assert_int_equal(scrub(f), -EPERM);
	assert_string_equal(f->err.code, "vports_not_ours");
	assert_true(truth(f)->port == 0 && truth(f)->node == 0);
}

#define N(fn) cmocka_unit_test_setup_teardown(fn, setup_netlink, teardown_netlink)
#define S(fn) cmocka_unit_test_setup_teardown(fn, setup_sysfs, teardown_sysfs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		N(netlink_life),
		S(sysfs_life),
		N(bad_wishes_are_refused),
		N(zero_in_the_cache_proves_nothing),
		N(recreated_vf_shows_the_former_tenant),
		N(reload_is_a_drift),
		N(all_ones_in_the_cache_prove_nothing),
		N(firmware_that_refuses_zero_gets_all_ones),
		N(neighbours_are_not_touched),
		N(netlink_says_what_is_missing),
		S(sysfs_says_what_is_missing),
		N(netlink_every_call_failing_once),
		S(sysfs_every_write_failing_once),
		S(sysfs_every_read_failing_once),
		N(scrub_goes_on_after_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
