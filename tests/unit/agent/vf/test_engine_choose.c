// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which free VF a claim gets: two adapters of two VFs each. */
#include <stdio.h>

#include "tests/unit/agent/vf/engine_world.h"

static void begin(struct world *w)
{
	w->second_from = 2;
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
}

static unsigned int adapter_of(const struct world *w, unsigned int i)
{
	assert_true(world_until((struct world *)w, served, &i));
	return world_vf_of(w, i, "ib0") >= 2;
}

static void test_adapters_share_the_guests(void **state)
{
	struct world *w = *state;

	begin(w);
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++) {
		world_domain_start(w, i, "0x8001");
		assert_int_equal(adapter_of(w, i), i % 2);
	}
}

static void test_port_that_is_down_comes_last(void **state)
{
	struct world *w = *state;

	w->port_down[0] = true;
	begin(w);
	world_domain_start(w, 0, "0x8001");
	assert_int_equal(adapter_of(w, 0), 1);
	world_domain_start(w, 1, "0x8001");
	assert_int_equal(adapter_of(w, 1), 1);
	world_domain_start(w, 2, "0x8001");
	assert_true(adapter_of(w, 2) == 0);
}

static void test_guest_gets_a_vf_near_its_memory(void **state)
{
	struct world *w = *state;

	w->numa[0] = 0;
	w->numa[1] = 1;
	begin(w);
	world_domain_start(w, 0, NULL);
	w->domains[0].info.memory.is_pinned = true;
	w->domains[0].info.memory.node = 1;
	world_ask(w, 0, "ib0", "0x8001");
	assert_int_equal(adapter_of(w, 0), 1);
	/* Although the other has more VFs that are free. */
	world_domain_start(w, 1, NULL);
	w->domains[1].info.memory = w->domains[0].info.memory;
	world_ask(w, 1, "ib0", "0x8001");
	assert_int_equal(adapter_of(w, 1), 1);
}

/* Where nothing is said of its memory. */
static void test_guest_gets_a_vf_near_its_cpus(void **state)
{
	static const struct {
		const char *cpus;
		int memory; /* node; -1 = not said */
		unsigned int adapter;
	} guests[] = {{"4-5", -1, 1}, {"4-5", 0, 0}, {"3-4", -1, 0}, {"7", -1, 1}};
	struct world *w = *state;

	w->numa[1] = 1;
	w->n_nodes = 2;
	w->nodes[1].number = 1;
	assert_int_equal(vhca_cpus_parse("0-3", &w->nodes[0].cpus), 0);
	assert_int_equal(vhca_cpus_parse("4-7", &w->nodes[1].cpus), 0);
	begin(w);
	for (unsigned int i = 0; i < WORLD_DOMAINS; i++) {
		struct vhca_dom_info *info = &w->domains[i].info;

		world_domain_start(w, i, NULL);
		info->memory.is_pinned = guests[i].memory >= 0;
		assert_int_equal(vhca_cpus_parse(guests[i].cpus, &info->cpus), 0);
		world_ask(w, i, "ib0", "0x8001");
		assert_int_equal(adapter_of(w, i), guests[i].adapter);
	}
}

static struct vhca_claim_request wish(struct world *w, unsigned int i, int numa)
{
	struct vhca_claim_request req = {.domain = w->domains[i].info.uuid,
					 .origin = VHCA_ORIGIN_CLAIM,
					 .vf = {.numa = numa}};

	(void)snprintf(req.domain_name, sizeof(req.domain_name), "vm%u", i);
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib0");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	return req;
}

static void test_wish_is_met_or_refused(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0}, b = {0};

	w->numa[1] = 1;
	begin(w);
	req = wish(w, 0, 1);
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_int_equal(first_claim(w)->vf->hca->facts.numa_node, 1);
	assert_int_equal(first_claim(w)->numa, 1);
	req = wish(w, 1, 2);
	vhca_engine_claim(w->engine, &req, on_answer, &b);
	assert_true(world_until(w, answered, &b));
	assert_string_equal(b.code, "no_free_vf");
}

/* It is asked of the next host, too, and a claim that is served elsewhere keeps it. */
static void test_wish_outlives_a_restart(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req;
	struct answer a = {0};
	struct vhca_bdf pf;

	w->numa[1] = 1;
	begin(w);
	pf = engine_vf(w, 2)->hca->facts.bdf;
	req = wish(w, 0, 1);
	req.vf.has_pf = true;
	req.vf.pf = pf;
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	world_kill(w);
	world_start(w);
	assert_int_equal(first_claim(w)->numa, 1);
	assert_true(first_claim(w)->has_pf);
	assert_int_equal(vhca_bdf_cmp(first_claim(w)->pf, pf), 0);
}

/* That of another host says what would be good here, too; a guest is not kept there for it. */
static void test_wish_of_another_host_is_met_if_it_can_be(void **state)
{
	struct world *w = *state;
	struct vhca_reservation res = {.epoch = 1,
				       .identity = {.guid = 0x2c90000000aa01, .n_pkeys = 1},
				       .migration = {{7}}};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *c = NULL;

	w->numa[1] = 1;
	begin(w);
	res.identity.pkeys[0] = 0x8001;
	res.req = wish(w, 0, 1);
	res.req.lenient = true;
	assert_int_equal(vhca_engine_reserve(w->engine, &res, &c, &err), 0);
	assert_int_equal(c->vf->hca->facts.numa_node, 1);
	res.req = wish(w, 1, 2);
	res.req.lenient = true;
	res.identity.guid++;
	assert_int_equal(vhca_engine_reserve(w->engine, &res, &c, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_adapters_share_the_guests),
		TEST(test_port_that_is_down_comes_last),
		TEST(test_guest_gets_a_vf_near_its_memory),
		TEST(test_guest_gets_a_vf_near_its_cpus),
		TEST(test_wish_is_met_or_refused),
		TEST(test_wish_outlives_a_restart),
		TEST(test_wish_of_another_host_is_met_if_it_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
