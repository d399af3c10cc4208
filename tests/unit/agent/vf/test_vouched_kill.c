/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest has arrived at host 1, which loses its power; it is started again on host 0, and an
 * operator vouches for it. The agent there is killed just before it has written down that its
 * migration is over. Whole agents on a simulated fabric (docs/design/0006-chaos.md).
 */
#include <stdlib.h>
#include <string.h>

#include "agent/state/model.h"
#include "tests/unit/agent/one_guest.h"

#define OFF_MS 900000 /* host 1: longer than all this takes */

static struct fixture {
	struct chaos c;
	bool arrived, killed;
} f;

static void on_step(struct chaos *c, struct chaos_host *h, enum chaos_when when, const char *label)
{
	if (h->n != 0 || when != CHAOS_BEFORE)
		return;
	if (!strcmp(label, "GET /v1/peer/claims/{}") && c->guests[0].at == 1 && !f.arrived) {
		f.arrived = true;
		chaos_cut(c, 0, 1, true);
	}
	if (!strcmp(label, "journal source: restoring") && !f.killed) {
		f.killed = true;
		chaos_kill(h);
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

static void ask_journal(const char *question, char ret[static 32])
{
	char path[96];

	chaos_path(&f.c.hosts[0], path);
	memstore_ask(path, question, NULL, ret, 32);
}

static void vouch(void)
{
	struct chaos_host *h = &f.c.hosts[0];

	ledger_vouch(&f.c.ledger, 0);
	assert_int_equal(
		vhca_engine_takeover(h->w.engine, &h->w.domains[0].info.uuid, "it is off", NULL),
		0);
}

static void start_again(void)
{
	assert_true(chaos_migrate(&f.c, 0, 1));
	one_guest_run_until(&f.c, &f.arrived);
	chaos_power_off(&f.c.hosts[1], OFF_MS);
	chaos_run(&f.c, 1);
	one_guest_start(&f.c, 0);
	one_guest_run(&f.c, 1000);
}

/* The word is forgotten with its agent: what begins by it is written down as one. */
static void a_generation_begins_with_the_end_of_its_migration(void **state)
{
	char text[32];

	(void)state;
	start_again();
	vouch();
	one_guest_run_until(&f.c, &f.killed);
	ask_journal("SELECT state FROM migrations", text);
	assert_string_equal(text, "finishing");
	ask_journal("SELECT epoch FROM claims", text);
	assert_false(vhca_epoch_begins_generation(strtoull(text, NULL, 10)));
	ask_journal("SELECT epoch FROM vguids", text);
	assert_false(vhca_epoch_begins_generation(strtoull(text, NULL, 10)));
	chaos_start(&f.c.hosts[0]);
	one_guest_run(&f.c, 1000);
	vouch(); /* the word was forgotten with the agent */
	one_guest_run(&f.c, 60000);
	ask_journal("SELECT state FROM migrations", text);
	assert_string_equal(text, "failed");
	ask_journal("SELECT epoch FROM claims", text);
	assert_true(vhca_epoch_begins_generation(strtoull(text, NULL, 10)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_generation_begins_with_the_end_of_its_migration,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("vouched_kill", tests, NULL, NULL);
}
