// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the production engine says and does when the hardware is not (yet, or any more) what it was when a claim was made. */
#include "tests/unit/engine_outbox.h"
#include "tests/unit/engine_world.h"

/* What the SM was told last. */
static struct told {
	struct vhca_outbox *outbox;
	unsigned int bound, withdrawn;
	uint64_t port_guid;
} told;

static void on_report(void *arg, const struct vhca_sm_binding *binding, enum vhca_sm_answer answer,
		      const char *reason, struct json_object *doc)
{
	(void)arg;
	(void)answer;
	(void)reason;
	(void)doc;
	told.bound += binding->bound;
	told.withdrawn += !binding->bound;
	told.port_guid = binding->port_guid;
}

static void open_outbox(struct world *w)
{
	engine_outbox_open(w, on_report, NULL, NULL, &told.outbox);
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
}

static void serve(struct world *w)
{
	start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_not_equal(told.bound, 0);
}

static bool has_no_claim(const struct world *w, const void *arg)
{
	(void)arg;
	return TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims);
}

static bool is_claimed(const struct world *w, const void *arg)
{
	(void)arg;
	return first_claim(w) && first_claim(w)->vf->state == VHCA_VF_CLAIMED;
}

/* ---- whose binding is withdrawn ---- */

/* Another host may have bound the vGUID at the same epoch: only the port's GUID tells the two apart. */
static void test_a_binding_of_the_last_boot_is_withdrawn_from_its_port(void **state)
{
	struct world *w = *state;

	serve(w);
	world_reboot(w);
	w->port_unseen = true;
	start(w);
	assert_true(world_until(w, has_no_claim, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.port_guid, w->port_guid);
}

static void test_an_adapter_that_was_replaced_withdraws_from_the_old_port(void **state)
{
	struct world *w = *state;
	uint64_t old = w->port_guid;

	serve(w);
	world_reboot(w);
	w->port_guid++;
	start(w);
	assert_true(world_until(w, has_no_claim, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.port_guid, old);
}

static void test_a_restarted_agent_withdraws_from_the_port_before_it_sees_it(void **state)
{
	struct world *w = *state;

	serve(w);
	world_kill(w);
	world_domain_stop(w, 0);
	w->port_unseen = true;
	start(w);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.port_guid, w->port_guid);
}

static void test_what_the_sm_was_never_told_is_not_withdrawn(void **state)
{
	struct world *w = *state;

	w->port_unseen = true;
	start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, is_claimed, NULL));
	world_domain_stop(w, 0);
	world_sync_domains(w);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_int_equal(told.bound + told.withdrawn, 0);
}

/* Told when the port is seen, and remembered from then on. */
static void test_a_port_that_comes_late_is_remembered(void **state)
{
	struct world *w = *state;

	w->port_unseen = true;
	start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, is_claimed, NULL));
	world_show_port(w);
	assert_true(world_until(w, served, &zero));
	world_reboot(w);
	w->port_unseen = true;
	start(w);
	assert_true(world_until(w, has_no_claim, NULL));
	assert_int_equal(told.withdrawn, 1);
	assert_int_equal(told.port_guid, w->port_guid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_binding_of_the_last_boot_is_withdrawn_from_its_port),
		TEST(test_an_adapter_that_was_replaced_withdraws_from_the_old_port),
		TEST(test_a_restarted_agent_withdraws_from_the_port_before_it_sees_it),
		TEST(test_what_the_sm_was_never_told_is_not_withdrawn),
		TEST(test_a_port_that_comes_late_is_remembered),
	};

	return cmocka_run_group_tests_name("engine_hardware", tests, NULL, NULL);
}
