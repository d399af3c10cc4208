// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests with an Idempotency-Key: what is remembered of them, and what they make is made once. */
#include <stdlib.h>
#include <string.h>

#include "agent/state/repeats.h"
#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

static struct vhca_repeats *repeats;

/* ---- instead of the machine's clocks ---- */

#define YEARS_MS (UINT64_C(3650) * 86400000)

static uint64_t ahead_ms;  /* of the wall clock */
static uint64_t passed_ms; /* of both */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what stands in */
uint64_t __real_vhca_wall_ms(void);
uint64_t __wrap_vhca_wall_ms(void);
uint64_t __real_vhca_now_ms(void);
uint64_t __wrap_vhca_now_ms(void);

uint64_t __wrap_vhca_wall_ms(void)
{
	return __real_vhca_wall_ms() + ahead_ms + passed_ms;
}

uint64_t __wrap_vhca_now_ms(void)
{
	return __real_vhca_now_ms() + passed_ms;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void on_done(void *arg, int rc)
{
	assert_int_equal(rc, 0);
	*(bool *)arg = true;
}

static bool is_true(const struct world *w, const void *arg)
{
	(void)w;
	return *(const bool *)arg;
}

/* Behind all that was submitted. */
static void reopen(struct world *w)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	bool done = false;

	vhca_txn_commit(vhca_txn_new(w->store), on_done, &done);
	assert_true(world_until(w, is_true, &done));
	repeats = vhca_repeats_free(repeats);
	assert_int_equal(vhca_repeats_new(w->store, &repeats, &err), 0);
}

static int begin(void **state)
{
	ahead_ms = passed_ms = 0;
	(void)setup(state);
	world_set_key(*state, 1, 0x8001);
	world_start(*state);
	settle_free(*state);
	reopen(*state);
	return 0;
}

static int end(void **state)
{
	repeats = vhca_repeats_free(repeats);
	return teardown(state);
}

/* Its code; "" = *ret is set. */
static const char *admit_as(const char *caller, const char *key, const char *fingerprint,
			    struct vhca_repeat **ret)
{
	const struct vhca_repeat_request req = {
		.caller = caller, .key = key, .fingerprint = fingerprint};
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	*ret = NULL;
	return vhca_repeats_admit(repeats, &req, ret, &err) < 0 ? err.code : "";
}

static struct vhca_repeat *admit(const char *key)
{
	struct vhca_repeat *r;

	assert_string_equal(admit_as("uid:0", key, "f", &r), "");
	return r;
}

static void keep(struct world *w, struct vhca_repeat *r, unsigned int status, const char *text)
{
	bool done = false;

	vhca_repeat_keep(r, status, text, on_done, &done);
	assert_false(done);
	assert_true(world_until(w, is_true, &done));
}

static void forget(struct world *w, struct vhca_repeat *r)
{
	bool done = false;

	vhca_repeat_forget(r, on_done, &done);
	assert_true(world_until(w, is_true, &done));
}

static void restart(struct world *w, unsigned int rounds)
{
	kill_after(w, rounds);
	world_settle(w);
	reopen(w);
}

static void test_key_is_its_callers_and_for_one_request(void **state)
{
	struct vhca_repeat *r = admit("k"), *other;

	(void)state;
	assert_string_equal(admit_as("uid:1", "k", "f", &other), "");
	assert_false(vhca_uuid_equal(vhca_repeat_object(r), vhca_repeat_object(other)));
	assert_string_equal(admit_as("uid:0", "k", "g", &other), "key_reused");
	assert_string_equal(admit_as("uid:0", "k", "f", &other), "key_in_use");
	assert_string_equal(admit_as("uid:0", "", "f", &other), "bad_request");
}

static void test_answer_is_given_again_once_it_is_durable(void **state)
{
	struct world *w = *state;
	struct vhca_repeat *r = admit("k"), *other;
	bool done = false;

	vhca_repeat_keep(r, 201, "{}", on_done, &done);
	assert_string_equal(admit_as("uid:0", "k", "f", &other), "key_in_use");
	assert_true(world_until(w, is_true, &done));
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(vhca_repeat_status(admit("k")), 201);
		assert_string_equal(vhca_repeat_answer(admit("k")), "{}");
		restart(w, 0);
	}
	assert_string_equal(admit_as("uid:0", "k", "g", &other), "key_reused");
}

static void test_forgotten_key_is_a_new_one(void **state)
{
	struct vhca_uuid object = *vhca_repeat_object(admit("k"));

	restart(*state, 0); /* still to be done, with the same id */
	assert_true(vhca_uuid_equal(vhca_repeat_object(admit("k")), &object));
	reopen(*state);
	forget(*state, admit("k"));
	assert_false(vhca_uuid_equal(vhca_repeat_object(admit("k")), &object));
	reopen(*state);
	assert_int_equal(vhca_repeat_status(admit("k")), 0);
}

/* What was begun goes on in the next life, for whoever hears of the end of this one. */
static void test_key_stands_when_the_agent_ends(void **state)
{
	struct vhca_repeat *r = admit("k"), *other = admit("other");
	struct vhca_uuid object = *vhca_repeat_object(r);
	bool refused = false, kept = false;

	vhca_repeats_stop(repeats);
	vhca_repeat_forget(r, on_done, &refused);
	vhca_repeat_keep(other, 200, "{}", on_done, &kept);
	assert_true(refused && kept);
	reopen(*state);
	assert_true(vhca_uuid_equal(vhca_repeat_object(admit("k")), &object));
	assert_int_equal(vhca_repeat_status(admit("other")), 0);
}

static void test_day_is_over(void **state)
{
	struct world *w = *state;
	struct vhca_txn *txn;

	keep(w, admit("k"), 201, "{}");
	keep(w, admit("younger"), 201, "{}");
	txn = vhca_txn_new(w->store);
	vhca_txn_exec(txn, "UPDATE repeats SET made = made - ?1 WHERE key = 'k'", "i",
		      (int64_t)VHCA_REPEAT_MS);
	vhca_txn_commit(txn, NULL, NULL);
	restart(w, 0);
	assert_int_equal(vhca_repeat_status(admit("younger")), 201);
	assert_int_equal(vhca_repeat_status(admit("k")), 0);
	keep(w, admit("other"), 200, "{}");
	reopen(w);
	assert_int_equal(vhca_repeat_status(admit("k")), 0);
}

/* Made while the clock was ahead, by an earlier life or this one: a day all the same. */
static void test_clock_was_ahead(void **state)
{
	struct world *w = *state;

	ahead_ms = YEARS_MS;
	keep(w, admit("k"), 201, "{}");
	restart(w, 0);
	keep(w, admit("other"), 201, "{}");
	ahead_ms = 0;
	assert_int_equal(vhca_repeat_status(admit("other")), 201);
	restart(w, 0);
	assert_int_equal(vhca_repeat_status(admit("k")), 201);
	assert_int_equal(vhca_repeat_status(admit("other")), 201);
	passed_ms = VHCA_REPEAT_MS;
	assert_int_equal(vhca_repeat_status(admit("k")), 0);
	assert_int_equal(vhca_repeat_status(admit("other")), 0);
}

/* Set, as it is soon after a boot: what has been done in this life is not done again. */
static void test_clock_goes_ahead(void **state)
{
	struct world *w = *state;

	keep(w, admit("k"), 201, "{}");
	ahead_ms = YEARS_MS;
	assert_int_equal(vhca_repeat_status(admit("k")), 201);
	passed_ms = VHCA_REPEAT_MS;
	assert_int_equal(vhca_repeat_status(admit("k")), 0);
}

static void fill_as(const char *caller, unsigned int n)
{
	struct vhca_repeat *r;
	char key[16];

	for (unsigned int i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "%u", i);
		assert_string_equal(admit_as(caller, key, "f", &r), "");
	}
}

/* Of one caller half as many, so that none has all. */
static void test_many_keys(void **state)
{
	struct vhca_repeat *r;

	fill_as("uid:1", VHCA_REPEATS_MAX / 2);
	assert_string_equal(admit_as("uid:1", "k", "f", &r), "too_many_keys");
	fill_as("uid:0", VHCA_REPEATS_MAX / 2);
	assert_string_equal(admit_as("uid:0", "k", "f", &r), "too_many_keys");
	assert_string_equal(admit_as("uid:2", "k", "f", &r), "too_many_keys");
	assert_string_equal(admit_as("uid:0", "0", "f", &r), "key_in_use");
	reopen(*state);
	assert_string_equal(admit_as("uid:2", "k", "f", &r), "too_many_keys");
	forget(*state, admit("0"));
	assert_string_equal(admit_as("uid:1", "k", "f", &r), "too_many_keys");
	assert_string_equal(admit_as("uid:2", "k", "f", &r), "");
}

static void test_long_answers(void **state)
{
	char *text = calloc(1, VHCA_REPEATS_ANSWERS_MAX / 2 + 1);
	struct vhca_repeat *r;

	assert_non_null(text);
	memset(text, 'x', VHCA_REPEATS_ANSWERS_MAX / 2);
	keep(*state, admit("k"), 200, text);
	assert_string_equal(admit_as("uid:0", "other", "f", &r), "too_many_keys");
	assert_string_equal(admit_as("uid:1", "k", "f", &r), "");
	keep(*state, r, 200, text);
	free(text);
	assert_string_equal(admit_as("uid:2", "k", "f", &r), "too_many_keys");
	reopen(*state);
	assert_string_equal(admit_as("uid:2", "k", "f", &r), "too_many_keys");
	assert_int_equal(vhca_repeat_status(admit("k")), 200);
}

static void test_row_that_cannot_be_read(void **state)
{
	struct world *w = *state;
	struct vhca_txn *txn = vhca_txn_new(w->store);
	struct vhca_error err = VHCA_ERROR_INIT;
	bool done = false;

	vhca_txn_exec(txn, "INSERT INTO repeats VALUES ('a', 'k', 'f', 'x', 0, 0, 0, '')", "");
	vhca_txn_commit(txn, on_done, &done);
	assert_true(world_until(w, is_true, &done));
	repeats = vhca_repeats_free(repeats);
	assert_true(vhca_repeats_new(w->store, &repeats, &err) < 0);
	assert_string_equal(err.code, "store_corrupt");
}

/* ---- with the engine ---- */

/* As the API does it: made, waited for, or gone (false). */
static bool ask(struct world *w, const char *key, enum vhca_origin origin, struct answer *ret)
{
	const struct vhca_repeat *r = admit(key);
	struct vhca_claim *made =
		vhca_model_claim_or_next(vhca_engine_model(w->engine), vhca_repeat_object(r));
	struct vhca_claim_request req = {
		.origin = origin,
		.domain_name = "vm0",
		.domain = w->domains[0].info.uuid,
		.vf = {.numa = -1, .name = "ib0", .fabric = "default", .partition = "0x8001"},
		.id = vhca_repeat_object(r),
	};

	*ret = (struct answer){0};
	if (!made && vhca_repeat_has_begun(r))
		return false;
	if (made)
		vhca_engine_await(w->engine, made, on_answer, ret);
	else
		vhca_engine_claim(w->engine, &req, on_answer, ret);
	return true;
}

static void release(struct world *w)
{
	struct vhca_claim *c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
	struct answer a = {0};

	vhca_engine_release(w->engine, c, false, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(world_until(w, nothing_attached, NULL));
}

/* Killed after any number of rounds: there is one claim, with the id that the key has. */
static void kill_each_round(struct world *w, enum vhca_origin origin, enum vhca_vf_state state)
{
	unsigned int fresh = 0, joined = 0;
	struct answer a;
	char key[16];

	for (unsigned int rounds = 0; rounds < 16; rounds++) {
		(void)snprintf(key, sizeof(key), "%u", rounds);
		assert_true(ask(w, key, origin, &a));
		restart(w, rounds);
		if (first_claim(w))
			joined++;
		else
			fresh++;
		assert_true(ask(w, key, origin, &a));
		assert_true(world_until(w, answered, &a));
		assert_string_equal(a.code, "");
		reopen(w); /* it was not answered before a kill */
		assert_true(vhca_uuid_equal(&first_claim(w)->id, vhca_repeat_object(admit(key))));
		assert_null(TAILQ_NEXT(first_claim(w), link));
		assert_int_equal(first_claim(w)->vf->state, state);
		release(w);
		reopen(w);
		assert_false(ask(w, key, origin, &a));
		world_check(w);
	}
	assert_true(fresh > 0 && joined > 0);
}

static void test_attach_is_done_once(void **state)
{
	struct world *w = *state;

	(void)world_domain_start(w, 0, NULL);
	w->hostile_sm = true; /* the checker knows of metadata alone what a guest may have */
	kill_each_round(w, VHCA_ORIGIN_ATTACH, VHCA_VF_ATTACHED);
}

static void test_claim_is_made_once(void **state)
{
	kill_each_round(*state, VHCA_ORIGIN_CLAIM, VHCA_VF_PROGRAMMED);
}

/* The claim that is there in the end is another one than was begun with. */
static void test_key_follows_its_claim_to_another_vf(void **state)
{
	struct world *w = *state;
	struct vhca_uuid first;
	struct answer a;

	w->broken_effect = VHCA_EFFECT_ATTACH;
	w->broken_vfs = 1;
	(void)world_domain_start(w, 0, NULL);
	w->hostile_sm = true;
	assert_true(ask(w, "k", VHCA_ORIGIN_ATTACH, &a));
	first = first_claim(w)->id;
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "");
	assert_false(vhca_uuid_equal(&first_claim(w)->id, &first));
	restart(w, 0);
	assert_true(ask(w, "k", VHCA_ORIGIN_ATTACH, &a));
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "");
	assert_int_equal(count(w, VHCA_VF_ATTACHED), 1);
}

/* Twice, in the life that answers: what was loaded of the key names neither. */
static void test_key_follows_its_claim_in_the_next_life(void **state)
{
	struct world *w = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct answer a;

	w->broken_effect = VHCA_EFFECT_ATTACH;
	w->broken_vfs = 2;
	(void)world_domain_start(w, 0, NULL);
	w->hostile_sm = true;
	assert_true(ask(w, "k", VHCA_ORIGIN_ATTACH, &a));
	kill_after(w, 5);
	repeats = vhca_repeats_free(repeats);
	assert_int_equal(vhca_repeats_new(w->store, &repeats, &err), 0);
	world_settle(w);
	assert_true(ask(w, "k", VHCA_ORIGIN_ATTACH, &a));
	assert_true(world_until(w, answered, &a));
	assert_string_equal(a.code, "");
	assert_int_equal(count(w, VHCA_VF_ATTACHED), 1);
}

#define REPEATS_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REPEATS_TEST(test_key_is_its_callers_and_for_one_request),
		REPEATS_TEST(test_answer_is_given_again_once_it_is_durable),
		REPEATS_TEST(test_forgotten_key_is_a_new_one),
		REPEATS_TEST(test_key_stands_when_the_agent_ends),
		REPEATS_TEST(test_day_is_over),
		REPEATS_TEST(test_clock_was_ahead),
		REPEATS_TEST(test_clock_goes_ahead),
		REPEATS_TEST(test_many_keys),
		REPEATS_TEST(test_long_answers),
		REPEATS_TEST(test_row_that_cannot_be_read),
		REPEATS_TEST(test_attach_is_done_once),
		REPEATS_TEST(test_claim_is_made_once),
		REPEATS_TEST(test_key_follows_its_claim_to_another_vf),
		REPEATS_TEST(test_key_follows_its_claim_in_the_next_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
