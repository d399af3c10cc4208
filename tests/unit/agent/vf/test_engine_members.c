// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * When the production engine tells the SM which keys its port needs beside those of its bindings.
 */
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/agent/vf/engine_world.h"

static bool has_declared(const struct world *w, const void *arg)
{
	(void)w;
	(void)arg;
	return told.members > 0;
}

static void start(struct world *w)
{
	engine_outbox_start(w);
	assert_true(world_until(w, has_declared, NULL));
	settle_free(w);
}

/* A declaration of an earlier life may stand at the SM, of which this one knows nothing. */
static void test_an_agent_that_starts_declares(void **state)
{
	struct world *w = *state;

	start(w);
	assert_int_equal(told.members, 1);
	assert_int_equal(told.members_port, w->port_guid);
	world_kill(w);
	start(w);
	assert_int_equal(told.members, 1);
}

static void test_what_changes_nothing_is_not_declared(void **state)
{
	struct world *w = *state;

	start(w);
	world_set_key(w, 3, 0x8003);
	vhca_engine_declare_members(w->engine);
	world_settle(w);
	assert_int_equal(told.members, 1);
}

/* Bindings first: a key that one of them needs must not leave the port in between. */
static void test_an_sm_that_lost_all_is_told_all(void **state)
{
	struct world *w = *state;
	unsigned int bindings;

	start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	bindings = told.bound;
	vhca_engine_snapshot(w->engine);
	world_settle(w);
	assert_int_equal(told.bound, bindings + 1);
	assert_int_equal(told.members, 2);
	assert_int_equal(told.bound_before_members, bindings + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_agent_that_starts_declares),
		TEST(test_what_changes_nothing_is_not_declared),
		TEST(test_an_sm_that_lost_all_is_told_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
