// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests to the production engine at run time: what is served, refused, waited for and told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/host/world_int.h"
#include "tests/unit/agent/vf/engine_world.h"

/* ---- requests ---- */

static struct answer attach(struct world *w, unsigned int i, const char *name,
			    const char *partition)
{
	struct vhca_claim_request req = {.domain = w->domains[i].info.uuid,
					 .origin = VHCA_ORIGIN_ATTACH,
					 .vf = {.numa = -1}};
	struct answer a = {0};

	(void)snprintf(req.domain_name, sizeof(req.domain_name), "vm%u", i);
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "%s", name);
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "%s", partition);
	/* The checker asks the metadata what a tenant may have: let it know. */
	w->domains[i].info.requests[w->domains[i].info.n_requests] = req.vf;
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static struct answer release(struct world *w, unsigned int i, const char *name,
			     bool forbid_attached)
{
	struct vhca_claim *c =
		vhca_model_claim_of(vhca_engine_model(w->engine), &w->domains[i].info.uuid, name);
	struct answer a = {0};

	assert_non_null(c);
	vhca_engine_release(w->engine, c, forbid_attached, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	return a;
}

static void test_attach_and_detach_at_run_time(void **state)
{
	struct world *w = *state;
	struct answer a;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	a = attach(w, 0, "ib1", "0x8001");
	assert_true(a.ok);
	assert_true(world_vf_of(w, 0, "ib1") >= 0);
	a = release(w, 0, "ib1", false);
	assert_true(a.ok);
	assert_int_equal(world_vf_of(w, 0, "ib1"), -1);
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS - 1);
}

/* Also when it is written into a guest that runs, and with the way out. */
static void test_bad_metadata_is_told_when_it_comes(void **state)
{
	struct world *w = *state;
	struct vhca_error *err = &w->domains[0].info.request_error;

	world_start(w);
	world_domain_start(w, 0, NULL);
	assert_true(world_until(w, all_free, NULL));
	vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", 0, "guid=x is not valid");
	vhca_error_hint(err, "allowed in guid: auto");
	world_look(w, 0);
	assert_true(world_told(w, "guid=x is not valid; allowed in guid: auto"));
}

/*
 * Somebody edits what domain 0 asks for; NULL: the VF is taken out. The world goes on taking what
 * it has asked for first for what its guest may see.
 */
static void edit(struct world *w, const char *partition, uint64_t guid)
{
	struct vhca_uuid uuid = w->domains[0].info.uuid;
	struct vhca_dom_info *info =
		vhca_dom_info_dup(vhca_model_domain(vhca_engine_model(w->engine), &uuid)->info);

	assert_non_null(info);
	info->n_requests = partition ? 1 : 0;
	(void)snprintf(info->requests[0].partition, sizeof(info->requests[0].partition), "%s",
		       partition ? partition : "");
	info->requests[0].guid = guid;
	vhca_engine_domain(w->engine, &uuid, info);
	free(info);
	world_settle(w);
}

static void start_with_a_vf(struct world *w)
{
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_equal(first_claim(w)->differs.kind, VHCA_ERR_NONE);
}

static void test_partitions_that_change_under_a_guest_are_said(void **state)
{
	static const char *const others[] = {"0x8002", "0x8001 0x8002", "0x0001", "nowhere"};
	struct world *w = *state;
	int v;

	start_with_a_vf(w);
	v = world_vf_of(w, 0, "ib0");
	for (unsigned int i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		edit(w, others[i], 0);
		assert_true(served(w, &zero));
		assert_int_equal(w->vfs[v].map[1], -1);
		assert_non_null(strstr(first_claim(w)->differs.msg, others[i]));
		assert_true(world_told(w, others[i]));
	}
	edit(w, "0x8001", 0);
	assert_int_equal(first_claim(w)->differs.kind, VHCA_ERR_NONE);
}

static void test_guid_that_changes_under_a_guest_is_said(void **state)
{
	struct world *w = *state;
	uint64_t guid;

	start_with_a_vf(w);
	guid = first_claim(w)->identity.guid;
	edit(w, "0x8001", guid + 1);
	assert_true(world_told(w, "ib0 keeps the GUID that it came with"));
	assert_true(served(w, &zero));
	edit(w, "0x8001", guid);
	assert_int_equal(first_claim(w)->differs.kind, VHCA_ERR_NONE);
	edit(w, "0x8001", VHCA_GUID_BY_SM); /* content with any */
	assert_int_equal(first_claim(w)->differs.kind, VHCA_ERR_NONE);
}

/* Nothing is taken from a guest because somebody edits a text. */
static void test_vf_that_is_not_asked_for_any_more_is_said(void **state)
{
	struct world *w = *state;

	start_with_a_vf(w);
	edit(w, NULL, 0);
	assert_true(served(w, &zero));
	assert_true(world_told(w, "ib0 has its VF, and is not asked for any more; "
				  "vhcactl detach vm0 ib0"));
	edit(w, "0x8001", 0);
	assert_int_equal(first_claim(w)->differs.kind, VHCA_ERR_NONE);
}

static void test_vf_by_hand_is_not_compared(void **state)
{
	struct world *w = *state;

	start_with_a_vf(w);
	assert_true(attach(w, 0, "ib1", "0x8001").ok);
	world_look(w, 0);
	world_settle(w);
	assert_false(world_told(w, "ib1 has its VF, and is not asked for"));
}

static void test_vf_that_is_added_comes(void **state)
{
	struct world *w = *state;

	start_with_a_vf(w);
	world_ask(w, 0, "ib1", "0x8001");
	world_settle(w);
	assert_true(world_vf_of(w, 0, "ib1") >= 0);
	assert_true(served(w, &zero));
}

static bool has_claim(const struct world *w, const void *arg)
{
	(void)arg;
	return first_claim(w) && count(w, VHCA_VF_CLAIMED) == 1;
}

static void test_request_that_changes_before_its_vf_comes_begins_anew(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8077"); /* which the port never gets */
	assert_true(world_until(w, has_claim, NULL));
	(void)snprintf(w->domains[0].info.requests[0].partition, sizeof("0x8001"), "0x8001");
	world_look(w, 0);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(first_claim(w)->identity.pkeys[0], 0x8001);
}

static void test_unplug_of_a_paused_guest_is_refused_at_once(void **state)
{
	struct world *w = *state;
	struct answer a;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	w->fault_effect = VHCA_EFFECT_DETACH; /* is counted */
	w->effects = 0;
	w->domains[0].paused = true;
	world_look(w, 0);
	a = release(w, 0, "ib0", false);
	assert_string_equal(a.code, "guest_paused");
	world_settle(w);
	assert_true(served(w, &zero));
	assert_int_equal(w->effects, 0);
	/* It is as if nobody had asked. */
	assert_false(vhca_model_suppressed(vhca_engine_model(w->engine), &w->domains[0].info.uuid,
					   "ib0"));
	w->domains[0].paused = false;
	world_look(w, 0);
	assert_true(release(w, 0, "ib0", false).ok);
	assert_int_equal(w->effects, 1);
}

static void test_detached_stays_away_until_the_domain_stops(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_true(release(w, 0, "ib0", false).ok);
	world_settle(w);
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_settle(w);
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
	world_domain_stop(w, 0);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
}

/* Though it stops while the agent is away: at a reboot of the host, say. */
static void test_detached_comes_back_although_nobody_saw_the_stop(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_true(release(w, 0, "ib0", false).ok);
	world_kill(w);
	world_domain_stop(w, 0);
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
}

static bool knows_no_domain(const struct world *w, const void *arg)
{
	(void)arg;
	return TAILQ_EMPTY(&vhca_engine_model(w->engine)->domains);
}

/*
 * An orchestrator that takes its claim back when the domain has gone asks nobody to stay without a
 * VF.
 */
static void test_claim_that_is_taken_back_forbids_nothing(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = {.origin = VHCA_ORIGIN_CLAIM, .vf = {.numa = -1}};
	struct answer a = {0};

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	req.domain = world_domain_start(w, 0, NULL);
	world_domain_stop(w, 0);
	assert_true(world_until(w, knows_no_domain, NULL));
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "ib0");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8001");
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	assert_true(release(w, 0, "ib0", true).ok);
	assert_true(TAILQ_EMPTY(&vhca_engine_model(w->engine)->suppressed));
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
}

/* The guest has its VF still: whoever waits for the end has not seen it. */
static void test_release_under_way_at_shutdown_is_no_success(void **state)
{
	struct world *w = *state;
	struct answer a = {0};

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	vhca_engine_release(w->engine, (struct vhca_claim *)first_claim(w), false, on_answer, &a);
	world_kill(w);
	assert_true(a.called);
	assert_string_equal(a.code, "shutting_down");
	assert_true(world_vf_of(w, 0, "ib0") >= 0);
}

static void ended(struct world *w, unsigned int i, const char *name)
{
	assert_true(attach(w, i, name, "0x8001").ok);
	assert_true(release(w, i, name, false).ok);
}

/*
 * A host has had any number of guests: the epochs of the last of them are remembered, here and on
 * disk.
 */
static void test_epochs_of_old_are_forgotten(void **state)
{
	struct world *w = *state;
	struct vhca_model *m;
	uint64_t old, kept, last;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	m = vhca_engine_model(w->engine);
	kept = first_claim(w)->identity.guid;
	ended(w, 0, "ib1");
	old = m->epochs[1].guid;
	assert_int_equal(vhca_model_epoch(m, old), 1);
	for (uint64_t n = 0; m->n_epochs < VHCA_EPOCHS_MAX; n++)
		assert_int_equal(vhca_model_set_epoch(m, UINT64_C(0x0214050000000000) + n, 1), 0);
	ended(w, 0, "ib2");
	assert_in_range(m->n_epochs, 2, VHCA_EPOCHS_MAX);
	last = m->epochs[0].guid;
	assert_int_equal(vhca_model_epoch(m, old), 0);
	world_kill(w);
	world_start(w);
	m = vhca_engine_model(w->engine);
	assert_int_equal(m->n_epochs, 2);
	assert_int_equal(vhca_model_epoch(m, old), 0);
	assert_true(vhca_model_epoch(m, kept) > 0);
	assert_true(vhca_model_epoch(m, last) > 0);
}

static void test_bad_requests_are_refused(void **state)
{
	static const struct {
		const char *name, *partition, *code;
	} bad[] = {
		{"ib1", "0x8001 0x8001", NULL},
		{"ib1", "nonsense", NULL},
		{"ib0", "0x8001", "exists"},
	};
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct answer a = attach(w, 0, bad[i].name, bad[i].partition);

		assert_false(a.ok);
		if (bad[i].code)
			assert_string_equal(a.code, bad[i].code);
	}
	assert_int_equal(count(w, VHCA_VF_FREE), WORLD_VFS - 1);
	assert_string_equal(release(w, 0, "ib0", true).code, "attached");
}

static void test_exhaustion_is_told_with_numbers(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, NULL);
	world_domain_start(w, 1, NULL);
	assert_true(world_until(w, all_free, NULL));
	for (unsigned int i = 0; i < WORLD_VFS; i++)
		assert_true(attach(w, 0, names[i], "0x8001").ok);
	assert_string_equal(attach(w, 0, "e", "0x8001").code, "no_root_port");
	assert_string_equal(attach(w, 1, "e", "0x8001").code, "no_free_vf");
}

static bool served_one(const struct world *w, const void *arg)
{
	return served(w, arg);
}

static bool is_refused(const struct world *w, const void *arg)
{
	const struct vhca_domain *d =
		vhca_model_domain(vhca_engine_model(w->engine), &w->domains[1].info.uuid);

	(void)arg;
	return d && d->requests[0].problem.kind;
}

/*
 * mlx4: 127 keys fit; here 8. Full is said with numbers, before the SM is asked; what is there
 * already needs no room.
 */
static void test_full_pkey_table_is_told_with_numbers(void **state)
{
	struct world *w = *state;
	const struct vhca_domain *d;

	for (unsigned int i = 0; i < WORLD_KEYS; i++)
		if (!w->port_pkeys[i])
			w->port_pkeys[i] = (uint16_t)(0x8010 + i);
	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, "0x8001 0x8002");
	assert_true(world_until(w, served, &zero));
	world_domain_start(w, 1, "0x8002 0x8030");
	assert_true(world_until(w, is_refused, NULL));
	d = vhca_model_domain(vhca_engine_model(w->engine), &w->domains[1].info.uuid);
	assert_string_equal(d->requests[0].problem.code, "pkey_table_full");
	assert_non_null(strstr(d->requests[0].problem.msg,
			       "room for 8 P_Keys and would need 9; the VFs that are claimed on "
			       "it use 2"));
	world_domain_stop(w, 1);
	world_domain_start(w, 1, "0x8002");
	assert_true(world_until(w, served, &one));
}

static void test_waiting_domain_gets_the_vf_that_becomes_free(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, NULL);
	assert_true(world_until(w, all_free, NULL));
	for (unsigned int i = 0; i < WORLD_VFS; i++)
		assert_true(attach(w, 0, names[i], "0x8001").ok);
	world_domain_start(w, 1, "0x8002");
	world_settle(w);
	assert_int_equal(world_vf_of(w, 1, "ib0"), -1);
	assert_true(release(w, 0, "b", false).ok);
	assert_true(world_until(w, served_one, &one));
}

static void test_guest_that_does_not_let_go(void **state)
{
	struct world *w = *state;
	struct answer a;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_deafen(w);
	a = release(w, 0, "ib0", false);
	assert_string_equal(a.code, "guest_did_not_release");
	assert_true(world_until(w, served, &zero));
	assert_false(world_clean(w, (unsigned int)world_vf_of(w, 0, "ib0")));
}

static bool waits_for_the_group(const struct world *w, const void *arg)
{
	const struct vhca_vf *vf = engine_vf(w, *(const unsigned int *)arg);

	return vf->state == VHCA_VF_SCRUBBING && strstr(vf->reason, "waits until nobody has it");
}

/* QEMU takes its time to let go, and has as much of it after a restart. */
static void test_group_that_closes_late_is_waited_for_after_a_restart(void **state)
{
	struct world *w = *state;
	unsigned int v;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	w->hostile_sm = true; /* the checker knows of live guests alone what they may have */
	w->vfs[v].user.b[0] ^= 1;
	world_look(w, 0);
	assert_true(world_until(w, waits_for_the_group, &v));
	world_kill(w);
	world_start(w);
	assert_true(world_until(w, waits_for_the_group, &v));
	world_vf_unplug(&w->vfs[v]);
	assert_true(world_until(w, served, &zero));
	assert_false(world_told(w, "-> quarantined"));
}

/* Somebody has plugged a device of his own in where the VF was, while it was out. */
static void test_vf_whose_guest_address_was_taken_comes_elsewhere(void **state)
{
	struct world *w = *state;
	struct vhca_claim_request req = {.origin = VHCA_ORIGIN_ATTACH, .vf = {.numa = -1}};
	const struct vhca_claim *ib0;
	struct vhca_claim *c;
	struct answer a = {0};

	world_start(w);
	req.domain = world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	ib0 = first_claim(w);
	assert_true(ib0->has_guest);
	(void)snprintf(req.vf.name, sizeof(req.vf.name), "hand");
	(void)snprintf(req.vf.fabric, sizeof(req.vf.fabric), "default");
	(void)snprintf(req.vf.partition, sizeof(req.vf.partition), "0x8002");
	vhca_engine_claim(w->engine, &req, on_answer, &a);
	c = vhca_model_claim_of(vhca_engine_model(w->engine), &req.domain, "hand");
	c->has_guest = true; /* as after a migration */
	c->guest = ib0->guest;
	assert_true(world_until(w, answered, &a));
	assert_true(a.ok);
	world_settle(w);
	assert_true(c->has_guest && vhca_bdf_cmp(c->guest, ib0->guest) != 0);
	assert_true(world_told(w, "it gets another address"));
}

/* The guest hears of the unplug when nobody waits for that any more. */
static void let_go_late(struct world *w, enum vhca_origin origin, bool restarted)
{
	struct vhca_bdf guest;
	struct vhca_uuid claim;
	int v;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	world_domain_start(w, 0, origin == VHCA_ORIGIN_METADATA ? "0x8001" : NULL);
	w->hostile_sm = true; /* the checker knows of metadata alone what a guest may have */
	if (origin == VHCA_ORIGIN_ATTACH)
		assert_true(attach(w, 0, "ib0", "0x8001").ok);
	assert_true(world_until(w, served, &zero));
	v = world_vf_of(w, 0, "ib0");
	guest = w->vfs[v].guest;
	claim = first_claim(w)->id;
	world_deafen(w);
	assert_string_equal(release(w, 0, "ib0", false).code, "guest_did_not_release");
	assert_true(world_until(w, served, &zero));
	if (restarted) {
		world_kill(w);
		world_start(w);
		assert_true(world_until(w, served, &zero));
	}
	w->vfs[v].group_open = w->vfs[v].guest_driver = false;
	world_look(w, 0);
	assert_int_equal(world_vf_of(w, 0, "ib0"), -1);
	assert_true(world_until(w, served, &zero));
	assert_int_equal(world_vf_of(w, 0, "ib0"), v);
	assert_int_equal(vhca_bdf_cmp(w->vfs[v].guest, guest), 0);
	assert_true(vhca_uuid_equal(&first_claim(w)->id, &claim));
	/* Once: what leaves again was not asked for. */
	assert_false(first_claim(w)->asked);
	w->deaf_guest = false;
	assert_true(release(w, 0, "ib0", false).ok);
	assert_true(world_until(w, all_free, NULL));
}

static void test_vf_that_is_let_go_late_comes_back(void **state)
{
	let_go_late(*state, VHCA_ORIGIN_METADATA, false);
}

static void test_attached_vf_that_is_let_go_late_comes_back(void **state)
{
	let_go_late(*state, VHCA_ORIGIN_ATTACH, false);
}

static void test_vf_that_is_let_go_late_comes_back_after_a_restart(void **state)
{
	let_go_late(*state, VHCA_ORIGIN_ATTACH, true);
}

static void test_vf_that_is_let_go_with_its_guest_is_free(void **state)
{
	struct world *w = *state;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_deafen(w);
	assert_string_equal(release(w, 0, "ib0", false).code, "guest_did_not_release");
	world_domain_stop(w, 0);
	assert_true(world_until(w, nothing_attached, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vf_that_is_let_go_late_comes_back),
		TEST(test_attached_vf_that_is_let_go_late_comes_back),
		TEST(test_vf_that_is_let_go_late_comes_back_after_a_restart),
		TEST(test_vf_that_is_let_go_with_its_guest_is_free),
		TEST(test_attach_and_detach_at_run_time),
		TEST(test_bad_metadata_is_told_when_it_comes),
		TEST(test_partitions_that_change_under_a_guest_are_said),
		TEST(test_guid_that_changes_under_a_guest_is_said),
		TEST(test_vf_that_is_not_asked_for_any_more_is_said),
		TEST(test_vf_by_hand_is_not_compared),
		TEST(test_vf_that_is_added_comes),
		TEST(test_request_that_changes_before_its_vf_comes_begins_anew),
		TEST(test_unplug_of_a_paused_guest_is_refused_at_once),
		TEST(test_detached_stays_away_until_the_domain_stops),
		TEST(test_detached_comes_back_although_nobody_saw_the_stop),
		TEST(test_claim_that_is_taken_back_forbids_nothing),
		TEST(test_release_under_way_at_shutdown_is_no_success),
		TEST(test_epochs_of_old_are_forgotten),
		TEST(test_bad_requests_are_refused),
		TEST(test_exhaustion_is_told_with_numbers),
		TEST(test_full_pkey_table_is_told_with_numbers),
		TEST(test_waiting_domain_gets_the_vf_that_becomes_free),
		TEST(test_guest_that_does_not_let_go),
		TEST(test_vf_whose_guest_address_was_taken_comes_elsewhere),
		TEST(test_group_that_closes_late_is_waited_for_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
