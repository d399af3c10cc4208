/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest has arrived at host 1, whose confirm is lost, and the link to host 0 is cut: that one
 * takes the copy for failed. Host 1 raises the epoch (a migration from there fails), and loses its
 * power; somebody who does not vouch starts the guest at host 0 again. Whole agents on a simulated
 * fabric (docs/design/0006-chaos.md).
 */
#include <string.h>

#include "tests/unit/agent/one_guest.h"

#define OFF_MS	 200000 /* host 1 */
#define LONG_MS	 340000 /* ...just beyond a try of host 0, the next one would be 256 s later */
#define FAILS_MS 10000	/* a migration whose copy fails */

static struct fixture {
	struct chaos c;
	bool cut;
} f;

static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	if (h->n != 0 || when != CHAOS_BEFORE || f.cut || c->guests[0].at != 1 ||
	    strcmp(label, "journal source: aborting") != 0)
		return;
	f.cut = true;
	chaos_cut(c, 0, 1, true);
}

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	one_guest_begin(&f.c, 3, on_step);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	chaos_done(&f.c);
	return 0;
}

/*
 * Host 1 comes back, and says that it is too late to abort: the guest had arrived. It runs at host
 * 0 all the same, has its VF there, bare, and keeps it: the SM gives the vGUID back as soon as host
 * 1 has withdrawn.
 */
static void a_guest_that_was_started_again_keeps_its_vf(void **state)
{
	(void)state;
	f.c.odds.confirm_lost = 1000;
	assert_true(chaos_migrate(&f.c, 0, 1));
	one_guest_run_until(&f.c, &f.cut);
	one_guest_run(&f.c, 2000);
	f.c.odds.confirm_lost = 0;
	f.c.odds.copy_fails = 1000;
	assert_true(chaos_migrate(&f.c, 0, 2));
	one_guest_run(&f.c, FAILS_MS);
	chaos_power_off(&f.c.hosts[1], OFF_MS);
	one_guest_run(&f.c, 1);
	f.c.guests[0].lost++; /* no operator of the simulation's looks after it */
	one_guest_run(&f.c, 60000);
	assert_true(chaos_virt_start(&f.c, 0, 0));
	one_guest_run(&f.c, 60000);
	chaos_cut(&f.c, 0, 1, false);
	one_guest_run(&f.c, 2 * OFF_MS);
	one_guest_settle(&f.c);
	assert_int_equal(f.c.guests[0].at, 0);
}

/*
 * Host 1 is away for so long that the pauses between the tries of host 0, which the SM refuses,
 * would have grown beyond what a guest may be left without its VF.
 */
static void what_another_host_has_is_asked_for_again_in_time(void **state)
{
	(void)state;
	assert_true(chaos_migrate(&f.c, 0, 1));
	one_guest_run(&f.c, FAILS_MS);
	assert_int_equal(f.c.guests[0].at, 1);
	f.cut = true;
	chaos_power_off(&f.c.hosts[1], LONG_MS);
	chaos_trouble(&f.c, LONG_MS);
	one_guest_run(&f.c, 1);
	f.c.guests[0].lost++; /* no operator of the simulation's looks after it */
	one_guest_run(&f.c, 60000);
	assert_true(chaos_virt_start(&f.c, 0, 0));
	one_guest_run(&f.c, 2 * LONG_MS);
	one_guest_settle(&f.c);
	assert_int_equal(f.c.guests[0].at, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_guest_that_was_started_again_keeps_its_vf, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_another_host_has_is_asked_for_again_in_time,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("started_again", tests, NULL, NULL);
}
