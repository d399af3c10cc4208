/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One life of a VF (claimed, programmed, plugged, looked at, unplugged, scrubbed) on the host of tests/sim/iso.h, again and again: each time
 * another single access to sysfs or vfio fails, with each errno that the kernel has for it. The checker of tests/sim/truth.h looks
 * after every event; whatever fails, the VF is never free with leftovers, and comes back by itself, by way of quarantine if
 * something could not be proven.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "tests/sim/iso.h"

#define SEED	 1
#define TENANT	 1
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

static void must_hold(const struct iso *it, const struct iso_fault *fault, const char *when)
{
	if (!it->truth.violation[0])
		return;
	print_message("# %s: %s access %u, errno %d%s%s: %s\n", when,
		      fault->on_read ? "read" : "write", fault->in, fault->errnum,
		      fault->applied ? " (applied)" : "", fault->lost ? " (lost)" : "",
		      it->truth.violation);
	fail();
}

/* True: a VF was quarantined meanwhile. */
static bool life(struct iso *it)
{
	bool quarantined = false;

	iso_domain_boot(it, TENANT, "0x8020 0x0021 0x8022");
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

static struct outcome run(const struct iso_fault *fault)
{
	static struct iso it;
	struct outcome out;

	iso_init(&it, SEED, ISO_SOUND);
	iso_start(&it);
	iso_run(&it, 3000);
	assert_int_equal(count(&it, "free"), HW_VFS);
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

static void nothing_fails(void **state)
{
	struct outcome out = run(&(struct iso_fault){0});

	(void)state;
	assert_int_equal(out.attaches, 1);
	assert_false(out.quarantined);
}

/* Writes are what changes: GUID and keys of the tenant, and nothing while nothing changes, not even by a restarted agent. */
static void only_changes_are_written(void **state)
{
	static struct iso it;
	unsigned int before;

	(void)state;
	iso_init(&it, SEED, ISO_SOUND);
	iso_start(&it);
	iso_run(&it, 3000);
	before = it.writes;
	iso_domain_boot(&it, TENANT, "0x8020 0x0021 0x8022");
	iso_run(&it, GUEST_MS);
	assert_int_equal(count(&it, "attached"), 1);
	assert_int_equal(it.writes - before, 1 + 3);
	for (unsigned int round = 0; round < 2; round++) {
		iso_run(&it, IDLE_MS);
		assert_int_equal(it.writes - before, 1 + 3);
		iso_kill(&it);
		iso_start(&it);
	}
	iso_domain_stop(&it, TENANT);
	iso_run(&it, GUEST_MS);
	assert_int_equal(count(&it, "free"), HW_VFS);
	assert_int_equal(it.writes - before, 2 * (1 + 3));
	assert_string_equal(it.truth.violation, "");
	iso_done(&it);
}

/* Every access once; how many there are. */
static unsigned int sweep(struct iso_fault fault)
{
	unsigned int quarantined = 0, n = 0;
	struct outcome out;

	do {
		fault.in = ++n;
		out = run(&fault);
		quarantined += out.quarantined;
	} while (out.hits);
	print_message("# errno %d%s%s: %u accesses, %u times quarantined meanwhile\n", fault.errnum,
		      fault.applied ? " (applied)" : "", fault.lost ? " (lost)" : "", n - 1,
		      quarantined);
	return n - 1;
}

/* store_port_pkey(), store_admin_alias_guid(): EINVAL; mlx4_GEN_EQE() after the change: EINVAL (applied); sysfs itself: ENODEV, ENOMEM. */
static void every_write_fails_once(void **state)
{
	static const int errnums[] = {EINVAL, EIO, ENODEV, ENOMEM};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(errnums); i++)
		assert_true(sweep((struct iso_fault){.errnum = errnums[i]}) >= 8);
	assert_true(sweep((struct iso_fault){.errnum = EINVAL, .applied = true}) >= 8);
	assert_true(sweep((struct iso_fault){.lost = true}) >= 8);
}

/* show functions: MAD_IFC's EIO, EINVAL, ENOMEM; open(2): ENOENT, ENODEV, EMFILE; the group: EBUSY of somebody's short look. */
static void every_read_fails_once(void **state)
{
	static const int errnums[] = {EIO, ENODEV, ENOENT, EBUSY};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(errnums); i++)
		assert_true(sweep((struct iso_fault){.on_read = true, .errnum = errnums[i]}) > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_fails),
		cmocka_unit_test(only_changes_are_written),
		cmocka_unit_test(every_write_fails_once),
		cmocka_unit_test(every_read_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
