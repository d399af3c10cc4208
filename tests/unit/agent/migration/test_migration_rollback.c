/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a guest has after a migration that failed or was undone. */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "tests/unit/agent/migration/migration_pair.h"

static char refusal[sizeof(((struct vhca_error *)NULL)->msg)];

static void keep_refusal(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	(void)arg;
	(void)m;
	(void)snprintf(refusal, sizeof(refusal), "%s", err ? err->msg : "");
}

/* Somebody else, who offers host 1 a vGUID for a guest of his own. */
static struct vhca_uuid offer_strangely(struct pair *p, const struct vhca_identity *identity,
					uint64_t epoch)
{
	struct vhca_mig_offer offer = {.mode = VHCA_MIG_MODE_EXTERNAL, .n_vfs = 1};
	struct vhca_reservation *vf = &offer.vfs[0];

	assert_int_equal(vhca_uuid_random(&offer.id), 0);
	assert_int_equal(vhca_uuid_random(&offer.domain), 0);
	(void)snprintf(offer.domain_name, sizeof(offer.domain_name), "his");
	(void)snprintf(offer.node, sizeof(offer.node), "hvc");
	vf->migration = offer.id;
	vf->req.domain = offer.domain;
	vf->req.vf.numa = -1;
	(void)snprintf(vf->req.domain_name, sizeof(vf->req.domain_name), "his");
	(void)snprintf(vf->req.vf.name, sizeof(vf->req.vf.name), "ib0");
	(void)snprintf(vf->req.vf.fabric, sizeof(vf->req.vf.fabric), "default");
	vf->identity = *identity;
	vf->epoch = epoch;
	vhca_migrations_offer(p->ms[1], &offer, keep_refusal, NULL);
	return offer.id;
}

/* Whose a vGUID is here, is no peer's business. */
static void test_a_stranger_hears_of_no_guest(void **state)
{
	struct pair *p = *state;
	struct vhca_identity identity = claim_on(p, 0)->identity;

	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
	(void)offer_strangely(p, &identity, UINT64_C(1) << 40);
	assert_true(pair_until(p, has_ended, &one));
	assert_non_null(strstr(refusal, VHCA_GUID_STR(identity.guid)));
	assert_null(strstr(refusal, claim_on(p, 1)->domain_name));
}

/* Read back in its guest. */
static bool looked_at(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 0)->vf->look_ms && claim_on(p, 0)->vf->state == VHCA_VF_ATTACHED;
}

/* Rolled back, and the SM takes its time: no grant is taken back that was not given since. */
static void test_grant_after_a_roll_back(void **state)
{
	struct pair *p = *state;

	assert_true(pair_until(p, is_granted, NULL));
	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_away, NULL));
	p->w[0].sm_grants = false;
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, looked_at, NULL));
	assert_false(pair_told(p, 0, "no longer granted"));
	p->w[0].sm_grants = true;
	assert_true(pair_until(p, is_granted, NULL));
}

static bool has_failed_often(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 0) && claim_on(p, 0)->vf->failures == VHCA_VF_FAILURES_MAX;
}

/* No other VF takes its place in a migration: what quarantines others does not end its claim. */
static void test_program_fails_after_a_roll_back(void **state)
{
	struct pair *p = *state;
	const struct vhca_vf *vf = claim_on(p, 0)->vf;

	p->copy_fails = true;
	p->w[0].broken_effect = VHCA_EFFECT_PROGRAM;
	p->w[0].broken_vfs = ~0U;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_failed_often, NULL));
	p->w[0].broken_vfs = 0;
	assert_true(pair_until(p, at_home, &zero));
	assert_ptr_equal(claim_on(p, 0)->vf, vf);
}

static unsigned int run_with_failing_attach(struct pair *p, unsigned int host, bool copy_fails)
{
	struct vhca_bdf guest = claim_on(p, 0)->guest;

	p->copy_fails = copy_fails;
	p->w[host].fault = WORLD_FAIL;
	p->w[host].fault_effect = VHCA_EFFECT_ATTACH;
	p->w[host].effects = 0; /* none of this kind so far */
	p->w[host].fault_at = 1;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, host ? &one : &zero));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(vhca_bdf_cmp(claim_on(p, host)->guest, guest), 0);
	return p->w[host].effects;
}

/*
 * libvirt refuses once to plug the VF in where the guest has arrived, or where it is back: the
 * claim, and the guest's PCI address with it, stays, and it is tried again.
 */
static void test_attach_fails_after_the_arrival(void **state)
{
	assert_int_equal(run_with_failing_attach(*state, 1, false), 2);
}

static void test_attach_fails_after_a_roll_back(void **state)
{
	assert_int_equal(run_with_failing_attach(*state, 0, true), 2);
}

/* Killed when the migration's end was durable, and that its claim is an ordinary one was not. */
static void test_killed_before_the_claim_is_settled(void **state)
{
	struct pair *p = *state;
	char path[128];
	sqlite3 *db;

	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
	pair_silence(p, 1);
	(void)snprintf(path, sizeof(path), "%s/state.db", p->w[1].dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE claims SET migration = (SELECT id FROM migrations)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 1);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	pair_revive(p, 1);
	assert_true(pair_until(p, at_home, &one));
	(void)pair_migrate(p, 1);
	assert_true(pair_until(p, at_home, &zero));
}

/* The agent does not know the domain, whose marker has to go, when it takes the migration back. */
static void test_roll_back_while_libvirt_is_away(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	pair_silence(p, 0);
	world_domain_stop(&p->w[1], 0);
	p->copying = false;
	p->w[0].virt_down = true;
	pair_revive(p, 0);
	pair_settle(p);
	p->w[0].virt_down = false;
	world_sync_domains(&p->w[0]);
	assert_true(pair_until(p, at_home, &zero));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_stranger_hears_of_no_guest),
		TEST(test_grant_after_a_roll_back),
		TEST(test_attach_fails_after_the_arrival),
		TEST(test_attach_fails_after_a_roll_back),
		TEST(test_program_fails_after_a_roll_back),
		TEST(test_killed_before_the_claim_is_settled),
		TEST(test_roll_back_while_libvirt_is_away),
	};

	return cmocka_run_group_tests_name("migration_rollback", tests, NULL, NULL);
}
