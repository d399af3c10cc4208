/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The outbox and what it does with bindings; test_outbox_members.c and test_outbox_moves.c have the
 * other kinds of report.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/unit/sm/outbox_box.h"
#include "tests/unit/unit.h"

/* ---- cases ---- */

static void sends_what_is_durable(void **state)
{
	struct box *f = *state;

	box_put_epoch(f, BOX_VGUID(1), 1);
	assert_int_equal(vhca_outbox_pending(f->ob), 1);
	assert_int_equal(f->sm.n_seen, 0);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1);
	assert_string_equal(f->sm.seen[0].method, "PUT");
	assert_int_equal(f->n_answers, 1);
	assert_int_equal(f->answers[0].answer, VHCA_SM_ACCEPTED);
	assert_string_equal(f->answers[0].reason, "");
	assert_true(vhca_outbox_reachable(f->ob));
}

static void holds_back_until_released(void **state)
{
	struct box *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct vhca_sm_binding b = box_binding_of(BOX_VGUID(1), 1, true);
	uint64_t ticket = vhca_outbox_put(f->ob, txn, &b);

	vhca_txn_commit(txn, NULL, NULL);
	box_wait_until(f, box_rows(f) == 1);
	box_spin(f, 100);
	assert_int_equal(f->sm.n_seen, 0);
	assert_int_equal(box_rows(f), 1);
	vhca_outbox_kick(f->ob);
	box_spin(f, 50);
	assert_int_equal(f->sm.n_seen, 0);
	vhca_outbox_release(f->ob, ticket, true);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1);
}

static void forgets_what_did_not_become_durable(void **state)
{
	struct box *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct vhca_sm_binding b = box_binding_of(BOX_VGUID(1), 1, true);
	uint64_t ticket = vhca_outbox_put(f->ob, txn, &b);

	vhca_txn_abort(txn);
	vhca_outbox_release(f->ob, ticket, false);
	assert_int_equal(vhca_outbox_pending(f->ob), 0);
	box_spin(f, 50);
	assert_int_equal(f->sm.n_seen, 0);
	assert_int_equal(f->n_answers, 0);
}

static void withdraws_with_delete(void **state)
{
	struct box *f = *state;

	box_put_binding(f, box_binding_of(BOX_VGUID(1), 9, false));
	box_wait_all_done(f);
	assert_string_equal(f->sm.seen[0].method, "DELETE");
	assert_int_equal(f->sm.seen[0].epoch, 9);
}

static void arrives_in_order_when_the_sm_comes_up(void **state)
{
	struct box *f = *state;

	false_sm_down(&f->sm);
	for (unsigned int i = 0; i < 20; i++)
		box_put_epoch(f, BOX_VGUID(i), 1);
	box_wait_until(f, !vhca_outbox_reachable(f->ob));
	box_wait_until(f, f->commits == 20);
	assert_int_equal(box_rows(f), 20);
	assert_int_equal(vhca_outbox_pending(f->ob), 20);
	false_sm_up(&f->sm);
	box_wait_all_done(f);
	assert_true(vhca_outbox_reachable(f->ob));
	assert_int_equal(f->sm.n_seen, 20);
	for (unsigned int i = 0; i < 20; i++) {
		assert_true(f->sm.seen[i].vguid == BOX_VGUID(i));
		assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(i)), 1);
	}
	assert_int_equal(box_count_answers(f, VHCA_SM_ACCEPTED), 20);
}

/* While the SM is down only one request at a time knocks. */
static void probes_with_one_report(void **state)
{
	struct box *f = *state;
	unsigned int before;

	box_reopen_outbox(f, 300);
	false_sm_down(&f->sm);
	for (unsigned int i = 0; i < 20; i++)
		box_put_epoch(f, BOX_VGUID(i), 1);
	box_wait_until(f, f->commits == 20 && !vhca_outbox_reachable(f->ob));
	box_spin(f, 100);
	before = f->n_answers;
	box_wait_until(f, f->n_answers > before);
	box_spin(f, 100);
	assert_int_equal(f->n_answers, before + 1);
	assert_int_equal(f->answers[before].answer, VHCA_SM_RETRY);
	assert_true(f->answers[before].guid == BOX_VGUID(0));
	assert_true(strlen(f->answers[before].reason) > 0);
}

static void newer_replaces_what_was_not_sent(void **state)
{
	struct box *f = *state;

	false_sm_down(&f->sm);
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, !vhca_outbox_reachable(f->ob));
	box_put_epoch(f, BOX_VGUID(2), 1);
	box_put_epoch(f, BOX_VGUID(1), 2);
	box_put_epoch(f, BOX_VGUID(1), 3);
	box_wait_until(f, f->commits == 4);
	box_wait_until(f, vhca_outbox_pending(f->ob) == 2);
	assert_int_equal(box_rows(f), 2);
	false_sm_up(&f->sm);
	vhca_outbox_kick(f->ob);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 2);
	assert_true(f->sm.seen[0].vguid == BOX_VGUID(2)); /* the newest of 1 came after it */
	assert_int_equal(f->sm.seen[1].epoch, 3);
}

static void newer_waits_for_the_one_in_flight(void **state)
{
	struct box *f = *state;

	f->sm.hold = true;
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->sm.n_held == 1);
	box_put_binding(f, box_binding_of(BOX_VGUID(1), 1, false));
	box_put_epoch(f, BOX_VGUID(2), 1);
	box_wait_until(f, f->sm.n_held == 2); /* the other vGUID does not wait */
	box_spin(f, 50);
	assert_int_equal(f->sm.n_seen, 2);
	assert_int_equal(vhca_outbox_pending(f->ob), 3);
	false_sm_answer_held(&f->sm);
	box_wait_until(f, f->sm.n_held == 1);
	assert_string_equal(f->sm.seen[2].method, "DELETE");
	box_wait_until(f,
		       box_rows(f) == 1); /* the answer to the older one left the newer one's row */
	false_sm_answer_held(&f->sm);
	box_wait_all_done(f);
	assert_int_equal(box_count_answers(f, VHCA_SM_ACCEPTED),
			 2); /* nobody asks for the replaced one's */
}

/*
 * A claim that ended and was made anew has the epoch of the one before: what the SM said of that
 * one is not said of it.
 */
static void answer_to_the_replaced_is_nobodys(void **state)
{
	struct box *f = *state;

	f->sm.hold = true;
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->sm.n_held == 1);
	box_put_binding(f, box_binding_of(BOX_VGUID(1), 1, false));
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->commits == 3);
	false_sm_answer_held(&f->sm);
	box_wait_until(f, f->sm.n_held == 1);
	assert_int_equal(f->n_answers, 0);
	false_sm_answer_held(&f->sm);
	box_wait_all_done(f);
	assert_int_equal(f->n_answers, 1);
	assert_int_equal(f->answers[0].answer, VHCA_SM_ACCEPTED);
}

/*
 * That the SM has named another owner is told all the same: should it be silent from now on, that
 * is no consent.
 */
static void refusal_of_the_replaced_is_told(void **state)
{
	struct box *f = *state;

	f->sm.hold = true;
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->sm.n_held == 1);
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->commits == 2);
	box_refuse(f, "superseded", VHCA_ERR_CONFLICT);
	false_sm_answer_held(&f->sm);
	box_wait_until(f, f->n_named_other == 1);
	assert_int_equal(f->n_answers, 0);
	box_wait_until(f, f->sm.n_held == 1);
	false_sm_answer_held(&f->sm);
	box_wait_until(f, f->n_answers == 1);
	assert_int_equal(f->answers[0].answer, VHCA_SM_SUPERSEDED);
	assert_int_equal(f->n_named_other, 1);
}

static void newer_replaces_the_one_in_flight_that_failed(void **state)
{
	struct box *f = *state;

	f->sm.hold = true;
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->sm.n_held == 1);
	box_put_epoch(f, BOX_VGUID(1), 2);
	box_wait_until(f, f->commits == 2);
	false_sm_down(&f->sm);
	box_wait_until(f, box_count_answers(f, VHCA_SM_RETRY) == 1);
	assert_int_equal(vhca_outbox_pending(f->ob), 1);
	f->sm.hold = false;
	false_sm_up(&f->sm);
	box_wait_all_done(f);
	assert_int_equal(f->sm.seen[f->sm.n_seen - 1].epoch, 2);
	assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(1)), 1);
}

static void superseded_is_dropped(void **state)
{
	struct box *f = *state;

	box_put_epoch(f, BOX_VGUID(1), 5);
	box_wait_all_done(f);
	box_put_epoch(f, BOX_VGUID(1), 4);
	box_wait_all_done(f);
	assert_int_equal(f->n_answers, 2);
	assert_int_equal(f->answers[1].answer, VHCA_SM_SUPERSEDED);
	assert_non_null(strstr(f->answers[1].reason, "the SM says superseded"));
	assert_string_equal(f->answers[1].code, "superseded");
	assert_true(vhca_outbox_reachable(f->ob));
	box_spin(f, 250);
	assert_int_equal(f->sm.n_seen, 2);
}

static void refused_is_dropped_with_the_reason(void **state)
{
	struct box *f = *state;

	box_refuse(f, "unknown_partition", VHCA_ERR_DENIED);
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_all_done(f);
	assert_int_equal(f->answers[0].answer, VHCA_SM_REFUSED);
	assert_non_null(strstr(f->answers[0].reason, "the SM says unknown_partition"));
	assert_true(vhca_outbox_reachable(f->ob));
}

static void unknown_port_waits_alone(void **state)
{
	struct box *f = *state;

	box_refuse(f, "unknown_port", VHCA_ERR_CONFLICT);
	f->sm.refuse_only = BOX_VGUID(1);
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_put_epoch(f, BOX_VGUID(2), 1);
	box_wait_until(f, false_sm_effects(&f->sm, BOX_VGUID(2)) == 1);
	box_wait_until(f,
		       box_count_answers(f, VHCA_SM_RETRY) > 0 && vhca_outbox_pending(f->ob) == 1);
	assert_true(vhca_outbox_reachable(f->ob));
	f->sm.refuse_code = NULL;
	box_wait_all_done(f);
	assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(1)), 1);
}

/* Another port of this host may be heard. */
static void refused_port_waits_alone(void **state)
{
	struct box *f = *state;

	box_refuse(f, "not_your_port", VHCA_ERR_DENIED);
	f->sm.refuse_only = BOX_VGUID(1);
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, box_count_answers(f, VHCA_SM_RETRY) > 0);
	box_put_epoch(f, BOX_VGUID(2), 1);
	box_wait_until(f, false_sm_effects(&f->sm, BOX_VGUID(2)) == 1);
	assert_true(vhca_outbox_reachable(f->ob));
	f->sm.refuse_code = NULL;
	box_wait_all_done(f);
	assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(1)), 1);
}

static void kick_tries_at_once(void **state)
{
	struct box *f = *state;
	uint64_t start = vhca_now_ms();

	box_reopen_outbox(f, 20000);
	box_refuse(f, "unknown_port", VHCA_ERR_CONFLICT);
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, box_count_answers(f, VHCA_SM_RETRY) == 1);
	false_sm_down(&f->sm);
	box_put_epoch(f, BOX_VGUID(2), 1);
	box_wait_until(f, !vhca_outbox_reachable(f->ob));
	f->sm.refuse_code = NULL;
	false_sm_up(&f->sm);
	box_spin(f, 50);
	assert_int_equal(f->sm.n_seen, 1);
	vhca_outbox_kick(f->ob);
	box_wait_all_done(f);
	assert_true(vhca_now_ms() - start < 15000);
}

static void rotates_to_the_master(void **state)
{
	struct box *f = *state;
	uint64_t start;

	false_sm_up(&f->sm2);
	box_reopen_outbox(f, 20000);
	box_refuse(f, "not_master", VHCA_ERR_UNAVAILABLE);
	start = vhca_now_ms();
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1);
	assert_int_equal(f->sm2.n_seen, 1);
	assert_true(vhca_now_ms() - start < 15000); /* without a back-off */
	box_put_epoch(f, BOX_VGUID(2), 1);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1); /* and stays there */

	f->sm.refuse_code = NULL;
	false_sm_down(&f->sm2);
	box_put_epoch(f, BOX_VGUID(3), 1);
	box_wait_all_done(f);
	assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(3)), 1);
}

static void backs_off_when_no_url_works(void **state)
{
	struct box *f = *state;

	false_sm_up(&f->sm2);
	box_reopen_outbox(f, 3000);
	false_sm_down(&f->sm);
	f->sm2.refuse_code = "not_master";
	f->sm2.refuse_kind = VHCA_ERR_UNAVAILABLE;
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->n_answers == 2); /* once around */
	box_spin(f, 100);
	assert_int_equal(f->n_answers, 2);
	box_wait_until(f, f->n_answers == 4);
	box_spin(f, 3100); /* the next wait is of 6 s */
	assert_int_equal(f->n_answers, 4);
}

static void restart_sends_what_is_left(void **state)
{
	struct box *f = *state;
	struct vhca_sm_binding b = box_binding_of(BOX_VGUID(7), UINT64_MAX - 1, true);

	false_sm_down(&f->sm);
	box_put_epoch(f, BOX_VGUID(3), 1);
	box_put_binding(f, box_binding_of(BOX_VGUID(1), 4, false));
	box_put_binding(f, b);
	box_wait_until(f, f->commits == 3);
	box_close_store(f);

	false_sm_up(&f->sm);
	box_open_store(f);
	box_open_outbox(f);
	assert_int_equal(vhca_outbox_pending(f->ob), 3);
	box_put_epoch(f, BOX_VGUID(9), 1);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 4);
	assert_true(f->sm.seen[0].vguid == BOX_VGUID(3));
	assert_string_equal(f->sm.seen[1].method, "DELETE");
	assert_true(f->sm.seen[1].vguid == BOX_VGUID(1));
	assert_int_equal(f->sm.seen[1].epoch, 4);
	assert_true(f->sm.seen[2].epoch == b.epoch);
	assert_true(f->sm.seen[3].vguid == BOX_VGUID(9));
}

/* The SM has acted, we die before we know: the same state goes out again and changes nothing. */
static void death_before_the_answer_is_harmless(void **state)
{
	struct box *f = *state;

	f->sm.hold = true;
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->sm.n_held == 1);
	box_close_store(f);
	assert_true(false_sm_take_effect(&f->sm, &f->sm.seen[0]));
	false_sm_down(&f->sm);
	f->sm.hold = false;

	false_sm_up(&f->sm);
	box_open_store(f);
	box_open_outbox(f);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 2);
	assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(1)), 1);
	assert_int_equal(box_count_answers(f, VHCA_SM_ACCEPTED), 1);
}

static void a_thousand_go_eight_at_a_time(void **state)
{
	struct box *f = *state;

	f->sm.hold = true;
	for (unsigned int i = 0; i < 1000; i++)
		box_put_epoch(f, BOX_VGUID(i), 1);
	box_wait_until(f, f->commits == 1000);
	while (f->sm.n_seen < 1000) {
		unsigned int n = f->sm.n_seen;

		box_wait_until(f, f->sm.n_held > 0);
		(void)vhca_loop_once(f->loop, 1);
		false_sm_answer_held(&f->sm);
		box_wait_until(f, f->sm.n_seen > n || f->sm.n_seen == 1000);
	}
	f->sm.hold = false;
	false_sm_answer_held(&f->sm);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 1000);
	assert_true(f->sm.most_held <= 8);
	assert_true(f->sm.most_held > 1);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(i)), 1);
	assert_true(vhca_loop_max_callback_us(f->loop) < 50000);
}

static void answer_may_put_again(void **state)
{
	struct box *f = *state;

	f->put_again = BOX_VGUID(1);
	box_put_epoch(f, BOX_VGUID(1), 1);
	box_wait_until(f, f->sm.n_seen == 2);
	box_wait_all_done(f);
	assert_int_equal(f->sm.seen[1].epoch, 2);
	assert_int_equal(false_sm_effects(&f->sm, BOX_VGUID(1)), 2);
}

static void none_is_in_effect_at_once(void **state)
{
	struct box *f = *state;

	false_sm_down(&f->sm);
	box_put_epoch(f, BOX_VGUID(1), 1); /* a row left over from another back end */
	box_wait_until(f, f->commits == 1);
	box_close_store(f);
	f->n_answers = 0;
	f->ops = &vhca_sm_none;
	box_open_store(f);
	box_open_outbox(f);
	box_wait_all_done(f);
	box_put_epoch(f, BOX_VGUID(2), 1);
	assert_int_equal(box_rows(f), 0);
	box_wait_all_done(f);
	assert_int_equal(f->sm.n_seen, 0);
	assert_int_equal(f->n_answers, 2);
	assert_int_equal(box_count_answers(f, VHCA_SM_ACCEPTED), 2);
	assert_true(vhca_outbox_reachable(f->ob));
}

static void free_with_requests_in_flight(void **state)
{
	struct box *f = *state;

	f->sm.hold = true;
	for (unsigned int i = 0; i < 20; i++)
		box_put_epoch(f, BOX_VGUID(i), 1);
	box_wait_until(f, f->sm.n_held == 8 && f->commits == 20);
	f->ob = vhca_outbox_free(f->ob);
	f->sm.hold = false;
	false_sm_answer_held(&f->sm);
	box_spin(f, 100);
	assert_int_equal(f->n_answers, 0);
	assert_int_equal(box_rows(f), 20);
}

/* What a row says of a guest that is gone is not said any more; what it has left, is. */
static void drops_what_is_bound_no_more(void **state)
{
	struct box *f = *state;

	false_sm_down(&f->sm);
	box_put_epoch(f, BOX_VGUID(1), 4);
	box_put_epoch(f, BOX_VGUID(2), 5);
	box_put_binding(f, box_binding_of(BOX_VGUID(3), 6, false));
	box_wait_until(f, f->commits == 3);
	box_close_store(f);
	box_open_store(f);
	box_open_outbox(f);
	for (unsigned int i = 1; i <= 4; i++) /* the third is a withdrawal */
		assert_int_equal(vhca_outbox_has_bound(f->ob, BOX_VGUID(i)), i <= 2);
	for (unsigned int i = 1; i <= 4; i += 1 + (i == 1)) /* not the second */
		vhca_outbox_drop_bound(f->ob, BOX_VGUID(i));
	assert_int_equal(vhca_outbox_pending(f->ob), 2);
	box_close_store(f); /* and not after the next start, either */
	box_open_store(f);
	box_open_outbox(f);
	assert_int_equal(vhca_outbox_pending(f->ob), 2);
}

static const char *member(struct json_object *list, size_t i, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(json_object_array_get_idx(list, i), key, &value));
	return json_object_get_string(value);
}

static void shows_itself(void **state)
{
	struct box *f = *state;
	struct json_object *list;

	box_refuse(f, "unknown_port", VHCA_ERR_CONFLICT);
	box_put_epoch(f, BOX_VGUID(1), 6);
	box_wait_until(f, box_count_answers(f, VHCA_SM_RETRY) == 1);
	f->sm.hold = true;
	box_put_epoch(f, BOX_VGUID(2), 1);
	box_wait_until(f, f->sm.n_held == 1);
	list = vhca_outbox_to_json(f->ob);
	assert_int_equal(json_object_array_length(list), 2);
	assert_string_equal(member(list, 0, "vguid"), VHCA_GUID_STR(BOX_VGUID(1)));
	assert_string_equal(member(list, 0, "epoch"), "6");
	assert_string_equal(member(list, 0, "bound"), "true");
	assert_string_equal(member(list, 0, "state"), "waiting");
	assert_string_equal(member(list, 0, "attempts"), "1");
	assert_non_null(strstr(member(list, 0, "reason"), "unknown_port"));
	assert_string_not_equal(member(list, 0, "next_try_ms"), "0");
	assert_string_equal(member(list, 1, "state"), "in_flight");
	assert_null(json_object_object_get(json_object_array_get_idx(list, 1), "reason"));
	(void)json_object_put(list);
	f->sm.refuse_code = NULL;
	f->sm.hold = false;
	false_sm_answer_held(&f->sm);
	box_wait_all_done(f);
	list = vhca_outbox_to_json(f->ob);
	assert_int_equal(json_object_array_length(list), 0);
	(void)json_object_put(list);
}

static void no_answer(void *arg, const struct vhca_sm_binding *binding, enum vhca_sm_answer answer,
		      const char *reason, struct json_object *doc)
{
	(void)arg;
	(void)binding;
	(void)answer;
	(void)doc;
	fail_msg("unexpected answer: %s", reason);
}

static void needs_a_url(void **state)
{
	struct box *f = *state;
	const struct vhca_outbox_conf conf = {.ops = &vhca_sm_vhcasm};
	struct vhca_outbox *ob = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_int_equal(vhca_outbox_new(&conf, f->loop, f->store,
					 vhca_http_loop_client_multi(f->client), no_answer, f, &ob,
					 &err),
			 -EINVAL);
	assert_null(ob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOX_CASE(sends_what_is_durable),
		BOX_CASE(holds_back_until_released),
		BOX_CASE(forgets_what_did_not_become_durable),
		BOX_CASE(withdraws_with_delete),
		BOX_CASE(arrives_in_order_when_the_sm_comes_up),
		BOX_CASE(probes_with_one_report),
		BOX_CASE(newer_replaces_what_was_not_sent),
		BOX_CASE(newer_waits_for_the_one_in_flight),
		BOX_CASE(answer_to_the_replaced_is_nobodys),
		BOX_CASE(refusal_of_the_replaced_is_told),
		BOX_CASE(newer_replaces_the_one_in_flight_that_failed),
		BOX_CASE(superseded_is_dropped),
		BOX_CASE(refused_is_dropped_with_the_reason),
		BOX_CASE(unknown_port_waits_alone),
		BOX_CASE(refused_port_waits_alone),
		BOX_CASE(kick_tries_at_once),
		BOX_CASE(rotates_to_the_master),
		BOX_CASE(backs_off_when_no_url_works),
		BOX_CASE(restart_sends_what_is_left),
		BOX_CASE(death_before_the_answer_is_harmless),
		BOX_CASE(drops_what_is_bound_no_more),
		BOX_CASE(a_thousand_go_eight_at_a_time),
		BOX_CASE(answer_may_put_again),
		BOX_CASE(none_is_in_effect_at_once),
		BOX_CASE(free_with_requests_in_flight),
		BOX_CASE(shows_itself),
		BOX_CASE(needs_a_url),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
