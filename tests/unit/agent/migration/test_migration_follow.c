/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * [sm] lid_policy = follow: the host's LID goes with its only guest, once and only when the guest
 * has its VF there; and whatever is against that keeps nothing else back.
 */
#include "tests/unit/agent/migration/migration_pair.h"

static int setup(void **state)
{
	static struct pair p;

	pair_init_follow(&p);
	p.w[0].conf.lease_ms = p.w[1].conf.lease_ms = 10000; /* a busy machine */
	*state = &p;
	return 0;
}

static bool said_all(const struct pair *p)
{
	for (unsigned int h = 0; h < 2; h++)
		if (!p->w[h].engine || pair_sm_next(&p->sm, h))
			return false;
	return true;
}

/* Domain 0 is at host *arg, and the migration over. */
static bool is_settled_at(const struct pair *p, const void *arg)
{
	return said_all(p) && at_home(p, arg) && has_ended(p, &zero);
}

/* ...with the LID that it began with, at host 0. */
static bool has_its_lid(const struct pair *p, const void *arg)
{
	unsigned int h = *(const unsigned int *)arg;

	return said_all(p) && at_home(p, arg) && p->w[h].lid == PAIR_LID &&
	       p->w[1 - h].lid == PAIR_LID + 1 && !claim_on(p, h)->follow_lid;
}

static void check_stays(struct pair *p, const char *why)
{
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_settled_at, &one));
	pair_settle(p);
	assert_int_equal(p->w[0].lid, PAIR_LID);
	assert_int_equal(p->w[1].lid, PAIR_LID + 1);
	assert_int_equal(p->sm.lids_changed, 0);
	assert_int_equal(claim_on(p, 1)->follow_lid, 0);
	assert_string_equal(claim_on(p, 1)->lid_reason, why);
	assert_int_equal(claim_on(p, 1)->stayed_lid, PAIR_LID);
	assert_true(pair_told(p, 1, "stays there"));
}

/* ---- it goes ---- */

static void test_there_and_back(void **state)
{
	struct pair *p = *state;

	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_its_lid, &one));
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_told(p, 1, "has come with it"));
	assert_int_equal(p->sm.lids_changed, 1);
	world_reregister(&p->w[1]); /* all is reported again */
	pair_settle(p);
	assert_true(has_its_lid(p, &one));
	(void)pair_migrate(p, 1);
	assert_true(pair_until(p, has_its_lid, &zero));
	assert_int_equal(p->sm.lids_changed, 2);
}

static void test_not_before_the_guest(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	pair_settle(p);
	assert_int_equal(p->sm.lids_changed, 0);
	p->copy_hangs = false;
	assert_true(pair_until(p, has_its_lid, &one));
}

static void test_a_guest_that_stays(void **state)
{
	struct pair *p = *state;

	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, has_its_lid, &zero));
	assert_int_equal(p->sm.lids_changed, 0);
}

/* The SM is away until all else is over, and both agents are restarted meanwhile. */
static void test_asked_for_until_there_is_an_answer(void **state)
{
	struct pair *p = *state;

	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	p->sm_down = true;
	assert_true(pair_until(p, has_ended, &zero));
	for (unsigned int h = 0; h < 2; h++) {
		pair_silence(p, h);
		pair_revive(p, h);
	}
	pair_settle(p);
	assert_int_equal(claim_on(p, 1)->follow_lid, PAIR_LID);
	p->sm_down = false;
	assert_true(pair_until(p, has_its_lid, &one));
	assert_int_equal(p->sm.lids_changed, 1);
}

/* What was put while the VF was on its way to the guest is newer, and says nothing of the LID. */
static void test_a_report_that_replaces_the_question(void **state)
{
	struct pair *p = *state;
	struct vhca_sm_binding b;

	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	p->sm_down = true;
	assert_true(pair_until(p, has_ended, &zero));
	p->sm.lines[1].n = 0;
	b = vhca_claim_binding(claim_on(p, 1));
	vhca_engine_sm_answer(p->w[1].engine, &b, VHCA_SM_ACCEPTED, "", NULL);
	p->sm_down = false;
	assert_true(pair_until(p, has_its_lid, &one));
	assert_int_equal(p->sm.lids_changed, 1);
}

/* ---- it stays ---- */

static void test_the_sm_refuses(void **state)
{
	struct pair *p = *state;

	p->sm.lid_refusal = "LMC is not 0";
	check_stays(p, "LMC is not 0");
}

static void test_a_source_that_does_not_ask(void **state)
{
	struct pair *p = *state;

	p->w[0].conf.lid_policy = VHCA_LID_HOST;
	check_stays(p, "[sm] lid_policy of its last host is not follow");
}

static void test_a_destination_that_does_not_ask(void **state)
{
	struct pair *p = *state;

	p->w[1].conf.lid_policy = VHCA_LID_HOST;
	check_stays(p, "[sm] lid_policy of this host is not follow");
}

static void check_another_guest(struct pair *p, unsigned int at)
{
	(void)world_domain_start(&p->w[at], 1, "0x8001");
	pair_settle(p);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	pair_settle(p);
	assert_int_equal(p->sm.lids_changed, 0);
	assert_true(pair_told(p, 1, "the port has another VF's guest: vm1"));
}

static void test_a_source_with_another_guest(void **state)
{
	check_another_guest(*state, 0);
}

static void test_a_destination_with_another_guest(void **state)
{
	check_another_guest(*state, 1);
}

/* The second guest comes while the first one's memory is copied. */
static void test_a_guest_that_comes_meanwhile(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	(void)world_domain_start(&p->w[1], 1, "0x8001");
	pair_settle(p);
	p->copy_hangs = false;
	assert_true(pair_until(p, has_ended, &zero));
	pair_settle(p);
	assert_int_equal(p->sm.lids_changed, 0);
	assert_true(pair_told(p, 1, "stays there: the port has another VF's guest: vm1"));
}

/* The source's port has got another LID since: what it had before is nobody's to take. */
static void test_a_lid_that_is_elsewhere(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	world_set_lid(&p->w[0], 99);
	p->copy_hangs = false;
	assert_true(pair_until(p, is_settled_at, &one));
	pair_settle(p);
	assert_int_equal(p->sm.lids_changed, 0);
	assert_string_equal(claim_on(p, 1)->lid_reason, "lid_elsewhere");
	assert_int_equal(claim_on(p, 1)->stayed_lid, PAIR_LID);
}

/* ---- every effect fails once; either agent is killed before and after every effect ---- */

static bool home_somewhere(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_mig_state_is_final(pair_state(p, 0)) &&
	       (has_its_lid(p, &zero) || has_its_lid(p, &one));
}

static bool run_with(enum pair_fault fault, unsigned int victim, unsigned int at)
{
	static struct pair p;
	bool reached;

	pair_init_follow(&p);
	reached = migrate_with(&p, fault, victim, at, home_somewhere);
	pair_done(&p);
	return reached;
}

static struct each_effect each_effect = {run_with};

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_WITH(setup, test_there_and_back),
		TEST_WITH(setup, test_not_before_the_guest),
		TEST_WITH(setup, test_a_guest_that_stays),
		TEST_WITH(setup, test_asked_for_until_there_is_an_answer),
		TEST_WITH(setup, test_a_report_that_replaces_the_question),
		TEST_WITH(setup, test_the_sm_refuses),
		TEST_WITH(setup, test_a_source_that_does_not_ask),
		TEST_WITH(setup, test_a_destination_that_does_not_ask),
		TEST_WITH(setup, test_a_source_with_another_guest),
		TEST_WITH(setup, test_a_destination_with_another_guest),
		TEST_WITH(setup, test_a_guest_that_comes_meanwhile),
		TEST_WITH(setup, test_a_lid_that_is_elsewhere),
		TESTS_OF(each_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
