/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* By which tickets a host shows that a vGUID is its own: with which reports, and how long. */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "sm/proof.h"
#include "tests/unit/sm/outbox_box.h"
#include "tests/unit/unit.h"

#define FIRST BOX_VGUID(1)

static unsigned int tickets_in(const struct false_sm_seen *seen)
{
	unsigned int n = 0;

	for (const char *p = seen->body; (p = strstr(p, "\"vhca-ticket-1 ")); p++)
		n++;
	return n;
}

static void a_report_shows_the_proof_until_it_is_accepted(void **state)
{
	struct box *b = *state;

	box_refuse(b, "unknown_port", VHCA_ERR_CONFLICT);
	box_put_proven(b, box_move_of(FIRST, 7), 2);
	box_wait_until(b, b->sm.n_seen == 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(tickets_in(&b->sm.seen[i]), 2);
	assert_non_null(vhca_outbox_proof(b->ob, FIRST));
	b->sm.refuse_code = NULL;
	box_wait_all_done(b);
	assert_int_equal(tickets_in(box_last_seen(b)), 2);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
	box_put_epoch(b, FIRST, 7);
	box_wait_all_done(b);
	assert_int_equal(tickets_in(box_last_seen(b)), 0);
}

static void a_newer_report_shows_it_too_and_another_vguids_does_not(void **state)
{
	struct box *b = *state;

	false_sm_down(&b->sm);
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_put_epoch(b, FIRST, 9); /* this host's own to raise */
	box_put_epoch(b, BOX_VGUID(2), 9);
	box_wait_until(b, b->commits == 3);
	false_sm_up(&b->sm);
	vhca_outbox_kick(b->ob);
	box_wait_all_done(b);
	/* The older one may have been on its way. */
	assert_int_equal(tickets_in(&b->sm.seen[0]), 1);
	for (unsigned int i = 1; i < b->sm.n_seen; i++)
		assert_true(b->sm.seen[i].vguid == FIRST || tickets_in(&b->sm.seen[i]) == 0);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
}

/* It is told of an epoch that was this host's before the vGUID went, and came back. */
static void a_yes_to_an_earlier_epoch_keeps_it(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_epoch(b, FIRST, 5);
	box_wait_until(b, b->sm.n_held == 1);
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_wait_until(b, b->commits == 2);
	false_sm_answer_held(&b->sm);
	box_wait_until(b, b->sm.n_held == 1);
	assert_int_equal(tickets_in(&b->sm.seen[1]), 1);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
}

static void it_outlives_a_restart_and_no_longer_than_it_must(void **state)
{
	struct box *b = *state;

	false_sm_down(&b->sm);
	box_put_proven(b, box_move_of(FIRST, 7), 4);
	box_wait_until(b, b->commits == 1);
	box_close_store(b);

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	assert_int_equal(json_object_array_length(vhca_outbox_proof(b->ob, FIRST)), 4);
	box_wait_all_done(b);
	assert_int_equal(tickets_in(&b->sm.seen[0]), 4);
	box_close_store(b);

	box_open_store(b);
	box_open_outbox(b);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
}

/* Today's plugin takes no member that it does not know: that must not cost a guest its address. */
static void an_sm_that_knows_no_tickets_is_told_without(void **state)
{
	struct box *b = *state;
	struct vhca_sm_binding settled = box_binding_of(BOX_VGUID(2), 3, true);

	b->sm.knows_no_proof = true;
	settled.settled = true;
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_string_equal(b->sm.seen[1].body, BOX_COMMIT_BODY);
	assert_int_equal(b->n_answers, 1);
	assert_int_equal(b->answers[0].answer, VHCA_SM_ACCEPTED);
	box_put_binding(b, settled); /* it is known by now */
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 3);
	assert_null(strstr(box_last_seen(b)->body, "settled"));
	/* Another one may be there now. */
	false_sm_down(&b->sm);
	b->sm.knows_no_proof = false;
	settled.epoch = 4;
	box_put_binding(b, settled);
	box_wait_until(b, !vhca_outbox_reachable(b->ob));
	false_sm_up(&b->sm);
	box_wait_all_done(b);
	assert_non_null(strstr(box_last_seen(b)->body, "\"settled\":true"));
}

/* It is upgraded while this host has nothing to say. */
static void an_sm_that_wants_tickets_now_is_shown_them(void **state)
{
	struct box *b = *state;

	b->sm.knows_no_proof = true;
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	b->sm.knows_no_proof = false;
	b->sm.wants_proof = true;
	box_put_proven(b, box_move_of(FIRST, 9), 1);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 4);
	assert_int_equal(tickets_in(&b->sm.seen[2]), 0);
	assert_int_equal(tickets_in(&b->sm.seen[3]), 1);
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 2);
	/* It is believed when it goes on saying no. */
	box_refuse(b, "not_the_owner", VHCA_ERR_DENIED);
	box_put_proven(b, box_move_of(FIRST, 11), 1);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 5);
	assert_int_equal(box_count_answers(b, VHCA_SM_SUPERSEDED), 1);
}

static void a_kick_asks_again_whether_tickets_are_known(void **state)
{
	struct vhca_sm_binding settled = box_binding_of(BOX_VGUID(2), 3, true);
	struct box *b = *state;

	b->sm.knows_no_proof = true;
	settled.settled = true;
	box_put_binding(b, settled);
	box_wait_all_done(b);
	b->sm.knows_no_proof = false;
	vhca_outbox_kick(b->ob);
	settled.epoch = 4;
	box_put_binding(b, settled);
	box_wait_all_done(b);
	assert_non_null(strstr(box_last_seen(b)->body, "\"settled\":true"));
}

/* It is refused without them as well: they were not what is wrong. */
static void another_bad_request_ends_no_tickets(void **state)
{
	struct vhca_sm_binding settled = box_binding_of(FIRST, 3, true);
	struct box *b = *state;

	settled.settled = true;
	box_refuse(b, "bad_request", VHCA_ERR_INVALID);
	box_put_binding(b, settled);
	box_wait_all_done(b);
	assert_int_equal(box_count_answers(b, VHCA_SM_REFUSED), 1);
	b->sm.refuse_code = NULL;
	box_put_proven(b, box_move_of(BOX_VGUID(2), 7), 1);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 3);
	assert_int_equal(tickets_in(box_last_seen(b)), 1);
}

/* That it does not know them says nothing of the LID. */
static void the_lid_follows_where_no_tickets_are_known(void **state)
{
	struct vhca_sm_binding follower = box_move_of(FIRST, 7);
	struct box *b = *state;

	b->sm.knows_no_proof = true;
	follower.follow_lid = true;
	box_put_proven(b, follower, 1);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_non_null(strstr(box_last_seen(b)->body, "\"lid_policy\":\"follow\""));
	assert_int_equal(b->n_lid_stays, 0);
}

/* Its authority may be one that the SM is still to be told of. */
static void what_is_not_valid_is_shown_again(void **state)
{
	struct box *b = *state;

	box_refuse(b, "ticket_not_valid", VHCA_ERR_DENIED);
	b->sm.refuse_only = FIRST;
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_put_epoch(b, BOX_VGUID(2), 1);
	box_wait_until(b, b->sm.n_seen >= 3);
	assert_true(vhca_outbox_reachable(b->ob)); /* and nothing else waits for it */
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 1);
	b->sm.refuse_code = NULL;
	box_wait_all_done(b);
	assert_int_equal(tickets_in(box_last_seen(b)), 1);
}

static void what_ends_unheard_is_proven_before_it_is_withdrawn(void **state)
{
	struct box *b = *state;

	b->sm.wants_proof = true;
	false_sm_down(&b->sm);
	box_put_proven(b, box_binding_of(FIRST, 7, false), 1);
	box_wait_until(b, b->commits == 1);
	box_close_store(b);

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_string_equal(b->sm.seen[0].method, "PUT");
	assert_int_equal(tickets_in(&b->sm.seen[0]), 1);
	assert_string_equal(b->sm.seen[1].method, "DELETE");
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 1);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
}

/* The guest has come back from where it went, and that withdrawal was on its way still. */
static void a_withdrawal_of_before_keeps_it(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_binding(b, box_binding_of(FIRST, 5, false));
	box_wait_until(b, b->sm.n_held == 1);
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_wait_until(b, b->commits == 2);
	false_sm_answer_held(&b->sm);
	box_wait_until(b, b->sm.n_held == 1);
	assert_string_equal(b->sm.held_seen[0].phase, "commit");
	assert_int_equal(tickets_in(&b->sm.held_seen[0]), 1);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
}

/* ...or what proves it first. */
static void a_proof_of_before_ends_no_newer_one(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_proven(b, box_binding_of(FIRST, 5, false), 1);
	box_wait_until(b, b->sm.n_held == 1);
	assert_string_equal(b->sm.held_seen[0].method, "PUT");
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_wait_until(b, b->commits == 2);
	false_sm_answer_held(&b->sm);
	box_wait_until(b, b->sm.n_held == 1);
	assert_int_equal(tickets_in(&b->sm.held_seen[0]), 1);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
}

/* It is withheld for the time of a move, and the proof is for who gets it, or has it back. */
static void what_is_kept_is_only_withdrawn(void **state)
{
	struct vhca_sm_binding kept = box_binding_of(FIRST, 7, false);
	struct box *b = *state;

	kept.keep_lid = true;
	box_put_proven(b, kept, 1);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].method, "DELETE");
	assert_non_null(vhca_outbox_proof(b->ob, FIRST));
}

/* Nobody asks for it there. */
static void without_an_sm_it_ends_at_once(void **state)
{
	struct box *b = *state;

	b->ops = &vhca_sm_none;
	box_reopen_outbox(b, 100);
	box_put_proven(b, box_move_of(FIRST, 7), 1);
	box_wait_until(b, b->n_answers == 1);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
	box_close_store(b);
	box_open_store(b);
	box_open_outbox(b);
	assert_null(vhca_outbox_proof(b->ob, FIRST));
}

static void a_proof_leads_from_one_to_the_next(void **state)
{
	static const struct {
		uint64_t vguid, epoch;
		unsigned int n;
	} wrong[] = {{FIRST, 7, 0}, {FIRST, 7, 5}, {FIRST, 8, 1}, {BOX_VGUID(2), 7, 1}};
	struct json_object *proof = box_proof_of(FIRST, 7, 2), *tie = box_proof_of(FIRST, 7, 1);
	struct vhca_error err;

	(void)state;
	assert_int_equal(vhca_sm_proof_check(proof, FIRST, 7, &err), 0);
	json_object_put(proof);
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(wrong); i++) {
		proof = box_proof_of(wrong[i].vguid, wrong[i].epoch, wrong[i].n);
		assert_true(vhca_sm_proof_check(proof, FIRST, 7, &err) < 0);
		assert_string_equal(err.code, "bad_ticket");
		json_object_put(proof);
	}
	json_object_array_add(tie, json_object_get(json_object_array_get_idx(tie, 0)));
	assert_true(vhca_sm_proof_check(tie, FIRST, 7, &err) < 0);
	json_object_put(tie);
	proof = json_object_new_string("vhca-ticket-1");
	assert_true(vhca_sm_proof_check(proof, FIRST, 7, &err) < 0);
	json_object_put(proof);
	assert_true(vhca_sm_proof_check(NULL, FIRST, 7, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOX_CASE(a_report_shows_the_proof_until_it_is_accepted),
		BOX_CASE(a_newer_report_shows_it_too_and_another_vguids_does_not),
		BOX_CASE(a_yes_to_an_earlier_epoch_keeps_it),
		BOX_CASE(it_outlives_a_restart_and_no_longer_than_it_must),
		BOX_CASE(an_sm_that_knows_no_tickets_is_told_without),
		BOX_CASE(an_sm_that_wants_tickets_now_is_shown_them),
		BOX_CASE(a_kick_asks_again_whether_tickets_are_known),
		BOX_CASE(another_bad_request_ends_no_tickets),
		BOX_CASE(the_lid_follows_where_no_tickets_are_known),
		BOX_CASE(what_is_not_valid_is_shown_again),
		BOX_CASE(what_ends_unheard_is_proven_before_it_is_withdrawn),
		BOX_CASE(a_withdrawal_of_before_keeps_it),
		BOX_CASE(a_proof_of_before_ends_no_newer_one),
		BOX_CASE(what_is_kept_is_only_withdrawn),
		BOX_CASE(without_an_sm_it_ends_at_once),
		cmocka_unit_test(a_proof_leads_from_one_to_the_next),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
