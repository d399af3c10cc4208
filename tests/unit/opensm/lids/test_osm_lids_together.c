/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dynamic LIDs that are given together, though they change the same switches. */
#include "tests/unit/opensm/lids/osm_world.h"

#define VGUID(n) (UINT64_C(0xfe00000000) + (n))

static void give_many(struct world *w, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++)
		world_submit_given(w, VGUID(i), PORT(i % 3, 0));
}

static void check_given(const struct world *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t lid = world_lid_of(w, VGUID(i));

		assert_int_not_equal(lid, 0);
		assert_int_equal(w->file[lid], VGUID(i));
	}
}

static void all_that_wait_are_given_together(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	give_many(w, 0, 100);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->together, 1);
	assert_int_equal(w->parts, 100);
	assert_int_equal(w->saved, 1); /* one file for all */
	assert_int_equal(w->answers, 0);
	assert_int_equal(world_stats(w).under_way, 100);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 100);
	assert_int_equal(world_stats(w).applied, 100);
	assert_int_equal(world_stats(w).lft_smps, 3); /* 100 free LIDs are in three blocks */
	check_given(w, 100);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate)); /* nobody is inside */
}

/* Those that come meanwhile change the same blocks: no second content of one is sent. */
static void those_that_come_later_wait(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	give_many(w, 0, 10);
	vhca_osm_mover_run(w->m, 0);
	give_many(w, 10, 10);
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->together, 1);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 2);
	assert_int_equal(w->together, 2);
	assert_int_equal(w->parts, 10);
	vhca_osm_mover_run(w->m, 3);
	assert_int_equal(w->answers, 20);
	check_given(w, 20);
}

static void so_many_and_no_more(void **state)
{
	struct world *w = *state;
	const size_t n = VHCA_OSM_LIDS_TOGETHER + 40;

	w->missing = 1;
	give_many(w, 0, n);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->parts, VHCA_OSM_LIDS_TOGETHER);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	vhca_osm_mover_run(w->m, 2);
	assert_int_equal(w->together, 2);
	assert_int_equal(world_stats(w).applied, n);
	assert_int_equal(world_stats(w).most_at_once, VHCA_OSM_LIDS_TOGETHER);
	check_given(w, n);
}

static void one_that_is_refused_is_undone_alone(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->refuse_send_to = VGUID(3);
	give_many(w, 0, 8);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->answers, 1);
	assert_int_equal(w->got.want.vguid, VGUID(3));
	assert_string_equal(w->code, "changed_meanwhile");
	assert_true(w->hinted);
	assert_int_equal(w->file[w->got.pair.lid[0]], 0);
	assert_int_equal(w->saved, 2);
	assert_int_equal(world_stats(w).under_way, 7);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(world_stats(w).applied, 7);
	assert_int_equal(world_stats(w).rolled_back, 1);
}

static void all_that_are_refused_are_undone_with_one_file(void **state)
{
	struct world *w = *state;

	w->refuse_send = true;
	give_many(w, 0, 20);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->saved, 2);
	assert_int_equal(world_stats(w).rolled_back, 20);
	assert_int_equal(world_stats(w).under_way, 0);
	assert_int_equal(world_lid_of(w, VGUID(0)), 0);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
}

static void a_file_that_cannot_be_written_refuses_them_all(void **state)
{
	struct world *w = *state;

	w->refuse_remember = true;
	give_many(w, 0, 5);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(world_stats(w).refused, 5);
	assert_string_equal(w->code, "state_not_saved");
	assert_int_equal(w->together, 0);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
}

/* Their time-out is that of what is sent after it. */
static void a_slow_disk_makes_nobody_late(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->disk_ms = 3 * TIMEOUT;
	give_many(w, 0, 2);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 3 * TIMEOUT); /* at once */
	assert_int_equal(w->resent, 0);
	vhca_osm_mover_run(w->m, 4 * TIMEOUT);
	assert_int_equal(w->resent, 2);
}

/* Nor does the second one, of those that are refused. */
static void nor_does_the_file_of_those_that_are_undone(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->disk_ms = 3 * TIMEOUT;
	w->refuse_send_to = VGUID(1);
	give_many(w, 0, 2);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(w->saved, 2);
	vhca_osm_mover_run(w->m, 6 * TIMEOUT);
	assert_int_equal(w->resent, 0);
	vhca_osm_mover_run(w->m, 7 * TIMEOUT);
	assert_int_equal(w->resent, 1);
}

static void a_lost_block_concerns_its_own_lids(void **state)
{
	struct world *w = *state;
	size_t others = 0;

	w->lost_blocks[1] = 2;
	give_many(w, 0, 60);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 1);
	for (size_t i = 0; i < 60; i++)
		others += world_lid_of(w, VGUID(i)) / 64 != 1;
	assert_in_range(others, 1, 59);
	assert_int_equal(world_stats(w).applied, others);
	assert_int_equal(world_stats(w).under_way, 60 - others);
	vhca_osm_mover_run(w->m, 1 + TIMEOUT);
	vhca_osm_mover_run(w->m, 1 + 2 * TIMEOUT);
	assert_int_equal(world_stats(w).lost, 60 - others);
	assert_int_equal(w->got.missing, 2);
	assert_int_equal(w->answers, 60);
	assert_string_equal(w->code, "");
	assert_int_equal(world_stats(w).repairing, 1); /* of the block, in which all of them are */
	assert_int_equal(w->sweeps, 1);
	world_submit_given(w, w->got.want.vguid, w->got.want.port_guid);
	vhca_osm_mover_run(w->m, 2 * TIMEOUT);
	assert_false(w->got.changes);
	assert_int_equal(w->got.missing, 2);
	w->lost_blocks[1] = 0;
	vhca_osm_mover_run(w->m, 2 * TIMEOUT);
	assert_int_equal(world_stats(w).repaired, 1);
}

/* Whose block waits behind the others is not late while these are answered. */
static void an_answer_to_one_counts_for_all(void **state)
{
	struct world *w = *state;

	w->lost_blocks[0] = w->lost_blocks[1] = 1; /* each is missing at one switch, or more */
	w->lost_blocks[2] = 4;
	give_many(w, 0, 100);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(world_stats(w).under_way, 100);
	for (uint64_t now = TIMEOUT / 2; now < 2 * TIMEOUT; now += TIMEOUT / 2) {
		w->lost_blocks[2]--;
		vhca_osm_mover_run(w->m, now);
		assert_int_equal(w->resent, 0);
	}
	vhca_osm_mover_run(w->m, 2 * TIMEOUT);
	assert_int_equal(w->resent, 0);
	vhca_osm_mover_run(w->m, 3 * TIMEOUT); /* no answer for as long, and no more patience */
	assert_int_equal(w->resent, 100);
	vhca_osm_mover_run(w->m, 4 * TIMEOUT);
	assert_int_equal(world_stats(w).lost, 100);
}

/* Of a port's answer OpenSM does not tell: it is looked for now and then, not all the time. */
static void a_port_alone_is_looked_for_in_time(void **state)
{
	struct world *w = *state;

	w->missing = 1;
	w->lost_ports = 1;
	give_many(w, 0, 2);
	vhca_osm_mover_run(w->m, 0);
	assert_int_equal(vhca_osm_mover_deadline(w->m, 5), 6);
	w->missing = 0;
	vhca_osm_mover_run(w->m, 6);
	assert_int_equal(world_stats(w).under_way, 2);
	assert_int_equal(vhca_osm_mover_deadline(w->m, 6), 7);
	w->lost_ports = 0;
	vhca_osm_mover_run(w->m, 7);
	assert_int_equal(world_stats(w).applied, 2);
}

static void of_one_vguid_they_go_in_order(void **state)
{
	struct world *w = *state;
	uint16_t lid;

	world_submit_given(w, VGUID(0), PORT(0, 0));
	world_submit_given(w, VGUID(1), PORT(0, 0));
	world_submit_given(w, VGUID(0), PORT(2, 0));
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->answers, 3);
	assert_int_equal(w->together, 2);
	assert_int_equal(w->parts, 1);
	lid = world_lid_of(w, VGUID(0));
	assert_int_equal(w->pf[lid], PORT(2, 0));
	assert_int_equal(world_stats(w).applied, 3);
}

/* Who has his LID in mind counts, also while he waits. */
static void the_limit_is_for_all_of_them(void **state)
{
	struct world *w = *state;

	w->limit = 5;
	w->missing = 1;
	give_many(w, 0, 7);
	vhca_osm_mover_run(w->m, 0);
	assert_string_equal(w->code, "no_free_lid");
	w->missing = 0;
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(world_stats(w).applied, 5);
	assert_int_equal(world_stats(w).refused, 2);
	check_given(w, 5);
}

static int look(const struct world *w, size_t vguid, size_t promised, struct vhca_osm_lid_move *ret,
		struct vhca_error *err)
{
	*ret = (struct vhca_osm_lid_move){.want = {.vguid = VGUID(vguid),
						   .port_guid = PORT(0, 0),
						   .dynamic = VHCA_OSM_LID_GIVEN}};
	return vhca_osm_mover_check(w->m, ret, promised, err);
}

static void on_given(void *arg, const struct vhca_osm_lid_move *move, const struct vhca_error *err)
{
	(void)move;
	*(size_t *)arg += !err;
}

static void check_refused(const struct world *w, size_t vguid, size_t promised)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_lid_move move;

	assert_true(look(w, vguid, promised, &move, &err) < 0);
	assert_string_equal(err.code, "no_free_lid");
	assert_false(move.want.is_new);
}

/* A look before a report promises a LID: no more are promised than there may be. */
static void a_look_that_allows_one_promises_it(void **state)
{
	struct world *w = *state;
	struct vhca_osm_lid_move move;
	size_t given = 0;

	w->limit = 3;
	check_refused(w, 2, 3); /* whose reports are not on disk yet */
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(look(w, i, 0, &move, NULL), 0);
		assert_true(move.want.is_new);
		assert_int_equal(vhca_osm_mover_queue(w->m, &move, on_given, &given, NULL), 0);
	}
	check_refused(w, 3, 0);
	assert_int_equal(look(w, 1, 0, &move, NULL), 0); /* who asks again has his already */
	assert_false(move.want.is_new);
	vhca_osm_mover_run(w->m, 0);
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(given, 3);
	check_refused(w, 3, 0);
	w->limit = 4;
	assert_int_equal(look(w, 3, 0, &move, NULL), 0);
}

static void they_wait_for_moves_and_moves_for_them(void **state)
{
	struct world *w = *state;

	w->lost[4] = 1;
	world_submit(w, LID(4, 0), PORT(4, 1));
	vhca_osm_mover_run(w->m, 0);
	give_many(w, 0, 3);
	world_submit(w, LID(6, 0), PORT(6, 1)); /* came later */
	vhca_osm_mover_run(w->m, 1);
	assert_int_equal(w->sent, 1);
	w->lost[4] = 0;
	vhca_osm_mover_run(w->m, 2);
	vhca_osm_mover_run(w->m, 3);
	assert_int_equal(w->answers, 5);
	assert_int_equal(w->together, 1);
	assert_int_equal(world_stats(w).applied, 5);
}

static void a_sweep_makes_them_plan_anew(void **state)
{
	struct world *w = *state;
	int planned;

	w->missing = 1;
	give_many(w, 0, 3);
	vhca_osm_mover_run(w->m, 0);
	give_many(w, 3, 3);
	vhca_osm_mover_run(w->m, 1);
	planned = w->plans;
	w->missing = 0;
	vhca_osm_mover_run(w->m, 2);
	assert_int_equal(w->plans, planned);
	vhca_osm_mover_run(w->m, 3);
	assert_true(vhca_osm_gate_sweep_begin(&w->gate));
	give_many(w, 6, 3);
	vhca_osm_mover_run(w->m, 4);
	assert_int_equal(w->answers, 6);
	vhca_osm_gate_sweep_end(&w->gate);
	vhca_osm_mover_run(w->m, 5);
	vhca_osm_mover_run(w->m, 6);
	check_given(w, 9);
	assert_int_equal(w->plans, planned + 3);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(all_that_wait_are_given_together),
		CASE(those_that_come_later_wait),
		CASE(so_many_and_no_more),
		CASE(one_that_is_refused_is_undone_alone),
		CASE(all_that_are_refused_are_undone_with_one_file),
		CASE(a_file_that_cannot_be_written_refuses_them_all),
		CASE(a_slow_disk_makes_nobody_late),
		CASE(nor_does_the_file_of_those_that_are_undone),
		CASE(a_lost_block_concerns_its_own_lids),
		CASE(an_answer_to_one_counts_for_all),
		CASE(a_port_alone_is_looked_for_in_time),
		CASE(of_one_vguid_they_go_in_order),
		CASE(the_limit_is_for_all_of_them),
		CASE(a_look_that_allows_one_promises_it),
		CASE(they_wait_for_moves_and_moves_for_them),
		CASE(a_sweep_makes_them_plan_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
