// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * When the production engine tells the SM which keys its port needs beside those of its bindings.
 */
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/agent/vf/engine_world.h"

static struct told {
	struct vhca_outbox *outbox;
	unsigned int bindings, members, bindings_before; /* the last declaration */
	uint64_t port_guid;
} told;

static void on_report(void *arg, const struct vhca_sm_binding *binding, enum vhca_sm_answer answer,
		      const char *reason, struct json_object *doc)
{
	(void)arg;
	(void)answer;
	(void)reason;
	(void)doc;
	told.bindings += binding->bound;
}

static void on_members(void *arg, uint64_t port_guid, enum vhca_sm_answer answer,
		       const char *reason)
{
	(void)arg;
	(void)answer;
	(void)reason;
	told.members++;
	told.bindings_before = told.bindings;
	told.port_guid = port_guid;
}

static void open_outbox(struct world *w)
{
	engine_outbox_open(w, on_report, on_members, NULL, &told.outbox);
}

static void close_outbox(struct world *w)
{
	(void)w;
	told.outbox = vhca_outbox_free(told.outbox);
}

static void start(struct world *w)
{
	told = (struct told){0};
	w->started = open_outbox;
	w->stopping = close_outbox;
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_settle(w);
}

/* A declaration of an earlier life may stand at the SM, of which this one knows nothing. */
static void test_an_agent_that_starts_declares(void **state)
{
	struct world *w = *state;

	start(w);
	assert_int_equal(told.members, 1);
	assert_int_equal(told.port_guid, w->port_guid);
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
	bindings = told.bindings;
	vhca_engine_snapshot(w->engine);
	world_settle(w);
	assert_int_equal(told.bindings, bindings + 1);
	assert_int_equal(told.members, 2);
	assert_int_equal(told.bindings_before, bindings + 1);
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
