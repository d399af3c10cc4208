// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A destination that falls silent after the hand-over: who has the identity, and what the guest
 * gets meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "tests/unit/agent/migration/migration_pair.h"

static bool handed_over(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_migration_delivered(vhca_migrations_first(p->ms[0]));
}

/*
 * The copy fails, and at the same moment the destination falls silent, with everything programmed
 * there.
 */
static struct vhca_uuid fall_silent(struct pair *p)
{
	struct vhca_uuid id;

	p->copy_hangs = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	if (!p->cut_handover)
		assert_true(pair_until(p, handed_over, NULL));
	pair_silence(p, 1);
	p->copy_fails = true;
	p->copy_hangs = false;
	return id;
}

static bool is_over(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_mig_state_is_final(pair_state(p, 0));
}

/* In the guest, and nobody's: no GUID, no key. */
static bool is_bare(const struct pair *p, const void *arg)
{
	int v = world_vf_of(&p->w[0], 0, "ib0");

	(void)arg;
	return v >= 0 && world_clean(&p->w[0], (unsigned int)v) &&
	       claim_on(p, 0)->vf->state == VHCA_VF_ATTACHED;
}

static bool back_home(const struct pair *p, const void *arg)
{
	(void)arg;
	return is_over(p, NULL) && pair_at_home(p, 0) && vhca_mig_state_is_final(pair_state(p, 1));
}

static bool has_identity(const struct pair *p)
{
	int v = world_vf_of(&p->w[0], 0, "ib0");

	return v >= 0 && p->w[0].vfs[v].guid == claim_on(p, 0)->identity.guid &&
	       p->w[0].vfs[v].map[0] >= 0;
}

static const char *reason(const struct pair *p, const struct vhca_uuid *id)
{
	return vhca_migrations_find(p->ms[0], id)->reason;
}

/* Degraded for this reason. */
static bool waits(const struct pair *p, const void *why)
{
	const struct vhca_mig *m = vhca_migrations_first(p->ms[0]);

	return m->state == VHCA_MIG_ARBITRATING && m->degraded && strstr(m->reason, why);
}

static void settle(struct pair *p)
{
	for (int i = 0; i < 5; i++)
		pair_settle(p);
}

/* ---- the SM decides ---- */

static void test_sm_gives_it_back(void **state)
{
	struct pair *p = *state;
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_bdf guest = claim_on(p, 0)->guest;
	struct vhca_uuid id = fall_silent(p);

	assert_true(pair_until(p, is_over, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(has_identity(p));
	assert_int_equal(claim_on(p, 0)->epoch, epoch + 2); /* one was promised away */
	assert_int_equal(vhca_bdf_cmp(claim_on(p, 0)->guest, guest), 0);
	assert_true(pair_sm_outbids(&p->sm, claim_on(p, 0)->identity.guid, epoch + 1,
				    p->w[0].port_guid));
	assert_false(vhca_migrations_find(p->ms[0], &id)->degraded);
	assert_string_equal(reason(p, &id), "the copy failed");

	/* It comes back with all that it had, finds itself superseded, and lets go. */
	pair_revive(p, 1);
	assert_true(pair_until(p, back_home, NULL));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	assert_string_equal(vhca_migrations_find(p->ms[1], &id)->failure.code, "superseded");
	assert_int_equal(claim_on(p, 0)->epoch, epoch + 2);
}

/*
 * The copy fails, and a host of an earlier life has withdrawn an epoch above the one that the
 * source goes on with.
 */
static void test_given_back_below_a_withdrawn_epoch(void **state)
{
	struct pair *p = *state;
	struct vhca_claim before = *claim_on(p, 0);

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_copying, NULL));
	assert_true(pair_until(p, handed_over, NULL));
	assert_int_equal(
		vhca_osm_table_withdraw(p->sm.bindings.table, before.identity.guid, 99, 0x77, NULL),
		0);
	p->copy_fails = true;
	p->copy_hangs = false;
	assert_true(pair_until(p, back_home, NULL));
	assert_true(vhca_uuid_equal(&claim_on(p, 0)->id, &before.id)); /* not served anew */
	assert_int_equal(claim_on(p, 0)->epoch, 101);
}

/*
 * The SM is away as well: the guest gets its device, and the identity when the SM has spoken, in
 * place.
 */
static void test_sm_comes_later(void **state)
{
	struct pair *p = *state;
	int v;

	p->sm_down = true;
	(void)fall_silent(p);
	assert_true(pair_until(p, is_bare, NULL));
	v = world_vf_of(&p->w[0], 0, "ib0");
	assert_true(pair_until(p, waits, "the SM is down"));
	settle(p);
	assert_true(is_bare(p, NULL));
	assert_non_null(strstr(claim_on(p, 0)->vf->reason, "identity withheld"));
	p->w[0].deaf_guest = true; /* it need not let go */
	p->sm_down = false;
	assert_true(pair_until(p, is_over, NULL));
	assert_true(has_identity(p));
	assert_int_equal(world_vf_of(&p->w[0], 0, "ib0"), v);
	assert_false(pair_told(p, 0, "alarm")); /* it was meant to change */
	pair_revive(p, 1);
	assert_true(pair_until(p, back_home, NULL));
}

/* A third owner is ahead, whatever the destination says. */
static void test_somebody_is_ahead(void **state)
{
	struct pair *p = *state;
	uint16_t pkey = 0x8001;
	struct vhca_uuid id;
	struct vhca_osm_binding ahead = {
		.epoch = 99, .port_guid = 0x77, .n_pkeys = 1, .pkeys = &pkey};

	ahead.vguid = claim_on(p, 0)->identity.guid;
	p->sm_down = true;
	id = fall_silent(p);
	assert_true(pair_until(p, is_bare, NULL));
	assert_int_equal(vhca_osm_table_put(p->sm.bindings.table, &ahead, 128, NULL), 0);
	p->sm_down = false;
	assert_true(pair_until(p, waits, "older than 99"));
	vhca_engine_contest(p->w[0].engine,
			    vhca_migration_claim(vhca_migrations_find(p->ms[0], &id), NULL));
	assert_int_equal(claim_on(p, 0)->sm_answer,
			 VHCA_ANSWER_SUPERSEDED); /* until it says more */
	pair_revive(p, 1);
	assert_true(pair_until(p, waits, "gave it up; "));
	settle(p);
	assert_true(is_bare(p, NULL));
	/* It gives up: then the next epoch is ours. */
	assert_int_equal(vhca_osm_table_withdraw(p->sm.bindings.table, ahead.vguid, 99, 0x77, NULL),
			 0);
	assert_true(pair_until(p, back_home, NULL));
	assert_int_equal(claim_on(p, 0)->epoch, 101);
}

/*
 * libvirt keeps the guest paused because it may run at the destination: nothing is done that would
 * harm that one.
 */
static void test_not_without_libvirts_word(void **state)
{
	struct pair *p = *state;

	p->held = true;
	(void)fall_silent(p);
	assert_true(pair_until(p, waits, "libvirt"));
	settle(p);
	assert_int_equal(world_vf_of(&p->w[0], 0, "ib0"), -1);
	assert_false(pair_sm_outbids(&p->sm, claim_on(p, 0)->identity.guid, 0, p->w[0].port_guid));
	p->held = false;
	assert_true(pair_until(p, is_over, NULL));
	assert_true(has_identity(p));
}

static bool no_claims(const struct pair *p, const void *arg)
{
	(void)arg;
	return is_over(p, NULL) && !claim_on(p, 0);
}

static bool sm_knows_nobody(const struct pair *p, const void *guid)
{
	const struct vhca_osm_binding *b =
		vhca_osm_table_find(p->sm.bindings.table, *(const uint64_t *)guid);

	return b->withdrawn;
}

static bool other_ended(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ENDED;
}

/* The guest stopped meanwhile: nobody waits for the identity any more. */
static void test_guest_stops_meanwhile(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;
	struct vhca_uuid id;

	p->sm_down = true;
	id = fall_silent(p);
	assert_true(pair_until(p, is_bare, NULL));
	world_domain_stop(&p->w[0], 0);
	assert_true(pair_until(p, no_claims, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	p->sm_down = false;
	assert_true(pair_until(p, sm_knows_nobody, &guid));
	/* The destination does not take the next epoch for itself. */
	pair_revive(p, 1);
	assert_true(pair_until(p, other_ended, NULL));
	assert_string_equal(vhca_migrations_find(p->ms[1], &id)->failure.code, "superseded");
}

/* ...with its host: the SM has given the identity back to a boot that is over. */
static void test_host_dies_meanwhile(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid, epoch = claim_on(p, 0)->epoch;

	p->sm_down = true;
	(void)fall_silent(p);
	assert_true(pair_until(p, is_bare, NULL));
	pair_sm_lose(&p->sm, 0); /* taken, but nobody here has heard so */
	assert_true(pair_sm_outbids(&p->sm, guid, epoch + 1, p->w[0].port_guid));
	world_reboot(&p->w[0]);
	pair_revive(p, 0);
	p->sm_down = false;
	assert_true(pair_until(p, no_claims, NULL));
	assert_true(pair_until(p, sm_knows_nobody, &guid));
}

static bool is_prepared(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_READY && pair_state(p, 1) == VHCA_MIG_INCOMING;
}

static bool is_bound_there_above(const struct pair *p, const void *epoch)
{
	const struct vhca_claim *c = claim_on(p, 1);

	return c && c->vf->state == VHCA_VF_ATTACHED &&
	       pair_sm_outbids(&p->sm, c->identity.guid, *(const uint64_t *)epoch,
			       p->w[1].port_guid);
}

/*
 * Its host dies before the orchestrator migrates it, it is started elsewhere, and after that where
 * it was to go: what that host was handed is over.
 */
static void test_guest_comes_by_a_detour(void **state)
{
	struct pair *p = *state;
	uint16_t pkey = 0x8001;
	struct vhca_osm_binding detour = {
		.epoch = UINT64_C(1) << 32, .port_guid = 0x77, .n_pkeys = 1, .pkeys = &pkey};

	(void)pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, is_prepared, NULL));
	detour.vguid = claim_on(p, 1)->identity.guid;
	pair_silence(p, 0);
	world_reboot(&p->w[0]);
	assert_int_equal(vhca_osm_table_put(p->sm.bindings.table, &detour, 128, NULL), 0);
	assert_int_equal(vhca_osm_table_withdraw(p->sm.bindings.table, detour.vguid, detour.epoch,
						 detour.port_guid, NULL),
			 0);
	p->w[1].domains[0].info = p->w[0].domains[0].info;
	p->w[1].domains[0].info.has_away = false;
	world_incoming(&p->w[1], 0, false);
	assert_true(pair_until(p, is_bound_there_above, &detour.epoch));
}

static bool has_forgotten(const struct pair *p, const void *arg)
{
	(void)arg;
	return !claim_on(p, 0);
}

static bool is_bound_here_above(const struct pair *p, const void *epoch)
{
	const struct vhca_claim *c = claim_on(p, 0);

	return c && c->vf->state == VHCA_VF_ATTACHED && c->sm_answer == VHCA_ANSWER_ACCEPTED &&
	       pair_sm_outbids(&p->sm, c->identity.guid, *(const uint64_t *)epoch,
			       p->w[0].port_guid);
}

/*
 * Its host dies before the orchestrator migrates it, hears that the other one has withdrawn, and
 * starts it again. What it had promised is not its own: the SM has it at the other host, whose
 * withdrawal it has not heard.
 */
static void test_promise_outlives_a_reboot(void **state)
{
	struct pair *p = *state;
	uint64_t promised = claim_on(p, 0)->epoch + 1, guid = claim_on(p, 0)->identity.guid;

	(void)pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, is_prepared, NULL));
	pair_settle(p);
	assert_true(pair_sm_outbids(&p->sm, guid, promised - 1, p->w[1].port_guid));
	p->cut = p->sm_down = true;
	world_reboot(&p->w[0]);
	pair_revive(p, 0);
	assert_true(pair_until(p, has_forgotten, NULL));
	pair_silence(p, 0);
	p->cut = false;
	pair_revive(p, 0);
	assert_true(pair_until(p, no_claims, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	pair_silence(p, 1);
	p->sm_down = false;
	world_domain_start(&p->w[0], 0, "0x8001");
	assert_true(pair_until(p, is_bound_here_above, &promised));
}

/*
 * ...or started again: it gets the device again, and the report that asks for the identity still
 * stands.
 */
static void test_guest_starts_again(void **state)
{
	struct pair *p = *state;

	p->sm_down = true;
	(void)fall_silent(p);
	assert_true(pair_until(p, is_bare, NULL));
	world_domain_stop(&p->w[0], 0);
	world_domain_start(&p->w[0], 0, "0x8001");
	assert_true(pair_until(p, is_bare, NULL));
	p->sm_down = false;
	assert_true(pair_until(p, is_over, NULL));
	assert_true(has_identity(p));
}

/*
 * The paused copy was ended because the guest runs at the destination: that one keeps what it has.
 */
static void test_held_guest_is_ended(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid, epoch = claim_on(p, 0)->epoch;

	p->held = true;
	(void)fall_silent(p);
	assert_true(pair_until(p, waits, "libvirt"));
	world_domain_stop(&p->w[0], 0);
	assert_true(pair_until(p, no_claims, NULL));
	settle(p);
	assert_true(pair_sm_outbids(&p->sm, guid, epoch, p->w[1].port_guid));
}

static bool at_the_other(const struct pair *p, const void *arg)
{
	(void)arg;
	return is_over(p, NULL) && pair_at_home(p, 1);
}

static bool finishes(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_FINISHING;
}

/* ...and waits for what it was not given: the source owes it that. */
static void test_held_guest_is_ended_before_the_hand_over(void **state)
{
	struct pair *p = *state;

	p->held = p->cut_handover = true;
	(void)fall_silent(p);
	assert_true(pair_until(p, waits, "libvirt"));
	p->w[1].domains[0] = p->w[0].domains[0];
	world_domain_stop(&p->w[0], 0);
	assert_true(pair_until(p, finishes, NULL));
	p->cut_handover = false;
	pair_revive(p, 1);
	assert_true(pair_until(p, at_the_other, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
}

/* ---- nobody decides but the destination ---- */

static void test_without_an_arbiter(void **state)
{
	struct pair *p = *state;
	uint64_t epoch = claim_on(p, 0)->epoch;

	(void)fall_silent(p);
	assert_true(pair_until(p, is_bare, NULL));
	assert_true(pair_until(p, waits, "no SM"));
	settle(p);
	assert_true(is_bare(p, NULL));
	pair_revive(p, 1); /* the abort reaches it */
	assert_true(pair_until(p, back_home, NULL));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	assert_true(claim_on(p, 0)->epoch >= epoch + 2);
}

/* ---- the source's agent is killed, or fails, at each step of it ---- */

static bool settled(const struct pair *p, const void *arg)
{
	(void)arg;
	return is_over(p, NULL) || is_bare(p, NULL);
}

static void finish(struct pair *p)
{
	assert_true(pair_until(p, settled, NULL));
	pair_settle(p);
	p->sm_down = false;
	p->w[1].conf.lease_ms = 200; /* reported before it was superseded: then this ends it */
	pair_revive(p, 1);
	assert_true(pair_until(p, back_home, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	pair_done(p);
}

enum sm { SM_UP, SM_DOWN, SM_NONE };

static bool run_with(enum pair_fault fault, unsigned int at, enum sm sm)
{
	static struct pair p;
	unsigned int first;

	if (sm == SM_NONE)
		pair_init(&p);
	else
		pair_init_fenced(&p);
	p.sm_down = sm == SM_DOWN;
	print_message("# fault %u at effect %u, SM %u\n", fault, at, sm);
	(void)fall_silent(&p);
	first = p.effects;
	p.fault = fault;
	p.fault_at = first + at;
	finish(&p);
	return p.effects >= first + at;
}

static void run_at_each_question(enum pair_fault fault, enum sm sm)
{
	unsigned int at = 1;

	/*
	 * Aborts repeat while the destination is silent: the first ones, the report and the last
	 * ones are all among these.
	 */
	while (at < 5 && run_with(fault, at, sm))
		at++;
	assert_true(at > 3);
}

static void test_source_killed_before_every_question(void **state)
{
	(void)state;
	run_at_each_question(PAIR_KILL_BEFORE, SM_UP);
	run_at_each_question(PAIR_KILL_BEFORE, SM_NONE);
}

static void test_source_killed_after_every_question(void **state)
{
	(void)state;
	run_at_each_question(PAIR_KILL_AFTER, SM_UP);
}

static void test_every_question_fails_once(void **state)
{
	(void)state;
	run_at_each_question(PAIR_FAIL, SM_DOWN);
}

static bool crash_with(enum vhca_effect effect, enum world_fault fault, unsigned int at,
		       bool sm_down)
{
	static struct pair p;
	unsigned int first;

	pair_init_fenced(&p);
	p.sm_down = sm_down;
	print_message("# crash %u at %s %u, SM %s\n", fault, vhca_effect_to_string(effect), at,
		      sm_down ? "down" : "up");
	(void)fall_silent(&p);
	p.w[0].fault_effect = effect;
	p.w[0].fault = fault;
	first = p.w[0].effects;
	p.w[0].fault_at = first + at;
	finish(&p);
	return p.w[0].effects >= first + at;
}

static void test_source_killed_while_it_restores(void **state)
{
	static const struct {
		enum vhca_effect effect;
		bool sm_down;
		unsigned int times; /* how often it takes place */
	} steps[] = {
		{VHCA_EFFECT_PROGRAM, false, 1},
		{VHCA_EFFECT_PROGRAM, true, 2}, /* bare, and in place */
		{VHCA_EFFECT_ATTACH, false, 1},
		{VHCA_EFFECT_ATTACH, true, 1},
	};

	(void)state;
	for (unsigned int s = 0; s < VHCA_ARRAY_SIZE(steps); s++) {
		for (unsigned int at = 1; at <= steps[s].times; at++) {
			assert_true(crash_with(steps[s].effect, WORLD_CRASH_BEFORE, at,
					       steps[s].sm_down));
			assert_true(crash_with(steps[s].effect, WORLD_CRASH_AFTER, at,
					       steps[s].sm_down));
		}
	}
}

/*
 * The request that withdrew the identity when it left was stuck somewhere, and comes when it is
 * bound here again.
 */
static void test_late_withdrawal(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid, epoch = claim_on(p, 0)->epoch;
	struct vhca_uuid id = pair_migrate(p, 0);

	assert_true(pair_until(p, is_away, NULL));
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, NULL), 0);
	assert_true(pair_until(p, is_over, &id));
	assert_true(pair_until(p, back_home, NULL));
	settle(p);
	assert_true(vhca_osm_table_withdraw(p->sm.bindings.table, guid, epoch, 0, NULL) < 0);
	assert_false(vhca_osm_table_find(p->sm.bindings.table, guid)->withdrawn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FENCED(test_sm_gives_it_back),
		TEST_FENCED(test_given_back_below_a_withdrawn_epoch),
		TEST_FENCED(test_sm_comes_later),
		TEST_FENCED(test_somebody_is_ahead),
		TEST_FENCED(test_not_without_libvirts_word),
		TEST_FENCED(test_guest_stops_meanwhile),
		TEST_FENCED(test_host_dies_meanwhile),
		TEST_FENCED(test_guest_comes_by_a_detour),
		TEST_FENCED(test_promise_outlives_a_reboot),
		TEST_FENCED(test_guest_starts_again),
		TEST_FENCED(test_held_guest_is_ended),
		TEST_FENCED(test_held_guest_is_ended_before_the_hand_over),
		TEST_FENCED(test_late_withdrawal),
		TEST(test_without_an_arbiter),
		cmocka_unit_test(test_source_killed_before_every_question),
		cmocka_unit_test(test_source_killed_after_every_question),
		cmocka_unit_test(test_every_question_fails_once),
		cmocka_unit_test(test_source_killed_while_it_restores),
	};

	return cmocka_run_group_tests_name("arbitration", tests, NULL, NULL);
}
