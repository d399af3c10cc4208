/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the outbox does with declarations of a port's keys. */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "tests/unit/sm/outbox_box.h"
#include "tests/unit/unit.h"

/* ---- members ---- */

static void members_are_declared(void **state)
{
	struct box *b = *state;

	box_put_members(b, BOX_PORT, box_keys, VHCA_ARRAY_SIZE(box_keys));
	assert_int_equal(vhca_outbox_pending(b->ob), 1);
	assert_int_equal(b->sm.n_seen, 0);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].method, "PUT");
	assert_string_equal(b->sm.seen[0].path, BOX_MEMBERS_PATH);
	assert_string_equal(b->sm.seen[0].body, "{\"pkeys\":[\"0x8001\",\"0x8002\",\"0x0002\"]}");
	assert_int_equal(b->n_answers, 1);
	assert_true(b->answers[0].members);
	assert_true(b->answers[0].guid == BOX_PORT);
	assert_int_equal(b->answers[0].answer, VHCA_SM_ACCEPTED);
	assert_string_equal(b->answers[0].reason, "");
}

static void no_members_is_a_declaration_too(void **state)
{
	struct box *b = *state;

	box_put_members(b, BOX_PORT, NULL, 0);
	box_wait_all_done(b);
	assert_string_equal(b->sm.seen[0].body, "{\"pkeys\":[]}");
}

static void too_many_members_are_no_report(void **state)
{
	struct box *b = *state;
	struct vhca_txn *txn = vhca_txn_new(b->store);
	uint16_t many[VHCA_SM_PORT_PKEYS_MAX + 2];

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(many); i++)
		many[i] = (uint16_t)(0x8001 + i);
	assert_int_equal(
		vhca_outbox_put_members(b->ob, txn, BOX_PORT, many, VHCA_SM_PORT_PKEYS_MAX + 1), 0);
	vhca_txn_abort(txn);
	assert_int_equal(vhca_outbox_pending(b->ob), 0);
	many[VHCA_SM_PORT_PKEYS_MAX] = many[0]; /* repeated ones do not count */
	many[VHCA_SM_PORT_PKEYS_MAX + 1] = many[7];
	box_put_members(b, BOX_PORT, many, VHCA_ARRAY_SIZE(many));
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
}

static void newer_members_replace_what_was_not_sent(void **state)
{
	struct box *b = *state;

	false_sm_down(&b->sm);
	box_put_members(b, BOX_PORT, box_keys, 1);
	box_put_members(b, BOX_OTHER_PORT, box_keys, 1);
	box_put_members(b, BOX_PORT, box_keys, 2);
	box_wait_until(b, b->commits == 3 && !vhca_outbox_reachable(b->ob));
	box_wait_until(b, vhca_outbox_pending(b->ob) == 2);
	assert_int_equal(box_rows(b), 2);
	false_sm_up(&b->sm);
	vhca_outbox_kick(b->ob);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_true(b->sm.seen[0].vguid == BOX_OTHER_PORT);
	assert_string_equal(b->sm.seen[1].body, "{\"pkeys\":[\"0x8001\",\"0x8002\"]}");
}

static void newer_members_wait_for_those_in_flight(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_members(b, BOX_PORT, box_keys, 1);
	box_wait_until(b, b->sm.n_held == 1);
	box_put_members(b, BOX_PORT, NULL, 0);
	box_put_members(b, BOX_OTHER_PORT, box_keys, 1);
	box_wait_until(b, b->sm.n_held == 2); /* the other port does not wait */
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 2);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_string_equal(box_last_seen(b)->body, "{\"pkeys\":[]}");
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED),
			 2); /* nobody asks for the replaced one's */
}

/* That may take an operator: the other guests of the port do not wait for him. */
static void whose_owner_is_unsettled_stops_no_port(void **state)
{
	static const char *const codes[] = {"ticket_not_valid", "owner_disputed", "owner_unknown"};
	struct box *b = *state;

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(codes); i++) {
		box_refuse(b, codes[i], VHCA_ERR_CONFLICT);
		b->sm.refuse_only = BOX_VGUID(10 + i);
		box_put_epoch(b, BOX_VGUID(10 + i), 1);
		b->n_answers = 0;
		box_wait_until(b, box_count_answers(b, VHCA_SM_RETRY) > 0);
		box_put_members(b, BOX_PORT, box_keys, 1);
		box_put_epoch(b, BOX_VGUID(2), i + 1);
		box_wait_until(b, vhca_outbox_pending(b->ob) == 1);
		b->sm.refuse_code = NULL;
		box_wait_all_done(b);
	}
}

static void refused_members_are_dropped(void **state)
{
	struct box *b = *state;

	box_refuse(b, "unknown_partition", VHCA_ERR_DENIED);
	box_put_members(b, BOX_PORT, box_keys, 1);
	box_wait_all_done(b);
	assert_int_equal(b->n_answers, 1);
	assert_int_equal(b->answers[0].answer, VHCA_SM_REFUSED);
	assert_non_null(strstr(b->answers[0].reason, "the SM says unknown_partition"));
	assert_true(vhca_outbox_reachable(b->ob));
}

static void members_of_an_unknown_port_wait(void **state)
{
	struct box *b = *state;

	box_refuse(b, "unknown_port", VHCA_ERR_CONFLICT);
	box_put_members(b, BOX_PORT, box_keys, 1);
	box_wait_until(b, b->n_answers == 1);
	assert_true(b->answers[0].members);
	assert_int_equal(b->answers[0].answer, VHCA_SM_RETRY);
	assert_int_equal(box_rows(b), 1);
	b->sm.refuse_code = NULL;
	box_wait_all_done(b);
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 1);
}

/* The binding that needs a key is there before the declaration of it goes. */
static void members_do_not_overtake_bindings(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_epoch(b, BOX_VGUID(1), 1);
	box_put_members(b, BOX_PORT, NULL, 0);
	box_put_members(b, BOX_OTHER_PORT, NULL, 0);
	box_wait_until(b, b->commits == 3 && b->sm.n_held == 2);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 2);
	assert_true(b->sm.seen[0].vguid == BOX_VGUID(1));
	assert_true(b->sm.seen[1].vguid == BOX_OTHER_PORT);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_string_equal(box_last_seen(b)->path, BOX_MEMBERS_PATH);
}

static void bindings_do_not_overtake_members(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_members(b, BOX_PORT, box_keys, 1);
	box_put_binding(b, box_binding_of(BOX_VGUID(1), 1, false));
	box_put_binding(b,
			box_binding_of(BOX_VGUID(2), 1, false)); /* nor does one that follows it */
	box_wait_until(b, b->commits == 3 && b->sm.n_held == 1);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].path, BOX_MEMBERS_PATH);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 3);
}

static void nobody_waits_for_what_was_forgotten(void **state)
{
	struct box *b = *state;
	struct vhca_txn *txn = vhca_txn_new(b->store);
	uint64_t ticket = vhca_outbox_put_members(b->ob, txn, BOX_PORT, box_keys, 1);

	vhca_txn_abort(txn);
	box_put_epoch(b, BOX_VGUID(1), 1);
	box_wait_until(b, b->commits == 1);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 0);
	vhca_outbox_release(b->ob, ticket, false);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
}

static void none_has_members_in_effect_at_once(void **state)
{
	struct box *b = *state;

	false_sm_down(&b->sm);
	b->ops = &vhca_sm_none;
	box_reopen_outbox(b, 100);
	box_put_members(b, BOX_PORT, box_keys, 1);
	box_put_binding(b, box_move_of(BOX_VGUID(1), 1));
	assert_int_equal(box_rows(b), 0);
	box_wait_all_done(b);
	assert_int_equal(b->n_answers, 2);
	assert_true(b->answers[0].members);
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOX_CASE(members_are_declared),
		BOX_CASE(no_members_is_a_declaration_too),
		BOX_CASE(too_many_members_are_no_report),
		BOX_CASE(newer_members_replace_what_was_not_sent),
		BOX_CASE(newer_members_wait_for_those_in_flight),
		BOX_CASE(whose_owner_is_unsettled_stops_no_port),
		BOX_CASE(refused_members_are_dropped),
		BOX_CASE(members_of_an_unknown_port_wait),
		BOX_CASE(members_do_not_overtake_bindings),
		BOX_CASE(bindings_do_not_overtake_members),
		BOX_CASE(nobody_waits_for_what_was_forgotten),
		BOX_CASE(none_has_members_in_effect_at_once),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
