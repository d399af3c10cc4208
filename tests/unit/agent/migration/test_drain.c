// SPDX-License-Identifier: LGPL-2.1-or-later
/* A host that is emptied, on the two simulated hosts of tests/sim/hosts/pair.h. */
#include <stdio.h>
#include <string.h>

#include "agent/migration/drain.h"
#include "tests/sim/hosts/pair.h"
#include "tests/unit/unit.h"

struct box {
	struct pair p;
	struct vhca_drain *drain; /* of host 0 */
};

static void open_drain(struct box *b)
{
	struct world *w = &b->p.w[0];
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_drain_args args = {
		.loop = w->loop,
		.store = w->store,
		.events = w->events,
		.engine = w->engine,
		.migrations = b->p.ms[0],
		.conf = &w->conf,
		.parallel = 1,
		.retry_ms = 20,
	};

	assert_int_equal(vhca_drain_new(&args, &b->drain, &err), 0);
}

static int setup(void **state)
{
	static struct box b;

	pair_init(&b.p);
	open_drain(&b);
	*state = &b;
	return 0;
}

static int teardown(void **state)
{
	struct box *b = *state;

	b->drain = vhca_drain_free(b->drain);
	pair_done(&b->p);
	return 0;
}

static void restart(struct box *b)
{
	b->drain = vhca_drain_free(b->drain);
	world_kill(&b->p.w[0]);
	world_start(&b->p.w[0]);
	open_drain(b);
}

static const unsigned int zero = 0, one = 1;

/* Transactions on their way to the store: the first of them is durable, the next is kept back. */
static struct {
	bool on, first_is_durable;
	struct vhca_txn *txn;
	void (*fn)(void *arg, int rc);
	void *arg;
	void (*first_fn)(void *arg, int rc);
	void *first_arg;
} keep;

void __real_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg);

static void on_first(void *arg, int rc)
{
	(void)arg;
	keep.first_is_durable = true;
	keep.first_fn(keep.first_arg, rc);
}

void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg)
{
	if (keep.on && !keep.first_fn) {
		keep.first_fn = fn;
		keep.first_arg = arg;
		__real_vhca_txn_commit(txn, on_first, NULL);
	} else if (keep.on && !keep.txn) {
		keep.txn = txn;
		keep.fn = fn;
		keep.arg = arg;
	} else {
		__real_vhca_txn_commit(txn, fn, arg);
	}
}

static bool first_is_durable(const struct pair *p, const void *arg)
{
	(void)p;
	(void)arg;
	return keep.first_is_durable;
}

static bool at_home(const struct pair *p, const void *arg)
{
	return pair_at_home(p, *(const unsigned int *)arg);
}

static bool is_done(const struct pair *p, const void *arg)
{
	struct json_object *doc = vhca_drain_view(arg);
	bool done = json_object_get_boolean(json_object_object_get(doc, "done"));

	(void)p;
	json_object_put(doc);
	return done;
}

static void assert_view(const struct box *b, const char *part)
{
	struct json_object *doc = vhca_drain_view(b->drain);
	const char *text = json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN);

	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
	json_object_put(doc);
}

static void drain_to(struct box *b, const char *peer)
{
	const char *const peers[] = {peer};
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_drain_begin(b->drain, peers, peer ? 1 : 0, &err), 0);
}

static bool problem_is(const struct pair *p, const void *code)
{
	const struct vhca_domain *dom =
		vhca_model_domain(vhca_engine_model(p->w[0].engine), &p->w[0].domains[1].info.uuid);

	return dom && dom->requests[0].problem.kind && !strcmp(dom->requests[0].problem.code, code);
}

static bool second_served(const struct pair *p, const void *arg)
{
	(void)arg;
	return world_vf_of(&p->w[0], 1, "ib0") >= 0;
}

static bool host_is_free(const struct pair *p, const void *arg)
{
	(void)arg;
	return TAILQ_EMPTY(&vhca_engine_model(p->w[0].engine)->claims);
}

static void test_guests_go_to_a_peer(void **state)
{
	struct box *b = *state;

	drain_to(b, "other");
	assert_true(pair_until(&b->p, is_done, b->drain));
	assert_true(pair_until(&b->p, at_home, &one));
	assert_view(b, "\"drained\":true");
	assert_view(b, "\"peers\":[\"other\"]");
	assert_view(b, "\"domains\":[]");
}

static bool both_served(const struct pair *p, const void *arg)
{
	(void)arg;
	return world_vf_of(&p->w[0], 0, "ib0") >= 0 && second_served(p, NULL);
}

/* One at a time: nothing but the end of the first makes room for the second. */
static void test_the_next_goes_when_one_is_out_of_the_way(void **state)
{
	struct box *b = *state;

	(void)world_domain_start(&b->p.w[0], 1, "0x8001");
	assert_true(pair_until(&b->p, both_served, NULL));
	drain_to(b, NULL);
	assert_true(pair_until(&b->p, is_done, b->drain));
	vhca_drain_end(b->drain);
	assert_true(pair_until(&b->p, both_served, NULL));
}

static void test_without_a_peer_vfs_are_parked(void **state)
{
	struct box *b = *state;

	drain_to(b, NULL);
	assert_true(pair_until(&b->p, is_done, b->drain));
	assert_int_equal(pair_state(&b->p, 0), VHCA_MIG_PARKED);
	assert_view(b, "\"state\":\"parked\"");
	assert_true(b->p.w[0].domains[0].running);
	restart(b);
	assert_true(pair_until(&b->p, is_done, b->drain)); /* a restart gives nothing back */
	assert_int_equal(pair_state(&b->p, 0), VHCA_MIG_PARKED);
	vhca_drain_end(b->drain);
	assert_true(pair_until(&b->p, at_home, &zero));
	restart(b);
	assert_false(vhca_drain_is_on(b->drain));
}

/* Killed when the end of the drain was durable, and nothing else yet. */
static void test_undrain_outlives_the_agent(void **state)
{
	struct box *b = *state;

	drain_to(b, NULL);
	assert_true(pair_until(&b->p, is_done, b->drain));
	vhca_drain_end(b->drain);
	restart(b);
	assert_false(vhca_drain_is_on(b->drain));
	assert_int_equal(pair_state(&b->p, 0), VHCA_MIG_PARKED);
	assert_true(pair_until(&b->p, at_home, &zero));
}

/* The same with peers that were named for those that had been parked. */
static void test_other_peers_outlive_the_agent(void **state)
{
	struct box *b = *state;

	drain_to(b, NULL);
	assert_true(pair_until(&b->p, is_done, b->drain));
	drain_to(b, "other");
	restart(b);
	assert_int_equal(pair_state(&b->p, 0), VHCA_MIG_PARKED);
	assert_true(pair_until(&b->p, at_home, &one));
}

/* Who asks twice in a row is served when the second word is durable, not the first. */
static void test_nothing_is_begun_before_the_last_word_is_durable(void **state)
{
	struct box *b = *state;

	memset(&keep, 0, sizeof(keep));
	keep.on = true;
	drain_to(b, "other");
	drain_to(b, NULL);
	keep.on = false;
	assert_non_null(keep.txn);
	assert_true(pair_until(&b->p, first_is_durable, NULL));
	pair_settle(&b->p);
	assert_int_equal(pair_state(&b->p, 0), VHCA_MIG_STATE_COUNT);
	__real_vhca_txn_commit(keep.txn, keep.fn, keep.arg);
	assert_true(pair_until(&b->p, is_done, b->drain));
	assert_int_equal(pair_state(&b->p, 0), VHCA_MIG_PARKED);
}

static void test_nothing_new_while_drained(void **state)
{
	struct box *b = *state;
	struct vhca_hook_request hook = {.op = "prepare", .subop = "begin", .has_request = true};
	struct vhca_claim *claim = TAILQ_FIRST(&vhca_engine_model(b->p.w[0].engine)->claims);
	struct vhca_error err = VHCA_ERROR_INIT;

	drain_to(b, NULL);
	assert_true(vhca_engine_hook(b->p.w[0].engine, &hook, &err) < 0);
	assert_string_equal(err.code, "drained");
	hook.has_uuid = true;
	hook.uuid = b->p.w[0].domains[0].info.uuid;
	assert_true(vhca_engine_hook(b->p.w[0].engine, &hook, &err) < 0);
	claim->migrating = true; /* reserved before the drain began: on its way here */
	assert_int_equal(vhca_engine_hook(b->p.w[0].engine, &hook, &err), 0);
	claim->migrating = false;
	hook.has_request = false;
	assert_int_equal(vhca_engine_hook(b->p.w[0].engine, &hook, &err), 0);
	assert_true(pair_until(&b->p, is_done, b->drain));
	restart(b);
	(void)world_domain_start(&b->p.w[0], 1, "0x8001");
	assert_true(pair_until(&b->p, problem_is, "drained"));
	vhca_drain_end(b->drain);
	assert_true(pair_until(&b->p, second_served, NULL));
}

/* A drained destination: the guest stays where it is. */
static void test_no_guest_comes_in(void **state)
{
	struct box *b = *state;

	drain_to(b, "other");
	assert_true(pair_until(&b->p, host_is_free, NULL));
	assert_true(pair_until(&b->p, at_home, &one));
	(void)pair_migrate(&b->p, 1);
	unit_until(vhca_mig_state_is_final(pair_state(&b->p, 1)), pair_settle(&b->p));
	assert_int_equal(pair_state(&b->p, 1), VHCA_MIG_FAILED);
	assert_true(pair_until(&b->p, at_home, &one));
}

static bool has_reason(const struct pair *p, const void *drain)
{
	struct json_object *doc = vhca_drain_view(drain);
	bool has = strstr(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN),
			  "let go of the VF");

	(void)p;
	json_object_put(doc);
	return has;
}

static void test_guest_that_does_not_go_is_asked_again(void **state)
{
	struct box *b = *state;

	world_deafen(&b->p.w[0]);
	drain_to(b, "other");
	assert_true(pair_until(&b->p, has_reason, b->drain));
	assert_view(b, "\"done\":false");
	b->p.w[0].deaf_guest = false;
	assert_true(pair_until(&b->p, is_done, b->drain));
	assert_true(pair_until(&b->p, at_home, &one));
}

static void test_unknown_peer(void **state)
{
	struct box *b = *state;
	const char *const peers[] = {"other", "nobody"};
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(vhca_drain_begin(b->drain, peers, 2, &err) < 0);
	assert_string_equal(err.code, "no_such_peer");
	assert_false(vhca_drain_is_on(b->drain));
	vhca_drain_end(b->drain); /* is no error */
	pair_settle(&b->p);
	assert_true(pair_at_home(&b->p, 0));
}

/* Parked first, and then peers are found. */
static void test_other_peers(void **state)
{
	struct box *b = *state;

	drain_to(b, NULL);
	assert_true(pair_until(&b->p, is_done, b->drain));
	drain_to(b, "other");
	assert_true(pair_until(&b->p, at_home, &one));
	assert_true(pair_until(&b->p, is_done, b->drain));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_guests_go_to_a_peer),
		TEST(test_the_next_goes_when_one_is_out_of_the_way),
		TEST(test_without_a_peer_vfs_are_parked),
		TEST(test_undrain_outlives_the_agent),
		TEST(test_other_peers_outlive_the_agent),
		TEST(test_nothing_is_begun_before_the_last_word_is_durable),
		TEST(test_nothing_new_while_drained),
		TEST(test_no_guest_comes_in),
		TEST(test_guest_that_does_not_go_is_asked_again),
		TEST(test_unknown_peer),
		TEST(test_other_peers),
	};

	return cmocka_run_group_tests_name("drain", tests, NULL, NULL);
}
