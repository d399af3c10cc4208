/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest moves from host 0, whose agent is killed when it is about to write down what it promises,
 * to host 1. The promise gets lost, and host 1 keeps it by itself. Whole agents on a simulated
 * fabric (docs/design/0006-chaos.md).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/host/memstore.h"
#include "tests/unit/agent/one_guest.h"

#define ALONE_MS 15000	/* agent/migration/migration.c */
#define OFF_MS	 900000 /* host 1: longer than all this takes */

static struct fixture {
	struct chaos c;
	bool killed, promised;
} f;

static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	if (h->n != 0 || when != CHAOS_BEFORE)
		return;
	if (!strcmp(label, "journal source: copying") && !f.killed) {
		f.killed = true;
		chaos_kill(h);
	}
	if (!strcmp(label, "POST /v1/peer/claims/{}/handover") && !f.promised) {
		f.promised = true;
		chaos_cut(c, 0, 1, true);
	}
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

static uint64_t known_epoch(unsigned int host)
{
	char path[96], text[32];

	chaos_path(&f.c.hosts[host], path);
	memstore_ask(path, "SELECT epoch FROM vguids", NULL, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

static void move_guest(void)
{
	char path[96], text[32] = "";

	assert_true(chaos_migrate(&f.c, 0, 1));
	one_guest_run_until(&f.c, &f.killed);
	chaos_start(&f.c.hosts[0]);
	one_guest_run_until(&f.c, &f.promised);
	chaos_cut(&f.c, 0, 1, false);
	one_guest_run(&f.c, 2 * ALONE_MS);
	chaos_path(&f.c.hosts[0], path);
	memstore_ask(path, "SELECT state FROM migrations", NULL, text, sizeof(text));
	assert_string_equal(text, "done");
}

/*
 * Who has promised knows the epoch that is used there, so that the next start here, for which
 * nobody vouches, is refused.
 */
static void an_epoch_is_promised_once(void **state)
{
	const struct vhca_osm_binding *b;

	(void)state;
	move_guest();
	b = one_guest_binding(&f.c);
	assert_true(!b->withdrawn && b->port_guid == f.c.hosts[1].w.port_guid);
	assert_int_equal(known_epoch(1), b->epoch);
	assert_int_equal(known_epoch(0), b->epoch);
	chaos_power_off(&f.c.hosts[1], OFF_MS);
	chaos_run(&f.c, 1);
	one_guest_start(&f.c, 0);
	one_guest_run(&f.c, 60000);
	b = one_guest_binding(&f.c);
	assert_true(b->port_guid == f.c.hosts[1].w.port_guid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_epoch_is_promised_once, setup, teardown),
	};

	return cmocka_run_group_tests_name("promised_epoch", tests, NULL, NULL);
}
