// SPDX-License-Identifier: LGPL-2.1-or-later
/* VFs that fail: who is served by which other one, and what becomes of them. */
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

static void begin(struct world *w, enum vhca_effect broken, uint32_t vfs)
{
	w->broken_effect = broken;
	w->broken_vfs = vfs;
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
}

static struct answer ask(struct world *w, unsigned int i, enum vhca_origin origin, int bdf)
{
	struct vhca_claim_request req = {
		.domain = w->domains[i].info.uuid, .origin = origin, .vf = {.numa = -1}};
	struct answer a = {0};

	(void)snprintf(req.domain_name, sizeof(req.domain_name), "vm%u", i);
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib0");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	if (bdf >= 0) {
		req.has_bdf = true;
		req.bdf = w->vfs[bdf].bdf;
	}
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static bool rests(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return vf->state == VHCA_VF_QUARANTINED && !vf->committing;
}

static void test_vf_that_cannot_be_programmed_is_quarantined(void **state)
{
	struct world *w = *state;

	begin(w, VHCA_EFFECT_PROGRAM, 1);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_true(world_until(w, rests, &zero));
	assert_true(world_clean(w, 0));
	assert_int_equal(engine_vf(w, 0)->failures, VHCA_VF_FAILURES_MAX);
	assert_non_null(strstr(engine_vf(w, 0)->reason, "injected failure"));
	world_domain_start(w, 1, "0x8001");
	assert_true(world_until(w, served, &one));
	assert_true(rests(w, &zero));
}

static void test_failures_outlive_a_restart(void **state)
{
	struct world *w = *state;

	begin(w, VHCA_EFFECT_PROGRAM, 1);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, rests, &zero));
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_true(rests(w, &zero));
	assert_int_equal(engine_vf(w, 0)->failures, VHCA_VF_FAILURES_MAX);
	assert_non_null(strstr(engine_vf(w, 0)->fault, "injected failure"));
	assert_in_range(engine_vf(w, 0)->rests_until_ms - vhca_now_ms(), 1,
			VHCA_VF_REST_MIN * 60000);
	/* Nothing of a VF outlives a boot. */
	world_kill(w);
	w->broken_vfs = 0;
	world_reboot(w);
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	assert_int_equal(engine_vf(w, 0)->failures, 0);
}

static void test_success_outlives_a_restart(void **state)
{
	struct world *w = *state;

	begin(w, VHCA_EFFECT_NONE, 0);
	engine_vf(w, 0)->failures = 2;
	world_domain_start(w, 0, NULL);
	w->hostile_sm = true; /* the checker knows of metadata alone what a guest may have */
	assert_true(ask(w, 0, VHCA_ORIGIN_ATTACH, 0).ok);
	world_kill(w);
	world_start(w);
	assert_int_equal(engine_vf(w, 0)->failures, 0);
}

static void test_attach_gets_another_vf(void **state)
{
	struct world *w = *state;

	begin(w, VHCA_EFFECT_ATTACH, 1);
	world_domain_start(w, 0, NULL);
	w->hostile_sm = true; /* the checker knows of metadata alone what a guest may have */
	assert_true(ask(w, 0, VHCA_ORIGIN_ATTACH, -1).ok);
	assert_int_equal(world_vf_of(w, 0, "ib0"), 1);
	assert_int_equal(engine_vf(w, 0)->failures, 1);
	/* It is free, and the last that is given away. */
	world_domain_start(w, 1, "0x8001");
	assert_true(world_until(w, served, &one));
	assert_int_equal(world_vf_of(w, 1, "ib0"), 2);
}

static void test_claim_of_an_address_stays_there(void **state)
{
	struct world *w = *state;
	struct answer a;

	begin(w, VHCA_EFFECT_PROGRAM, 1);
	world_domain_start(w, 0, NULL);
	a = ask(w, 0, VHCA_ORIGIN_CLAIM, 0);
	assert_string_equal(a.code, "injected");
	assert_null(first_claim(w));
	assert_true(ask(w, 0, VHCA_ORIGIN_CLAIM, -1).ok);
	assert_int_equal(first_claim(w)->vf->index, 1);
}

static void test_guests_that_take_no_vf_quarantine_none(void **state)
{
	struct world *w = *state;
	unsigned int failures = 0;

	begin(w, VHCA_EFFECT_ATTACH, (1U << WORLD_VFS) - 1);
	world_domain_start(w, 0, NULL);
	world_domain_start(w, 1, NULL);
	for (unsigned int n = 0; n < 4 * WORLD_VFS; n++)
		assert_string_equal(ask(w, n % 2, VHCA_ORIGIN_ATTACH, -1).code, "injected");
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS);
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		failures += engine_vf(w, v)->failures;
	assert_int_equal(failures, 2); /* one for each guest */
}

static void test_success_clears_the_count(void **state)
{
	struct world *w = *state;

	begin(w, VHCA_EFFECT_NONE, 0);
	w->fault = WORLD_FAIL;
	w->fault_effect = VHCA_EFFECT_PROGRAM;
	w->effects = 0;
	w->fault_at = 1;
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_equal(world_vf_of(w, 0, "ib0"), 0);
	assert_int_equal(w->effects, 2);
	assert_int_equal(engine_vf(w, 0)->failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vf_that_cannot_be_programmed_is_quarantined),
		TEST(test_failures_outlive_a_restart),
		TEST(test_success_outlives_a_restart),
		TEST(test_attach_gets_another_vf),
		TEST(test_claim_of_an_address_stays_there),
		TEST(test_guests_that_take_no_vf_quarantine_none),
		TEST(test_success_clears_the_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
