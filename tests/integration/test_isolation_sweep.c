/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One life of a VF (claimed, programmed, plugged, looked at, unplugged, scrubbed) on hosts of
 * tests/sim/host/iso.h, again and again: each time another single access to sysfs, rtnetlink or
 * vfio fails, with each errno that the kernel has for it. The checker of tests/sim/host/truth.h
 * looks after every event; whatever fails, the VF is never free with leftovers, and comes back by
 * itself, by way of quarantine if something could not be proven.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "tests/sim/host/iso.h"
#include "tests/unit/unit.h"

#define SEED	 1
#define TENANT	 1
#define KEYS	 "0x8020 0x0021 0x8022"
#define GUEST_MS 12000 /* two looks at a VF in a guest */
#define SCRUB_MS 6000
#define REST_MS	 90000
#define IDLE_MS	 600000 /* ten minutes: hundreds of looks */

struct outcome {
	unsigned int hits, attaches;
	bool quarantined;
};

static unsigned int count(const struct iso *it, const char *state)
{
	unsigned int n = 0;

	for (unsigned int v = 0; v < HW_VFS; v++)
		n += !strcmp(it->truth.rows[v].state, state);
	return n;
}

static const char *shape(const struct iso_fault *f)
{
	static char text[96];

	(void)snprintf(text, sizeof(text), "%s%s%s%s%s%s", f->applied ? ", applied" : "",
		       f->lost ? ", lost" : "", f->silent ? ", unanswered" : "",
		       f->cut ? ", cut short" : "", f->absent ? ", without the VF" : "",
		       f->uncached ? ", unnoticed" : "");
	return text;
}

static void must_hold(const struct iso *it, const struct iso_fault *fault, const char *when)
{
	if (!it->truth.violation[0])
		return;
	print_message("# %s: %s access %u, errno %d%s: %s\n", when,
		      fault->on_read ? "read" : "write", fault->in, fault->errnum, shape(fault),
		      it->truth.violation);
	fail();
}

static void start(struct iso *it, enum hw_card card)
{
	iso_init(it, &(struct iso_plan){.seed = SEED, .card = card, .n_keys = HW_KEYS_FEW});
	iso_start(it);
	iso_run(it, 3000);
	assert_int_equal(count(it, "free"), HW_VFS);
}

/* True: a VF was quarantined meanwhile. */
static bool life(struct iso *it)
{
	bool quarantined = false;

	iso_domain_boot(it, TENANT, KEYS);
	iso_run(it, 3000);
	for (unsigned int i = 0; i < 4; i++)
		iso_guest_acts(it);
	iso_run(it, GUEST_MS);
	iso_domain_stop(it, TENANT);
	for (unsigned int i = 0; i < SCRUB_MS / 100; i++) {
		iso_run(it, 100);
		quarantined |= count(it, "quarantined") > 0;
	}
	return quarantined;
}

static struct outcome run(enum hw_card card, const struct iso_fault *fault)
{
	static struct iso it;
	struct outcome out;

	start(&it, card);
	it.fault = *fault;
	out.quarantined = life(&it);
	must_hold(&it, fault, "at once");
	out.hits = it.fault.hits;
	out.attaches = it.stats.attaches;
	it.fault = (struct iso_fault){0};
	iso_run(&it, REST_MS);
	must_hold(&it, fault, "afterwards");
	assert_int_equal(count(&it, "free"), HW_VFS);
	for (unsigned int v = 0; v < HW_VFS; v++)
		assert_true(truth_clean(&it.truth, v) && !it.truth.rows[v].claimed);
	iso_done(&it);
	return out;
}

static const char *const cards[] = {
	[HW_MLX4] = "mlx4", [HW_MLX5] = "mlx5", [HW_MLX5_OFED] = "mlx5 by files"};

static void nothing_fails(void **state)
{
	(void)state;
	for (unsigned int card = 0; card < VHCA_ARRAY_SIZE(cards); card++) {
		struct outcome out = run((enum hw_card)card, &(struct iso_fault){0});

		assert_int_equal(out.attaches, 1);
		assert_false(out.quarantined);
	}
}

/*
 * Writes are what changes: the tenant's values, and nothing while nothing changes, not even by a
 * restarted agent.
 */
static void check_writes(enum hw_card card, unsigned int to_program, unsigned int to_scrub)
{
	static struct iso it;
	unsigned int before;

	start(&it, card);
	before = it.writes;
	iso_domain_boot(&it, TENANT, KEYS);
	iso_run(&it, GUEST_MS);
	assert_int_equal(count(&it, "attached"), 1);
	assert_int_equal(it.writes - before, to_program);
	for (unsigned int round = 0; round < 2; round++) {
		iso_run(&it, IDLE_MS);
		assert_int_equal(it.writes - before, to_program);
		iso_kill(&it);
		iso_start(&it);
	}
	iso_domain_stop(&it, TENANT);
	iso_run(&it, GUEST_MS);
	assert_int_equal(count(&it, "free"), HW_VFS);
	assert_int_equal(it.writes - before, to_program + to_scrub);
	assert_string_equal(it.truth.violation, "");
	iso_done(&it);
}

static void only_changes_are_written(void **state)
{
	(void)state;
	check_writes(HW_MLX4, 1 + 3, 1 + 3); /* GUID and keys */
	check_writes(HW_MLX5, 2 + 1, 1 + 2); /* two GUIDs, and the link */
	check_writes(HW_MLX5_OFED, 2 + 1, 1 + 2);
}

/*
 * An SM that asks for everything again, at each moment of an end, does not get an address that is
 * nobody's by now.
 */
static void a_withdrawal_is_the_last_word(void **state)
{
	static struct iso it;

	(void)state;
	start(&it, HW_MLX5);
	iso_domain_boot(&it, TENANT, KEYS);
	iso_run(&it, GUEST_MS);
	assert_int_equal(it.n_known, 1);
	assert_false(sim_sm_find(&it.sm, it.known[0])->withdrawn);
	iso_domain_stop(&it, TENANT);
	for (unsigned int ms = 0; ms < SCRUB_MS; ms++) {
		vhca_engine_snapshot(it.engine);
		iso_run(&it, 1);
	}
	assert_int_equal(count(&it, "free"), HW_VFS);
	iso_run(&it, GUEST_MS);
	assert_true(sim_sm_find(&it.sm, it.known[0])->withdrawn);
	iso_done(&it);
}

/* Every access once; at least so many there are. */
static void sweep(enum hw_card card, struct iso_fault fault, unsigned int least)
{
	unsigned int quarantined = 0, n = 0;
	struct outcome out;

	do {
		fault.in = ++n;
		out = run(card, &fault);
		quarantined += out.quarantined;
	} while (out.hits);
	print_message("# %s: errno %d%s: %u %s, %u times quarantined meanwhile\n", cards[card],
		      fault.errnum, shape(&fault), n - 1, fault.on_read ? "reads" : "writes",
		      quarantined);
	assert_true(n - 1 >= least);
}

/*
 * store_port_pkey(), store_admin_alias_guid(): EINVAL; mlx4_GEN_EQE() after the change: EINVAL
 * (applied); sysfs itself: ENODEV, ENOMEM.
 */
static void every_write_fails_once(void **state)
{
	static const int errnums[] = {EINVAL, EIO, ENODEV, ENOMEM};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(errnums); i++)
		sweep(HW_MLX4, (struct iso_fault){.errnum = errnums[i]}, 8);
	sweep(HW_MLX4, (struct iso_fault){.errnum = EINVAL, .applied = true}, 8);
	sweep(HW_MLX4, (struct iso_fault){.lost = true}, 8);
}

/*
 * show functions: MAD_IFC's EIO, EINVAL, ENOMEM; open(2): ENOENT, ENODEV, EMFILE; the group: EBUSY
 * of somebody's short look.
 */
static void every_read_fails_once(void **state)
{
	static const int errnums[] = {EIO, ENODEV, ENOENT, EBUSY};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(errnums); i++)
		sweep(HW_MLX4, (struct iso_fault){.on_read = true, .errnum = errnums[i]}, 100);
}

/*
 * do_setlink(), do_setvfinfo(): EOPNOTSUPP without ndo_set_vf_guid, EPERM without CAP_NET_ADMIN,
 * ENODEV of another ifindex; mlx5_cmd_check(): EINVAL, EBUSY, EIO; wait_func(): ETIMEDOUT, and the
 * command may be done all the same. The files: the same of mlx5_cmd_check(); sysfs.
 */
static void every_write_to_a_vport_fails_once(void **state)
{
	static const struct iso_fault faults[] = {
		{.errnum = EOPNOTSUPP},
		{.errnum = EPERM},
		{.errnum = EBUSY},
		{.errnum = ENODEV},
		{.errnum = EINVAL},
		{.errnum = EIO},
		{.errnum = EIO, .applied = true},
		{.errnum = ETIMEDOUT, .applied = true, .uncached = true},
		{.errnum = EIO, .silent = true},
		{.errnum = EIO, .silent = true, .applied = true},
		{.lost = true},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(faults); i++) {
		sweep(HW_MLX5, faults[i], 6);
		if (!faults[i].silent && !faults[i].uncached)
			sweep(HW_MLX5_OFED, faults[i], 6);
	}
}

/*
 * rtnl_getlink(), and files on the way to the device: as above; an answer that ends too early, or
 * without VFs (rtnl_fill_vfinfo()).
 */
static void every_read_of_a_vport_fails_once(void **state)
{
	static const struct iso_fault faults[] = {
		{.on_read = true, .errnum = EOPNOTSUPP},
		{.on_read = true, .errnum = EBUSY},
		{.on_read = true, .errnum = ENODEV},
		{.on_read = true, .errnum = ENOENT},
		{.on_read = true, .errnum = EIO},
		{.on_read = true, .errnum = EIO, .silent = true},
		{.on_read = true, .errnum = EIO, .cut = true},
		{.on_read = true, .errnum = EIO, .absent = true},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(faults); i++)
		sweep(HW_MLX5, faults[i], 30);
	for (size_t i = 1; i < 5; i++)
		sweep(HW_MLX5_OFED, faults[i], 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_fails),
		cmocka_unit_test(only_changes_are_written),
		cmocka_unit_test(a_withdrawal_is_the_last_word),
		cmocka_unit_test(every_write_fails_once),
		cmocka_unit_test(every_read_fails_once),
		cmocka_unit_test(every_write_to_a_vport_fails_once),
		cmocka_unit_test(every_read_of_a_vport_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
