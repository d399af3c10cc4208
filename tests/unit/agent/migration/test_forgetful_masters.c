/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest is on its way from host 0 to host 1, whose agent is killed. When it is back, SMs are
 * masters that know nothing. Whole agents on a simulated fabric (docs/design/0006-chaos.md).
 */
#include <string.h>

#include "tests/unit/agent/one_guest.h"

#define SWEPT_MS 5000 /* a new master has asked all that are there (chaos_sm.c) */

static struct fixture {
	struct chaos c;
	const char *killed_after; /* host 1: a step */
	const char *sm_goes; /* host 1: before this one, it has not answered yet; NULL: it stays */
	bool killed;
} f;

static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	if (h->n == 1 && f.sm_goes && when == CHAOS_BEFORE && !strcmp(label, f.sm_goes))
		c->sm_down = true;
	if (h->n != 1 || f.killed || when != CHAOS_AFTER || strcmp(label, f.killed_after) != 0)
		return;
	f.killed = true;
	chaos_kill(h);
}

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	one_guest_begin(&f.c, 2, on_step);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	chaos_done(&f.c);
	return 0;
}

static void migrate_until(const char *killed_after)
{
	f.killed_after = killed_after;
	assert_true(chaos_migrate(&f.c, 0, 1));
	one_guest_run_until(&f.c, &f.killed);
}

/* By both SMs. */
static void be_forgotten(void)
{
	chaos_sm_takes_over(&f.c, true);
	chaos_sm_takes_over(&f.c, true);
}

static void assert_bound_at(unsigned int host)
{
	const struct vhca_osm_binding *b = one_guest_binding(&f.c);

	assert_non_null(b);
	assert_true(!b->withdrawn && b->port_guid == f.c.hosts[host].w.port_guid);
}

/* Called back, and forgotten by both SMs before host 1 comes back: the vGUID stays at host 0. */
static void stay_at_0(void)
{
	chaos_cancel(&f.c, 0);
	one_guest_run(&f.c, 60000);
	assert_bound_at(0);
	be_forgotten();
	chaos_start(&f.c.hosts[1]);
	one_guest_run(&f.c, 60000);
	assert_bound_at(0);
	one_guest_settle(&f.c);
}

/*
 * The SM has given the vGUID back to host 0, where the guest stays. Nobody remembers that but host
 * 0, and host 1 still shows it: it has heard nothing, and takes it from nobody.
 */
static void what_is_kept_for_a_guest_is_not_asked_for_again(void **state)
{
	(void)state;
	migrate_until("journal destination: incoming");
	stay_at_0();
}

/* Nor by what its agent had not got rid of when it was killed. */
static void what_was_not_sent_is_not_asked_for_again(void **state)
{
	(void)state;
	f.sm_goes = "journal destination: programming";
	migrate_until("journal destination: incoming");
	f.c.sm_down = false;
	stay_at_0();
}

/* The guest has come: the new SM is asked as soon as libvirt shows it again. */
static void what_a_guest_waits_for_is_asked_for_again(void **state)
{
	(void)state;
	migrate_until("journal destination: attaching");
	be_forgotten();
	one_guest_run(&f.c, SWEPT_MS);
	chaos_start(&f.c.hosts[1]);
	one_guest_settle(&f.c);
	assert_bound_at(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_kept_for_a_guest_is_not_asked_for_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_not_sent_is_not_asked_for_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_a_guest_waits_for_is_asked_for_again, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("forgetful_masters", tests, NULL, NULL);
}
