// SPDX-License-Identifier: LGPL-2.1-or-later
/* Domains that run and whose XML cannot be read: only the proofs about their own VFs wait. */
#include <string.h>

#include "tests/unit/agent/vf/engine_world.h"

static void set_unreadable(struct world *w, unsigned int i, bool unreadable)
{
	w->domains[i].unreadable = unreadable;
	world_look(w, i);
}

/* vm0 has a VF, and cannot be read. */
static unsigned int serve_unreadable(struct world *w)
{
	int v;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = world_vf_of(w, 0, "ib0");
	assert_true(v >= 0);
	set_unreadable(w, 0, true);
	world_settle(w);
	return (unsigned int)v;
}

/* What the agent had read of it is forgotten. */
static void restart(struct world *w)
{
	world_kill(w);
	world_start(w);
	world_settle(w);
}

static const struct vhca_domain *domain(const struct world *w, unsigned int i)
{
	return vhca_model_domain(vhca_engine_model(w->engine), &w->domains[i].info.uuid);
}

static bool is_free(const struct world *w, const void *v)
{
	return engine_vf(w, *(const unsigned int *)v)->state == VHCA_VF_FREE;
}

static bool has_ended(const struct world *w, const void *arg)
{
	(void)arg;
	return TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims);
}

static void test_vf_stays_in_its_guest(void **state)
{
	struct world *w = *state;
	unsigned int v = serve_unreadable(w);

	restart(w);
	assert_int_equal(engine_vf(w, v)->state, VHCA_VF_ATTACHED);
	assert_true(w->vfs[v].group_open);
	assert_true(vhca_engine_virt_synced(w->engine));
	assert_string_equal(domain(w, 0)->unreadable.code, "bad_domain_xml");
	assert_true(world_told(w, "cannot be read"));
	assert_true(world_told(w, "vm0"));
	set_unreadable(w, 0, false);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(domain(w, 0)->unreadable.kind, VHCA_ERR_NONE);
	assert_true(world_told(w, "can be read again"));
}

static void test_others_are_served(void **state)
{
	struct world *w = *state;

	(void)serve_unreadable(w);
	restart(w);
	world_domain_start(w, 1, "0x8002");
	assert_true(world_until(w, served, &one));
	world_domain_stop(w, 1);
	assert_true(world_until(w, is_free, &(unsigned int){1}));
}

static bool is_unmapped(const struct world *w, const void *v)
{
	return w->vfs[*(const unsigned int *)v].map[0] == -1;
}

static void test_vf_follows_the_table(void **state)
{
	struct world *w = *state;
	unsigned int v = serve_unreadable(w);

	restart(w);
	w->deaf_guest = w->hostile_sm = true;
	world_set_key(w, 1, 0x8002);
	assert_true(world_until(w, is_unmapped, &v));
	world_settle(w);
	assert_int_equal(engine_vf(w, v)->state, VHCA_VF_DETACHING);
	assert_true(w->vfs[v].group_open);
}

static void test_end_of_the_domain_is_a_proof(void **state)
{
	struct world *w = *state;
	unsigned int v = serve_unreadable(w);

	restart(w);
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(world_clean(w, v));
}

/* The agent was killed after the VF had left; the XML would prove it. */
static void test_scrub_waits_for_the_xml(void **state)
{
	struct world *w = *state;
	struct answer answer = {0};
	unsigned int v = serve_unreadable(w);
	struct vhca_claim *c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);

	restart(w);
	c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
	vhca_engine_release(w->engine, c, false, on_answer, &answer);
	world_settle(w);
	/* The guest let go at once, but that is not known. */
	assert_false(w->vfs[v].group_open);
	assert_false(answer.called);
	assert_int_equal(engine_vf(w, v)->state, VHCA_VF_DETACHING);
	assert_false(world_clean(w, v));
	set_unreadable(w, 0, false);
	assert_true(world_until(w, has_ended, NULL));
	assert_true(answer.ok);
	assert_true(world_until(w, is_free, &v));
	assert_true(world_clean(w, v));
}

static void test_detach_that_cannot_be_proven_is_given_up(void **state)
{
	struct world *w = *state;
	struct answer answer = {0};
	unsigned int v = serve_unreadable(w);

	w->conf.detach_timeout_ms = 30;
	w->conf.detach_retry_ms = 10;
	restart(w);
	vhca_engine_release(w->engine, TAILQ_FIRST(&vhca_engine_model(w->engine)->claims), false,
			    on_answer, &answer);
	assert_true(world_until(w, answered, &answer));
	assert_string_equal(answer.code, "domain_unreadable");
	world_settle(w);
	assert_int_equal(engine_vf(w, v)->state, VHCA_VF_ATTACHED);
}

static void test_nothing_is_plugged_in(void **state)
{
	struct world *w = *state;
	struct answer answer = {0};
	struct vhca_claim_request req = {.origin = VHCA_ORIGIN_ATTACH, .vf = {.numa = -1}};

	world_start(w);
	w->domains[0].unreadable = true;
	req.domain = world_domain_start(w, 0, "0x8001");
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib1");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	assert_true(world_until(w, all_free, NULL));
	vhca_engine_claim(w->engine, &req, on_answer, &answer);
	assert_true(world_until(w, answered, &answer));
	assert_string_equal(answer.code, "domain_unreadable");
	world_settle(w);
	assert_true(has_ended(w, NULL));
	set_unreadable(w, 0, false);
	assert_true(world_until(w, served, &zero));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vf_stays_in_its_guest),
		TEST(test_others_are_served),
		TEST(test_vf_follows_the_table),
		TEST(test_end_of_the_domain_is_a_proof),
		TEST(test_scrub_waits_for_the_xml),
		TEST(test_detach_that_cannot_be_proven_is_given_up),
		TEST(test_nothing_is_plugged_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
