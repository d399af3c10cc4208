// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the SM hears again when the port of an adapter has another LID, another SM, or is asked to
 * register anew.
 */
#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/agent/vf/engine_world.h"

#define DOMAINS 2

/* No case ends a guest: whatever the SM is told is a binding. */
static int teardown_bound(void **state)
{
	int r = teardown(state);

	assert_int_equal(told.withdrawn, 0);
	return r;
}

static void hear_nothing_yet(void)
{
	assert_int_equal(told.withdrawn, 0);
	engine_outbox_forget();
}

/* Both domains have their VF, and the SM has heard all of it. */
static void start(struct world *w)
{
	engine_outbox_start(w);
	assert_true(world_until(w, all_free, NULL));
	for (unsigned int i = 0; i < DOMAINS; i++) {
		world_domain_start(w, i, "0x8001");
		assert_true(world_until(w, served, &i));
	}
	world_settle(w);
	hear_nothing_yet();
}

static struct vhca_port_state port_of(const struct world *w)
{
	return TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas)->ports[0];
}

static void tell(struct world *w, enum vhca_port_event event, const struct vhca_port_state *port)
{
	vhca_engine_port(w->engine, TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas)->facts.bdf,
			 event, port);
	world_settle(w);
}

static uint64_t sum_of_epochs(const struct world *w)
{
	const struct vhca_claim *c;
	uint64_t sum = 0;

	TAILQ_FOREACH (c, &vhca_engine_model(w->engine)->claims, link)
		sum += c->epoch;
	return sum;
}

/* Each binding once, as it is, and after them what the port needs beside. */
static void assert_all_told(const struct world *w)
{
	assert_int_equal(told.bound, DOMAINS);
	assert_int_equal(told.epochs, sum_of_epochs(w));
	assert_int_equal(told.members, 1);
	assert_int_equal(told.bound_before_members, DOMAINS);
}

static void test_another_lid(void **state)
{
	struct world *w = *state;
	struct vhca_port_state port;

	start(w);
	port = port_of(w);
	port.lid = 77;
	tell(w, VHCA_PORT_CHANGED, &port);
	assert_all_told(w);
	assert_int_equal(told.last.lid, 77);
	for (unsigned int i = 0; i < DOMAINS; i++)
		assert_true(served(w, &i));
}

static void test_another_sm(void **state)
{
	struct world *w = *state;
	struct vhca_port_state port;

	start(w);
	port = port_of(w);
	port.sm_lid = 9;
	tell(w, VHCA_PORT_CHANGED, &port);
	assert_all_told(w);
}

/* The card has another firmware, and a GUID of its own choice. */
static void test_another_port_guid(void **state)
{
	struct world *w = *state;
	struct vhca_port_state port;

	start(w);
	port = port_of(w);
	port.port_guid = 0x0002c90300aabbcc;
	tell(w, VHCA_PORT_CHANGED, &port);
	assert_all_told(w);
	assert_int_equal(told.last.port_guid, port.port_guid);
}

/* An SM that was restarted at the same port says no more than this. */
static void test_asked_to_register_anew(void **state)
{
	struct world *w = *state;
	struct vhca_port_state port;

	start(w);
	port = port_of(w);
	tell(w, VHCA_PORT_REREGISTER, &port);
	assert_all_told(w);
}

/* Cable out and in again, to the same SM: what it knows is still so. */
static void test_link_that_comes_back_costs_no_report(void **state)
{
	struct world *w = *state;
	struct vhca_port_state port;

	start(w);
	port = port_of(w);
	port.state = VHCA_PORT_DOWN;
	tell(w, VHCA_PORT_CHANGED, &port);
	port.state = VHCA_PORT_ACTIVE;
	tell(w, VHCA_PORT_CHANGED, &port);
	assert_int_equal(told.bound + told.members, 0);
}

static void test_port_without_vfs_costs_no_report(void **state)
{
	struct world *w = *state;
	struct vhca_port_state port;

	start(w);
	port = port_of(w);
	port.port = 2;
	port.lid = 78;
	tell(w, VHCA_PORT_CHANGED, &port);
	tell(w, VHCA_PORT_REREGISTER, &port);
	assert_int_equal(told.bound + told.members, 0);
}

static bool is_claimed(const struct world *w, const void *arg)
{
	(void)w;
	(void)arg;
	return first_claim(w) != NULL;
}

/* Whatever of a claim's way the change meets, the SM's last word is of the new LID. */
static void test_another_lid_while_claims_are_made(void **state)
{
	struct world *w = *state;
	struct vhca_port_state port;

	engine_outbox_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, is_claimed, NULL));
	hear_nothing_yet();
	port = port_of(w);
	port.lid = 79;
	vhca_engine_port(w->engine, TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas)->facts.bdf,
			 VHCA_PORT_CHANGED, &port);
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	assert_true(told.bound > 0);
	assert_int_equal(told.last.lid, 79);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_another_lid, setup, teardown_bound),
		cmocka_unit_test_setup_teardown(test_another_sm, setup, teardown_bound),
		cmocka_unit_test_setup_teardown(test_another_port_guid, setup, teardown_bound),
		cmocka_unit_test_setup_teardown(test_asked_to_register_anew, setup, teardown_bound),
		cmocka_unit_test_setup_teardown(test_link_that_comes_back_costs_no_report, setup,
						teardown_bound),
		cmocka_unit_test_setup_teardown(test_port_without_vfs_costs_no_report, setup,
						teardown_bound),
		cmocka_unit_test_setup_teardown(test_another_lid_while_claims_are_made, setup,
						teardown_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
