/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest moves from host 0, whose agent is killed when it is about to write down what it promises,
 * to host 1. The promise gets lost, and host 1 keeps it by itself. Whole agents on a simulated
 * fabric (docs/design/0006-chaos.md).
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/host/memstore.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"
#include "tests/unit/unit.h"

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
	static const struct chaos_size size = {.hosts = 2, .guests = 1, .vfs = 1};

	(void)state;
	memset(&f, 0, sizeof(f));
	chaos_init(&f.c, 1, &size);
	f.c.on_step = on_step;
	f.c.wants_labels = true;
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

static void run_until(const bool *done)
{
	for (unsigned int ms = 0; ms < 60000 && !*done; ms++)
		chaos_run(&f.c, 1);
	assert_true(*done);
	chaos_run(&f.c, 1);
}

static void move_guest(void)
{
	char path[96], text[32] = "";

	assert_true(chaos_migrate(&f.c, 0, 1));
	run_until(&f.killed);
	chaos_start(&f.c.hosts[0]);
	run_until(&f.promised);
	chaos_cut(&f.c, 0, 1, false);
	chaos_run(&f.c, 2 * ALONE_MS);
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
	uint64_t guid = f.c.guests[0].vfs[0].guid;
	const struct vhca_osm_binding *b;

	(void)state;
	move_guest();
	b = sim_sm_find(chaos_master(&f.c), guid);
	assert_true(!b->withdrawn && b->port_guid == f.c.hosts[1].w.port_guid);
	assert_int_equal(known_epoch(1), b->epoch);
	assert_int_equal(known_epoch(0), b->epoch);
	chaos_power_off(&f.c.hosts[1], OFF_MS);
	chaos_run(&f.c, 1);
	f.c.guests[0].lost++; /* no operator of the simulation's looks after it */
	assert_true(chaos_virt_start(&f.c, 0, 0));
	chaos_run(&f.c, 60000);
	if (f.c.broken)
		fail_msg("%s", f.c.why);
	b = sim_sm_find(chaos_master(&f.c), guid);
	assert_true(b->port_guid == f.c.hosts[1].w.port_guid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_epoch_is_promised_once, setup, teardown),
	};

	return cmocka_run_group_tests_name("promised_epoch", tests, NULL, NULL);
}
