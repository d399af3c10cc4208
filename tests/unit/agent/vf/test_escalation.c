/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest that ignores unplug requests, and its agent: when it is asked, what counts as an answer,
 * and what people are told. Whole agents migrate the guest, in time that the test makes:
 * detach_timeout is 60 s, a request goes out every 5 s.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"
#include "tests/unit/unit.h"

#define TIMEOUT_MS 60000
#define SLACK_MS   1000 /* of the simulation's threads and disks */

static struct fixture {
	struct chaos c;
	struct world *w;	    /* where the guest is */
	uint64_t detach_ms, ask_ms; /* first of each; 0 = none */
	unsigned int asks;
} f;

static void note_step(struct chaos *c, struct chaos_host *h, enum chaos_when when,
		      const char *label)
{
	(void)c;
	if (when != CHAOS_BEFORE || &h->w != f.w)
		return;
	if (!strcmp(label, "VF detach") && !f.detach_ms)
		f.detach_ms = vtime_now();
	if (!strcmp(label, "VF ask") && !f.ask_ms)
		f.ask_ms = vtime_now();
	f.asks += !strcmp(label, "VF ask");
}

static int setup(void **state)
{
	static const struct chaos_size size = {.hosts = 2, .guests = 1, .vfs = 1};

	(void)state;
	memset(&f, 0, sizeof(f));
	chaos_init(&f.c, 1, &size);
	f.c.on_step = note_step;
	f.c.wants_labels = true;
	f.w = &f.c.hosts[f.c.guests[0].at].w;
	f.w->deaf_guest = true;
	f.w->conf.detach_escalation = VHCA_ESCALATION_GUEST_AGENT;
	f.w->conf.detach_timeout_ms = TIMEOUT_MS;
	f.w->conf.detach_retry_ms = 5000;
	f.w->guest_agent = WORLD_AGENT_HELPS;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	chaos_done(&f.c);
	return 0;
}

static void migrate(void)
{
	assert_true(chaos_migrate(&f.c, 0, !f.c.guests[0].at));
}

/* The guest's VF is where the guest is, with its identity, and nothing is under way. */
static void settle(void)
{
	if (!chaos_settle(&f.c, 600000) || f.c.broken)
		fail_msg("%s", f.c.why);
}

static const struct vhca_mig *migration(void)
{
	const struct vhca_mig *m = vhca_migrations_first(((struct chaos_host *)f.w->pair)->ms);

	assert_non_null(m);
	return m;
}

static void assert_between(uint64_t ms, uint64_t from, uint64_t to)
{
	if (ms < from || ms > to)
		fail_msg("%llu ms is not between %llu and %llu", (unsigned long long)ms,
			 (unsigned long long)from, (unsigned long long)to);
}

/* ---- when ---- */

static void the_agent_is_asked_after_half_of_the_time(void **state)
{
	(void)state;
	migrate();
	settle();
	assert_int_equal(migration()->state, VHCA_MIG_DONE);
	assert_between(f.ask_ms - f.detach_ms, TIMEOUT_MS / 2 - SLACK_MS,
		       TIMEOUT_MS / 2 + SLACK_MS);
	assert_int_equal(f.w->asked, 1);
	assert_true(world_told(f.w, "escalated: domain vm0 does not let go"));
}

static void who_listens_is_not_asked(void **state)
{
	(void)state;
	f.w->deaf_guest = false;
	migrate();
	settle();
	assert_int_equal(migration()->state, VHCA_MIG_DONE);
	assert_int_equal(f.asks, 0);
	assert_false(world_told(f.w, "escalated"));
}

/* The host's word, and a domain's own. */
static void policy(void **state)
{
	static const struct {
		enum vhca_conf_escalation site;
		enum vhca_dom_escalation domain;
		bool asked;
	} cases[] = {
		{VHCA_ESCALATION_NONE, VHCA_DOM_ESCALATION_UNSAID, false},
		{VHCA_ESCALATION_NONE, VHCA_DOM_ESCALATION_GUEST_AGENT, true},
		{VHCA_ESCALATION_GUEST_AGENT, VHCA_DOM_ESCALATION_NONE, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)setup(state);
		f.w->conf.detach_escalation = cases[i].site;
		f.w->domains[0].info.escalation = cases[i].domain;
		world_look(f.w, 0);
		migrate();
		settle();
		assert_int_equal(f.asks > 0, cases[i].asked);
		assert_int_equal(world_told(f.w, "escalated"), cases[i].asked);
		assert_int_equal(migration()->state,
				 cases[i].asked ? VHCA_MIG_DONE : VHCA_MIG_FAILED);
		(void)teardown(state);
	}
}

/* A guest that boots has no agent yet. */
static void an_agent_that_comes_late_is_asked_again(void **state)
{
	(void)state;
	f.w->guest_agent = WORLD_AGENT_NONE;
	migrate();
	chaos_run(&f.c, TIMEOUT_MS * 3 / 4);
	assert_true(f.asks > 1);
	assert_int_equal(f.w->asked, 0);
	f.w->guest_agent = WORLD_AGENT_HELPS;
	settle();
	assert_int_equal(migration()->state, VHCA_MIG_DONE);
}

/* The clock of a detach that was under way starts anew; it does not stand still. */
static void a_restart_begins_anew(void **state)
{
	struct chaos_host *h = f.w->pair;

	(void)state;
	f.w->guest_agent = WORLD_AGENT_NO_SLOT;
	migrate();
	chaos_run(&f.c, TIMEOUT_MS * 3 / 4);
	assert_int_equal(f.w->asked, 1);
	chaos_kill(h);
	chaos_run(&f.c, 1000);
	f.detach_ms = f.ask_ms = 0;
	chaos_start(h);
	settle();
	assert_int_equal(migration()->state, VHCA_MIG_FAILED);
	assert_int_equal(f.w->asked, 2);
	assert_between(f.ask_ms - f.detach_ms, TIMEOUT_MS / 2 - SLACK_MS,
		       TIMEOUT_MS / 2 + SLACK_MS);
}

/* ---- what counts ---- */

static void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* Given up in time: the VF works where it was, and the reason says what was tried. */
static void assert_stays(const char *why, const char *hint)
{
	migrate();
	settle();
	assert_int_equal(migration()->state, VHCA_MIG_FAILED);
	assert_string_equal(migration()->failure.code, "guest_did_not_release");
	assert_between(migration()->step_ms[VHCA_MIG_DETACHING], TIMEOUT_MS, TIMEOUT_MS + SLACK_MS);
	assert_says(migration()->reason, "it stays attached and working");
	assert_says(migration()->reason, why);
	assert_says(migration()->reason, hint);
	assert_true(world_told(f.w, why));
	assert_int_equal(f.c.hosts[f.c.guests[0].at].n, ((struct chaos_host *)f.w->pair)->n);
}

static void no_agent(void **state)
{
	(void)state;
	f.w->guest_agent = WORLD_AGENT_NONE;
	assert_stays("no guest agent", "try again");
	assert_int_equal(f.w->asked, 0);
}

static void no_slot(void **state)
{
	(void)state;
	f.w->guest_agent = WORLD_AGENT_NO_SLOT;
	assert_stays("no hot-plug slot", "unload the driver");
	assert_int_equal(f.w->asked, 1);
	assert_int_equal(f.asks, 2); /* and how it ended */
}

static void a_program_that_hangs(void **state)
{
	(void)state;
	f.w->guest_agent = WORLD_AGENT_HANGS;
	assert_stays("the guest is at it", "try again");
	assert_int_equal(f.w->asked, 1);
}

/* Its word frees nothing. */
static void an_agent_that_lies(void **state)
{
	(void)state;
	f.w->guest_agent = WORLD_AGENT_LIES;
	assert_stays("the slot is powered off", "unload the driver");
	assert_int_equal(f.w->asked, 1);
}

static void an_unknown_way_to_the_vf(void **state)
{
	(void)state;
	f.w->odd_bus = true;
	world_look(f.w, 0);
	assert_stays("no way from the guest's bus 0", "pcie-root-port");
	assert_int_equal(f.asks, 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_agent_is_asked_after_half_of_the_time),
		TEST(who_listens_is_not_asked),
		cmocka_unit_test(policy),
		TEST(an_agent_that_comes_late_is_asked_again),
		TEST(a_restart_begins_anew),
		TEST(no_agent),
		TEST(no_slot),
		TEST(a_program_that_hangs),
		TEST(an_agent_that_lies),
		TEST(an_unknown_way_to_the_vf),
	};

	return cmocka_run_group_tests_name("escalation", tests, NULL, NULL);
}
