/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Somebody asks for the end of a claim that is on the move (vhcactl detach, DELETE /v1/claims): the
 * VF is scrubbed and free, the subnet manager knows nobody, and the migration comes to an end
 * without it.
 */
#include <string.h>

#include "tests/unit/agent/migration/migration_pair.h"

static void on_released(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	(void)claim;
	*(int *)arg = err ? -1 : 1;
}

static int answer;

static void release(struct pair *p, unsigned int host)
{
	answer = 0;
	vhca_engine_release(p->w[host].engine, (struct vhca_claim *)claim_on(p, host), false,
			    on_released, &answer);
}

static bool is_released(const struct pair *p, const void *arg)
{
	(void)arg;
	(void)p;
	return answer != 0;
}

/* No claim is left on the host, and all its VFs are free and clean. */
static bool is_empty(const struct pair *p, const void *arg)
{
	const struct world *w = &p->w[*(const unsigned int *)arg];

	if (claim_on(p, *(const unsigned int *)arg))
		return false;
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (!world_clean(w, v) ||
		    vhca_model_vf(vhca_engine_model(w->engine), w->vfs[v].bdf)->state !=
			    VHCA_VF_FREE)
			return false;
	return true;
}

static void assert_released(struct pair *p, unsigned int host)
{
	assert_true(pair_until(p, is_released, NULL));
	assert_int_equal(answer, 1);
	assert_true(pair_until(p, is_empty, host ? &one : &zero));
}

static bool copies_handed_over(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->copying && vhca_migration_delivered(vhca_migrations_first(p->ms[0]));
}

static bool is_parked(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_PARKED;
}

static bool is_ready(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_READY && pair_state(p, 1) == VHCA_MIG_INCOMING;
}

/* In the guest, and nobody's. */
static bool is_bare(const struct pair *p, const void *arg)
{
	int v = world_vf_of(&p->w[0], 0, "ib0");

	(void)arg;
	return v >= 0 && world_clean(&p->w[0], (unsigned int)v) &&
	       claim_on(p, 0)->vf->state == VHCA_VF_ATTACHED;
}

static bool nobody_has_it(const struct pair *p, const void *guid)
{
	const struct vhca_osm_binding *b =
		vhca_osm_table_find(p->sm.bindings.table, *(const uint64_t *)guid);

	return !b || b->withdrawn;
}

static bool both_have_ended(const struct pair *p, const void *arg)
{
	(void)arg;
	return has_ended(p, &zero) && has_ended(p, &one);
}

static void settle(struct pair *p)
{
	for (int i = 0; i < 5; i++)
		pair_settle(p);
}

static void parked(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_PARK);
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(pair_until(p, is_parked, NULL));
	release(p, 0);
	assert_released(p, 0);
	assert_int_equal(vhca_migrations_cancel(p->ms[0], &id, &err), 0);
	assert_true(pair_until(p, has_ended, &zero));
	settle(p);
	assert_true(is_empty(p, &zero)); /* whatever the guest's metadata asks for */
	assert_true(pair_until(p, nobody_has_it, &guid));
}

static bool is_on_its_way_out(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_DETACHING &&
	       claim_on(p, 0)->custody == VHCA_CUSTODY_LEAVING;
}

static void detaching(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;

	p->w[0].deaf_guest = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_on_its_way_out, NULL));
	release(p, 0);
	p->w[0].deaf_guest = false;
	assert_released(p, 0);
	assert_true(pair_until(p, both_have_ended, NULL));
	assert_string_equal(vhca_migrations_find(p->ms[0], &id)->failure.code, "claims_lost");
	assert_true(pair_until(p, is_empty, &one));
	settle(p);
	assert_true(is_empty(p, &zero));
}

static void copying_and_it_arrives(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copies_handed_over, NULL));
	release(p, 0);
	assert_released(p, 0);
	p->copy_hangs = false;
	assert_true(pair_until(p, at_home, &one));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
}

static void copying_and_it_fails(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copies_handed_over, NULL));
	release(p, 0);
	assert_released(p, 0);
	p->copy_fails = true;
	p->copy_hangs = false;
	assert_true(pair_until(p, both_have_ended, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, is_empty, &one));
	settle(p);
	assert_true(is_empty(p, &zero));
	assert_true(pair_until(p, nobody_has_it, &guid));
}

/*
 * The destination is silent, and so is the SM, which has been asked for the identity: the guest has
 * its VF without.
 */
static void arbitrate(struct pair *p)
{
	p->sm_down = p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copies_handed_over, NULL));
	pair_silence(p, 1);
	p->copy_fails = true;
	p->copy_hangs = false;
	assert_true(pair_until(p, is_bare, NULL));
}

/* When the SM hears of it, it gives nothing to a claim that is over. */
static void assert_nobody_gets_it(struct pair *p, uint64_t guid)
{
	p->sm_down = false;
	assert_true(pair_until(p, nobody_has_it, &guid));
	settle(p);
	assert_true(nobody_has_it(p, &guid));
	pair_revive(p, 1);
	assert_true(pair_until(p, both_have_ended, NULL));
	assert_true(pair_until(p, is_empty, &one));
	assert_true(nobody_has_it(p, &guid));
}

static void arbitrating(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;

	arbitrate(p);
	release(p, 0);
	assert_released(p, 0);
	assert_nobody_gets_it(p, guid);
}

/* The SM was asked in the agent's life before. */
static void arbitrating_after_a_restart(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;

	arbitrate(p);
	pair_silence(p, 0);
	p->held = true; /* libvirt does not say that the guest runs here: it is not asked again */
	pair_revive(p, 0);
	assert_true(pair_until(p, is_bare, NULL));
	release(p, 0);
	assert_released(p, 0);
	p->held = false;
	assert_nobody_gets_it(p, guid);
}

static void ready_at_the_destination(void **state)
{
	struct pair *p = *state;

	(void)pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	assert_true(pair_until(p, is_ready, NULL));
	release(p, 1);
	assert_released(p, 1);
	assert_true(pair_until(p, at_home, &zero));
	assert_true(pair_until(p, both_have_ended, NULL));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
}

/* The guest has not been there: nothing is denied to it when it is started there one day. */
static void and_started_there_later(void **state)
{
	struct pair *p = *state;

	ready_at_the_destination(state);
	world_domain_stop(&p->w[0], 0);
	assert_true(pair_until(p, is_empty, &zero));
	p->w[1].domains[0].info = p->w[0].domains[0].info;
	p->w[1].domains[0].info.has_away = false;
	world_incoming(&p->w[1], 0, false);
	assert_true(pair_until(p, at_home, &one));
}

static void copying_at_the_destination(void **state)
{
	struct pair *p = *state;

	p->copy_hangs = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, copies_handed_over, NULL));
	release(p, 1);
	assert_released(p, 1);
	assert_true(pair_until(p, at_home, &zero));
	assert_true(pair_until(p, both_have_ended, NULL));
}

static bool hangs(const struct pair *p, const void *arg)
{
	return p->w[*(const unsigned int *)arg].hung;
}

/* The next effect of this kind on the host hangs. */
static void let_hang(struct pair *p, unsigned int host, enum vhca_effect effect)
{
	p->w[host].fault = WORLD_HANG;
	p->w[host].fault_effect = effect;
	p->w[host].fault_at = p->w[host].effects + 1;
}

static bool has_two(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c;
	unsigned int n = 0;

	(void)arg;
	TAILQ_FOREACH (c, &vhca_engine_model(p->w[0].engine)->claims, link)
		n += vhca_claim_rests_in(c, VHCA_VF_ATTACHED);
	return n == 2;
}

static bool has_the_other_only(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c = claim_on(p, 0);

	(void)arg;
	return has_ended(p, &zero) && c && !TAILQ_NEXT(c, link) && !strcmp(c->name, "ib1") &&
	       vhca_claim_rests_in(c, VHCA_VF_ATTACHED) && world_vf_of(&p->w[0], 0, "ib1") >= 0;
}

/* The destination has been offered both: it takes no hand-over of one, and the guest stays. */
static void one_of_two(void **state)
{
	struct pair *p = *state;
	struct vhca_dom_info *info = &p->w[0].domains[0].info;
	const struct vhca_error *why;
	struct vhca_uuid id;

	info->requests[1] = info->requests[0];
	memcpy(info->requests[1].name, "ib1", sizeof("ib1"));
	info->n_requests = 2;
	world_look(&p->w[0], 0);
	assert_true(pair_until(p, has_two, NULL));
	p->w[0].deaf_guest = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, is_on_its_way_out, NULL));
	assert_string_equal(claim_on(p, 0)->name, "ib0");
	release(p, 0);
	p->w[0].deaf_guest = false;
	assert_true(pair_until(p, is_released, NULL));
	assert_true(pair_until(p, has_the_other_only, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	why = &vhca_migrations_find(p->ms[0], &id)->failure;
	assert_string_equal(why->code, "vf_not_handed_over");
	assert_non_null(strstr(why->msg, "VF ib0 was offered"));
	assert_true(pair_until(p, is_empty, &one));
}

static void attaching(void **state)
{
	struct pair *p = *state;

	let_hang(p, 1, VHCA_EFFECT_ATTACH);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, hangs, &one));
	release(p, 1);
	world_release(&p->w[1]);
	assert_released(p, 1);
	assert_true(pair_until(p, both_have_ended, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	settle(p);
	assert_true(is_empty(p, &zero) && is_empty(p, &one));
}

static void restoring(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;

	p->copy_fails = true;
	let_hang(p, 0, VHCA_EFFECT_PROGRAM);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, hangs, &zero));
	release(p, 0);
	world_release(&p->w[0]);
	assert_released(p, 0);
	assert_true(pair_until(p, both_have_ended, NULL));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_FAILED);
	assert_true(pair_until(p, nobody_has_it, &guid));
	settle(p);
	assert_true(is_empty(p, &zero) && is_empty(p, &one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FENCED(parked),
		TEST_FENCED(detaching),
		TEST_FENCED(copying_and_it_arrives),
		TEST_FENCED(copying_and_it_fails),
		TEST_FENCED(arbitrating),
		TEST_FENCED(arbitrating_after_a_restart),
		TEST_FENCED(ready_at_the_destination),
		TEST_FENCED(and_started_there_later),
		TEST_FENCED(copying_at_the_destination),
		TEST_FENCED(one_of_two),
		TEST_FENCED(attaching),
		TEST_FENCED(restoring),
	};

	return cmocka_run_group_tests_name("migration_release", tests, NULL, NULL);
}
