// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * guid="sm" on the simulated host (tests/sim/host/world.h): the subnet manager chooses the GUID,
 * and the claim goes on with it.
 */
#include <stdio.h>
#include <string.h>

#include "agent/vf/engine.h"
#include "common/base/cleanup.h"
#include "pkey/guid.h"
#include "tests/sim/host/world.h"
#include "tests/unit/unit.h"

#define CHOICE UINT64_C(0x0014050000000007)

static int setup(void **state)
{
	static struct world w;

	world_init(&w);
	w.sm_choice = CHOICE;
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	world_done(*state);
	return 0;
}

/* Domain i asks for a GUID of the SM's choice; the agent runs. */
static void start(struct world *w, unsigned int i)
{
	world_domain_start(w, i, "0x8001");
	w->domains[i].info.requests[0].guid = VHCA_GUID_BY_SM;
	if (w->engine)
		world_look(w, i);
	else
		world_start(w);
}

static const struct vhca_claim *claim_of(const struct world *w, unsigned int i)
{
	return vhca_model_claim_of(vhca_engine_model(w->engine), &w->domains[i].info.uuid, "ib0");
}

static bool served(const struct world *w, const void *arg)
{
	unsigned int i = *(const unsigned int *)arg;
	int v = world_vf_of(w, i, "ib0");
	const struct vhca_claim *c = claim_of(w, i);

	return v >= 0 && c && c->vf->state == VHCA_VF_ATTACHED && !c->vf->committing &&
	       w->vfs[v].guid == c->identity.guid && w->vfs[v].map[0] == 1;
}

static bool waits(const struct world *w, const void *arg)
{
	const struct vhca_claim *c = claim_of(w, 0);

	return c && c->vf->state == VHCA_VF_CLAIMED && strstr(c->vf->reason, arg);
}

static bool over(const struct world *w, const void *arg)
{
	(void)arg;
	return TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims) && world_clean(w, 0);
}

static const unsigned int zero = 0;

static void the_claim_goes_on_with_the_choice(void **state)
{
	struct world *w = *state;

	start(w, 0);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(claim_of(w, 0)->identity.guid, CHOICE);
	assert_int_equal(claim_of(w, 0)->epoch, 1);
	assert_int_equal(vhca_model_epoch(vhca_engine_model(w->engine), CHOICE), 1);
	world_domain_stop(w, 0);
	assert_true(world_until(w, over, NULL));
	/* The next owner's epoch is a later one, whoever had it before. */
	start(w, 0);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(claim_of(w, 0)->epoch, 2);
}

static void it_outlives_the_agent(void **state)
{
	struct world *w = *state;

	start(w, 0);
	assert_true(world_until(w, served, &zero));
	w->sm_choice = CHOICE + 1; /* nobody may ask again */
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_true(served(w, &zero));
	assert_int_equal(claim_of(w, 0)->identity.guid, CHOICE);
}

/* Nothing reaches the SM or the guest before there is a GUID. */
static void an_sm_that_is_slow_is_waited_for(void **state)
{
	struct world *w = *state;

	w->sm_choice = 0;
	w->conf.pkey_timeout_ms = 60000;
	start(w, 0);
	assert_true(world_until(w, waits, "not chosen"));
	assert_true(vhca_guid_is_stand_in(claim_of(w, 0)->identity.guid));
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, waits, "not chosen"));
	w->sm_choice = CHOICE;
	assert_true(world_until(w, served, &zero));
	assert_int_equal(claim_of(w, 0)->identity.guid, CHOICE);
}

static bool refused(const struct world *w, const void *arg)
{
	const struct vhca_domain *d =
		vhca_model_domain(vhca_engine_model(w->engine), &w->domains[0].info.uuid);

	return d && d->requests[0].problem.kind && !strcmp(d->requests[0].problem.code, arg) &&
	       over(w, NULL);
}

static void an_sm_that_never_answers_is_given_up(void **state)
{
	struct world *w = *state;

	w->sm_choice = 0;
	w->conf.pkey_timeout_ms = 300;
	start(w, 0);
	assert_true(world_until(w, refused, "no_guid_from_sm"));
}

/* An SM that gives out what another claim here has, whatever went wrong there. */
static void a_guid_with_an_owner_is_not_taken(void **state)
{
	struct world *w = *state;

	w->conf.pkey_timeout_ms = 60000;
	world_domain_start(w, 1, "0x8001");
	w->domains[1].info.requests[0].guid = CHOICE;
	world_start(w);
	assert_true(world_until(w, served, &(unsigned int){1}));
	w->sm_choice = w->port_guid;
	start(w, 0);
	assert_true(world_until(w, waits, "is the port GUID of HCA"));
	w->sm_choice = CHOICE + 1;
	assert_true(world_until(w, served, &zero));
}

static void killed_at_each_step(void **state)
{
	static const enum world_fault faults[] = {WORLD_CRASH_BEFORE, WORLD_CRASH_AFTER,
						  WORLD_FAIL};
	struct world *w = *state;

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(faults); i++) {
		w->fault_effect = VHCA_EFFECT_AWAIT_SM_GUID;
		w->fault = faults[i];
		w->fault_at = w->effects + 1;
		start(w, 0);
		assert_true(world_until(w, served, &zero));
		assert_true(w->effects > w->fault_at);
		world_domain_stop(w, 0);
		assert_true(world_until(w, over, NULL));
	}
}

static void ignore(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)arg;
	(void)claim;
	(void)err;
}

static void a_running_guest_is_adopted_with_what_it_has(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, "0x8001");
	w->domains[0].info.requests[0].guid = VHCA_GUID_BY_SM;
	w->vfs[0].guid = CHOICE;
	w->vfs[0].map[0] = 1;
	world_plug(w, 0, 0, "ib0");
	world_start(w);
	world_settle(w);
	assert_null(claim_of(w, 0));
	vhca_engine_adopt(w->engine, &w->domains[0].info.uuid, ignore, NULL);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(claim_of(w, 0)->identity.guid, CHOICE);
}

static void a_stand_in_is_nobodys_guid(void **state)
{
	uint64_t a, b;

	(void)state;
	assert_int_equal(vhca_guid_stand_in(&a), 0);
	assert_int_equal(vhca_guid_stand_in(&b), 0);
	assert_true(a != b);
	assert_true(vhca_guid_is_stand_in(a) && vhca_guid_is_stand_in(VHCA_GUID_BY_SM));
	assert_false(vhca_guid_is_valid(a) || vhca_guid_is_stand_in(VHCA_GUID_ALL1));
	assert_false(vhca_guid_is_stand_in(CHOICE) || vhca_guid_is_stand_in(0));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_claim_goes_on_with_the_choice),
		T(it_outlives_the_agent),
		T(an_sm_that_is_slow_is_waited_for),
		T(an_sm_that_never_answers_is_given_up),
		T(a_guid_with_an_owner_is_not_taken),
		T(killed_at_each_step),
		T(a_running_guest_is_adopted_with_what_it_has),
		cmocka_unit_test(a_stand_in_is_nobodys_guid),
	};

	return cmocka_run_group_tests_name("sm_guid", tests, NULL, NULL);
}
