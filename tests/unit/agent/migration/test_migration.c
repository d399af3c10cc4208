/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Managed migration: the production machines of two agents on two simulated hosts
 * (tests/sim/hosts/pair.h).
 */
#include "common/base/cleanup.h"
#include "tests/unit/agent/migration/migration_pair.h"

/* What the source says of the VFs when its own have gone. */
static void assert_shows_peers_vf(const struct pair *p, const struct vhca_uuid *id)
{
	const struct vhca_mig *m = vhca_migrations_find(p->ms[0], id);
	const struct vhca_claim *there = claim_on(p, 1);

	assert_int_equal(m->n_vfs, 1);
	assert_string_equal(m->vfs[0].name, "ib0");
	assert_int_equal(vhca_bdf_cmp(m->vfs[0].bdf, there->vf->bdf), 0);
	assert_int_equal(m->vfs[0].guid, there->identity.guid);
	assert_int_equal(m->vfs[0].epoch, there->epoch);
	assert_true(m->vfs[0].attached);
	assert_null(vhca_migration_claim(m, NULL));
}

static void test_there_and_back(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid, epoch = claim_on(p, 0)->epoch;
	struct vhca_bdf guest = claim_on(p, 0)->guest;
	struct vhca_uuid id = pair_migrate(p, 0);

	assert_true(pair_until(p, at_home, &one));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
	assert_int_equal(claim_on(p, 1)->identity.guid, guid);
	assert_true(claim_on(p, 1)->epoch > epoch);
	assert_int_equal(claim_on(p, 1)->from_port_guid, 0); /* the next report is no move */
	assert_int_equal(vhca_bdf_cmp(claim_on(p, 1)->guest, guest), 0);
	assert_shows_peers_vf(p, &id);
	world_kill(&p->w[0]);
	world_start(&p->w[0]);
	assert_shows_peers_vf(p, &id); /* after a restart as well */
	epoch = claim_on(p, 1)->epoch;
	(void)pair_migrate(p, 1);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(claim_on(p, 0)->identity.guid, guid);
	assert_true(claim_on(p, 0)->epoch > epoch);
	assert_int_equal(p->copies, 2);
}

static bool only_the_peer_is_done(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_DONE && pair_state(p, 0) == VHCA_MIG_FINISHING;
}

static bool old_claim_ends(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c = claim_on(p, 0);

	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_DONE && c && vhca_claim_is_ending(c);
}

struct moment {
	bool (*is_now)(const struct pair *p, const void *arg);
	bool *seen;
};

/* On a busy machine the moment may lie within one round of the loop. */
static bool seen_or_missed(const struct pair *p, const void *arg)
{
	const struct moment *m = arg;

	*m->seen = m->is_now(p, NULL);
	return *m->seen || (has_ended(p, &zero) && at_home(p, &one));
}

/* The claim of the life before is still there. */
static void test_back_at_once(void **state)
{
	static bool (*const moments[])(const struct pair *p,
				       const void *arg) = {only_the_peer_is_done, old_claim_ends};
	struct pair *p = *state;
	unsigned int copies = 0;

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(moments); i++) {
		bool seen = false;
		struct moment moment = {moments[i], &seen};

		for (unsigned int n = 0; n < 20 && !seen; n++, copies += 2) {
			(void)pair_migrate(p, 0);
			assert_true(pair_until(p, seen_or_missed, &moment));
			(void)pair_migrate(p, 1);
			assert_true(pair_until(p, has_ended, &one));
			assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
			assert_true(pair_until(p, at_home, &zero));
		}
		assert_true(seen);
	}
	assert_int_equal(p->copies, copies);
}

static bool is_settled_there(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 1) && !claim_on(p, 1)->migrating;
}

/* Though the end of the migration is still on its way to the disk. */
static void test_settled_vfs_are_shown(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = pair_migrate(p, 0);

	assert_true(pair_until(p, is_settled_there, NULL));
	assert_non_null(vhca_migration_claim(vhca_migrations_find(p->ms[1], &id), NULL));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(vhca_migrations_find(p->ms[0], &id)->n_vfs, 1);
}

static unsigned int declared_on(const struct pair *p, unsigned int host)
{
	return TAILQ_FIRST(&vhca_engine_model(p->w[host].engine)->hcas)->n_declared;
}

static bool both_declare(const struct pair *p, const void *arg)
{
	return declared_on(p, 0) == 1 && declared_on(p, 1) == *(const unsigned int *)arg;
}

/*
 * What is declared for a VF on the move is not left to the port when it has come to rest, or a key
 * would stay there for ever.
 */
static void test_declared_keys_go_with_the_move(void **state)
{
	struct pair *p = *state;

	for (int fails = 0; fails < 2; fails++) {
		p->copy_fails = fails;
		(void)pair_migrate(p, 0);
		if (!fails)
			assert_true(pair_until(p, both_declare, &one));
		assert_true(pair_until(p, has_ended, &zero));
		assert_true(pair_until(p, at_home, fails ? &zero : &one));
		pair_settle(p);
		assert_int_equal(declared_on(p, 0), 0);
		assert_int_equal(declared_on(p, 1), 0);
		if (!fails) {
			(void)pair_migrate(p, 1);
			assert_true(pair_until(p, at_home, &zero));
		}
	}
}

/*
 * What was declared is not in the journal: an agent that starts must not wait for the next move to
 * know it.
 */
static void test_declared_keys_outlive_a_restart(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	world_kill(&p->w[1]);
	world_start(&p->w[1]);
	pair_settle(p);
	assert_int_equal(declared_on(p, 1), 1);
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
}

static void test_destination_without_a_vf(void **state)
{
	struct pair *p = *state;
	int before = world_vf_of(&p->w[0], 0, "ib0");

	p->w[1].conf.hcas[0].manage = false; /* no VF to give */
	vhca_engine_set_conf(p->w[1].engine, &p->w[1].conf);
	pair_settle(p);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_int_equal(world_vf_of(&p->w[0], 0, "ib0"), before); /* never left its guest */
	assert_int_equal(p->copies, 0);
}

static void test_destination_without_the_key(void **state)
{
	struct pair *p = *state;

	p->w[1].conf.pkey_timeout_ms = 300;
	world_set_key(&p->w[1], 1, 0);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
}

static bool is_ready(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_READY;
}

static void test_peer_down(void **state)
{
	struct pair *p = *state;

	p->cut = true;
	(void)pair_migrate(p, 0);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_CLAIMING);
	p->cut = false;
	assert_true(pair_until(p, at_home, &one));
}

/* Or the guest would lose its VF for nothing. */
static void test_refused_before_a_vf_is_touched(void **state)
{
	struct pair *p = *state;
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_uuid id;

	p->copy_refused = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_string_equal(vhca_migrations_find(p->ms[0], &id)->failure.code, "has_snapshots");
	assert_false(pair_told(p, 0, "-> detaching"));
	assert_true(pair_at_home(p, 0));
	assert_int_equal(claim_on(p, 0)->epoch, epoch);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_STATE_COUNT); /* nor was the peer asked */
	p->copy_refused = false;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
}

/* What an orchestrator asks libvirt for is not known here. */
static void test_orchestrators_copy_is_not_checked(void **state)
{
	struct pair *p = *state;

	p->copy_refused = true;
	(void)pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, is_ready, NULL));
}

static void test_guest_that_does_not_let_go(void **state)
{
	struct pair *p = *state;

	world_deafen(&p->w[0]);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(p->copies, 0);
}

/* Nobody comes back to a reservation: the lease ends it. */
static void test_lease_frees_the_reservation(void **state)
{
	struct pair *p = *state;

	p->fault = PAIR_KILL_AFTER; /* the source dies after its claim was granted... */
	p->fault_at = 1;
	p->victim = 0;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one)); /* ...and goes on after its restart */
}

static void test_a_domain_migrates_once_at_a_time(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "other", &m,
					  &err) < 0);
	assert_string_equal(err.code, "migrating");
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "nobody", &m,
					  &err) < 0);
	assert_string_equal(err.code, "no_such_peer");
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
}

static void test_a_hostdev_of_its_own_is_refused(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;
	struct vhca_claim *c = TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->claims);

	c->origin = VHCA_ORIGIN_CLAIM;
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "other", &m,
					  &err) < 0);
	assert_string_equal(err.code, "own_hostdev");
	assert_false(c->migrating);
	c->origin = VHCA_ORIGIN_METADATA;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
}

/* ---- every effect fails once; either agent is killed before and after every effect ---- */

static bool home_somewhere(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_mig_state_is_final(pair_state(p, 0)) &&
	       (pair_at_home(p, 0) || pair_at_home(p, 1));
}

static bool run_with(enum pair_fault fault, unsigned int victim, unsigned int at)
{
	static struct pair p;
	bool reached;

	pair_init(&p);
	reached = migrate_with(&p, fault, victim, at, home_somewhere);
	pair_done(&p);
	return reached;
}

static struct each_effect each_effect = {run_with};

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_there_and_back),
		TEST(test_back_at_once),
		TEST(test_settled_vfs_are_shown),
		TEST(test_declared_keys_go_with_the_move),
		TEST(test_declared_keys_outlive_a_restart),
		TEST(test_destination_without_a_vf),
		TEST(test_destination_without_the_key),
		TEST(test_peer_down),
		TEST(test_refused_before_a_vf_is_touched),
		TEST(test_orchestrators_copy_is_not_checked),
		TEST(test_guest_that_does_not_let_go),
		TEST(test_lease_frees_the_reservation),
		TEST(test_a_hostdev_of_its_own_is_refused),
		TEST(test_a_domain_migrates_once_at_a_time),
		TESTS_OF(each_effect),
	};

	return cmocka_run_group_tests_name("migration", tests, NULL, NULL);
}
