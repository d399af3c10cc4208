/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the outbox does with moves and with their announcement. */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "tests/unit/sm/outbox_box.h"
#include "tests/unit/unit.h"

/* ---- moves ---- */

static void a_move_is_committed(void **state)
{
	struct box *b = *state;

	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].method, "POST");
	assert_string_equal(b->sm.seen[0].path, "/v1/moves");
	assert_string_equal(b->sm.seen[0].body, BOX_COMMIT_BODY);
	assert_int_equal(b->n_answers, 1);
	assert_int_equal(b->answers[0].answer, VHCA_SM_ACCEPTED);
	assert_int_equal(b->answers[0].epoch, 7);
	assert_int_equal(false_sm_effects(&b->sm, BOX_VGUID(1)), 1);
}

static void only_a_binding_with_an_origin_is_a_move(void **state)
{
	struct box *b = *state;
	struct vhca_sm_binding from_nowhere = box_move_of(BOX_VGUID(1), 1),
			       over = box_move_of(BOX_VGUID(2), 1),
			       still = box_move_of(BOX_VGUID(3), 1);

	from_nowhere.from_port_guid = 0;
	over.bound = false;
	still.moved = false;
	box_put_binding(b, from_nowhere);
	box_wait_all_done(b);
	box_put_binding(b, over);
	box_wait_all_done(b);
	box_put_binding(b, still);
	box_wait_all_done(b);
	assert_string_equal(b->sm.seen[0].path, "/v1/bindings/0x0002c90000000001");
	assert_string_equal(b->sm.seen[0].method, "PUT");
	assert_string_equal(b->sm.seen[1].method, "DELETE");
	assert_string_equal(b->sm.seen[2].method, "PUT");
}

static void superseded_moves_are_dropped(void **state)
{
	struct box *b = *state;

	box_put_epoch(b, BOX_VGUID(1), 8);
	box_wait_all_done(b);
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_wait_all_done(b);
	assert_int_equal(b->n_answers, 2);
	assert_int_equal(b->answers[1].answer, VHCA_SM_SUPERSEDED);
	assert_string_equal(b->answers[1].code, "superseded");
}

static void an_older_plugin_gets_the_binding(struct box *b)
{
	uint64_t start = vhca_now_ms();

	box_reopen_outbox(b, 20000);
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_string_equal(b->sm.seen[0].path, "/v1/moves");
	assert_string_equal(b->sm.seen[1].method, "PUT");
	assert_string_equal(b->sm.seen[1].path, "/v1/bindings/0x0002c90000000001");
	assert_int_equal(b->n_answers, 1); /* nobody hears of the detour */
	assert_int_equal(b->answers[0].answer, VHCA_SM_ACCEPTED);
	assert_true(vhca_outbox_reachable(b->ob));
	assert_true(vhca_now_ms() - start < 5000);
}

static void without_the_route_a_move_is_a_binding(void **state)
{
	struct box *b = *state;

	box_know_no_moves(b);
	an_older_plugin_gets_the_binding(b);
}

static void without_the_method_a_move_is_a_binding(void **state)
{
	struct box *b = *state;

	b->sm.moves_code = "method_not_allowed";
	b->sm.moves_kind = VHCA_ERR_INVALID;
	an_older_plugin_gets_the_binding(b);
}

static void a_move_stays_one(struct box *b, unsigned int status)
{
	b->sm.moves_status = status;
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_wait_until(b, box_count_answers(b, VHCA_SM_RETRY) == 2);
	b->sm.moves_status = 0;
	box_wait_all_done(b);
	for (unsigned int i = 0; i < b->sm.n_seen; i++)
		assert_string_equal(b->sm.seen[i].path, "/v1/moves");
}

static void other_failures_of_a_move_are_no_reason(void **state)
{
	a_move_stays_one(*state, 503);
}

/* As a proxy says it while it knows no master. */
static void no_such_page_is_no_word_of_a_plugin(void **state)
{
	a_move_stays_one(*state, 404);
}

static void no_such_method_is_no_word_of_a_plugin(void **state)
{
	a_move_stays_one(*state, 405);
}

/* While the old plugin says no, a newer state comes: the older one is not sent once more. */
static void newer_replaces_a_move_that_is_unknown(void **state)
{
	struct box *b = *state;

	box_know_no_moves(b);
	b->sm.hold = true;
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_wait_until(b, b->sm.n_held == 1);
	box_put_epoch(b, BOX_VGUID(1), 8);
	box_wait_until(b, b->commits == 2);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_int_equal(b->sm.seen[1].epoch, 8);
	assert_int_equal(b->n_answers, 1);
}

/* ---- a LID that is to follow ---- */

static struct vhca_sm_binding follower(void)
{
	struct vhca_sm_binding b = box_move_of(BOX_VGUID(1), 7);

	b.follow_lid = true;
	return b;
}

static void a_lid_follows(void **state)
{
	struct box *b = *state;

	box_put_binding(b, follower());
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
	assert_non_null(strstr(b->sm.seen[0].body, "\"lid_policy\":\"follow\""));
	assert_int_equal(b->answers[0].answer, VHCA_SM_ACCEPTED);
	assert_int_equal(b->n_lid_stays, 0);
}

/* What is refused of the LID keeps the binding from nothing. */
static void a_lid_that_is_refused_stays(void **state)
{
	static const char *const codes[] = {"cannot_move", "lid_elsewhere", "lid_shared",
					    "role_needed", "unknown_lid",   "of_another_version"};
	struct box *b = *state;

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(codes); i++) {
		b->sm.follow_code = codes[i];
		box_put_binding(b, follower());
		box_wait_all_done(b);
		assert_int_equal(b->sm.n_seen, 2 * (i + 1));
		assert_null(strstr(b->sm.seen[2 * i + 1].body, "lid_policy"));
		assert_string_equal(b->sm.seen[2 * i + 1].phase, "commit");
		assert_int_equal(b->n_lid_stays, i + 1);
		assert_int_equal(b->n_answers, i + 1);
		assert_int_equal(b->answers[i].answer, VHCA_SM_ACCEPTED);
	}
}

static void a_lid_waits_for_what_passes(void **state)
{
	struct box *b = *state;

	b->sm.follow_code = "changed_meanwhile";
	box_put_binding(b, follower());
	box_wait_until(b, box_count_answers(b, VHCA_SM_RETRY) == 2);
	b->sm.follow_code = NULL;
	box_wait_all_done(b);
	assert_int_equal(b->n_lid_stays, 0);
	assert_non_null(strstr(box_last_seen(b)->body, "\"lid_policy\":\"follow\""));
}

/* A token that is wrong for a moment speaks of no LID. */
static void a_lid_waits_for_the_role(void **state)
{
	struct box *b = *state;

	box_refuse(b, "role_needed", VHCA_ERR_DENIED);
	box_put_binding(b, follower());
	box_wait_until(b, box_count_answers(b, VHCA_SM_RETRY) == 2);
	assert_int_equal(b->n_lid_stays, 0);
	box_refuse(b, NULL, VHCA_ERR_NONE);
	box_wait_all_done(b);
	assert_int_equal(b->n_lid_stays, 0);
	assert_non_null(strstr(box_last_seen(b)->body, "\"lid_policy\":\"follow\""));
}

static struct box *box_of_role; /* whose SM gives it as the request without the LID fails */

static int fail_without_lid(const struct vhca_sm_binding *b, struct vhca_sm_request *ret)
{
	if (b->follow_lid || !box_of_role->sm.follow_code)
		return vhca_sm_vhcasm.commit_request(b, ret);
	box_of_role->sm.follow_code = NULL;
	return -ENOMEM;
}

/* What was denied once is asked for again, if the answer has led to no request. */
static void a_lid_is_asked_for_anew(void **state)
{
	struct vhca_sm_ops ops = vhca_sm_vhcasm;
	struct box *b = *state;

	box_of_role = b;
	ops.commit_request = fail_without_lid;
	b->ops = &ops;
	box_reopen_outbox(b, b->backoff_ms);
	b->sm.follow_code = "role_needed";
	box_put_binding(b, follower());
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_non_null(strstr(box_last_seen(b)->body, "\"lid_policy\":\"follow\""));
	assert_int_equal(b->n_lid_stays, 0);
	b->ops = &vhca_sm_vhcasm;
	box_reopen_outbox(b, b->backoff_ms);
}

static void an_older_plugin_moves_no_lid(void **state)
{
	struct box *b = *state;

	box_know_no_moves(b);
	box_put_binding(b, follower());
	box_wait_all_done(b);
	assert_string_equal(b->sm.seen[1].method, "PUT");
	assert_int_equal(b->n_lid_stays, 1);
	assert_int_equal(b->answers[0].answer, VHCA_SM_ACCEPTED);
}

/* ---- prepare ---- */

static void prepare_is_sent_once(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding move = box_move_of(BOX_VGUID(1), 7);

	box_refuse(b, "superseded", VHCA_ERR_CONFLICT);
	vhca_outbox_prepare(b->ob, &move);
	assert_int_equal(vhca_outbox_pending(b->ob), 0);
	box_wait_until(b, b->sm.n_seen == 1);
	box_spin(b, 250);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].path, "/v1/moves");
	assert_string_equal(b->sm.seen[0].phase, "prepare");
	assert_int_equal(b->n_answers, 0);
	assert_int_equal(box_rows(b), 0);
	assert_int_equal(b->n_would_answer, 1);
	assert_int_equal(b->would_answer.guid, BOX_VGUID(1));
	assert_int_equal(b->would_answer.epoch, 7);
	assert_int_equal(b->would_answer.answer, VHCA_SM_SUPERSEDED);
}

static void prepare_takes_no_effect(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding move = box_move_of(BOX_VGUID(1), 7);

	vhca_outbox_prepare(b->ob, &move);
	box_wait_until(b, b->sm.n_seen == 1);
	box_put_binding(b, move);
	box_wait_all_done(b);
	assert_string_equal(box_last_seen(b)->phase, "commit");
	assert_int_equal(false_sm_effects(&b->sm, BOX_VGUID(1)), 1);
}

static void only_moves_are_prepared(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding binding = box_binding_of(BOX_VGUID(1), 7, true),
				     move = box_move_of(BOX_VGUID(1), 7);

	vhca_outbox_prepare(b->ob, &binding);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 0);
	false_sm_down(&b->sm);
	box_put_epoch(b, BOX_VGUID(2), 1);
	box_wait_until(b, !vhca_outbox_reachable(b->ob));
	vhca_outbox_prepare(b->ob, &move); /* not while the SM is away */
	false_sm_up(&b->sm);
	box_wait_all_done(b);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].phase, "");
}

static void prepare_without_an_sm_is_forgotten(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding move = box_move_of(BOX_VGUID(1), 7);

	b->ops = &vhca_sm_none;
	box_reopen_outbox(b, 100);
	vhca_outbox_prepare(b->ob, &move);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 0);
}

static void few_are_prepared_at_a_time(void **state)
{
	struct box *b = *state;
	unsigned int n = VHCA_OUTBOX_PREPARES_MAX;

	b->sm.hold = true;
	for (unsigned int i = 0; i < n + 8; i++) {
		const struct vhca_sm_binding move = box_move_of(BOX_VGUID(i), 7);

		vhca_outbox_prepare(b->ob, &move);
	}
	box_put_epoch(b, BOX_VGUID(99), 1); /* reports do not wait for hints */
	box_wait_until(b, b->sm.n_seen == n + 1);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, n + 1);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, n + 1);
	/*
	 * Their places are free again, each when its answer has arrived: what comes before that is
	 * dropped.
	 */
	for (unsigned int i = 0; i < n; i++) {
		const struct vhca_sm_binding move = box_move_of(BOX_VGUID(i), 7);

		box_wait_until(b, (vhca_outbox_prepare(b->ob, &move), b->sm.n_seen > n + 1 + i));
	}
}

static void free_with_prepares_in_flight(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding move = box_move_of(BOX_VGUID(1), 7);

	b->sm.hold = true;
	vhca_outbox_prepare(b->ob, &move);
	vhca_outbox_prepare(b->ob, &move);
	box_wait_until(b, b->sm.n_held == 2);
	b->ob = vhca_outbox_free(b->ob);
	false_sm_answer_held(&b->sm);
	box_spin(b, 50);
	assert_int_equal(b->n_answers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOX_CASE(a_move_is_committed),
		BOX_CASE(only_a_binding_with_an_origin_is_a_move),
		BOX_CASE(superseded_moves_are_dropped),
		BOX_CASE(without_the_route_a_move_is_a_binding),
		BOX_CASE(without_the_method_a_move_is_a_binding),
		BOX_CASE(other_failures_of_a_move_are_no_reason),
		BOX_CASE(no_such_page_is_no_word_of_a_plugin),
		BOX_CASE(no_such_method_is_no_word_of_a_plugin),
		BOX_CASE(newer_replaces_a_move_that_is_unknown),
		BOX_CASE(a_lid_follows),
		BOX_CASE(a_lid_that_is_refused_stays),
		BOX_CASE(a_lid_waits_for_what_passes),
		BOX_CASE(a_lid_waits_for_the_role),
		BOX_CASE(a_lid_is_asked_for_anew),
		BOX_CASE(an_older_plugin_moves_no_lid),
		BOX_CASE(prepare_is_sent_once),
		BOX_CASE(prepare_takes_no_effect),
		BOX_CASE(only_moves_are_prepared),
		BOX_CASE(prepare_without_an_sm_is_forgotten),
		BOX_CASE(few_are_prepared_at_a_time),
		BOX_CASE(free_with_prepares_in_flight),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
