/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mover's states, one move at a time. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opensm/http/metrics.h"
#include "tests/unit/opensm/lids/osm_world.h"

static void no_answer(void *arg, const struct vhca_osm_lid_move *move, const struct vhca_error *err)
{
	(void)arg;
	(void)move;
	(void)err;
	fail_msg("answered");
}

static void count_answers(void *arg, const struct vhca_osm_lid_move *move,
			  const struct vhca_error *err)
{
	struct world *w = arg;

	(void)move;
	(void)err;
	w->answers++;
}

static void a_move_ends_with_the_last_acknowledgement(void **state)
{
	struct world *w = *state;

	w->missing = 3;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->answers, 0);
	assert_int_equal(w->sent, 1);
	assert_int_equal(world_stats(w).queued, 1);
	assert_int_equal(vhca_osm_mover_deadline(w->m, 5), 6);
	(void)usleep(2000);
	assert_true(world_stats(w).oldest_us >= 2000);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 10);
	assert_int_equal(world_stats(w).oldest_us, 0);
	assert_int_equal(w->answers, 1);
	assert_string_equal(w->code, "");
	assert_true(w->got.changes);
	assert_int_equal(w->got.missing, 0);
	assert_int_equal(w->got.cost.lft_smps, 4);
	assert_int_equal(w->got.cost.mode, VHCA_OSM_SKYLINE);
	assert_int_equal(w->owner[1], PORT_B);
	assert_int_equal(w->owner[2], PORT_A);
	assert_int_equal(world_stats(w).applied, 1);
	assert_int_equal(vhca_osm_mover_deadline(w->m, 10), UINT64_MAX);
}

static bool is_due(const struct world *w)
{
	return vhca_osm_mover_deadline(w->m, 5) == 5;
}

/* Two ports and four blocks; only the blocks are told of. */
static void as_many_answers_as_are_missing_are_waited_for(void **state)
{
	struct world *w = *state;

	assert_false(vhca_osm_mover_answered(w->m)); /* to what a sweep has sent */
	w->missing = 6;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	for (int i = 0; i < 3; i++)
		assert_false(vhca_osm_mover_answered(w->m));
	assert_false(is_due(w));
	assert_true(vhca_osm_mover_answered(w->m));
	assert_true(is_due(w));
	w->missing = 1; /* a port, or a switch of which another's answer was counted */
	vhca_osm_mover_run(w->m, 1);
	assert_false(is_due(w));
	assert_true(vhca_osm_mover_answered(w->m));
	w->missing = 0;
	vhca_osm_mover_run(w->m, 2);
	assert_int_equal(w->answers, 1);
	assert_false(vhca_osm_mover_answered(w->m));
	assert_int_equal(vhca_osm_mover_deadline(w->m, 5), UINT64_MAX);
}

static void what_drops_is_waited_for_like_what_is_sent(void **state)
{
	struct world *w = *state;

	w->undrained = 2;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	assert_false(vhca_osm_mover_answered(w->m));
	assert_true(vhca_osm_mover_answered(w->m));
	assert_true(is_due(w));
	w->undrained = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->sent, 1);
}

static void what_is_so_already_changes_nothing(void **state)
{
	struct world *w = *state;

	world_submit(w, 1, PORT_B);
	world_submit(w, 1, PORT_B); /* the client repeats it */
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->answers, 2);
	assert_false(w->got.changes);
	assert_int_equal(w->sent, 1);
	assert_int_equal(w->owner[1], PORT_B);
	assert_int_equal(world_stats(w).unchanged, 1);
}

static void wrong_requests_are_refused_at_once(void **state)
{
	struct world *w = *state;
	struct vhca_osm_lid_move want = {.want = {.lid = 5, .port_guid = PORT_B}};
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(vhca_osm_mover_submit(w->m, &want, no_answer, w, &err) < 0);
	assert_string_equal(err.code, "unknown_lid");
	want = (struct vhca_osm_lid_move){.want = {.lid = 1, .port_guid = 99}};
	assert_true(vhca_osm_mover_check(w->m, &want, 0, &err) < 0);
	assert_string_equal(err.code, "unknown_port");
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->answers, 0);
}

static void a_plan_does_nothing(void **state)
{
	struct world *w = *state;
	struct vhca_osm_lid_move want = {.want = {.lid = 1, .port_guid = PORT_B}};

	assert_int_equal(vhca_osm_mover_check(w->m, &want, 0, NULL), 0);
	assert_true(want.changes);
	assert_int_equal(want.cost.lft_smps, 4);
	assert_int_equal(w->remembered + w->sent, 0);
}

/* Who has to know before what it would be refused for plans it once; to send it needs no plan. */
static void a_move_is_planned_once_at_its_turn(void **state)
{
	struct world *w = *state;

	world_check_and_queue(w, 1, PORT_B);
	assert_int_equal(w->resolved, 1);
	assert_int_equal(w->plans, 1);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->answers, 1);
	assert_int_equal(w->sent, 1);
	assert_int_equal(w->resolved, 2);
	assert_int_equal(w->plans, 2);
	world_submit(w, 2, PORT_B);
	assert_int_equal(w->resolved, 3);
	assert_int_equal(w->plans, 2);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, 2);
	assert_int_equal(w->resolved, 4);
	assert_int_equal(w->plans, 3);
}

static void without_a_durable_intent_nothing_is_sent(void **state)
{
	struct world *w = *state;

	w->refuse_remember = true;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	assert_string_equal(w->code, "state_not_saved");
	assert_int_equal(w->sent, 0);
	assert_int_equal(w->file[1], PORT_A);
	assert_true(vhca_osm_gate_enter(&w->gate)); /* it is free again */
	vhca_osm_gate_leave(&w->gate);
}

static void what_cannot_be_sent_is_rolled_back(void **state)
{
	struct world *w = *state;

	w->refuse_send = true;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	assert_string_equal(w->code, "changed_meanwhile");
	assert_true(w->hinted); /* "rolled back" */
	assert_int_equal(w->file[1], PORT_A);
	assert_int_equal(w->file[2], PORT_B);
	assert_int_equal(world_stats(w).rolled_back, 1);
}

static void a_move_waits_for_the_sweep(void **state)
{
	struct world *w = *state;

	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->sent, 0);
	vhca_osm_gate_sweep_end(&w->gate);
	vhca_osm_mover_run(w->m, 100);
	vhca_osm_mover_run(w->m, 101);
	assert_int_equal(w->answers, 1);
	assert_int_equal(w->sent, 1);
}

static void a_dynamic_lid_that_is_waited_for(void **state)
{
	struct world *w = *state;
	const struct vhca_osm_lid_move want = {
		.want = {.lid = 1, .port_guid = PORT_B, .vguid = 7, .dynamic = VHCA_OSM_LID_GIVEN}};

	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
	assert_int_equal(vhca_osm_mover_submit(w->m, &want, count_answers, w, NULL), 0);
	vhca_osm_mover_run(w->m, 0);
	assert_true(vhca_osm_mover_has_queued(w->m, 7));
	assert_false(vhca_osm_mover_has_queued(w->m, 8));
	vhca_osm_gate_sweep_end(&w->gate);
	vhca_osm_mover_run(w->m, 1);
	assert_false(vhca_osm_mover_has_queued(w->m, 7)); /* begun: it is in the table */
}

static void but_not_for_ever(void **state)
{
	struct world *w = *state;

	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 100);
	assert_in_range(vhca_osm_mover_deadline(w->m, 100), 101, 100 + VHCA_OSM_MOVE_WAIT_MS);
	assert_int_equal(vhca_osm_mover_deadline(w->m, 99 + VHCA_OSM_MOVE_WAIT_MS),
			 100 + VHCA_OSM_MOVE_WAIT_MS);
	vhca_osm_mover_run(w->m, 99 + VHCA_OSM_MOVE_WAIT_MS);
	assert_int_equal(w->answers, 0);
	vhca_osm_mover_run(w->m, 100 + VHCA_OSM_MOVE_WAIT_MS);
	assert_string_equal(w->code, "sweep_in_progress");
	assert_int_equal(w->remembered, 0);
}

/* OpenSM leaves the sweep in which it gives way without a word. */
static void nor_for_one_that_has_no_end(void **state)
{
	struct world *w = *state;

	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
	world_submit(w, 1, PORT_B);
	world_submit(w, 2, PORT_B);
	vhca_osm_mover_run(w->m, 100);
	assert_int_equal(w->answers, 0);
	w->standby = true;
	assert_in_range(vhca_osm_mover_deadline(w->m, 100), 101, 1100); /* somebody looks soon */
	vhca_osm_mover_run(w->m, 1100);
	assert_int_equal(w->answers, 2);
	assert_string_equal(w->code, "not_master");
	assert_int_equal(w->remembered, 0);
	assert_int_equal(vhca_osm_mover_deadline(w->m, 1100), UINT64_MAX);
}

static void answers_that_come_in_are_waited_for(void **state)
{
	struct world *w = *state;
	uint64_t t = 0;

	w->missing = 3000;
	world_submit(w, 1, PORT_B);
	for (; w->resent == 0 && t < VHCA_OSM_GATE_END_MS; t += TIMEOUT / 2) {
		vhca_osm_mover_run(w->m, t);
		w->missing--;
	}
	assert_int_equal(w->answers, 0);
	assert_in_range(t, 2 * TIMEOUT + 1, VHCA_OSM_GATE_END_MS - 1); /* but not for ever */
	w->missing = 0;
	vhca_osm_mover_run(w->m, t);
	assert_int_equal(world_stats(w).applied, 1);
}

static void what_is_lost_is_sent_again(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->resend_helps = true;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, TIMEOUT - 1);
	assert_int_equal(w->resent, 0);
	vhca_osm_mover_run(w->m, TIMEOUT);
	assert_int_equal(w->resent, 1);
	assert_int_equal(w->answers, 0);
	vhca_osm_mover_run(w->m, TIMEOUT + 1);
	assert_int_equal(w->got.missing, 0);
	assert_int_equal(world_stats(w).applied, 1);
	assert_int_equal(w->sweeps, 0);
}

/* Else the thread would run without a pause until a long sweep is over. */
static void a_repair_that_is_due_waits_for_the_end_of_the_sweep(void **state)
{
	struct world *w = *state;
	const uint64_t due = 2 * TIMEOUT + VHCA_OSM_RESWEEP_EVERY;

	w->missing = 1;
	world_submit(w, 1, PORT_B);
	for (uint64_t t = 0; t <= 2 * TIMEOUT; t += TIMEOUT)
		vhca_osm_mover_run(w->m, t);
	assert_int_equal(vhca_osm_mover_deadline(w->m, due), due);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
	vhca_osm_mover_run(w->m, due);
	assert_int_equal(vhca_osm_mover_deadline(w->m, due), UINT64_MAX);
	vhca_osm_gate_sweep_end(&w->gate);
	assert_int_equal(vhca_osm_mover_deadline(w->m, due), due);
}

static void what_stays_lost_is_repaired_by_sweeps(void **state)
{
	struct world *w = *state;
	uint64_t t = 2 * TIMEOUT;

	w->missing = 2;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, TIMEOUT);
	vhca_osm_mover_run(w->m, t);
	assert_int_equal(w->answers, 1);
	assert_string_equal(w->code, "");
	assert_int_equal(w->got.missing, 2);
	assert_int_equal(w->sweeps, 1);
	assert_int_equal(world_stats(w).repairing, 1);
	/* the sweep did not bring it: once more, later */
	vhca_osm_mover_run(w->m, t + VHCA_OSM_RESWEEP_EVERY - 1);
	assert_int_equal(w->sweeps, 1);
	vhca_osm_mover_run(w->m, t + VHCA_OSM_RESWEEP_EVERY);
	assert_int_equal(w->sweeps, 2);
	/* asked for again: it is not done yet */
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, t + VHCA_OSM_RESWEEP_EVERY);
	assert_int_equal(w->answers, 2);
	assert_false(w->got.changes);
	assert_int_equal(w->got.missing, 2);
	w->missing = 0;
	vhca_osm_mover_run(w->m, t + VHCA_OSM_RESWEEP_EVERY + 1);
	assert_int_equal(world_stats(w).repairing, 0);
	assert_int_equal(world_stats(w).repaired, 1);
	assert_int_equal(vhca_osm_mover_deadline(w->m, t), UINT64_MAX);
}

static void a_move_without_its_keys_is_not_done(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->keys_missing = true;
	world_submit(w, 1, PORT_B);
	for (uint64_t t = 0; t <= 2 * TIMEOUT; t += TIMEOUT)
		vhca_osm_mover_run(w->m, t);
	assert_int_equal(w->answers, 1);
	assert_string_equal(w->code, "keys_on_the_way");
	assert_int_equal(w->owner[1], PORT_B);
	assert_int_equal(world_stats(w).repairing, 1);
	assert_int_equal(w->sweeps, 1);
	/* asked for again: waits for them, too */
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 2 * TIMEOUT + 1);
	assert_int_equal(w->answers, 1);
	w->missing = 0;
	w->keys_missing = false;
	vhca_osm_mover_run(w->m, 2 * TIMEOUT + 2);
	assert_int_equal(w->answers, 2);
	assert_string_equal(w->code, "");
	assert_int_equal(world_stats(w).unchanged, 1);
	assert_int_equal(world_stats(w).repaired, 1);
}

/* A sweep has found it so, and lost its keys. */
static void what_is_so_without_its_keys_is_not_done(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->keys_missing = true;
	for (uint64_t t = 0; t < 4 * TIMEOUT; t += 2 * TIMEOUT) {
		world_submit(w, 1, PORT_A);
		vhca_osm_mover_run(w->m, t);
		vhca_osm_mover_run(w->m, t + TIMEOUT - 1);
		assert_int_equal(w->answers, t / (2 * TIMEOUT));
		vhca_osm_mover_run(w->m, t + TIMEOUT);
		assert_int_equal(w->answers, t / (2 * TIMEOUT) + 1);
		assert_string_equal(w->code, "keys_on_the_way");
		assert_int_equal(w->sweeps, 1); /* one for all who ask */
		assert_int_equal(world_stats(w).repairing, 1);
	}
	assert_int_equal(w->sent + w->resent, 0);
	assert_int_equal(world_stats(w).lost, 2);
	assert_int_equal(world_stats(w).latency.sum_us, 0);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate)); /* it is free again */
}

/*
 * A LID that is freed while its PF is away, and nothing that is freed, because there was nothing:
 * no LID of theirs is the same one.
 */
static void no_lid_is_nobodys(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	world_submit_freed(w, LID(0, 0), PORT_A);
	vhca_osm_mover_run(w->m, 0);
	world_submit_freed(w, LID(1, 0), PORT_A);
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 0); /* of one vGUID: in order */
	world_submit_freed(w, LID(1, 0), PORT(2, 0));
	vhca_osm_mover_run(w->m, 2);
	assert_int_equal(w->answers, 1);
	assert_false(w->got.changes);
	vhca_osm_mover_run(w->m, TIMEOUT);
	vhca_osm_mover_run(w->m, 2 * TIMEOUT);
	assert_int_equal(w->answers, 3);
	assert_int_equal(world_stats(w).repairing, 1);
	assert_int_equal(w->got.missing, 0); /* the last one's: nothing of it is repaired */
}

static void sweeps_for_what_never_answers_end(void **state)
{
	struct world *w = *state;
	uint64_t t = 2 * TIMEOUT;

	w->missing = 1;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, TIMEOUT);
	for (int i = 0; i < 2 * VHCA_OSM_RESWEEPS_MAX; i++, t += VHCA_OSM_RESWEEP_EVERY)
		vhca_osm_mover_run(w->m, t);
	assert_int_equal(w->sweeps, VHCA_OSM_RESWEEPS_MAX);
	assert_int_equal(world_stats(w).repairing, 1);
	assert_int_equal(vhca_osm_mover_deadline(w->m, t), UINT64_MAX);
	/* nor do reports that find it so, and lack their keys, begin anew */
	w->keys_missing = true;
	for (int i = 0; i < 3; i++, t += TIMEOUT) {
		world_submit(w, 1, PORT_B);
		vhca_osm_mover_run(w->m, t);
		vhca_osm_mover_run(w->m, t + TIMEOUT);
		assert_string_equal(w->code, "keys_on_the_way");
	}
	assert_int_equal(w->sweeps, VHCA_OSM_RESWEEPS_MAX);
	w->missing = 0;
	vhca_osm_mover_run(w->m, t);
	assert_int_equal(world_stats(w).repaired, 1);
}

/* Nothing is missing of what OpenSM wants, but it has not read yet what that is to be. */
static void newer_keys_are_waited_for(void **state)
{
	struct world *w = *state;

	w->keys_missing = true;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 0);
	w->keys_missing = false;
	vhca_osm_mover_run(w->m, 2);
	assert_string_equal(w->code, "");
	assert_int_equal(world_stats(w).applied, 1);
	/* the same for what is so already */
	w->keys_missing = true;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 3);
	vhca_osm_mover_run(w->m, 4);
	assert_int_equal(w->answers, 1);
	w->keys_missing = false;
	vhca_osm_mover_run(w->m, 5);
	assert_int_equal(w->answers, 2);
	assert_int_equal(world_stats(w).unchanged, 1);
}

/* It cannot be written, say: no sweep would help. */
static void newer_keys_are_not_waited_for_for_ever(void **state)
{
	struct world *w = *state;

	w->keys_missing = true;
	world_submit(w, 1, PORT_B);
	for (uint64_t t = 0; t <= 2 * TIMEOUT; t += TIMEOUT) {
		assert_int_equal(w->answers, 0);
		vhca_osm_mover_run(w->m, t);
	}
	assert_string_equal(w->code, "keys_on_the_way");
	assert_int_equal(world_stats(w).refused, 1);
	assert_int_equal(world_stats(w).applied + world_stats(w).lost, 0);
	assert_int_equal(w->sweeps, 0);
}

/* More than are remembered. */
static void reports_without_room_for_a_repair_ask_for_no_sweep(void **state)
{
	struct world *w = *state;
	uint64_t t = 0;

	w->missing = 1;
	for (int i = 0; i < VHCA_OSM_REPAIRS_MAX; i++, t += 2 * TIMEOUT) {
		world_submit(w, 1, i % 2 ? PORT_A : PORT_B);
		vhca_osm_mover_run(w->m, t);
		vhca_osm_mover_run(w->m, t + TIMEOUT);
		vhca_osm_mover_run(w->m, t + 2 * TIMEOUT);
	}
	assert_int_equal(world_stats(w).repairing, VHCA_OSM_REPAIRS_MAX);
	w->sweeps = 0;
	w->keys_missing = true;
	world_submit(w, LID(2, 0), PORT(2, 0));
	vhca_osm_mover_run(w->m, t);
	vhca_osm_mover_run(w->m, t + TIMEOUT);
	assert_string_equal(w->code, "keys_on_the_way");
	assert_int_equal(w->sweeps, 0);
}

static void none_begins_while_they_are_paused(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	world_submit(w, LID(1, 0), PORT(1, 1));
	vhca_osm_mover_pause(w->m, true);
	assert_true(world_stats(w).paused);
	assert_int_equal(vhca_osm_mover_deadline(w->m, 1), 2); /* the first one's answers */
	w->missing = 0;
	vhca_osm_mover_run(w->m, 2);
	assert_int_equal(w->answers, 1); /* what was under way has ended */
	assert_int_equal(w->sent, 1);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate)); /* and no sweep waits for the others */
	vhca_osm_gate_sweep_end(&w->gate);
	vhca_osm_mover_run(w->m, 3);
	assert_int_equal(w->sent, 1);
	vhca_osm_mover_pause(w->m, false);
	assert_true(vhca_osm_mover_deadline(w->m, 4) <= 4);
	vhca_osm_mover_run(w->m, 4);
	vhca_osm_mover_run(w->m, 5);
	assert_int_equal(w->answers, 2);
	assert_string_equal(w->code, "");
	assert_int_equal(w->sent, 2);
}

static void who_waits_too_long_for_that_hears_why(void **state)
{
	struct world *w = *state;

	vhca_osm_mover_pause(w->m, true);
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 100);
	vhca_osm_mover_run(w->m, 99 + VHCA_OSM_MOVE_WAIT_MS);
	assert_int_equal(w->answers, 0);
	vhca_osm_mover_pause(w->m, true); /* as it was */
	vhca_osm_mover_run(w->m, 100 + VHCA_OSM_MOVE_WAIT_MS);
	assert_string_equal(w->code, "moves_paused");
	assert_int_equal(w->remembered, 0);
	assert_int_equal(world_stats(w).refused, 1);
	world_submit(w, 1, PORT_B);
	w->standby = true; /* gives way in between */
	vhca_osm_mover_run(w->m, 200 + VHCA_OSM_MOVE_WAIT_MS);
	assert_string_equal(w->code, "not_master");
}

/* Whoever asks for a LID again, as agents do after a few seconds, has one place in the queue. */
static void who_asks_again_waits_once(void **state)
{
	struct world *w = *state;

	vhca_osm_mover_pause(w->m, true);
	for (int i = 0; i < 3; i++) {
		world_submit_freed(w, LID(0, 0), PORT_A);
		vhca_osm_mover_run(w->m, 0);
		assert_int_equal(world_stats(w).queued, 1);
		assert_int_equal(w->answers, i); /* the one before */
	}
	assert_string_equal(w->code, "changed_meanwhile");
	vhca_osm_mover_run(w->m, VHCA_OSM_MOVE_WAIT_MS); /* of the first one */
	assert_int_equal(w->answers, 3);
	assert_string_equal(w->code, "moves_paused");
	assert_int_equal(world_stats(w).refused, 1);
}

static void moves_go_in_order_and_are_bounded(void **state)
{
	struct world *w = *state;
	const struct vhca_osm_lid_move want = {.want = {.lid = 1, .port_guid = PORT_B}};
	struct vhca_error err = VHCA_ERROR_INIT;

	for (int i = 0; i < VHCA_OSM_MOVES_MAX; i++)
		world_submit(w, 1, PORT((i + 1) % 4 / 2, (i + 1) % 2));
	assert_true(vhca_osm_mover_submit(w->m, &want, no_answer, w, &err) < 0);
	assert_string_equal(err.code, "too_many_moves");
	for (int i = 0; i < VHCA_OSM_MOVES_MAX; i++)
		vhca_osm_mover_run(w->m, (uint64_t)i);
	assert_int_equal(w->answers, VHCA_OSM_MOVES_MAX);
	assert_int_equal(w->sent, VHCA_OSM_MOVES_MAX);
	assert_int_equal(w->owner[1], PORT_A);
}

static void no_port_has_the_places_of_all_others(void **state)
{
	struct world *w = *state;
	const struct vhca_osm_lid_move want = {.want = {.lid = 1, .port_guid = PORT_B}};
	struct vhca_error err = VHCA_ERROR_INIT;

	world_submit_freed(w, LID(0, 1), PORT_B); /* so it is, of PORT_B's: not counted */
	for (int i = 0; i < VHCA_OSM_MOVES_TO_ONE; i++)
		world_submit(w, (uint16_t)(1 + i % 2), PORT_B);
	assert_true(vhca_osm_mover_submit(w->m, &want, no_answer, w, &err) < 0);
	assert_string_equal(err.code, "too_many_moves");
	world_submit(w, 2, PORT_A);
	world_submit_freed(w, LID(0, 0), PORT_A);
	assert_int_equal(world_stats(w).queued, VHCA_OSM_MOVES_TO_ONE + 3);
}

static void freeing_refuses_what_is_not_answered(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	world_submit(w, 1, PORT_B);
	world_submit(w, 1, PORT_A);
	vhca_osm_mover_run(w->m, 0);
	w->m = vhca_osm_mover_free(w->m);
	assert_int_equal(w->answers, 2);
	assert_string_equal(w->code, "ending");
	assert_true(vhca_osm_gate_sweep_begin(&w->gate)); /* does not wait for it */
}

static void assert_line(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no \"%s\" in\n%s", line, text);
}

static void metrics_say_what_happened(void **state)
{
	struct world *w = *state;
	char text[VHCA_OSM_METRICS_MAX];
	struct vhca_osm_metrics now = {
		.smps = {.guid_info = 3, .pkey_table = 7},
		.master = true,
		.bindings = 11,
		.lids = {.dynamic = 5, .lines = 6, .free = 7, .freed = 8, .kept = 9}};
	struct vhca_osm_mover_stats *s = &now.moves;

	world_submit(w, 1, PORT_B);
	world_submit(w, 1, PORT_B);
	vhca_osm_mover_run(w->m, 0);
	w->refuse_send = true;
	world_submit(w, 1, PORT_A);
	vhca_osm_mover_run(w->m, 1);
	w->refuse_remember = true;
	world_submit(w, 1, PORT_A);
	vhca_osm_mover_run(w->m, 2);
	*s = world_stats(w);
	/* times are what they are: the figures of a good day */
	s->latency = (struct vhca_histogram){.counts = {2, [VHCA_HISTOGRAM_BOUNDS] = 1},
					     .sum_us = 7001234};
	now.http = (struct vhca_http_stats){.connections = 9, .ended = {[VHCA_HTTP_END_HEAD] = 4}};
	vhca_osm_metrics_render(&now, text, sizeof(text));
	assert_line(text, "vhcasm_moves_total{outcome=\"applied\",mode=\"skyline\"} 1\n");
	assert_line(text, "vhcasm_moves_total{outcome=\"applied\",mode=\"deterministic\"} 0\n");
	assert_line(text, "vhcasm_moves_total{outcome=\"unchanged\"} 1\n");
	assert_line(text, "vhcasm_moves_total{outcome=\"refused\"} 1\n");
	assert_line(text, "vhcasm_moves_total{outcome=\"rolled_back\"} 1\n");
	assert_line(text, "vhcasm_moves_under_way 0\n");
	assert_line(text, "vhcasm_moves_oldest_seconds 0.0\n");
	assert_line(text, "vhcasm_sweeps_waited_seconds_total 0.0\n");
	assert_line(text, "vhcasm_moves_together_total 0\n");
	assert_line(text, "vhcasm_moves_at_once_max 1\n");
	assert_line(text, "vhcasm_smps_total{attribute=\"lft\"} 4\n");
	assert_line(text, "vhcasm_smps_total{attribute=\"lft\",step=\"drain\"} 0\n");
	assert_line(text, "vhcasm_smps_total{attribute=\"port_info\"} 2\n");
	assert_line(text, "vhcasm_smps_total{attribute=\"guid_info\"} 3\n");
	assert_line(text, "vhcasm_smps_total{attribute=\"pkey_table\"} 7\n");
	assert_line(text, "vhcasm_master 1\n");
	assert_line(text, "vhcasm_rebuilding 0\n");
	assert_line(text, "vhcasm_bindings 11\n");
	assert_line(text, "vhcasm_lids_dynamic 5\n");
	assert_line(text, "vhcasm_guid2lid_lines 6\n");
	assert_line(text, "vhcasm_lids_free 7\n");
	assert_line(text, "vhcasm_lids_freed_total 8\n");
	assert_line(text, "vhcasm_lids_kept 9\n");
	assert_line(text, "vhcasm_http_connections 9\n");
	assert_line(text, "vhcasm_http_connections_ended_total{reason=\"head\"} 4\n");
	assert_line(text, "vhcasm_http_connections_ended_total{reason=\"crowd\"} 0\n");
	assert_line(text, "vhcasm_move_seconds_bucket{le=\"0.0005\"} 2\n");
	assert_line(text, "vhcasm_move_seconds_bucket{le=\"5.0\"} 2\n");
	assert_line(text, "vhcasm_move_seconds_bucket{le=\"+Inf\"} 3\n");
	assert_line(text, "vhcasm_move_seconds_sum 7.001234\n");
	assert_line(text, "vhcasm_move_seconds_count 3\n");
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

/* ---- the gate, with a real sweeper thread ---- */

/* It does not begin before: who looks late, on a busy machine, sees nothing of that. */
static void assert_waits_until(struct world_sweeper *s, uint64_t end)
{
	while (!atomic_load(&s->begun) && vhca_now_ms() < end)
		(void)usleep(1000);
	assert_true(vhca_now_ms() >= end);
}

static void a_sweep_waits_for_the_move_in_progress(void **state)
{
	struct world *w = *state;
	struct world_sweeper s;
	uint64_t left;

	assert_true(vhca_osm_gate_enter(&w->gate));
	vhca_osm_gate_queued(&w->gate,
			     true); /* it yields for a while to those, then closes the gate */
	world_sweep_begin(w, &s);
	assert_false(vhca_osm_gate_enter(&w->gate) || atomic_load(&s.begun));
	assert_true(vhca_osm_gate_hold(&w->gate)); /* the keys of the one that is inside */
	left = vhca_now_ms();
	vhca_osm_gate_leave(&w->gate);
	assert_waits_until(&s, left + 50);
	vhca_osm_gate_release(&w->gate);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	assert_true(s.alone);
	assert_true(vhca_osm_gate_waited_us(&w->gate) >= 49000); /* 50 ms by another clock */
	assert_false(vhca_osm_gate_hold(&w->gate));
	vhca_osm_gate_sweep_end(&w->gate);
	assert_true(vhca_osm_gate_enter(&w->gate));
}

static void a_sweep_goes_on_beside_a_move_but_not_beside_its_keys(void **state)
{
	struct world *w = *state;
	struct world_sweeper s;
	uint64_t end = vhca_now_ms() + VHCA_OSM_GATE_YIELD_MS + VHCA_OSM_GATE_END_MS +
		       VHCA_OSM_GATE_HOLD_MS / 2;

	assert_true(vhca_osm_gate_enter(&w->gate)); /* it never ends */
	world_sweep_begin(w, &s);
	assert_true(vhca_osm_gate_hold(&w->gate));
	assert_waits_until(&s, end);
	vhca_osm_gate_release(&w->gate);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	assert_false(s.alone);
	assert_false(vhca_osm_gate_hold(&w->gate));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_move_ends_with_the_last_acknowledgement),
		CASE(as_many_answers_as_are_missing_are_waited_for),
		CASE(what_drops_is_waited_for_like_what_is_sent),
		CASE(what_is_so_already_changes_nothing),
		CASE(wrong_requests_are_refused_at_once),
		CASE(a_plan_does_nothing),
		CASE(a_move_is_planned_once_at_its_turn),
		CASE(without_a_durable_intent_nothing_is_sent),
		CASE(what_cannot_be_sent_is_rolled_back),
		CASE(a_move_waits_for_the_sweep),
		CASE(a_dynamic_lid_that_is_waited_for),
		CASE(but_not_for_ever),
		CASE(nor_for_one_that_has_no_end),
		CASE(answers_that_come_in_are_waited_for),
		CASE(what_is_lost_is_sent_again),
		CASE(a_repair_that_is_due_waits_for_the_end_of_the_sweep),
		CASE(what_stays_lost_is_repaired_by_sweeps),
		CASE(a_move_without_its_keys_is_not_done),
		CASE(what_is_so_without_its_keys_is_not_done),
		CASE(no_lid_is_nobodys),
		CASE(sweeps_for_what_never_answers_end),
		CASE(newer_keys_are_waited_for),
		CASE(newer_keys_are_not_waited_for_for_ever),
		CASE(reports_without_room_for_a_repair_ask_for_no_sweep),
		CASE(none_begins_while_they_are_paused),
		CASE(who_waits_too_long_for_that_hears_why),
		CASE(who_asks_again_waits_once),
		CASE(moves_go_in_order_and_are_bounded),
		CASE(no_port_has_the_places_of_all_others),
		CASE(freeing_refuses_what_is_not_answered),
		CASE(metrics_say_what_happened),
		CASE(a_sweep_waits_for_the_move_in_progress),
		CASE(a_sweep_goes_on_beside_a_move_but_not_beside_its_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
