// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A VF of a migration that cannot be proven clean: the others, and the guest, do not wait for it.
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/agent/migration/migration_pair.h"

static const char *const both[] = {"ib0", "ib1", NULL};

static bool has_vfs(const struct pair *p, const void *arg)
{
	for (const char *const *name = arg; *name; name++)
		if (world_vf_of(&p->w[0], 0, *name) < 0)
			return false;
	return true;
}

/* In the guest, settled, and written down. */
static bool at_rest(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &vhca_engine_model(p->w[0].engine)->claims, link)
		if (!vhca_claim_rests_in(c, VHCA_VF_ATTACHED) || c->migrating)
			return false;
	return has_vfs(p, arg);
}

static void ask_for_another(struct pair *p)
{
	struct vhca_dom_info *info = &p->w[0].domains[0].info;

	info->requests[1] = info->requests[0];
	(void)snprintf(info->requests[1].name, sizeof(info->requests[1].name), "ib1");
	info->n_requests = 2;
	world_look(&p->w[0], 0);
	assert_true(pair_until(p, at_rest, both));
}

static bool one_hangs(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c;
	unsigned int n = 0;

	(void)arg;
	TAILQ_FOREACH (c, &vhca_engine_model(p->w[0].engine)->claims, link)
		n += vhca_claim_is_withheld(c);
	return n == 1 && p->w[0].hung;
}

static void test_scrub_that_fails_holds_nothing_up(void **state)
{
	struct pair *p = *state;
	const char *back[] = {"ib0", NULL};
	const struct vhca_mig *m;
	struct vhca_uuid id;

	ask_for_another(p);
	p->w[0].fault = WORLD_HANG;
	p->w[0].fault_effect = VHCA_EFFECT_SCRUB;
	p->w[0].fault_at = p->w[0].effects + 1;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, one_hangs, NULL));
	p->w[0].vfs_lie = true;
	world_release(&p->w[0]);
	assert_true(pair_until(p, has_ended, &zero));
	m = vhca_migrations_find(p->ms[0], &id);
	assert_int_equal(m->state, VHCA_MIG_FAILED);
	assert_true(m->degraded);
	assert_string_equal(m->failure.code, "vf_quarantined");
	if (strstr(m->reason, "VF ib0 ("))
		back[0] = "ib1";
	else
		assert_non_null(strstr(m->reason, "VF ib1 ("));
	assert_true(has_vfs(p, back));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	p->w[0].vfs_lie = false;
	assert_true(pair_until(p, at_rest, both));
}

/*
 * It heals while the other one is given back: nothing is lacking in the end. What it withdrew late
 * is not said of the epoch at which it is back.
 */
static void test_scrub_that_fails_once(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;
	uint64_t epoch;

	p->w[0].fault = WORLD_FAIL;
	p->w[0].fault_effect = VHCA_EFFECT_SCRUB;
	p->w[0].fault_at = p->w[0].effects + 1;
	p->patience_ms = 15000;
	pair_silence(p, 0);
	pair_revive(p, 0);
	assert_true(pair_until(p, at_home, &zero));
	epoch = TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->claims)->epoch;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_string_equal(vhca_migrations_find(p->ms[0], &id)->failure.code, "vf_quarantined");
	assert_true(TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->claims)->epoch > epoch);
	assert_false(vhca_migrations_find(p->ms[0], &id)->degraded);
	assert_true(pair_until(p, at_home, &zero));
}

/* ---- a VF that goes while its claim is on the move ---- */

static bool copies_handed_over(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->copying && vhca_migration_delivered(vhca_migrations_first(p->ms[0]));
}

/* The VF of the only claim on the host, which its agent does not wait for. */
static void take_away(struct pair *p, unsigned int host)
{
	struct world *w = &p->w[host];

	for (unsigned int v = 0; v < w->n_vfs; v++) {
		const struct vhca_vf *vf =
			vhca_model_vf(vhca_engine_model(w->engine), w->vfs[v].bdf);

		w->vfs[v].gone = w->vfs[v].lost = vf->claim;
	}
	world_show_hardware(w);
}

/* Agents that do not wait for a VF that has gone. */
static void give_up_soon(struct pair *p)
{
	for (unsigned int h = 0; h < 2; h++) {
		p->w[h].absent_ms = 20;
		pair_silence(p, h);
		pair_revive(p, h);
	}
	assert_true(pair_until(p, at_home, &zero));
}

/* ...and the guest on its way. */
static void set_out(struct pair *p)
{
	give_up_soon(p);
	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copies_handed_over, NULL));
}

static bool is_served(const struct pair *p, const void *arg)
{
	(void)arg;
	return has_ended(p, &zero) && at_rest(p, (const char *const[]){"ib0", NULL});
}

/* The guest stays, and its VF was taken away meanwhile: it gets another one. */
static void test_vf_at_the_source_goes(void **state)
{
	struct pair *p = *state;

	set_out(p);
	take_away(p, 0);
	p->copy_fails = true;
	p->copy_hangs = false;
	assert_true(pair_until(p, is_served, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
}

static bool both_ended(const struct pair *p, const void *arg)
{
	(void)arg;
	return has_ended(p, &zero) && has_ended(p, &one);
}

/* What it was to get there was taken away: it is better off where it is. */
static void test_vf_at_the_destination_goes(void **state)
{
	struct pair *p = *state;

	set_out(p);
	take_away(p, 1);
	assert_true(pair_until(p, both_ended, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	assert_true(pair_until(p, is_served, NULL));
}

static bool is_prepared(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_READY && pair_state(p, 1) == VHCA_MIG_INCOMING;
}

static bool is_refused(const struct pair *p, const void *arg)
{
	const struct vhca_mig *m = vhca_migrations_first(p->ms[0]);

	(void)arg;
	return m->state == VHCA_MIG_COPYING && m->failure.kind;
}

/*
 * An orchestrator's copy takes its time, which nobody here can cut short: the destination has said
 * what it has to say.
 */
static void test_who_refuses_is_not_asked_all_the_time(void **state)
{
	struct pair *p = *state;
	unsigned int before;

	give_up_soon(p);
	(void)pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, is_prepared, NULL));
	p->copying = true;
	take_away(p, 1);
	assert_true(pair_until(p, is_refused, NULL));
	before = p->effects;
	for (int i = 0; i < 20; i++)
		pair_settle(p);
	assert_in_range(p->effects - before, 0, 20);
	p->copying = false;
	assert_true(pair_until(p, both_ended, NULL));
	assert_true(pair_until(p, is_served, NULL));
}

/* ---- ...and no SM keeps the source from showing its identity ---- */

static const struct vhca_claim *only_claim(const struct pair *p)
{
	return TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->claims);
}

static const struct vhca_claim *claim_there(const struct pair *p)
{
	return TAILQ_FIRST(&vhca_engine_model(p->w[1].engine)->claims);
}

static bool waits_for_proof(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 1) == VHCA_MIG_ENDING && claim_there(p) &&
	       strstr(claim_there(p)->vf->reason, "waits for the proof");
}

static bool is_aborting(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_ABORTING;
}

/* In its guest, without the identity. */
static bool is_back_bare(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_ARBITRATING && vhca_claim_is_withheld(only_claim(p)) &&
	       vhca_claim_rests_in(only_claim(p), VHCA_VF_ATTACHED);
}

/*
 * The VF may come back with what it had, in this life of the destination's agent or in a later one.
 */
static void lose_it_there(struct pair *p)
{
	set_out(p);
	take_away(p, 1);
	assert_true(pair_until(p, waits_for_proof, NULL));
	assert_true(pair_until(p, is_aborting, NULL));
	pair_silence(p, 1);
	assert_true(pair_until(p, is_back_bare, NULL));
	pair_revive(p, 1);
	assert_true(pair_until(p, waits_for_proof, NULL));
	for (int i = 0; i < 5; i++)
		pair_settle(p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_ARBITRATING);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDING);
	assert_true(vhca_claim_is_withheld(only_claim(p)) && claim_there(p));
}

static void assert_given_back(struct pair *p)
{
	assert_true(pair_until(p, both_ended, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	assert_true(pair_until(p, is_served, NULL));
}

static void test_vf_at_the_destination_comes_back(void **state)
{
	struct pair *p = *state;
	struct world *w = &p->w[1];

	lose_it_there(p);
	for (unsigned int v = 0; v < w->n_vfs; v++)
		w->vfs[v].gone = w->vfs[v].lost = false;
	world_show_hardware(w);
	assert_given_back(p);
	assert_true(pair_at_home(p, 0));
}

static void on_released(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)arg;
	(void)claim;
	(void)err;
}

/* Its adapter was taken out. */
static void test_somebody_vouches_for_the_vf_at_the_destination(void **state)
{
	struct pair *p = *state;
	struct world *w = &p->w[1];

	lose_it_there(p);
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (w->vfs[v].lost)
			w->vfs[v].guid = VHCA_GUID_ALL1;
	vhca_engine_release(w->engine, (struct vhca_claim *)claim_there(p), false, on_released,
			    NULL);
	assert_given_back(p);
}

/* ---- an identity that the SM gives back to a VF which cannot take it ---- */

/* In its guest without the identity, for which the SM has been asked. */
static bool is_bare(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_claim_is_withheld(only_claim(p)) &&
	       vhca_claim_rests_in(only_claim(p), VHCA_VF_ATTACHED);
}

static bool is_stuck(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_claim_is_withheld(only_claim(p)) &&
	       only_claim(p)->vf->state == VHCA_VF_QUARANTINED;
}

/*
 * The destination is silent, the SM does not answer yet, and the guest lets go of its VF, which
 * from then on cannot be scrubbed.
 */
static void arbitrate_and_get_stuck(struct pair *p)
{
	struct world_vf *vf;

	p->sm_down = p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copies_handed_over, NULL));
	pair_silence(p, 1);
	p->copy_fails = true;
	p->copy_hangs = false;
	assert_true(pair_until(p, is_bare, NULL));
	vf = &p->w[0].vfs[world_vf_of(&p->w[0], 0, "ib0")];
	p->w[0].vfs_lie = true;
	vf->group_open = vf->guest_driver = false;
	world_look(&p->w[0], 0);
	assert_true(pair_until(p, is_stuck, NULL));
}

static bool is_nobodys(const struct pair *p, const void *guid)
{
	return TAILQ_EMPTY(&vhca_engine_model(p->w[0].engine)->claims) &&
	       vhca_osm_table_find(p->sm.bindings.table, *(const uint64_t *)guid)->withdrawn;
}

/*
 * The agent is killed when the migration has failed, and the claim of the stuck VF has not ended:
 * it still knows what the SM was asked for.
 */
static void test_sm_gave_it_to_a_vf_that_is_stuck(void **state)
{
	struct pair *p = *state;
	uint64_t guid = only_claim(p)->identity.guid, epoch = only_claim(p)->epoch;

	arbitrate_and_get_stuck(p);
	p->sm_down = false;
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_sm_outbids(&p->sm, guid, epoch + 1, p->w[0].port_guid));
	pair_silence(p, 0);
	world_domain_stop(&p->w[0], 0);
	p->w[0].vfs_lie = false;
	pair_revive(p, 0);
	assert_true(pair_until(p, is_nobodys, &guid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scrub_that_fails_holds_nothing_up),
		TEST(test_scrub_that_fails_once),
		TEST_FENCED(test_vf_at_the_source_goes),
		TEST_FENCED(test_vf_at_the_destination_goes),
		TEST_FENCED(test_who_refuses_is_not_asked_all_the_time),
		TEST(test_vf_at_the_destination_comes_back),
		TEST(test_somebody_vouches_for_the_vf_at_the_destination),
		TEST_FENCED(test_sm_gave_it_to_a_vf_that_is_stuck),
	};

	return cmocka_run_group_tests_name("migration_stuck", tests, NULL, NULL);
}
