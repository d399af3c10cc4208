/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * [sm] lid_policy = dynamic: whatever happens in a migration, in the end the LID leads to the host
 * where the guest has its VF; and when nobody has the vGUID any more, nobody has the LID.
 */
#include "tests/sim/host/world_mlx5.h"
#include "tests/unit/agent/migration/migration_pair.h"

static struct world_mlx5 mlx5[2];

static int setup(void **state)
{
	static struct pair p;

	pair_init_dynamic(&p, mlx5);
	p.w[0].conf.lease_ms = p.w[1].conf.lease_ms = 10000; /* a busy machine */
	*state = &p;
	return 0;
}

static bool lid_is_at(const struct pair *p, const void *arg)
{
	return p->sm.lid_at == p->w[*(const unsigned int *)arg].port_guid;
}

static bool has_vf(const struct pair *p, const void *arg)
{
	return at_home(p, arg) && lid_is_at(p, arg);
}

/* No claim is left, and all that was to be said is said. */
static bool nobody_has_it(const struct pair *p, const void *arg)
{
	(void)arg;
	for (unsigned int h = 0; h < 2; h++)
		if (!p->w[h].engine || claim_on(p, h) || pair_sm_next(&p->sm, h))
			return false;
	return p->sm.lid_at == 0;
}

static void stop_guest(struct pair *p)
{
	for (unsigned int h = 0; h < 2; h++)
		if (p->w[h].domains[0].running)
			world_domain_stop(&p->w[h], 0);
	assert_true(pair_until(p, nobody_has_it, NULL));
}

static bool is_parked(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_PARKED;
}

/* ---- a guest's life ---- */

static void test_the_lid_follows_and_is_freed(void **state)
{
	struct pair *p = *state;

	assert_true(lid_is_at(p, &zero));
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_vf, &one));
	assert_true(pair_until(p, has_ended, &zero));
	pair_settle(p); /* the end of the source's claim says nothing that counts */
	assert_true(lid_is_at(p, &one));
	(void)pair_migrate(p, 1);
	assert_true(pair_until(p, has_vf, &zero));
	assert_int_equal(p->sm.lids_given, 1);
	stop_guest(p);
}

static void test_kept_while_nobody_has_the_guest(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(
		pair_until(p, lid_is_at, &one)); /* the destination has it before the guest does */
	assert_int_equal(p->sm.lids_given, 1);
	p->copy_hangs = false;
	assert_true(pair_until(p, has_vf, &one));
}

static void test_a_guest_that_stays(void **state)
{
	struct pair *p = *state;

	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, has_vf, &zero));
	stop_guest(p);
}

/* Parked: the guest gets it back, or stops without it. */
static void test_a_parked_guest_keeps_it(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_PARK);
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(pair_until(p, is_parked, NULL));
	pair_settle(p);
	assert_true(lid_is_at(p, &zero));
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_vf, &zero));
	assert_int_equal(p->sm.lids_given, 1);
	stop_guest(p);
}

static void test_a_parked_guest_that_stops(void **state)
{
	struct pair *p = *state;

	(void)pair_request(p, 0, VHCA_MIG_MODE_PARK);
	assert_true(pair_until(p, is_parked, NULL));
	pair_settle(p);
	assert_true(lid_is_at(p, &zero));
	stop_guest(p);
}

/* The agent was restarted in between: the journal remembers that something is to be freed. */
static void test_a_parked_guest_that_stops_after_a_restart(void **state)
{
	struct pair *p = *state;

	(void)pair_request(p, 0, VHCA_MIG_MODE_PARK);
	assert_true(pair_until(p, is_parked, NULL));
	pair_settle(p);
	pair_silence(p, 0);
	pair_revive(p, 0);
	stop_guest(p);
}

/* ---- hosts that go ---- */

/* The source loses its power while the guest is parked: its claim ended with that boot. */
static void test_power_fails_while_parked(void **state)
{
	struct pair *p = *state;

	(void)pair_request(p, 0, VHCA_MIG_MODE_PARK);
	assert_true(pair_until(p, is_parked, NULL));
	pair_settle(p);
	assert_true(lid_is_at(p, &zero));
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

	pair_init_dynamic(&p, mlx5);
	reached = migrate_with(&p, fault, victim, at, home_somewhere);
	stop_guest(&p);
	pair_done(&p);
	return reached;
}

static struct each_effect each_effect = {run_with};

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_WITH(setup, test_the_lid_follows_and_is_freed),
		TEST_WITH(setup, test_kept_while_nobody_has_the_guest),
		TEST_WITH(setup, test_a_guest_that_stays),
		TEST_WITH(setup, test_a_parked_guest_keeps_it),
		TEST_WITH(setup, test_a_parked_guest_that_stops),
		TEST_WITH(setup, test_a_parked_guest_that_stops_after_a_restart),
		TEST_WITH(setup, test_power_fails_while_parked),
		TESTS_OF(each_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
