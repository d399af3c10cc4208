// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The production engine on a simulated host (tests/sim/host/world.h): a VF's life, drift,
 * administrators, each step failed, the agent killed at each step.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

/* ---- plain life ---- */

static void test_first_start_takes_over(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	for (unsigned int v = 0; v < WORLD_VFS; v++) {
		assert_true(world_clean(w, v));
		assert_string_equal(w->vfs[v].driver, "vfio-pci");
	}
	assert_int_equal(vhca_engine_check_ready(w->engine, NULL), 0);
}

static bool three_free(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_FREE) == WORLD_VFS - 1;
}

static void test_first_start_touches_nothing_in_use(void **state)
{
	struct world *w = *state;

	world_domain_start(w, 0, NULL);
	world_plug(w, 2, 0, "other");
	w->vfs[2].guid = 0x1111;
	w->vfs[2].map[0] = 0;
	world_start(w);
	assert_true(world_until(w, three_free, NULL));
	world_settle(w);
	assert_int_equal(engine_vf(w, 2)->state, VHCA_VF_UNMANAGED);
	assert_non_null(strstr(engine_vf(w, 2)->reason, "vm0"));
	assert_int_equal(w->vfs[2].guid, 0x1111);
	assert_int_equal(w->vfs[2].map[0], 0);
	assert_int_equal(vhca_engine_check_ready(w->engine, NULL), 0);
	/* When its guest has gone, it is taken over. */
	world_domain_stop(w, 0);
	assert_true(world_until(w, all_free, NULL));
	assert_true(world_clean(w, 2));
}

static void test_metadata_attaches_and_stop_releases(void **state)
{
	struct world *w = *state;
	int v;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = world_vf_of(w, 0, "ib0");
	assert_int_equal(w->vfs[v].map[0], 1);
	assert_int_equal(w->vfs[v].map[1], -1);
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(world_clean(w, (unsigned int)v));
}

static void test_two_tenants_reuse(void **state)
{
	struct world *w = *state;

	world_start(w);
	for (unsigned int round = 0; round < 4; round++) {
		world_domain_start(w, 0, "0x8001");
		world_domain_start(w, 1, "0x8002");
		assert_true(world_until(w, served, &zero));
		assert_true(world_until(w, served, &one));
		assert_int_equal(w->vfs[world_vf_of(w, 0, "ib0")].map[0], 1);
		assert_int_equal(w->vfs[world_vf_of(w, 1, "ib0")].map[0], 2);
		world_domain_stop(w, round % 2);
		world_domain_stop(w, 1 - round % 2);
		assert_true(world_until(w, nothing_attached, NULL));
	}
}

static void test_auto_guid_is_stable(void **state)
{
	struct world *w = *state;
	uint64_t guid = 0;

	world_start(w);
	for (unsigned int round = 0; round < 2; round++) {
		const struct vhca_claim *c;

		world_domain_start(w, 0, "0x8001");
		assert_true(world_until(w, served, &zero));
		c = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims);
		assert_true(!guid || guid == c->identity.guid);
		guid = c->identity.guid;
		world_domain_stop(w, 0);
		assert_true(world_until(w, nothing_attached, NULL));
	}
}

/* ---- restart and reboot ---- */

static void test_restart_with_guest_writes_nothing(void **state)
{
	struct world *w = *state;
	struct world_vf before;
	int v;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = world_vf_of(w, 0, "ib0");
	before = w->vfs[v];
	world_kill(w);
	/* Programming, scrubbing or plugging now would be counted. */
	w->effects = 0;
	w->fault_at = UINT32_MAX;
	w->fault_effect = VHCA_EFFECT_PROGRAM;
	world_start(w);
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	assert_int_equal(w->effects, 0);
	assert_memory_equal(&before, &w->vfs[v], sizeof(before));
}

static void test_domain_stopped_while_agent_was_down(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_kill(w);
	world_domain_stop(w, 0);
	world_start(w);
	assert_true(world_until(w, nothing_attached, NULL));
}

static void test_reboot(void **state)
{
	struct world *w = *state;
	uint64_t guid;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	guid = TAILQ_FIRST(&vhca_engine_model(w->engine)->claims)->identity.guid;
	world_reboot(w);
	world_start(w);
	assert_true(world_until(w, nothing_attached, NULL));
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_equal(TAILQ_FIRST(&vhca_engine_model(w->engine)->claims)->identity.guid, guid);
}

/* ---- administrators ---- */

static bool quarantined_clean(const struct world *w, const void *arg)
{
	const unsigned int *v = arg;

	return world_clean(w, *v) && engine_vf(w, *v)->state == VHCA_VF_QUARANTINED;
}

/* A VF that an orchestrator claimed stands programmed until its guest starts. */
static unsigned int claim_for(struct world *w, const struct vhca_uuid *domain)
{
	struct vhca_claim_request req = {
		.domain = *domain, .origin = VHCA_ORIGIN_CLAIM, .vf = {.numa = -1}};
	struct answer a = {0};

	(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib0");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_int_equal(w->vfs[first_claim(w)->vf->index].map[0], 1);
	return first_claim(w)->vf->index;
}

static bool is_refused_as_used(const struct world *w, const void *arg)
{
	(void)arg;
	return strstr(engine_vf(w, 2)->reason, "group open") != NULL;
}

/* The same of a VF that is still to be programmed, before libvirt has told who has it. */
static void test_vf_in_foreign_hands_is_not_programmed(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = {
		.origin = VHCA_ORIGIN_CLAIM, .vf = {.numa = -1}, .has_bdf = true};
	struct answer a = {0};

	world_start(w);
	req.domain = world_domain_start(w, 0, NULL);
	world_domain_start(w, 1, NULL);
	assert_true(world_until(w, all_free, NULL));
	req.bdf = engine_vf(w, 2)->bdf;
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib0");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	w->vfs[2].group_open = true;
	w->vfs[2].user = w->domains[1].info.uuid;
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, is_refused_as_used, NULL));
	assert_true(world_clean(w, 2));
	world_look(w, 1);
	world_settle(w);
	assert_true(world_clean(w, 2));
}

static bool maps_its_key(const struct world *w, const void *arg)
{
	return w->vfs[*(const unsigned int *)arg].map[0] == 1;
}

static void test_drift_of_a_vf_that_waits_for_its_guest_is_healed(void **state)
{
	struct world *w = *state;
	struct vhca_uuid domain;
	unsigned int v;

	world_start(w);
	domain = world_domain_start(w, 0, NULL);
	assert_true(world_until(w, all_free, NULL));
	v = claim_for(w, &domain);
	w->vfs[v].map[0] = 2;
	assert_true(world_until(w, maps_its_key, &v));
	assert_true(world_told(w, "is not what was programmed: P_Key index 0 shows 0x"));
}

static void test_key_that_somebody_unmaps_is_mapped_again(void **state)
{
	struct world *w = *state;
	unsigned int v;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	w->vfs[v].map[0] = VHCA_PKEY_UNMAPPED;
	assert_true(world_until(w, maps_its_key, &v));
	assert_true(world_told(w, "is not what was programmed: P_Key index 0"));
}

/* virsh attach-device asks neither the hook nor us. */
static void test_vf_plugged_into_another_domain_loses_its_identity(void **state)
{
	struct world *w = *state;
	struct vhca_uuid domain;
	unsigned int v;

	world_start(w);
	domain = world_domain_start(w, 0, NULL);
	world_domain_start(w, 1, NULL);
	assert_true(world_until(w, all_free, NULL));
	v = claim_for(w, &domain);
	world_plug(w, v, 1, "other");
	world_look(w, 1);
	assert_true(world_until(w, quarantined_clean, &v));
	world_settle(w);
	assert_true(quarantined_clean(w, &v));
	assert_true(w->vfs[v].group_open); /* nobody took it away */
	world_kill(w);
	world_start(w);
	world_settle(w);
	assert_true(quarantined_clean(w, &v));
	world_domain_stop(w, 1);
	assert_true(world_until(w, nothing_attached, NULL));
}

/* ---- proofs that fail ---- */

static bool quarantined(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_QUARANTINED) == 1;
}

static void test_failed_scrub_is_quarantined_and_healed(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	w->vfs_lie = true;
	world_domain_stop(w, 0);
	assert_true(world_until(w, quarantined, NULL));
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS - 1);
	w->vfs_lie = false;
	assert_true(world_until(w, nothing_attached, NULL));
}

static bool is_unplugged(const struct world *w, const void *arg)
{
	return !w->vfs[*(const unsigned int *)arg].group_open;
}

/*
 * What could not be scrubbed is in its own guest again: it is unplugged there, not stripped under
 * it.
 */
static void test_quarantined_in_its_own_guest_is_unplugged(void **state)
{
	struct world *w = *state;
	unsigned int v;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	w->vfs_lie = true;
	world_domain_stop(w, 0);
	assert_true(world_until(w, quarantined, NULL));
	world_domain_start(w, 0, "0x8001");
	world_plug(w, v, 0, "other");
	w->vfs_lie = false;
	assert_true(world_until(w, is_unplugged, &v));
	assert_true(world_told(w, "quarantined -> detaching"));
}

static bool clean_again(const struct world *w, const void *arg)
{
	(void)arg;
	return world_clean(w, 3) && all_free(w, NULL);
}

static void test_drift_of_a_free_vf_is_healed(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	w->vfs[3].map[0] = 0;
	engine_vf(w, 3)->look_ms = 0; /* its slow look comes now */
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, clean_again, NULL));
}

/*
 * mlx4 resets all maps some time after its tree has appeared, and says nothing: the free VF is
 * looked at once more, soon.
 */
static void test_reset_after_prepare_is_noticed(void **state)
{
	struct world *w = *state;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_settle(w);
	w->vfs[3].map[0] = 0;
	assert_true(world_until(w, clean_again, NULL));
}

/* ---- every effect failed once, the agent killed before and after every effect ---- */

/* A whole story: two tenants start, one is restarted, one gets a second VF, all stop. */
static void story(struct world *w)
{
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	world_domain_start(w, 1, "0x8002 0x8001");
	assert_true(world_until(w, served, &zero));
	assert_true(world_until(w, served, &one));
	world_domain_stop(w, 0);
	world_domain_start(w, 0, "0x8002");
	assert_true(world_until(w, served, &zero));
	world_domain_stop(w, 1);
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		assert_true(world_clean(w, v));
}

static void run_story_with(enum world_fault fault, unsigned int at)
{
	struct world w;

	world_init(&w);
	w.fault = fault;
	w.fault_at = at;
	w.retry_ms = 20;
	w.request_ms = 80;
	print_message("# fault %u at effect %u\n", fault, at);
	story(&w);
	/* A fault point that is never reached would prove nothing. */
	assert_true(w.effects >= at);
	world_done(&w);
}

/*
 * Prepare of 4 VFs, then per tenant program, attach and at least one read, scrub: the first 16
 * effects cover each kind.
 */
#define FAULT_POINTS 16

static void test_every_effect_fails_once(void **state)
{
	(void)state;
	for (unsigned int at = 1; at <= FAULT_POINTS; at++)
		run_story_with(WORLD_FAIL, at);
}

static void test_killed_before_every_effect(void **state)
{
	(void)state;
	for (unsigned int at = 1; at <= FAULT_POINTS; at++)
		run_story_with(WORLD_CRASH_BEFORE, at);
}

static void test_killed_after_every_effect(void **state)
{
	(void)state;
	for (unsigned int at = 1; at <= FAULT_POINTS; at++)
		run_story_with(WORLD_CRASH_AFTER, at);
}

static bool libvirt_is_gone(const struct world *w, const void *arg)
{
	(void)arg;
	return w->virt_down;
}

/* The VF is in its guest, and nobody has said so: it is neither taken out nor plugged in twice. */
static void test_attach_whose_answer_is_lost(void **state)
{
	struct world *w = *state;
	uint64_t end;

	w->fault = WORLD_MUTE;
	w->fault_effect = VHCA_EFFECT_ATTACH;
	w->fault_at = 1;
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, libvirt_is_gone, NULL));
	end = vhca_now_ms() + 1000; /* the first back-off is half of it */
	while (vhca_now_ms() < end)
		world_round(w, 20);
	w->virt_down = false;
	world_sync_domains(w);
	assert_true(world_until(w, served, &zero));
	assert_true(world_told(w, "attached"));
	assert_false(world_told(w, "scrubbing"));
	assert_false(world_told(w, "detaching"));
}

/* ---- the hook ---- */

static void test_hook_answers(void **state)
{
	struct world *w = *state;
	struct vhca_hook_request req = {
		.op = "prepare", .subop = "begin", .has_uuid = true, .n_hostdevs = 1};
	struct vhca_error err = VHCA_ERROR_INIT;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	req.uuid = world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	req.hostdevs[0] = w->vfs[world_vf_of(w, 0, "ib0")].bdf;
	assert_true(vhca_engine_hook(w->engine, &req, &err) < 0); /* not this time, but the last */
	assert_string_equal(err.code, "still_attached");
	snprintf(req.op, sizeof(req.op), "start"); /* libvirt may show the XML before */
	assert_int_equal(vhca_engine_hook(w->engine, &req, &err), 0);
	req.uuid.b[3] ^= 1; /* another domain wants it */
	assert_true(vhca_engine_hook(w->engine, &req, &err) < 0);
	assert_string_equal(err.code, "not_claimed");
	req.hostdevs[0] = w->vfs[3].bdf; /* a free one */
	assert_true(vhca_engine_hook(w->engine, &req, &err) < 0);
	snprintf(req.op, sizeof(req.op), "stopped");
	assert_int_equal(vhca_engine_hook(w->engine, &req, &err), 0);
	snprintf(req.op, sizeof(req.op), "prepare");
	req.hostdevs[0] = (struct vhca_bdf){.bus = 9}; /* not ours */
	assert_int_equal(vhca_engine_hook(w->engine, &req, &err), 0);
}

/* Of a domain with more host devices than a request has room for, the last ones are not named. */
static void test_unnamed_host_devices_do_not_pass(void **state)
{
	struct world *w = *state;
	struct vhca_hook_request req = {.op = "prepare", .subop = "begin", .incomplete = true};
	struct vhca_error err = VHCA_ERROR_INIT;

	w->conf.hcas[0].manage = false;
	world_start(w);
	assert_int_equal(vhca_engine_hook(w->engine, &req, &err), 0); /* there is none of ours */
	world_kill(w);
	w->conf.hcas[0].manage = true;
	world_start(w);
	assert_true(vhca_engine_hook(w->engine, &req, &err) < 0); /* they are to be taken over */
	assert_string_equal(err.code, "host_devices_unknown");
	assert_true(world_until(w, all_free, NULL));
	assert_true(vhca_engine_hook(w->engine, &req, &err) < 0);
	assert_string_equal(err.code, "host_devices_unknown");
	(void)snprintf(req.op, sizeof(req.op), "release");
	assert_int_equal(vhca_engine_hook(w->engine, &req, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_start_takes_over),
		TEST(test_first_start_touches_nothing_in_use),
		TEST(test_metadata_attaches_and_stop_releases),
		TEST(test_two_tenants_reuse),
		TEST(test_auto_guid_is_stable),
		TEST(test_restart_with_guest_writes_nothing),
		TEST(test_domain_stopped_while_agent_was_down),
		TEST(test_reboot),
		TEST(test_drift_of_a_vf_that_waits_for_its_guest_is_healed),
		TEST(test_key_that_somebody_unmaps_is_mapped_again),
		TEST(test_vf_plugged_into_another_domain_loses_its_identity),
		TEST(test_vf_in_foreign_hands_is_not_programmed),
		TEST(test_failed_scrub_is_quarantined_and_healed),
		TEST(test_quarantined_in_its_own_guest_is_unplugged),
		TEST(test_drift_of_a_free_vf_is_healed),
		TEST(test_reset_after_prepare_is_noticed),
		cmocka_unit_test(test_every_effect_fails_once),
		TEST(test_attach_whose_answer_is_lost),
		cmocka_unit_test(test_killed_before_every_effect),
		cmocka_unit_test(test_killed_after_every_effect),
		TEST(test_hook_answers),
		TEST(test_unnamed_host_devices_do_not_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
