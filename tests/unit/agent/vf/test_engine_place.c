// SPDX-License-Identifier: LGPL-2.1-or-later
/* VFs that the kernel shows at another place of their card than before: at the address of
 * another VF. */
#include <string.h>

#include "tests/sim/host/world_int.h"
#include "tests/unit/agent/vf/engine_world.h"

static bool all_clean(const struct world *w, const void *arg)
{
	(void)arg;
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (!world_clean(w, v))
			return false;
	return count(w, VHCA_VF_FREE) == WORLD_VFS &&
	       TAILQ_EMPTY(&vhca_engine_model(w->engine)->claims);
}

static bool is_programmed(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_PROGRAMMED) == 1;
}

/* Of the address of place v: where does the engine send what it does? */
static unsigned int place_of(const struct world *w, unsigned int v)
{
	return engine_vf(w, v)->index;
}

/* An orchestrator's claim on VF 0, for an XML to come. */
static void claim_vf_0(struct world *w)
{
	struct vhca_claim_request req = {.domain = w->domains[0].info.uuid,
					 .origin = VHCA_ORIGIN_CLAIM,
					 .has_bdf = true,
					 .bdf = w->vfs[0].bdf,
					 .vf = {.numa = -1}};
	struct answer a = {0};

	(void)snprintf(req.domain_name, sizeof(req.domain_name), "vm0");
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "hand");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(world_until(w, is_programmed, NULL));
}

static void start(struct world *w)
{
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
}

/* What the driver has made of it meanwhile is not known. */
static void test_free_vf_is_prepared_at_its_new_place(void **state)
{
	struct world *w = *state;

	start(w);
	w->vfs[0].guid = 0x0002c9030000beef;
	world_swap(w, 0, 1);
	assert_true(world_until(w, all_clean, NULL));
	assert_int_equal(place_of(w, 0), 0);
	assert_int_equal(place_of(w, 1), 1);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
}

static void test_claim_ends_and_nothing_is_left_behind(void **state)
{
	struct world *w = *state;

	start(w);
	claim_vf_0(w);
	world_swap(w, 0, 1);
	assert_true(world_until(w, all_clean, NULL));
	assert_true(world_told(w, "was VF 0 of 0000:01:00.0 and is VF 1"));
}

static void test_claim_ends_after_a_restart(void **state)
{
	struct world *w = *state;

	start(w);
	claim_vf_0(w);
	world_kill(w);
	world_swap(w, 0, 1);
	world_start(w);
	assert_true(world_until(w, all_clean, NULL));
	assert_true(world_told(w, "was VF 0 of 0000:01:00.0 and is VF 1"));
}

static bool is_prepared_anew(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 0);

	(void)arg;
	return vf->index == 0 && vf->state == VHCA_VF_FREE && !vf->reprogram && !vf->committing;
}

static bool is_claimed_at_1(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, 1);

	(void)arg;
	return vf->index == 1 && vf->state == VHCA_VF_CLAIMED && !vf->committing && vf->claim;
}

/* Of a guest that is parked, or on its way: it comes back to this claim. */
static void test_claim_without_its_identity_is_kept(void **state)
{
	struct world *w = *state;
	struct vhca_vf *vf;

	start(w);
	claim_vf_0(w);
	vf = engine_vf(w, 0);
	vf->claim->migrating = true; /* as a migration leaves it */
	vf->claim->custody = VHCA_CUSTODY_WITHHELD;
	vf->state = VHCA_VF_CLAIMED;
	world_vf_scrub(w, &w->vfs[0]);
	w->vfs[1].guid = 0x0002c9030000beef;
	world_swap(w, 0, 1);
	assert_true(world_until(w, is_claimed_at_1, NULL));
	assert_true(world_clean(w, 1));
	assert_false(vhca_claim_is_ending(engine_vf(w, 1)->claim));
}

/* Its journal says the new place, or the next agent would find it moved once more. */
static void test_new_place_is_durable(void **state)
{
	struct world *w = *state;

	start(w);
	world_swap(w, 0, 1);
	assert_true(world_until(w, is_prepared_anew, NULL));
	claim_vf_0(w);
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, is_programmed, NULL));
	world_settle(w);
	assert_true(is_programmed(w, NULL));
	assert_false(world_told(w, "was VF"));
}

static bool hangs(const struct world *w, const void *arg)
{
	(void)arg;
	return w->hung;
}

/* What is under way for the VF that was there still writes to the place. */
static void test_place_is_left_alone_until_the_last_effect_ends(void **state)
{
	struct world *w = *state;

	start(w);
	w->fault_effect = VHCA_EFFECT_PROGRAM;
	w->fault = WORLD_HANG;
	w->fault_at = 1;
	w->effects = 0;
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, hangs, NULL));
	world_swap(w, 0, 1);
	world_settle(w);
	assert_int_equal(engine_vf(w, 0)->index, 0);
	assert_true(engine_vf(w, 0)->reprogram);
	assert_int_equal(engine_vf(w, 1)->index, 0); /* its claim's effect goes there */
	world_domain_stop(w, 0);
	world_release(w);
	assert_true(world_until(w, all_clean, NULL));
}

static bool is_stripped(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 0)->state == VHCA_VF_QUARANTINED && world_clean(w, 0) &&
	       !engine_vf(w, 0)->committing;
}

/* virsh attach-device asks nobody: at this address was a free VF a moment ago. */
static void test_guest_of_a_vf_that_moved_keeps_no_identity(void **state)
{
	struct world *w = *state;

	start(w);
	claim_vf_0(w);
	world_domain_start(w, 1, NULL);
	world_swap(w, 0, 1);
	world_plug(w, 0, 1, "other");
	assert_true(world_until(w, is_stripped, NULL));
	assert_true(w->vfs[0].group_open);
	world_domain_stop(w, 1);
	assert_true(world_until(w, all_clean, NULL));
}

static bool is_seen_at_0(const struct world *w, const void *arg)
{
	(void)arg;
	return engine_vf(w, 0)->index == 0 && !engine_vf(w, 0)->committing;
}

/* Where the VF is now is durable, and nothing else has been done about it. */
static void test_guest_of_a_vf_that_moved_keeps_none_after_a_restart(void **state)
{
	struct world *w = *state;

	start(w);
	claim_vf_0(w);
	world_domain_start(w, 1, NULL);
	world_swap(w, 0, 1);
	assert_true(world_until(w, is_seen_at_0, NULL));
	assert_false(world_clean(w, 0));
	world_kill(w);
	world_plug(w, 0, 1, "other");
	world_start(w);
	assert_true(world_until(w, is_stripped, NULL));
	world_domain_stop(w, 1);
	assert_true(world_until(w, all_clean, NULL));
}

static void test_vf_that_moved_passes_no_hook(void **state)
{
	struct world *w = *state;
	struct vhca_hook_request req = {.op = "prepare", .subop = "begin", .has_uuid = true};
	struct vhca_error err = VHCA_ERROR_INIT;

	start(w);
	claim_vf_0(w);
	req.uuid = w->domains[0].info.uuid;
	req.hostdevs[req.n_hostdevs++] = w->vfs[0].bdf;
	assert_int_equal(vhca_engine_hook(w->engine, &req, &err), 0);
	world_swap(w, 0, 1); /* nothing else has happened yet */
	assert_true(vhca_engine_hook(w->engine, &req, &err) < 0);
	assert_string_equal(err.code, "not_programmed");
	assert_true(world_until(w, all_clean, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_free_vf_is_prepared_at_its_new_place),
		TEST(test_claim_ends_and_nothing_is_left_behind),
		TEST(test_claim_ends_after_a_restart),
		TEST(test_claim_without_its_identity_is_kept),
		TEST(test_new_place_is_durable),
		TEST(test_place_is_left_alone_until_the_last_effect_ends),
		TEST(test_guest_of_a_vf_that_moved_keeps_no_identity),
		TEST(test_guest_of_a_vf_that_moved_keeps_none_after_a_restart),
		TEST(test_vf_that_moved_passes_no_hook),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
