/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose a vGUID is at an SM that goes by tickets, where its LID is the host's: whatever happens in
 * a migration, it is nobody's at no time; and when no guest is there any more, it is nobody's.
 */
#include <stdio.h>

#include <sqlite3.h>

#include "tests/unit/agent/migration/migration_pair.h"

static bool is_owner(const struct pair *p, const void *arg)
{
	return p->sm.owner_at == p->w[*(const unsigned int *)arg].port_guid;
}

static bool has_vf(const struct pair *p, const void *arg)
{
	return at_home(p, arg) && is_owner(p, arg);
}

static bool is_parked(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_PARKED;
}

static bool no_claim_is_left(const struct pair *p, unsigned int h)
{
	return p->w[h].engine && !claim_on(p, h);
}

/* No claim is left, and all that was to be said is said. */
static bool nobody_has_it(const struct pair *p, const void *arg)
{
	(void)arg;
	for (unsigned int h = 0; h < 2; h++)
		if (!no_claim_is_left(p, h) || pair_sm_next(&p->sm, h))
			return false;
	return p->sm.owner_at == 0;
}

static void stop_guest(struct pair *p)
{
	for (unsigned int h = 0; h < 2; h++)
		if (p->w[h].domains[0].running)
			world_domain_stop(&p->w[h], 0);
	assert_true(pair_until(p, nobody_has_it, NULL));
}

/* ---- migrations ---- */

static void test_it_goes_from_owner_to_owner(void **state)
{
	struct pair *p = *state;

	assert_true(pair_until(p, has_vf, &zero));
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_vf, &one));
	assert_true(pair_until(p, has_ended, &zero));
	pair_settle(p);
	assert_true(is_owner(p, &one));
	assert_int_equal(p->sm.freed, 0);
	stop_guest(p);
}

/* It has its guest and its keys; what it says comes later. */
static bool has_guest_unheard(const struct pair *p, const void *arg)
{
	return at_home(p, arg) && has_ended(p, &zero) && no_claim_is_left(p, 0) &&
	       !pair_sm_next(&p->sm, 0);
}

static void test_the_source_frees_nothing_that_is_under_way(void **state)
{
	struct pair *p = *state;

	assert_true(pair_until(p, has_vf, &zero));
	p->unheard[1] = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_guest_unheard, &one));
	pair_settle(p);
	assert_true(is_owner(p, &zero));
	p->unheard[1] = false;
	assert_true(pair_until(p, has_vf, &one));
	assert_int_equal(p->sm.freed, 0);
}

static void test_a_guest_that_stays(void **state)
{
	struct pair *p = *state;

	assert_true(pair_until(p, has_vf, &zero));
	p->unheard[1] = true;
	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, has_vf, &zero));
	assert_int_equal(p->sm.freed, 0);
	p->unheard[1] = false;
	stop_guest(p);
}

/* Its source has not heard so. */
static bool has_arrived_unheard(const struct pair *p, const void *arg)
{
	(void)arg;
	return world_vf_of(&p->w[1], 0, "ib0") >= 0 && pair_state(p, 0) == VHCA_MIG_FINISHING;
}

static void leave_source_finishing(struct pair *p)
{
	assert_true(pair_until(p, has_vf, &zero));
	p->unheard[1] = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_arrived_unheard, NULL));
	pair_silence(p, 0);
}

static void destination_is_heard(struct pair *p)
{
	pair_settle(p);
	assert_int_equal(p->sm.freed, 0);
	p->unheard[1] = false;
	assert_true(pair_until(p, has_vf, &one));
	assert_int_equal(p->sm.freed, 0);
	stop_guest(p);
}

/* The claim of what is promised ends with that boot. */
static void test_power_fails_at_the_source(void **state)
{
	struct pair *p = *state;

	leave_source_finishing(p);
	world_reboot(&p->w[0]);
	pair_revive(p, 0);
	destination_is_heard(p);
}

/* The migration's end was durable, and that of its claim was not. */
static void test_the_source_is_killed_at_its_end(void **state)
{
	struct pair *p = *state;
	char path[128];
	sqlite3 *db;

	leave_source_finishing(p);
	(void)snprintf(path, sizeof(path), "%s/state.db", p->w[0].dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE migrations SET state = 'done'", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	pair_revive(p, 0);
	destination_is_heard(p);
}

/* ---- guests that are parked ---- */

static struct vhca_uuid park(struct pair *p)
{
	struct vhca_uuid id;

	assert_true(pair_until(p, has_vf, &zero));
	id = pair_request(p, 0, VHCA_MIG_MODE_PARK);
	assert_true(pair_until(p, is_parked, NULL));
	pair_settle(p);
	assert_true(is_owner(p, &zero));
	return id;
}

static void test_a_parked_guest_keeps_it(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = park(p);
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_vf, &zero));
	assert_int_equal(p->sm.freed, 0);
	stop_guest(p);
}

static void test_a_parked_guest_that_stops(void **state)
{
	struct pair *p = *state;

	(void)park(p);
	stop_guest(p);
	assert_int_equal(p->sm.freed, 1);
}

/* The agent was restarted in between: the journal remembers the last word. */
static void test_a_parked_guest_that_stops_after_a_restart(void **state)
{
	struct pair *p = *state;

	(void)park(p);
	pair_silence(p, 0);
	pair_revive(p, 0);
	stop_guest(p);
}

/* Its claim ended with that boot. */
static void test_power_fails_while_parked(void **state)
{
	struct pair *p = *state;

	(void)park(p);
	world_reboot(&p->w[0]);
	world_start(&p->w[0]);
	assert_true(pair_until(p, nobody_has_it, NULL));
}

/* ---- every effect fails once; either agent is killed before and after every effect ---- */

static bool home_somewhere(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_mig_state_is_final(pair_state(p, 0)) && (has_vf(p, &zero) || has_vf(p, &one)) &&
	       !pair_sm_next(&p->sm, 0) && !pair_sm_next(&p->sm, 1);
}

static bool run_with(enum pair_fault fault, unsigned int victim, unsigned int at)
{
	static struct pair p;
	bool reached;

	pair_init_fenced(&p);
	reached = migrate_with(&p, fault, victim, at, home_somewhere);
	stop_guest(&p);
	pair_done(&p);
	return reached;
}

static struct each_effect each_effect = {run_with};

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_WITH(setup_fenced, test_it_goes_from_owner_to_owner),
		TEST_WITH(setup_fenced, test_the_source_frees_nothing_that_is_under_way),
		TEST_WITH(setup_fenced, test_a_guest_that_stays),
		TEST_WITH(setup_fenced, test_power_fails_at_the_source),
		TEST_WITH(setup_fenced, test_the_source_is_killed_at_its_end),
		TEST_WITH(setup_fenced, test_a_parked_guest_keeps_it),
		TEST_WITH(setup_fenced, test_a_parked_guest_that_stops),
		TEST_WITH(setup_fenced, test_a_parked_guest_that_stops_after_a_restart),
		TEST_WITH(setup_fenced, test_power_fails_while_parked),
		TESTS_OF(each_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
