// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A guest has arrived, its new host loses its power, and the guest is started again where it came
 * from. Its migration there asks the dead host; an operator vouches for that one.
 */
#include <string.h>

#include "tests/unit/agent/migration/migration_pair.h"

static bool runs_there(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->w[1].domains[0].running && !p->w[1].domains[0].incoming &&
	       !p->w[0].domains[0].running;
}

static bool is_finishing(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_FINISHING;
}

static bool is_served_there(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_DONE;
}

static bool is_restoring(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_RESTORING;
}

/* Whatever the dead host shows. */
static bool is_back(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c = claim_on(p, 0);
	int v = world_vf_of(&p->w[0], 0, "ib0");

	(void)arg;
	return v >= 0 && c->vf->state == VHCA_VF_ATTACHED && !c->migrating && !c->vf->committing &&
	       p->w[0].vfs[v].guid == c->identity.guid;
}

static void arrive_unheard(struct pair *p)
{
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, runs_there, NULL));
	p->cut = true;
	assert_true(pair_until(p, is_finishing, NULL));
}

static void lose_destination(struct pair *p)
{
	pair_silence(p, 1);
	world_reboot(&p->w[1]);
	p->w[0].domains[0].info.has_away = false;
	world_incoming(&p->w[0], 0, false);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FINISHING);
	assert_true(world_vf_of(&p->w[0], 0, "ib0") < 0);
}

static void vouch(struct pair *p)
{
	const struct vhca_uuid *domain = &p->w[0].domains[0].info.uuid;
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_engine_takeover(p->w[0].engine, domain, "it is off", &err), 0);
}

static void assert_back_in_new_generation(struct pair *p)
{
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_non_null(strstr(vhca_migrations_first(p->ms[0])->reason, "was lost"));
	assert_true(pair_until(p, is_back, NULL));
	assert_true(vhca_epoch_begins_generation(claim_on(p, 0)->epoch));
}

static void test_word_ends_what_asks_a_dead_host(void **state)
{
	struct pair *p = *state;

	arrive_unheard(p);
	assert_true(pair_until(p, is_served_there, NULL));
	lose_destination(p);
	vouch(p);
	assert_back_in_new_generation(p);
	assert_string_equal(vhca_migrations_first(p->ms[0])->failure.code, "destination_lost");
}

/* The destination comes back: what it had been promised is over. */
static void test_destination_that_comes_back_takes_nothing(void **state)
{
	struct pair *p = *state;

	arrive_unheard(p);
	assert_true(pair_until(p, is_served_there, NULL));
	lose_destination(p);
	vouch(p);
	assert_back_in_new_generation(p);
	p->cut = false;
	pair_revive(p, 1);
	assert_true(pair_until(p, at_home, &zero));
	pair_settle(p);
	assert_true(pair_at_home(p, 0));
	assert_true(vhca_epoch_begins_generation(claim_on(p, 0)->epoch));
}

/* Vouched for, and nobody can ask the SM yet. */
static void vouch_unheard(struct pair *p)
{
	arrive_unheard(p);
	assert_true(pair_until(p, is_served_there, NULL));
	lose_destination(p);
	p->sm_down = true;
	vouch(p);
	assert_true(pair_until(p, is_restoring, NULL));
}

static void assert_shows_nothing(struct pair *p)
{
	pair_settle(p);
	pair_settle(p);
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		assert_true(world_clean(&p->w[0], v));
}

static void test_sm_has_to_evict_the_destination(void **state)
{
	struct pair *p = *state;

	vouch_unheard(p);
	assert_shows_nothing(p);
	p->sm_down = false;
	assert_back_in_new_generation(p);
}

/* Nobody has to say it twice. */
static void test_agent_is_killed_after_the_word(void **state)
{
	struct pair *p = *state;

	vouch_unheard(p);
	pair_silence(p, 0);
	pair_revive(p, 0);
	assert_shows_nothing(p);
	p->sm_down = false;
	assert_back_in_new_generation(p);
}

/* The guest is where it went, and the operator mistaken; nothing runs here. */
static void test_word_about_a_guest_that_is_not_here(void **state)
{
	struct pair *p = *state;

	arrive_unheard(p);
	vouch(p);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FINISHING);
	p->cut = false;
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_true(pair_until(p, at_home, &one));
}

/* It was about another host, before the guest went to this one. */
static void test_word_from_before_the_migration(void **state)
{
	struct pair *p = *state;

	vouch(p);
	pair_settle(p);
	arrive_unheard(p);
	assert_true(pair_until(p, is_served_there, NULL));
	lose_destination(p);
	pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FINISHING);
	vouch(p);
	assert_back_in_new_generation(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FENCED(test_word_ends_what_asks_a_dead_host),
		TEST_FENCED(test_destination_that_comes_back_takes_nothing),
		TEST_FENCED(test_sm_has_to_evict_the_destination),
		TEST_FENCED(test_agent_is_killed_after_the_word),
		TEST_FENCED(test_word_about_a_guest_that_is_not_here),
		TEST_FENCED(test_word_from_before_the_migration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
