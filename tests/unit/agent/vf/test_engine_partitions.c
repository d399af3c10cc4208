// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The production engine, the keys of the host's port, and the subnet manager that gives and takes
 * them.
 */
#include <string.h>

#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/http/json.h"
#include "tests/unit/agent/vf/engine_world.h"

/* ---- partitions ---- */

static bool not_served(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_CLAIMED) == 1;
}

static void sm_says(struct world *w, enum vhca_sm_answer answer, const char *reason)
{
	const struct vhca_claim *c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
	struct vhca_sm_binding b;

	if (!c)
		return;
	b = vhca_claim_binding(c);
	vhca_engine_sm_answer(w->engine, &b, answer, reason, NULL);
}

static void test_membership_is_awaited(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8003");
	assert_true(world_until(w, not_served, NULL));
	sm_says(w, VHCA_SM_ACCEPTED, "");
	world_set_key(w, 5, 0x8003);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(w->vfs[world_vf_of(w, 0, "ib0")].map[0], 5);
}

static bool has_problem(const struct world *w, const void *arg)
{
	const struct vhca_domain *d =
		vhca_model_domain(vhca_engine_model(w->engine), &w->domains[0].info.uuid);

	for (unsigned int i = 0; d && i < VHCA_DOM_VFS_MAX; i++)
		if (d->requests[i].problem.kind && !strcmp(d->requests[i].problem.code, arg))
			return true;
	return false;
}

static void test_key_that_never_comes_is_refused(void **state)
{
	struct world *w = *state;

	w->conf.pkey_timeout_ms = 300;
	world_start(w);
	world_domain_start(w, 0, "0x8003");
	assert_true(world_until(w, not_served, NULL));
	sm_says(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, has_problem, "pkey_not_on_port"));
	assert_true(world_until(w, nothing_attached, NULL));
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
}

static void test_sm_refuses(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8003");
	assert_true(world_until(w, not_served, NULL));
	sm_says(w, VHCA_SM_REFUSED, "unknown partition");
	assert_true(world_until(w, has_problem, "pkey_not_on_port"));
	assert_true(world_until(w, nothing_attached, NULL));
}

static bool attached(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_ATTACHED) == 1;
}

static bool mapped_late(const struct world *w, const void *arg)
{
	(void)arg;
	return w->vfs[world_vf_of(w, 0, "ib0")].map[0] == 6;
}

static void test_sm_down_blocks_nobody(void **state)
{
	struct world *w = *state;

	w->sm_grants = false;
	world_start(w);
	world_domain_start(w, 0, "0x8003");
	assert_true(world_until(w, not_served, NULL));
	sm_says(w, VHCA_SM_RETRY, "connection refused");
	assert_true(world_until(w, attached, NULL));
	/* Fail closed: what the port does not have is none, not the default partition. */
	assert_int_equal(w->vfs[world_vf_of(w, 0, "ib0")].map[0], -1);
	assert_int_equal(count(w, VHCA_VF_QUARANTINED), 0);
	world_set_key(w, 6, 0x8003);
	assert_true(world_until(w, mapped_late, NULL));
	w->sm_grants = true;
	assert_true(world_until(w, served, &zero));
}

static bool maps_first_key(const struct world *w, const void *arg)
{
	return w->vfs[*(const unsigned int *)arg].map[0] >= 0;
}

static bool lacks_a_key(const struct world *w, const void *arg)
{
	const struct vhca_claim *c = first_claim(w);

	(void)arg;
	return c && c->vf->missing == 1;
}

/* What the port lacked before is no news, and nobody's doing. */
static void test_key_that_never_came_is_no_alarm_after_a_restart(void **state)
{
	struct world *w = *state;

	w->sm_grants = false;
	world_start(w);
	world_domain_start(w, 0, "0x8001 0x8003");
	assert_true(world_until(w, not_served, NULL));
	sm_says(w, VHCA_SM_RETRY, "connection refused");
	assert_true(world_until(w, attached, NULL));
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, lacks_a_key, NULL));
	world_settle(w);
	assert_false(world_told(w, "is not what was programmed"));
}

/* ...but what was unmapped while the agent was away is mapped again. */
static void test_key_that_was_unmapped_before_a_restart_is_mapped(void **state)
{
	struct world *w = *state;
	unsigned int v;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	world_kill(w);
	w->vfs[v].map[0] = -1;
	world_start(w);
	assert_true(world_until(w, maps_first_key, &v));
}

static void sm_says_doc(struct world *w, enum vhca_sm_answer answer, const char *text)
{
	const struct vhca_claim *c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
	struct vhca_sm_binding b = vhca_claim_binding(c);
	struct json_object *doc = NULL;

	assert_int_equal(vhca_json_parse(text, strlen(text), &doc, NULL), 0);
	vhca_engine_sm_answer(w->engine, &b, answer, "superseded", doc);
	json_object_put(doc);
}

/* The VM was stopped on another host: the SM remembers a higher epoch that nobody holds. */
static void test_epoch_of_a_place_that_gave_up_is_learnt(void **state)
{
	struct world *w = *state;

	w->fenced = true;
	w->conf.sm_timeout_ms = 2000; /* it is waited for longer than the world settles */
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, not_served, NULL));
	world_settle(w);
	assert_int_equal(count(w, VHCA_VF_CLAIMED), 1); /* not programmed before the SM was asked */
	sm_says_doc(w, VHCA_SM_SUPERSEDED, "{\"known_epoch\": 7, \"bound\": false}");
	assert_int_equal(first_claim(w)->epoch,
			 9); /* 8 may be promised to a migration's destination */
	sm_says(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, served, &zero));
}

/* ...or somebody else holds it: then it is not ours. */
static void test_vguid_that_is_bound_elsewhere_is_refused(void **state)
{
	struct world *w = *state;

	w->fenced = true;
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, not_served, NULL));
	sm_says_doc(w, VHCA_SM_SUPERSEDED,
		    "{\"known_epoch\": 7, \"bound\": true, \"port_guid\": \"0x0002c90300000999\"}");
	assert_true(world_until(w, has_problem, "sm_refused"));
	assert_true(world_until(w, nothing_attached, NULL));
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
}

/* Asked again, the SM has not answered yet: what it said before is of another report. */
static void test_what_was_answered_is_forgotten_whole(void **state)
{
	struct world *w = *state;

	w->fenced = true;
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, not_served, NULL));
	sm_says_doc(w, VHCA_SM_RETRY, "{\"code\": \"ticket_not_valid\"}");
	assert_string_equal(first_claim(w)->sm_code, VHCA_CODE_TICKET_NOT_VALID);
	assert_string_equal(first_claim(w)->sm_answer_reason, "superseded");
	sm_says_doc(w, VHCA_SM_SUPERSEDED, "{\"known_epoch\": 7, \"bound\": false}");
	assert_int_equal(first_claim(w)->epoch, 9); /* reported anew */
	assert_int_equal(first_claim(w)->sm_answer, VHCA_ANSWER_NONE);
	assert_null(first_claim(w)->sm_code);
	assert_string_equal(first_claim(w)->sm_answer_reason, "");
}

/* What a silent source had promised was taken, and the SM says who would have to sign that. */
static void go_on_alone(struct world *w, const char *doc)
{
	w->fenced = true;
	w->conf.sm_timeout_ms = 60000;
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, not_served, NULL));
	vhca_engine_await_tickets(TAILQ_FIRST(&vhca_engine_model(w->engine)->claims),
				  "cert:source");
	sm_says_doc(w, VHCA_SM_REFUSED, doc);
}

static void test_a_promise_of_what_is_anothers_is_refused(void **state)
{
	struct world *w = *state;

	go_on_alone(w, "{\"code\": \"not_the_owner\", \"signers\": [\"cert:victim\"]}");
	assert_int_equal(first_claim(w)->sm_answer, VHCA_ANSWER_REFUSED);
	assert_true(world_until(w, has_problem, "sm_refused"));
	assert_true(world_until(w, nothing_attached, NULL));
}

static void test_a_promise_without_its_ticket_waits(void **state)
{
	struct world *w = *state;

	go_on_alone(w, "{\"code\": \"not_the_owner\", \"signers\": [\"cert:source\"]}");
	world_settle(w);
	assert_int_equal(count(w, VHCA_VF_CLAIMED), 1);
	sm_says(w, VHCA_SM_RETRY, "connection refused"); /* what it said holds */
	world_settle(w);
	assert_int_equal(count(w, VHCA_VF_CLAIMED), 1);
	sm_says(w, VHCA_SM_ACCEPTED, "");
	assert_true(world_until(w, served, &zero));
}

static void test_fencing_sm_that_is_down_blocks_nobody(void **state)
{
	struct world *w = *state;

	w->fenced = true;
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, not_served, NULL));
	sm_says(w, VHCA_SM_RETRY, "connection refused");
	assert_true(world_until(w, served, &zero));
}

static void test_sm_required(void **state)
{
	struct world *w = *state;

	w->conf.sm_require = VHCA_SM_REQUIRE_ATTACH;
	world_start(w);
	world_domain_start(w, 0, "0x8003");
	assert_true(world_until(w, not_served, NULL));
	sm_says(w, VHCA_SM_RETRY, "connection refused");
	world_settle(w);
	assert_int_equal(count(w, VHCA_VF_CLAIMED), 1);
	world_set_key(w, 6, 0x8003);
	assert_true(world_until(w, served, &zero));
}

static bool detached(const struct world *w, const void *arg)
{
	(void)arg;
	return world_vf_of(w, 0, "ib0") < 0;
}

/* The SM gives physical index 1, which the guest's QPs hold, to the other tenant. */
static void change_meaning(struct world *w)
{
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	w->hostile_sm = true;
	world_set_key(w, 1, 0x8002);
}

static void test_index_that_changes_meaning_forces_off(void **state)
{
	struct world *w = *state;

	change_meaning(w);
	assert_true(world_until(w, detached, NULL));
}

static bool unmapped(const struct world *w, const void *arg)
{
	(void)arg;
	return w->vfs[world_vf_of(w, 0, "ib0")].map[0] == -1;
}

static void test_index_that_changes_meaning_is_only_alarmed_by_policy(void **state)
{
	struct world *w = *state;

	w->conf.index_policy = VHCA_INDEX_ALARM;
	change_meaning(w);
	assert_true(world_until(w, unmapped, NULL));
	world_settle(w);
	assert_int_equal(count(w, VHCA_VF_ATTACHED), 1);
}

static bool is_detaching(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_DETACHING) == 1;
}

static bool was_asked_twice(const struct world *w, const void *arg)
{
	(void)arg;
	return w->asked >= 2;
}

/*
 * Its map is right again, but its QPs are not: neither a restart nor an unresponsive guest ends
 * that.
 */
static void test_forced_off_until_it_is_off(void **state)
{
	struct world *w = *state;

	world_deafen(w);
	change_meaning(w);
	assert_true(world_until(w, is_detaching, NULL));
	assert_true(unmapped(w, NULL));
	for (unsigned int round = 0; round < 2; round++) {
		uint64_t until = vhca_now_ms() + w->conf.detach_timeout_ms + 200;

		while (vhca_now_ms() < until)
			world_round(w, 10);
		assert_int_equal(count(w, VHCA_VF_DETACHING), 1);
		world_kill(w);
		world_start(w);
	}
	w->deaf_guest = false;
	assert_true(world_until(w, detached, NULL));
}

/* Round after round, and in each of them its agent is asked. */
static void test_forced_off_by_the_guests_agent(void **state)
{
	struct world *w = *state;

	w->deaf_guest = true;
	w->guest_agent = WORLD_AGENT_LIES;
	w->conf.detach_escalation = VHCA_ESCALATION_GUEST_AGENT;
	w->conf.detach_timeout_ms = 100;
	change_meaning(w);
	assert_true(world_until(w, was_asked_twice, NULL));
	assert_int_equal(count(w, VHCA_VF_DETACHING), 1);
	w->guest_agent = WORLD_AGENT_HELPS;
	assert_true(world_until(w, detached, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_membership_is_awaited),
		TEST(test_key_that_never_comes_is_refused),
		TEST(test_sm_refuses),
		TEST(test_sm_down_blocks_nobody),
		TEST(test_key_that_never_came_is_no_alarm_after_a_restart),
		TEST(test_key_that_was_unmapped_before_a_restart_is_mapped),
		TEST(test_epoch_of_a_place_that_gave_up_is_learnt),
		TEST(test_vguid_that_is_bound_elsewhere_is_refused),
		TEST(test_what_was_answered_is_forgotten_whole),
		TEST(test_a_promise_of_what_is_anothers_is_refused),
		TEST(test_a_promise_without_its_ticket_waits),
		TEST(test_fencing_sm_that_is_down_blocks_nobody),
		TEST(test_sm_required),
		TEST(test_index_that_changes_meaning_forces_off),
		TEST(test_index_that_changes_meaning_is_only_alarmed_by_policy),
		TEST(test_forced_off_until_it_is_off),
		TEST(test_forced_off_by_the_guests_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
