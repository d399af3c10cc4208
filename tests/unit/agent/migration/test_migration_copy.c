/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Migrations whose copy fails, hangs, is cancelled, or outlives an agent. */
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/unit/agent/migration/migration_pair.h"

static void test_copy_fails(void **state)
{
	struct pair *p = *state;
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_bdf guest = claim_on(p, 0)->guest;

	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	assert_true(claim_on(p, 0)->epoch >= epoch + 2); /* one was promised away */
	assert_int_equal(vhca_bdf_cmp(claim_on(p, 0)->guest, guest), 0);
}

static void assert_timed_out(const struct pair *p, const struct vhca_uuid *id)
{
	const struct vhca_mig *m = vhca_migrations_find(p->ms[0], id);

	assert_int_equal(m->state, VHCA_MIG_FAILED);
	assert_string_equal(m->failure.code, "copy_timeout");
	assert_non_null(strstr(m->reason, "the copy has not ended within 600 s"));
	assert_int_equal(p->copies, 0);
}

#define COPY_MS 600000

static struct vhca_mig *source(const struct pair *p)
{
	return (struct vhca_mig *)vhca_migrations_first(p->ms[0]);
}

/* However long the machine has taken to come here, the copy's time is over then. */
static void end_copy_time(struct pair *p)
{
	assert_true(source(p)->copy_until > vhca_now_ms());
	assert_true(source(p)->copy_until <= vhca_now_ms() + COPY_MS);
	source(p)->copy_until = vhca_now_ms();
	world_sync_domains(&p->w[0]);
}

/* A guest that writes faster than it is copied would be without its VF for ever. */
static void test_copy_that_takes_too_long(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->copy_hangs = true;
	p->w[0].conf.copy.timeout_ms = COPY_MS;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	end_copy_time(p);
	assert_true(pair_until(p, has_ended, &zero));
	assert_timed_out(p, &id);
	assert_true(pair_until(p, at_home, &zero));
}

static void restart_source(struct pair *p)
{
	assert_true(pair_until(p, is_copying, NULL));
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
}

static void test_time_limit_outlives_the_agent(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->copy_hangs = true;
	p->w[0].conf.copy.timeout_ms = COPY_MS;
	id = pair_migrate(p, 0);
	p->w[0].conf.copy.timeout_ms = 0;
	restart_source(p);
	end_copy_time(p);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_int_equal(p->copies, 0);
	assert_non_null(strstr(vhca_migrations_find(p->ms[0], &id)->reason, "has not ended"));
	assert_true(pair_until(p, at_home, &zero));
}

/* The job is libvirt's; nobody waits for its end any more. */
static void test_cancelled_after_a_restart(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	restart_source(p);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_COPYING);
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
}

static void test_cancelled_while_copying(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_string_equal(vhca_migrations_find(p->ms[0], &id)->reason, "cancelled by request");
}

static bool is_being_marked(const struct pair *p, const void *arg)
{
	const struct vhca_mig *m = vhca_migrations_find(p->ms[0], arg);

	return m && m->effect == VHCA_MIG_EFFECT_MARK;
}

/* Sets the marker, which takes its time; returns the migration. */
static struct vhca_uuid begin_marking(struct pair *p)
{
	struct vhca_uuid id;

	world_deafen(&p->w[0]);
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_being_marked, &id));
	return id;
}

/* The answer comes when nobody waits for it any more, and what libvirt shows was read before. */
static void test_cancelled_while_it_is_marked(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_uuid id = begin_marking(p);

	p->w[0].virt_down = true;
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	p->w[0].virt_down = false;
	assert_false(p->w[0].domains[0].info.has_away);
	world_sync_domains(&p->w[0]);
	assert_true(pair_until(p, at_home, &zero));
}

static bool is_aborted(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_ABORTING || pair_state(p, 0) == VHCA_MIG_FAILED;
}

/* libvirt goes on with what an agent that was killed had asked for, later than it is read. */
static void test_marker_whose_writing_outlives_the_agent(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_uuid id = begin_marking(p);

	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	assert_false(p->w[0].domains[0].info.has_away);
	p->w[0].domains[0].info.has_away = true; /* and nothing is read again */
	p->w[0].domains[0].info.away = id;
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, is_aborted, NULL));
	assert_true(pair_until(p, has_ended, &zero));
	assert_false(p->w[0].domains[0].info.has_away);
	assert_true(pair_until(p, at_home, &zero));
}

static bool awaits_copy(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_INCOMING;
}

static struct vhca_mig *destination(const struct pair *p)
{
	return (struct vhca_mig *)vhca_migrations_first(p->ms[1]);
}

/* However long it took to come here, the destination's lease ends then. */
static void end_lease_in(struct pair *p, uint64_t ms)
{
	destination(p)->lease_until = vhca_now_ms() + ms;
	world_sync_domains(&p->w[1]);
}

static bool is_pinned(const struct pair *p, const void *arg)
{
	(void)arg;
	return awaits_copy(p, NULL) && destination(p)->pinned &&
	       destination(p)->phase != VHCA_MIG_PHASE_NEW; /* its domain has appeared */
}

/*
 * The network between the agents is cut for longer than the lease, while libvirt copies: the claim
 * is pinned and nothing is rolled back.
 */
static void test_cut_while_copying_longer_than_the_lease(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(pair_until(p, is_pinned, NULL));
	p->cut = true;
	pair_settle(p);
	end_lease_in(p, 0);
	for (unsigned int n = 0; n < 10; n++)
		pair_settle(p);
	assert_true(awaits_copy(p, NULL));
	p->copy_hangs = false;
	pair_settle(p);
	p->cut = false;
	assert_true(pair_until(p, at_home, &one));
}

/*
 * The first hand-over's answer was lost with the source's agent; the second one must not undo what
 * libvirt has pinned, and comes before libvirt has made the domain.
 */
static void test_handover_repeated_while_copying(void **state)
{
	struct pair *p = *state;
	struct vhca_mig_handed epoch = {0};
	struct vhca_uuid id;

	p->copy_begins = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_false(p->w[1].domains[0].running);
	epoch.guid = claim_on(p, 0)->identity.guid;
	epoch.epoch = claim_on(p, 0)->epoch;
	vhca_migrations_handover(p->ms[1], &id, &epoch, 1, ignore_answer, NULL);
	pair_settle(p);
	assert_true(vhca_migrations_find(p->ms[1], &id)->pinned);
	p->copy_begins = false;
	assert_true(pair_until(p, at_home, &one));
}

static bool dest_attaches(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ATTACHING;
}

static void keep_code(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	(void)m;
	(void)snprintf(arg, VHCA_ERROR_CODE_MAX, "%s", err ? err->code : "none");
}

/* The guest runs there: it cannot be called back, and the source must hear so at once. */
static void test_abort_after_the_arrival(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = pair_migrate(p, 0);
	char code[VHCA_ERROR_CODE_MAX] = "no answer";

	assert_true(pair_until(p, dest_attaches, NULL));
	vhca_migrations_end(p->ms[1], &id, keep_code, code);
	pair_settle(p);
	assert_string_equal(code, "too_late");
	assert_true(pair_until(p, at_home, &one));
	code[0] = '\0';
	vhca_migrations_end(p->ms[1], &id, keep_code, code);
	pair_settle(p);
	assert_string_equal(code, "too_late");
	assert_int_equal(vhca_migrations_find(p->ms[1], &id)->failure.kind, 0);
}

/* It was asked while the guest was about to resume there. */
static void test_abort_at_the_arrival(void **state)
{
	struct pair *p = *state;
	char code[VHCA_ERROR_CODE_MAX] = "no answer";
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	world_incoming(&p->w[1], 0, false);
	vhca_migrations_end(p->ms[1], &id, keep_code, code);
	pair_settle(p);
	assert_string_equal(code, "too_late");
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
	assert_int_equal(vhca_migrations_find(p->ms[1], &id)->failure.kind, 0);
}

static bool dest_ended(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ENDED;
}

/* libvirt asked the hook and then never made the domain, and the source says nothing any more. */
static void test_domain_that_never_appears(void **state)
{
	struct pair *p = *state;

	p->copy_begins = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(pair_until(p, awaits_copy, NULL)); /* each step before begins a lease */
	pair_silence(p, 0);
	pair_settle(p);
	end_lease_in(p, 0);
	assert_true(pair_until(p, dest_ended, NULL));
	assert_true(world_clean(&p->w[1], 0));
	p->copying = p->copy_begins = false;
	pair_revive(p, 0);
	assert_true(pair_until(p, at_home, &zero));
}

#define FAR_MS 60000 /* before that, pair_until() has given up */

static bool is_renewed(const struct pair *p, const void *arg)
{
	(void)arg;
	return destination(p)->lease_until > vhca_now_ms() + 2 * FAR_MS;
}

/*
 * libvirt takes longer than the lease to show the domain, on a host that has too much to do: the
 * source renews the lease meanwhile.
 */
static void test_domain_that_appears_late(void **state)
{
	struct pair *p = *state;

	p->copy_begins = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(pair_until(p, awaits_copy, NULL));
	for (unsigned int n = 0; n < 3; n++) {
		end_lease_in(p, FAR_MS);
		assert_true(pair_until(p, is_renewed, NULL));
	}
	assert_true(awaits_copy(p, NULL));
	p->copy_begins = false;
	assert_true(pair_until(p, at_home, &one));
}

static void count_answer(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	*(unsigned int *)arg += m && !err;
}

/* Else the source, which waits for the answer, would renew nothing until the lease is over. */
static void test_renewal_is_answered_whatever_else_is_heard(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	unsigned int answers = 0;
	struct vhca_uuid id;

	p->copy_begins = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(pair_until(p, awaits_copy, NULL));
	p->cut = true;
	pair_settle(p);
	vhca_migrations_handover(p->ms[1], &id, NULL, 0, count_answer, &answers);
	assert_int_equal(vhca_migrations_begin(p->ms[1], &id, &p->w[0].domains[0].info.uuid, &err),
			 0);
	pair_settle(p);
	assert_int_equal(answers, 1);
	p->cut = p->copy_begins = false;
	assert_true(pair_until(p, at_home, &one));
}

static bool source_let_go(const struct pair *p, const void *id)
{
	return !vhca_migration_claim(vhca_migrations_find(p->ms[0], id), NULL);
}

static struct vhca_uuid copy_to_who_gave_up(struct pair *p)
{
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(pair_until(p, awaits_copy, NULL));
	vhca_migrations_end(p->ms[1], &id, ignore_answer, NULL);
	return id;
}

/*
 * It says so when its lease is to be renewed: the guest would have no VF there, and has one here.
 */
static void test_destination_gave_up_while_copying(void **state)
{
	struct pair *p = *state;

	(void)copy_to_who_gave_up(p);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(p->copies, 0);
}

static bool destination_gave_up(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ENDED;
}

/* And it is not heard before the domain arrives there: the source lets go, too. */
static void test_destination_gave_up_unheard(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = copy_to_who_gave_up(p);

	p->cut_handover = true;
	assert_true(pair_until(p, destination_gave_up, NULL));
	p->copy_hangs = false;
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_true(vhca_migrations_find(p->ms[0], &id)->degraded);
	assert_true(pair_until(p, source_let_go, &id));
}

static bool source_gone(const struct pair *p, const void *arg)
{
	(void)arg;
	return !p->w[0].domains[0].running;
}

/*
 * The destination's agent has missed the event that said so: the guest does not run there yet, and
 * gets no VF.
 */
static void test_destination_restarted_while_copying(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(p->w[1].domains[0].incoming);
	pair_silence(p, 1);
	pair_revive(p, 1);
	pair_settle(p);
	assert_true(pair_until(p, awaits_copy, NULL));
	p->copy_hangs = false;
	assert_true(pair_until(p, source_gone, NULL));
	assert_true(pair_until(p, at_home, &one));
}

/* libvirtd died between the last two words of its migration. */
static void lose_confirm(struct pair *p)
{
	p->copy_hangs = true;
	p->autostart = true;
	(void)pair_migrate(p, 0);
	restart_source(p);
	p->copying = p->copy_adrift = false;
	p->held = true;
	world_incoming(&p->w[0], 0, true);
	world_incoming(&p->w[1], 0, false);
}

/* Its autostart has gone along: the next boot would start it beside the guest. */
static void test_copy_left_here_does_not_start_with_the_host(void **state)
{
	struct pair *p = *state;

	lose_confirm(p);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_true(world_told(&p->w[0], "zombie_source: the domain runs at"));
	assert_false(p->autostart);
	assert_false(world_told(&p->w[0], "may start with the host"));
}

static void test_copy_left_here_that_may_start_is_told(void **state)
{
	struct pair *p = *state;

	p->keeps_start = true;
	lose_confirm(p);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_true(p->autostart);
	assert_true(world_told(&p->w[0], "may start with the host: autostart: no space"));
	assert_true(world_told(&p->w[0], "; virsh autostart --disable "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_copy_fails),
		TEST(test_copy_that_takes_too_long),
		TEST(test_time_limit_outlives_the_agent),
		TEST(test_cancelled_after_a_restart),
		TEST(test_cancelled_while_copying),
		TEST(test_cancelled_while_it_is_marked),
		TEST(test_marker_whose_writing_outlives_the_agent),
		TEST(test_cut_while_copying_longer_than_the_lease),
		TEST(test_handover_repeated_while_copying),
		TEST(test_abort_after_the_arrival),
		TEST(test_abort_at_the_arrival),
		TEST(test_domain_that_never_appears),
		TEST(test_domain_that_appears_late),
		TEST(test_renewal_is_answered_whatever_else_is_heard),
		TEST(test_destination_gave_up_while_copying),
		TEST(test_destination_gave_up_unheard),
		TEST(test_destination_restarted_while_copying),
		TEST(test_copy_left_here_does_not_start_with_the_host),
		TEST(test_copy_left_here_that_may_start_is_told),
	};

	return cmocka_run_group_tests_name("migration_copy", tests, NULL, NULL);
}
