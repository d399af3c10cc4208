// SPDX-License-Identifier: LGPL-2.1-or-later
/* Partitions of a cloud's port, set anew while it is claimed, programmed or in its guest. */
#include <stdio.h>

#include "tests/unit/agent/vf/engine_outbox.h"
#include "tests/unit/agent/vf/engine_world.h"

#define GUID UINT64_C(0xfa163e0000123456)

static unsigned int programmed; /* times */

static void on_programming(struct world *w, uint64_t guid, uint64_t epoch)
{
	(void)w, (void)guid, (void)epoch;
	programmed++;
}

static bool rests(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 1);

	(void)arg;
	return (vf->state == VHCA_VF_PROGRAMMED || vf->state == VHCA_VF_ATTACHED) &&
	       !vf->committing && !vf->reprogram;
}

static struct vhca_claim *port(const struct world *w)
{
	return vhca_model_claim_by_guid(vhca_engine_model(w->engine), GUID);
}

/* VF 1 is claimed for domain 0, which runs or is to begin, without a partition. */
static void claim(struct world *w, bool runs)
{
	struct vhca_claim_request req = {
		.origin = VHCA_ORIGIN_CLAIM,
		.domain_name = "vm0",
		.vf = {.numa = -1, .fabric = "default", .guid = GUID},
		.has_bdf = true,
		.no_partition = true,
	};
	struct answer a = {0};

	vhca_port_name(GUID, req.vf.name);
	w->port_pkeys[3] = 0x8003;
	w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[1].bdf;
	world_start(w);
	settle_free(w);
	world_domain_start(w, 0, NULL);
	if (!runs) {
		world_domain_stop(w, 0);
		world_settle(w);
	}
	req.domain = w->domains[0].info.uuid;
	req.bdf = w->vfs[1].bdf;
	vhca_engine_claim_port(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	programmed = 0;
	w->programming = on_programming;
}

static void begin(struct world *w)
{
	claim(w, true);
}

static struct answer set(struct world *w, const char *partitions)
{
	struct answer a = {0};

	vhca_engine_set_partitions(w->engine, port(w), partitions, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static bool is_attached(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 1)->state == VHCA_VF_ATTACHED && rests(w, NULL);
}

static void attach(struct world *w)
{
	world_plug(w, 1, 0, "port");
	assert_true(world_until(w, is_attached, NULL));
	world_settle(w);
	programmed = 0;
}

/* The guest's table is exactly this. */
static void shows(const struct world *w, uint16_t first, uint16_t second)
{
	const uint16_t want[] = {first, second, 0};

	assert_true(w->vfs[1].guid == GUID);
	for (unsigned int i = 0; i < 3; i++) {
		int16_t at = w->vfs[1].map[i];

		assert_int_equal(at < 0 ? 0 : w->port_pkeys[at], want[i]);
	}
}

static void test_programmed_port(void **state)
{
	struct world *w = *state;

	begin(w);
	shows(w, 0, 0);
	assert_true(set(w, "0x8001 0x8002").ok);
	shows(w, 0x8001, 0x8002);
	assert_true(world_told(w, "has partitions 0x8001 0x8002"));
	assert_int_equal(programmed, 1);
	assert_true(set(w, "0x8001 0x8002").ok);
	world_settle(w);
	assert_int_equal(programmed, 1);
	assert_true(set(w, "0x8002").ok);
	shows(w, 0x8002, 0);
	assert_true(set(w, "").ok);
	assert_true(world_told(w, "has partitions none"));
	shows(w, 0, 0);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_PROGRAMMED);
}

static void test_attached_port_gets_more(void **state)
{
	struct world *w = *state;

	begin(w);
	attach(w);
	assert_true(set(w, "0x8001").ok);
	shows(w, 0x8001, 0);
	assert_true(set(w, "0x8001 0x8003").ok);
	shows(w, 0x8001, 0x8003);
	world_settle(w);
	assert_int_equal(programmed, 2);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_ATTACHED);
	world_check(w);
}

/* A QP would keep the physical index. */
static void test_attached_port_keeps_what_it_has(void **state)
{
	struct world *w = *state;

	begin(w);
	assert_true(set(w, "0x8001 0x8002").ok);
	attach(w);
	assert_string_equal(set(w, "0x8001").code, "attached");
	assert_string_equal(set(w, "0x8002 0x8001").code, "attached");
	assert_false(world_told(w, "has partitions 0x8002"));
	assert_string_equal(set(w, "").code, "attached");
	world_settle(w);
	shows(w, 0x8001, 0x8002);
	assert_int_equal(programmed, 0);
	w->conf.index_policy = VHCA_INDEX_ALARM;
	assert_true(set(w, "0x8002").ok);
	shows(w, 0x8002, 0);
	assert_int_equal(engine_vf(w, 1)->state, VHCA_VF_ATTACHED);
	assert_true(world_told(w, "virtual P_Key index"));
}

static void test_refusals_change_nothing(void **state)
{
	static const char *const refused[] = {"0x0000",	       "0x8000",	"0x18001",
					      "0x8001 0x8001", "0x8001 0x0001", "nowhere",
					      "0xffff"};
	struct world *w = *state;

	w->conf.allow_default_partition = false;
	begin(w);
	assert_true(set(w, "0x8001").ok);
	for (unsigned int i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_false(set(w, refused[i]).ok);
	for (unsigned int i = 0; i < WORLD_KEYS; i++)
		if (!w->port_pkeys[i])
			world_set_key(w, i, (uint16_t)(0x8010 + i));
	world_settle(w);
	programmed = 0;
	assert_string_equal(set(w, "0x8001 0x8055").code, "pkey_table_full");
	port(w)->migrating = true;
	assert_string_equal(set(w, "0x8001 0x8002").code, "vf_busy");
	port(w)->migrating = false;
	world_settle(w);
	shows(w, 0x8001, 0);
	assert_int_equal(programmed, 0);
}

static void test_static_keys(void **state)
{
	struct world *w = *state;

	w->conf.sm_pkeys = VHCA_SM_PKEYS_STATIC;
	begin(w);
	assert_string_equal(set(w, "0x8007").code, "pkey_not_on_port");
	assert_true(set(w, "0x8002").ok);
}

/* One that the port lacks comes when the SM has sent it. */
static void test_key_that_comes_later(void **state)
{
	struct world *w = *state;

	begin(w);
	attach(w);
	assert_true(set(w, "0x8001 0x8007").ok);
	shows(w, 0x8001, 0);
	assert_true(world_told(w, "lacks 1 of its partitions"));
	assert_false(world_told(w, "has all of its partitions"));
	world_set_key(w, 6, 0x8007);
	assert_true(world_until(w, is_attached, NULL));
	world_settle(w);
	shows(w, 0x8001, 0x8007);
	assert_true(world_told(w, "has all of its partitions"));
}

static bool lacks_one(const struct world *w, const void *arg)
{
	(void)arg;
	return rests(w, NULL) && world_told(w, "lacks 1 of its partitions");
}

/* The SM has taken one back; whoever said that the port is UP is told. */
static void test_key_that_goes_later(void **state)
{
	struct world *w = *state;

	w->conf.index_policy = VHCA_INDEX_ALARM;
	begin(w);
	attach(w);
	assert_true(set(w, "0x8001 0x8003").ok);
	assert_false(world_told(w, "of its partitions"));
	world_set_key(w, 3, 0);
	assert_true(world_until(w, lacks_one, NULL));
	shows(w, 0x8001, 0);
}

/* Killed after any number of rounds: the old list, or the new one, and the VF shows it. */
static void test_outlives_the_agent(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w);
	assert_true(set(w, "0x8001").ok);
	attach(w);
	for (unsigned int rounds = 0; rounds < 10; rounds++) {
		a = (struct answer){0};
		vhca_engine_set_partitions(w->engine, port(w), "0x8001 0x8003", on_answer, &a);
		kill_after(w, rounds);
		assert_true(world_until(w, is_attached, NULL));
		world_settle(w);
		if (port(w)->identity.n_pkeys == 1)
			shows(w, 0x8001, 0);
		a = set(w, "0x8001 0x8003");
		assert_string_equal(a.code, "");
		shows(w, 0x8001, 0x8003);
		world_check(w);
		w->conf.index_policy = VHCA_INDEX_ALARM;
		assert_true(set(w, "0x8001").ok);
		w->conf.index_policy = VHCA_INDEX_FORCE_OFF;
		world_settle(w);
	}
}

static void test_one_report(void **state)
{
	struct world *w = *state;
	unsigned int before;

	begin(w);
	engine_outbox_open(w);
	before = told.bound;
	assert_true(set(w, "0x8001 0x8002").ok);
	world_settle(w);
	assert_int_equal(told.bound, before + 1);
	assert_int_equal(told.last_bound.n_pkeys, 2);
	assert_true(told.last_bound.epoch == port(w)->epoch);
	assert_true(set(w, "0x8001 0x8002").ok);
	world_settle(w);
	assert_int_equal(told.bound, before + 1);
	vhca_engine_set_outbox(w->engine, NULL);
	vhca_outbox_free(told.outbox);
}

/* An answer that was on its way. */
static void test_accepted_without_the_partitions(void **state)
{
	struct world *w = *state;
	struct vhca_sm_binding b;

	begin(w);
	w->sm_accepts = false;
	engine_outbox_open(w);
	b = vhca_claim_binding(port(w));
	assert_true(set(w, "0x8001").ok);
	vhca_engine_sm_answer(w->engine, &b, VHCA_SM_ACCEPTED, "", NULL);
	assert_int_equal(port(w)->sm_answer, VHCA_ANSWER_NONE);
	b = vhca_claim_binding(port(w));
	vhca_engine_sm_answer(w->engine, &b, VHCA_SM_ACCEPTED, "", NULL);
	assert_int_equal(port(w)->sm_answer, VHCA_ANSWER_ACCEPTED);
	vhca_engine_set_outbox(w->engine, NULL);
	vhca_outbox_free(told.outbox);
}

/* Neutron says them before the guest begins: the port's table has them by then, and nothing else is
 * told or written. */
static void test_reserved_port(void **state)
{
	struct world *w = *state;

	claim(w, false);
	told = (struct engine_told){.members = 0};
	engine_outbox_open(w);
	assert_true(set(w, "0x8001 0x8003").ok);
	assert_true(set(w, "0x8002 0x8001").ok);
	world_settle(w);
	assert_int_equal(told.bound, 0);
	assert_int_equal(told.members, 2);
	assert_true(set(w, "0x8002 0x8001").ok);
	world_settle(w);
	assert_int_equal(told.members, 2);
	assert_int_equal(programmed, 0);
	assert_true(w->vfs[1].guid != GUID);
	world_domain_start(w, 0, NULL);
	assert_true(world_until(w, rests, NULL));
	world_settle(w);
	shows(w, 0x8002, 0x8001);
	assert_int_equal(told.last_bound.n_pkeys, 2);
	assert_int_equal(told.members, 3);
	assert_int_equal(told.bound_before_members, 1);
	vhca_engine_set_outbox(w->engine, NULL);
	vhca_outbox_free(told.outbox);
}

/* The reservation has them when it was killed. */
static void test_reserved_port_outlives_the_agent(void **state)
{
	struct world *w = *state;
	struct answer a;

	claim(w, false);
	for (unsigned int rounds = 0; rounds < 8; rounds++) {
		a = (struct answer){0};
		vhca_engine_set_partitions(w->engine, port(w),
					   rounds % 2 ? "0x8001" : "0x8001 0x8003", on_answer, &a);
		kill_after(w, rounds);
		world_settle(w);
		assert_non_null(port(w));
		assert_int_equal(port(w)->custody, VHCA_CUSTODY_RESERVED);
	}
	assert_true(set(w, "0x8001 0x8003").ok);
	assert_int_equal(programmed, 0);
	world_domain_start(w, 0, NULL);
	assert_true(world_until(w, rests, NULL));
	shows(w, 0x8001, 0x8003);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_programmed_port),
		TEST(test_attached_port_gets_more),
		TEST(test_attached_port_keeps_what_it_has),
		TEST(test_refusals_change_nothing),
		TEST(test_static_keys),
		TEST(test_key_that_comes_later),
		TEST(test_key_that_goes_later),
		TEST(test_outlives_the_agent),
		TEST(test_one_report),
		TEST(test_accepted_without_the_partitions),
		TEST(test_reserved_port),
		TEST(test_reserved_port_outlives_the_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
