/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Moves that go together: who may, who has to wait for whom, and that they do not disturb each
 * other.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/opensm/lids/osm_world.h"

#define RANDOM_MOVES 3000

/* Exchanges two ports of a leaf. */
static void inside(struct world *w, size_t leaf)
{
	world_submit(w, LID(leaf, 0), PORT(leaf, 1));
}

static void across(struct world *w, size_t leaf, size_t other)
{
	world_submit(w, LID(leaf, 2), PORT(other, 2));
}

static void disjoint_moves_go_together(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	for (size_t leaf = 0; leaf < 3; leaf++)
		inside(w, leaf);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, 3);
	assert_int_equal(world_stats(w).under_way, 3);
	assert_int_equal(world_stats(w).queued, 3);
	assert_int_equal(w->remembered, 3);
	assert_int_equal(w->saved, 1); /* one file for all */
	assert_int_equal(w->keys_sent, 1);
	assert_int_equal(w->answers, 0);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 3);
	assert_int_equal(w->keys_sent, 1);
	assert_int_equal(world_stats(w).applied, 3);
	assert_int_equal(world_stats(w).together, 2);
	assert_int_equal(world_stats(w).most_at_once, 3);
	assert_int_equal(world_stats(w).under_way, 0);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate)); /* nobody is inside */
}

static void one_that_comes_later_joins_in(void **state)
{
	struct world *w = *state;

	w->lost[0] = 1;
	inside(w, 0);
	vhca_osm_mover_run(w->m, 0);
	inside(w, 1);
	vhca_osm_mover_run(w->m, 5);
	assert_int_equal(world_stats(w).applied, 1); /* the second, while the first is under way */
	assert_int_equal(w->got.want.lid, LID(1, 0));
	assert_int_equal(world_stats(w).under_way, 1);
	w->lost[0] = 0;
	vhca_osm_mover_run(w->m, 6);
	assert_int_equal(world_stats(w).applied, 2);
}

static void moves_at_one_switch_go_in_order(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	across(w, 0, 1);
	across(w, 2, 3); /* other leaves, but the same spine */
	inside(w, 1);	 /* other ports, but the same leaf as the first */
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, 1);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 3);
	assert_int_equal(world_stats(w).applied, 3);
}

/* Both were right when they were asked for. */
static void a_lid_that_has_gone_meanwhile_follows_nobody(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	world_submit_from(w, LID(0, 0), PORT(0, 0), PORT(0, 1));
	world_submit_from(w, LID(0, 0), PORT(0, 0), PORT(2, 0));
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, 1);
	assert_string_equal(w->code, "lid_elsewhere");
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 2);
	assert_string_equal(w->code, "");
	assert_int_equal(w->sent, 1);
	assert_int_equal(w->owner[LID(0, 0)], PORT(0, 1));
}

/*
 * The second shares no switch with the first; but the same LID is to be at two places, one after
 * the other.
 */
static void moves_of_one_lid_go_in_order(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	world_submit(w, LID(0, 0), PORT(0, 1));
	world_submit(w, LID(0, 0), PORT(2, 0));
	world_submit(w, LID(0, 0), PORT(0, 1)); /* so it is now: and yet it is not done */
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, 1);
	assert_int_equal(w->answers, 0);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 3);
	assert_int_equal(w->sent, 3);
	assert_int_equal(w->owner[LID(0, 0)], PORT(0, 1));
}

static void nobody_overtakes_one_that_it_meets(void **state)
{
	struct world *w = *state;

	w->lost[0] = 1;
	inside(w, 0);
	across(w, 0, 1); /* waits for the first */
	inside(w, 1);	 /* could go, but would keep the second waiting */
	across(w, 2, 3); /* the same, because of the spine */
	inside(w, 4);	 /* meets nobody */
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, 2);
	assert_int_equal(w->answers, 1);
	assert_int_equal(w->got.want.lid, LID(4, 0));
	for (uint64_t t = 1; t < 10; t++) { /* nor do those who come later */
		inside(w, 1);
		vhca_osm_mover_run(w->m, t);
	}
	assert_int_equal(w->sent, 2);
	w->lost[0] = 0;
	vhca_osm_mover_run(w->m, 10);
	assert_int_equal(w->answers, 14);
}

static void so_many_and_no_more(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	for (size_t leaf = 0; leaf < LEAVES; leaf++)
		inside(w, leaf);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, VHCA_OSM_MOVES_AT_ONCE);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, LEAVES);
	assert_int_equal(world_stats(w).most_at_once, VHCA_OSM_MOVES_AT_ONCE);
}

static void waiting_ones_are_planned_once(void **state)
{
	struct world *w = *state;
	int planned;

	w->lost[0] = 1;
	inside(w, 0);
	for (int i = 0; i < 2 * VHCA_OSM_MOVES_AHEAD; i++)
		world_submit(w, LID(0, 2), PORT(1, 0));
	vhca_osm_mover_run(w->m, 0);
	planned = w->plans;
	assert_in_range(planned, 2, 1 + VHCA_OSM_MOVES_AHEAD); /* not all that wait */
	for (uint64_t t = 1; t < TIMEOUT; t++)
		vhca_osm_mover_run(w->m, t);
	assert_int_equal(w->plans, planned);
}

static void one_that_is_repaired_holds_up_nobody_else(void **state)
{
	struct world *w = *state;

	w->lost[0] = 2;
	inside(w, 0);
	inside(w, 1);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(world_stats(w).applied, 1);
	for (uint64_t t = 1; t <= 2 * TIMEOUT; t += TIMEOUT / 4) {
		inside(w, 2);
		inside(w, 2); /* it is there already */
		vhca_osm_mover_run(w->m, t);
	}
	assert_int_equal(w->resent, 1);
	vhca_osm_mover_run(w->m, 2 * TIMEOUT + 1);
	assert_int_equal(world_stats(w).lost, 1);
	assert_int_equal(world_stats(w).repairing, 1);
	assert_int_equal(world_stats(w).applied, 2);
	assert_int_equal(world_stats(w).unchanged, 15);
	w->lost[0] = 0;
	inside(w, 3);
	vhca_osm_mover_run(w->m, 2 * TIMEOUT + 2);
	assert_int_equal(world_stats(w).repaired, 1);
	assert_int_equal(world_stats(w).applied, 3);
}

static void a_refusal_disturbs_nobody_else(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->refuse_send_to = PORT(1, 1);
	inside(w, 0);
	inside(w, 1);
	inside(w, 2);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->answers, 1);
	assert_string_equal(w->code, "changed_meanwhile");
	assert_int_equal(w->file[LID(1, 0)], PORT(1, 0)); /* as before */
	assert_int_equal(w->file[LID(0, 0)], PORT(0, 1));
	assert_int_equal(w->file[LID(2, 0)], PORT(2, 1));
	assert_int_equal(world_stats(w).under_way, 2);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(world_stats(w).applied, 2);
	assert_int_equal(world_stats(w).rolled_back, 1);
	assert_int_equal(world_stats(w).refused, 0);
}

static void a_file_that_cannot_be_written_refuses_them_all(void **state)
{
	struct world *w = *state;

	w->refuse_remember = true;
	inside(w, 0);
	inside(w, 1);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(world_stats(w).refused, 2);
	assert_string_equal(w->code, "state_not_saved");
	assert_int_equal(w->sent, 0);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
}

/* The plugin's health is answered meanwhile, and a disk may take its time. */
static void those_whose_file_is_written_are_counted(void **state)
{
	struct world *w = *state;

	inside(w, 0);
	(void)usleep(2000);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->saved, 1);
	assert_true(w->saving.oldest_us >= 2000);
	assert_int_equal(w->saving.queued, 1);
	assert_int_equal(w->saving.under_way, 0);
	assert_int_equal(world_stats(w).queued, 0);
}

static void freeing_refuses_all_of_them(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	for (size_t leaf = 0; leaf < 4; leaf++)
		inside(w, leaf);
	inside(w, 0);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(world_stats(w).under_way, 4);
	w->m = vhca_osm_mover_free(w->m);
	assert_int_equal(w->answers, 5);
	assert_string_equal(w->code, "ending");
	assert_true(vhca_osm_gate_sweep_begin(&w->gate)); /* does not wait for them */
}

/* ---- drained first ---- */

static void a_move_is_drained_before_it_is_sent(void **state)
{
	struct world *w = *state;

	w->undrained = 2;
	w->missing = 1;
	inside(w, 0);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, TIMEOUT - 1);
	assert_int_equal(w->drained, 1);
	assert_int_equal(w->sent, 0);
	assert_int_equal(world_stats(w).under_way, 1);
	assert_int_equal(world_stats(w).drain_smps, 2);
	w->undrained = 0;
	vhca_osm_mover_run(w->m, TIMEOUT - 1);
	assert_int_equal(w->sent, 1);
	assert_int_equal(w->keys_sent, 1);
	vhca_osm_mover_run(w->m, 2 * TIMEOUT - 2); /* its own time-out begins with the change */
	assert_int_equal(w->resent, 0);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 2 * TIMEOUT - 2);
	assert_int_equal(world_stats(w).applied, 1);
	assert_int_equal(w->got.cost.drain_smps, 2);
}

static void what_does_not_drain_is_changed_all_the_same(void **state)
{
	struct world *w = *state;

	w->undrained = 2;
	inside(w, 0);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, TIMEOUT);
	assert_int_equal(w->drained, 1);
	vhca_osm_mover_run(w->m, TIMEOUT);
	assert_int_equal(world_stats(w).applied, 1);
}

static void a_drained_move_that_cannot_be_sent_is_undone(void **state)
{
	struct world *w = *state;

	w->undrained = 2;
	w->refuse_send = true;
	inside(w, 0);
	vhca_osm_mover_run(w->m, 0);
	w->undrained = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_string_equal(w->code, "changed_meanwhile");
	assert_int_equal(w->file[LID(0, 0)], PORT(0, 0));
	assert_int_equal(w->undone, 1);
	assert_int_equal(w->sweeps, 1);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate)); /* nobody is inside */
}

/* What the second one means is only known when the first one has changed the tables. */
static void one_that_waits_for_a_drained_one_is_planned_after_it(void **state)
{
	struct world *w = *state;

	w->undrained = 2;
	world_submit(w, LID(0, 0), PORT(1, 0));
	world_submit(w, LID(0, 0), PORT(2, 0));
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->sent, 0);
	w->drains_at_once = true;
	for (uint64_t t = 2; t < 6; t++)
		vhca_osm_mover_run(w->m, t);
	assert_int_equal(world_stats(w).applied, 2);
	assert_int_equal(w->owner[LID(0, 0)], PORT(2, 0));
	assert_int_equal(w->owner[LID(1, 0)], PORT(0, 0));
	assert_int_equal(w->owner[LID(2, 0)], PORT(1, 0));
}

/* ---- with a real sweeper thread ---- */

static void a_sweep_waits_for_all_of_them(void **state)
{
	struct world *w = *state;
	struct world_sweeper s;
	int planned;

	w->lost[0] = w->lost[1] = 1;
	inside(w, 0);
	inside(w, 1);
	across(w, 0, 1); /* waits, planned already */
	vhca_osm_mover_run(w->m, 0);
	planned = w->plans;
	world_sweep_begin(w, &s);
	inside(w, 2); /* too late */
	w->lost[0] = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 1);
	assert_false(atomic_load(&s.begun)); /* one is still inside */
	w->lost[1] = 0;
	vhca_osm_mover_run(w->m, 2);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	assert_true(s.alone);
	assert_int_equal(w->sent, 2);
	vhca_osm_gate_sweep_end(&w->gate);
	vhca_osm_mover_run(w->m, 3);
	assert_int_equal(w->answers, 4);
	assert_int_equal(w->plans, planned + 2); /* on the tables that the sweep made */
}

/* ---- at random ---- */

/* What the same wishes would do one after the other. */
static void apply(uint64_t owner[static WORLD_LIDS], uint16_t lid, uint64_t port)
{
	uint64_t old = owner[lid];

	for (size_t l = 1; l < WORLD_LIDS; l++)
		if (owner[l] == port)
			owner[l] = old;
	owner[lid] = port;
}

static void it_comes_out_as_if_one_after_the_other(void **state)
{
	struct world *w = *state;
	unsigned int seed = 1;
	uint64_t owner[WORLD_LIDS], t = 0;
	bool sweeping = false;

	(void)memcpy(owner, w->owner, sizeof(owner));
	w->resend_helps = true;
	for (int i = 0; i < RANDOM_MOVES; i++) {
		/* few leaves, so that there is always somebody in the way; often inside one */
		size_t leaf = (size_t)rand_r(&seed) % 6, n = (size_t)rand_r(&seed) % 3;
		size_t other = rand_r(&seed) % 2 ? leaf : (size_t)rand_r(&seed) % 6;
		uint16_t lid = LID(leaf, n);
		uint64_t port = PORT(other, (size_t)rand_r(&seed) % 3);

		w->lost[rand_r(&seed) % 6] = rand_r(&seed) % 3 == 0;
		world_submit(w, lid, port);
		apply(owner, lid, port);
		if (rand_r(&seed) % 3)
			vhca_osm_mover_run(w->m, t += (unsigned int)rand_r(&seed) % TIMEOUT);
		if (sweeping && rand_r(&seed) % 4 == 0) {
			vhca_osm_gate_sweep_end(&w->gate);
			sweeping = false;
		} else if (!sweeping && world_stats(w).queued == 0 && rand_r(&seed) % 4 == 0) {
			sweeping = vhca_osm_gate_sweep_begin(&w->gate);
		}
	}
	if (sweeping)
		vhca_osm_gate_sweep_end(&w->gate);
	for (; world_stats(w).queued; t += TIMEOUT)
		vhca_osm_mover_run(w->m, t);
	assert_int_equal(w->answers, RANDOM_MOVES);
	assert_int_equal(world_stats(w).refused, 0);
	assert_true(world_stats(w).most_at_once > 2);
	assert_memory_equal(w->owner, owner, sizeof(owner));
	assert_memory_equal(w->file, owner, sizeof(owner));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(disjoint_moves_go_together),
		CASE(one_that_comes_later_joins_in),
		CASE(moves_at_one_switch_go_in_order),
		CASE(moves_of_one_lid_go_in_order),
		CASE(a_lid_that_has_gone_meanwhile_follows_nobody),
		CASE(nobody_overtakes_one_that_it_meets),
		CASE(so_many_and_no_more),
		CASE(waiting_ones_are_planned_once),
		CASE(one_that_is_repaired_holds_up_nobody_else),
		CASE(a_refusal_disturbs_nobody_else),
		CASE(a_file_that_cannot_be_written_refuses_them_all),
		CASE(those_whose_file_is_written_are_counted),
		CASE(freeing_refuses_all_of_them),
		CASE(a_move_is_drained_before_it_is_sent),
		CASE(what_does_not_drain_is_changed_all_the_same),
		CASE(a_drained_move_that_cannot_be_sent_is_undone),
		CASE(one_that_waits_for_a_drained_one_is_planned_after_it),
		CASE(a_sweep_waits_for_all_of_them),
		CASE(it_comes_out_as_if_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
