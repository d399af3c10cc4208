/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One vGUID that three hosts may take for theirs. A guest is on its way from host 0 to host 1 when
 * host 0 loses its power; it is started again on host 2. Whole agents on a simulated fabric
 * (docs/design/0006-chaos.md).
 */
#include <string.h>

#include "tests/sim/host/vtime.h"
#include "tests/unit/agent/one_guest.h"

#define OFF_MS	 5000  /* until host 0 has power again */
#define STILL_MS 60000 /* host 1 */

static struct fixture {
	struct chaos c;
	bool programmed; /* host 1, which the SM has not heard */
} f;

/*
 * What host 1 reports when it has been handed the identity gets lost, and it hears and says nothing
 * more when it has programmed it.
 */
static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	if (h->n != 1 || f.programmed)
		return;
	if (when == CHAOS_BEFORE && !strcmp(label, "journal destination: programming"))
		c->sm_down = true;
	if (when == CHAOS_AFTER && !strcmp(label, "VF program")) {
		f.programmed = true;
		c->sm_down = false;
		vtime_stall(VTIME_AGENT_OF(1), vtime_now() + STILL_MS);
	}
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

static bool is_shown(const struct world *w, uint64_t guid)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (w->vfs[v].guid == guid)
			return true;
	return false;
}

/* Host 0 has withdrawn and promised the next epoch to host 1, and the SM knows only the first. */
static void a_promised_epoch_is_left_to_whom_it_was_promised(void **state)
{
	const struct vhca_osm_binding *b;
	uint64_t guid = f.c.guests[0].vfs[0].guid, epoch = one_guest_binding(&f.c)->epoch;

	(void)state;
	assert_true(chaos_migrate(&f.c, 0, 1));
	one_guest_run_until(&f.c, &f.programmed);
	assert_int_equal(one_guest_binding(&f.c)->epoch, epoch);
	chaos_power_off(&f.c.hosts[0], OFF_MS);
	chaos_run(&f.c, 1);
	assert_true(f.c.guests[0].down);
	one_guest_start(&f.c, 2);
	one_guest_run(&f.c, STILL_MS / 2);
	/* The guest has its vGUID at host 2; host 1 still shows it, and has been superseded. */
	b = one_guest_binding(&f.c);
	assert_true(!b->withdrawn && b->port_guid == f.c.hosts[2].w.port_guid);
	assert_true(b->epoch > epoch + 1);
	assert_true(is_shown(&f.c.hosts[1].w, guid));
	one_guest_settle(&f.c);
	assert_int_equal(f.c.guests[0].at, 2);
	assert_false(is_shown(&f.c.hosts[1].w, guid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_promised_epoch_is_left_to_whom_it_was_promised,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("three_hosts", tests, NULL, NULL);
}
