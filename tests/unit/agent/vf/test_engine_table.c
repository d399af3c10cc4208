// SPDX-License-Identifier: LGPL-2.1-or-later
/* The port's P_Key table changes under VFs that are in guests, whatever else is under way for
 * them. */
#include "common/base/file.h"
#include "tests/unit/agent/vf/engine_world.h"

#define FOREIGN 0x8003 /* no domain here asks for it */

/* Domain 0 has its VF; what the SM does from now on to the table is not the agent's fault. */
static unsigned int serve(struct world *w)
{
	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	w->hostile_sm = true;
	return (unsigned int)world_vf_of(w, 0, "ib0");
}

static bool is_unmapped(const struct world *w, const void *v)
{
	return w->vfs[*(const unsigned int *)v].map[0] == -1;
}

static bool is_at_1(const struct world *w, const void *v)
{
	return w->vfs[*(const unsigned int *)v].map[0] == 1;
}

static bool is_at_5(const struct world *w, const void *v)
{
	return w->vfs[*(const unsigned int *)v].map[0] == 5;
}

static bool is_detaching(const struct world *w, const void *v)
{
	return engine_vf(w, *(const unsigned int *)v)->state == VHCA_VF_DETACHING;
}

static bool hangs(const struct world *w, const void *arg)
{
	(void)arg;
	return w->hung;
}

/* The SM gives the index of 0x8001 to somebody else, and 0x8001 another one. */
static void move_key(struct world *w)
{
	w->port_pkeys[5] = 0x8001;
	world_set_key(w, 1, FOREIGN);
}

static void test_detaching_vf_follows(void **state)
{
	struct world *w = *state;
	struct answer answer = {0};
	unsigned int v = serve(w);

	w->deaf_guest = true;
	vhca_engine_release(w->engine, TAILQ_FIRST(&vhca_engine_model(w->engine)->claims), false,
			    on_answer, &answer);
	assert_true(world_until(w, is_detaching, &v));
	move_key(w);
	assert_true(world_until(w, is_unmapped, &v));
	assert_true(world_until(w, is_at_5, &v));
	assert_true(w->vfs[v].group_open);
	assert_int_equal(engine_vf(w, v)->state, VHCA_VF_DETACHING);
	w->deaf_guest = false;
	assert_true(world_until(w, answered, &answer));
	assert_true(answer.ok);
}

/* It is forced off, ignores that, and the agent is started anew. */
static void follow_after_a_restart(struct world *w, bool virt_down)
{
	unsigned int v = serve(w);

	w->deaf_guest = true;
	world_set_key(w, 1, FOREIGN);
	assert_true(world_until(w, is_detaching, &v));
	world_kill(w);
	w->vfs[v].map[0] = 1; /* nobody was there */
	w->virt_down = virt_down;
	world_start(w);
	assert_true(world_until(w, is_unmapped, &v));
	assert_true(w->vfs[v].group_open);
}

static void test_detaching_vf_follows_after_a_restart(void **state)
{
	follow_after_a_restart(*state, false);
}

/* libvirt does not answer the new agent. */
static void test_detaching_vf_follows_without_libvirt(void **state)
{
	follow_after_a_restart(*state, true);
}

/* The wait for the guest is that wait, and not until somebody looks again. */
static void test_key_comes_back_soon_while_an_unplug_hangs(void **state)
{
	struct world *w = *state;
	struct answer answer = {0};
	uint64_t begun;
	unsigned int v;

	w->conf.poll_ms = 20000;
	v = serve(w);
	w->fault_effect = VHCA_EFFECT_DETACH;
	w->fault = WORLD_HANG;
	w->fault_at = 1;
	w->effects = 0;
	vhca_engine_release(w->engine, TAILQ_FIRST(&vhca_engine_model(w->engine)->claims), false,
			    on_answer, &answer);
	assert_true(world_until(w, hangs, NULL));
	move_key(w);
	begun = vhca_now_ms();
	assert_true(world_until(w, is_at_5, &v));
	assert_true(vhca_now_ms() - begun < w->conf.poll_ms / 2);
	world_release(w);
	assert_true(world_until(w, answered, &answer));
}

static void test_unplug_that_hangs_delays_nothing(void **state)
{
	struct world *w = *state;
	struct answer answer = {0};
	unsigned int v = serve(w);

	w->fault_effect = VHCA_EFFECT_DETACH;
	w->fault = WORLD_HANG;
	w->fault_at = 1;
	w->effects = 0;
	vhca_engine_release(w->engine, TAILQ_FIRST(&vhca_engine_model(w->engine)->claims), false,
			    on_answer, &answer);
	assert_true(world_until(w, hangs, NULL));
	move_key(w);
	assert_true(world_until(w, is_unmapped, &v));
	assert_true(world_until(w, is_at_5, &v));
	assert_true(hangs(w, NULL));
	world_release(w);
	assert_true(world_until(w, answered, &answer));
	assert_true(answer.ok);
}

/* libvirt has plugged it in, and does not say so. Returns the VF. */
static unsigned int attach_hangs(struct world *w)
{
	unsigned int v = 0;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	w->fault_effect = VHCA_EFFECT_ATTACH;
	w->fault = WORLD_HANG;
	w->fault_at = 1;
	w->effects = 0;
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, hangs, NULL));
	while (v < WORLD_VFS && engine_vf(w, v)->state != VHCA_VF_PROGRAMMED)
		v++;
	assert_true(v < WORLD_VFS);
	return v;
}

static void test_attach_that_hangs_delays_nothing(void **state)
{
	struct world *w = *state;
	unsigned int v = attach_hangs(w);

	w->hostile_sm = true;
	move_key(w);
	assert_true(world_until(w, is_unmapped, &v));
	assert_true(world_until(w, is_at_5, &v));
	assert_true(hangs(w, NULL));
	world_release(w);
	assert_true(world_until(w, served, &zero));
}

/* Somebody's echo into sysfs is found, though nobody tells of it. */
static void test_drift_is_repaired_while_an_attach_hangs(void **state)
{
	struct world *w = *state;
	unsigned int v = attach_hangs(w);

	w->hostile_sm = true; /* what the map shows is not the agent's fault */
	w->vfs[v].map[0] = 5;
	assert_true(world_until(w, is_at_1, &v));
	world_release(w);
	assert_true(world_until(w, served, &zero));
}

/* The VF was proven to show the key; that is on its way to the disk. */
static bool is_committing(const struct world *w)
{
	const struct vhca_claim *c = first_claim(w);

	return c && c->vf->state == VHCA_VF_CLAIMED && c->vf->committing && c->vf->hw_known &&
	       c->vf->hw.requested == c->identity.guid;
}

static void move_during_commit(void *arg)
{
	struct world *w = arg;

	assert_true(is_committing(w));
	move_key(w);
}

/* The post comes before that of the store, which has nothing to write yet. */
static void move_when_programmed(struct world *w, uint64_t guid, uint64_t epoch)
{
	(void)guid;
	(void)epoch;
	w->programming = NULL;
	w->hostile_sm = true;
	w->port_pkeys[5] = 0x8001;
	assert_int_equal(vhca_loop_post(w->loop, move_during_commit, w, NULL), 0);
}

static void test_change_during_the_commit_is_not_forgotten(void **state)
{
	struct world *w = *state;
	unsigned int v;

	world_start(w);
	assert_true(world_until(w, all_free, NULL));
	w->programming = move_when_programmed;
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	assert_int_equal(w->port_pkeys[1], FOREIGN);
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	assert_true(world_until(w, is_at_5, &v));
}

/* ---- all VFs of an adapter ---- */

#define GUESTS 3
#define EACH   4

static unsigned int foreign_maps(const struct world *w)
{
	unsigned int n = 0;

	for (unsigned int v = 0; v < w->n_vfs; v++)
		for (unsigned int k = 0; w->vfs[v].group_open && k < VHCA_VF_PKEYS_MAX; k++)
			n += w->vfs[v].map[k] == 1;
	return n;
}

static unsigned int given_with_foreign, given;

static void count_foreign(struct world *w, uint64_t guid, uint64_t epoch)
{
	(void)guid;
	(void)epoch;
	given++;
	given_with_foreign += foreign_maps(w) > 0;
}

static bool all_are_served(const struct world *w, const void *arg)
{
	(void)arg;
	return count(w, VHCA_VF_ATTACHED) == GUESTS * EACH;
}

static bool all_are_given(const struct world *w, const void *arg)
{
	(void)w;
	(void)arg;
	return given >= GUESTS * EACH;
}

/* The wait for guests to see that their keys are gone is one for all VFs. */
static void test_foreign_keys_go_from_all_before_one_is_given_its_own(void **state)
{
	struct world *w = *state;
	char name[8];

	w->n_vfs = GUESTS * EACH;
	world_start(w);
	for (unsigned int i = 0; i < GUESTS; i++) {
		world_domain_start(w, i, "0x8001");
		for (unsigned int k = 1; k < EACH; k++) {
			(void)snprintf(name, sizeof(name), "ib%u", k);
			world_ask(w, i, name, "0x8001");
		}
	}
	assert_true(world_until(w, all_are_served, NULL));
	world_settle(w);
	w->conf.index_policy = VHCA_INDEX_ALARM;
	w->hostile_sm = true;
	given = given_with_foreign = 0;
	w->programming = count_foreign;
	move_key(w);
	assert_true(world_until(w, all_are_given, NULL));
	assert_int_equal(given_with_foreign, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_detaching_vf_follows),
		TEST(test_detaching_vf_follows_after_a_restart),
		TEST(test_detaching_vf_follows_without_libvirt),
		TEST(test_key_comes_back_soon_while_an_unplug_hangs),
		TEST(test_unplug_that_hangs_delays_nothing),
		TEST(test_attach_that_hangs_delays_nothing),
		TEST(test_drift_is_repaired_while_an_attach_hangs),
		TEST(test_change_during_the_commit_is_not_forgotten),
		TEST(test_foreign_keys_go_from_all_before_one_is_given_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
