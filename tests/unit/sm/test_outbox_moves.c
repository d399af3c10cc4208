/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The outbox and what it does with declarations, moves, their announcement, and an SM that has lost
 * its state.
 */
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "tests/unit/sm/outbox_box.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VGUID(i)     (UINT64_C(0x0002c90000000000) + (i))
#define OTHER_PORT   UINT64_C(0x0002c90300000003)
#define MEMBERS_PATH "/v1/members/0x0002c90300000001"

#define COMMIT_BODY                                                                          \
	"{\"id\":\"6b3e1c3a-0000-4000-8000-00000000000a\",\"epoch\":7,"                      \
	"\"vguid\":\"0x0002c90000000001\",\"phase\":\"commit\","                             \
	"\"from\":{\"port_guid\":\"0x0002c90300000002\",\"gid_index\":65535,\"lid\":9},"     \
	"\"to\":{\"port_guid\":\"0x0002c90300000001\",\"gid_index\":1,\"lid\":4},\"pkeys\":" \
	"[\"0x8001\",\"0x7fff\"]}"

static const uint16_t keys[] = {0x8001, 0x8002, 0x8001, 0x0002};

static const struct false_sm_seen *last_seen(const struct box *b)
{
	assert_true(b->sm.n_seen > 0);
	return &b->sm.seen[b->sm.n_seen - 1];
}

static void refuse(struct box *b, const char *code, enum vhca_err kind)
{
	b->sm.refuse_code = code;
	b->sm.refuse_kind = kind;
}

/* ---- members ---- */

static void members_are_declared(void **state)
{
	struct box *b = *state;

	box_put_members(b, BOX_PORT, keys, VHCA_ARRAY_SIZE(keys));
	assert_int_equal(vhca_outbox_pending(b->ob), 1);
	assert_int_equal(b->sm.n_seen, 0);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].method, "PUT");
	assert_string_equal(b->sm.seen[0].path, MEMBERS_PATH);
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
	box_put_members(b, BOX_PORT, keys, 1);
	box_put_members(b, OTHER_PORT, keys, 1);
	box_put_members(b, BOX_PORT, keys, 2);
	box_wait_until(b, b->commits == 3 && !vhca_outbox_reachable(b->ob));
	box_wait_until(b, vhca_outbox_pending(b->ob) == 2);
	assert_int_equal(box_rows(b), 2);
	false_sm_up(&b->sm);
	vhca_outbox_kick(b->ob);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_true(b->sm.seen[0].vguid == OTHER_PORT);
	assert_string_equal(b->sm.seen[1].body, "{\"pkeys\":[\"0x8001\",\"0x8002\"]}");
}

static void newer_members_wait_for_those_in_flight(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_members(b, BOX_PORT, keys, 1);
	box_wait_until(b, b->sm.n_held == 1);
	box_put_members(b, BOX_PORT, NULL, 0);
	box_put_members(b, OTHER_PORT, keys, 1);
	box_wait_until(b, b->sm.n_held == 2); /* the other port does not wait */
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 2);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_string_equal(last_seen(b)->body, "{\"pkeys\":[]}");
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED),
			 2); /* nobody asks for the replaced one's */
}

static void refused_members_are_dropped(void **state)
{
	struct box *b = *state;

	refuse(b, "unknown_partition", VHCA_ERR_DENIED);
	box_put_members(b, BOX_PORT, keys, 1);
	box_wait_all_done(b);
	assert_int_equal(b->n_answers, 1);
	assert_int_equal(b->answers[0].answer, VHCA_SM_REFUSED);
	assert_non_null(strstr(b->answers[0].reason, "the SM says unknown_partition"));
	assert_true(vhca_outbox_reachable(b->ob));
}

static void members_of_an_unknown_port_wait(void **state)
{
	struct box *b = *state;

	refuse(b, "unknown_port", VHCA_ERR_CONFLICT);
	box_put_members(b, BOX_PORT, keys, 1);
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
	box_put_epoch(b, VGUID(1), 1);
	box_put_members(b, BOX_PORT, NULL, 0);
	box_put_members(b, OTHER_PORT, NULL, 0);
	box_wait_until(b, b->commits == 3 && b->sm.n_held == 2);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 2);
	assert_true(b->sm.seen[0].vguid == VGUID(1));
	assert_true(b->sm.seen[1].vguid == OTHER_PORT);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_string_equal(last_seen(b)->path, MEMBERS_PATH);
}

static void bindings_do_not_overtake_members(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_members(b, BOX_PORT, keys, 1);
	box_put_binding(b, box_binding_of(VGUID(1), 1, false));
	box_put_binding(b, box_binding_of(VGUID(2), 1, false)); /* nor does one that follows it */
	box_wait_until(b, b->commits == 3 && b->sm.n_held == 1);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].path, MEMBERS_PATH);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 3);
}

static void nobody_waits_for_what_was_forgotten(void **state)
{
	struct box *b = *state;
	struct vhca_txn *txn = vhca_txn_new(b->store);
	uint64_t ticket = vhca_outbox_put_members(b->ob, txn, BOX_PORT, keys, 1);

	vhca_txn_abort(txn);
	box_put_epoch(b, VGUID(1), 1);
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
	box_put_members(b, BOX_PORT, keys, 1);
	box_put_binding(b, box_move_of(VGUID(1), 1));
	assert_int_equal(box_rows(b), 0);
	box_wait_all_done(b);
	assert_int_equal(b->n_answers, 2);
	assert_true(b->answers[0].members);
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 2);
}

/* ---- moves ---- */

static void a_move_is_committed(void **state)
{
	struct box *b = *state;

	box_put_binding(b, box_move_of(VGUID(1), 7));
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].method, "POST");
	assert_string_equal(b->sm.seen[0].path, "/v1/moves");
	assert_string_equal(b->sm.seen[0].body, COMMIT_BODY);
	assert_int_equal(b->n_answers, 1);
	assert_int_equal(b->answers[0].answer, VHCA_SM_ACCEPTED);
	assert_int_equal(b->answers[0].epoch, 7);
	assert_int_equal(false_sm_effects(&b->sm, VGUID(1)), 1);
}

static void only_a_binding_with_an_origin_is_a_move(void **state)
{
	struct box *b = *state;
	struct vhca_sm_binding from_nowhere = box_move_of(VGUID(1), 1),
			       over = box_move_of(VGUID(2), 1), still = box_move_of(VGUID(3), 1);

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

	box_put_epoch(b, VGUID(1), 8);
	box_wait_all_done(b);
	box_put_binding(b, box_move_of(VGUID(1), 7));
	box_wait_all_done(b);
	assert_int_equal(b->n_answers, 2);
	assert_int_equal(b->answers[1].answer, VHCA_SM_SUPERSEDED);
	assert_string_equal(b->answers[1].code, "superseded");
}

static void knows_no_moves(struct box *b)
{
	b->sm.moves_code = "no_such_path";
	b->sm.moves_kind = VHCA_ERR_NOT_FOUND;
}

static void an_older_plugin_gets_the_binding(struct box *b)
{
	uint64_t start = vhca_now_ms();

	box_reopen_outbox(b, 20000);
	box_put_binding(b, box_move_of(VGUID(1), 7));
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

	knows_no_moves(b);
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
	box_put_binding(b, box_move_of(VGUID(1), 7));
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

	knows_no_moves(b);
	b->sm.hold = true;
	box_put_binding(b, box_move_of(VGUID(1), 7));
	box_wait_until(b, b->sm.n_held == 1);
	box_put_epoch(b, VGUID(1), 8);
	box_wait_until(b, b->commits == 2);
	b->sm.hold = false;
	false_sm_answer_held(&b->sm);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 2);
	assert_int_equal(b->sm.seen[1].epoch, 8);
	assert_int_equal(b->n_answers, 1);
}

/* ---- prepare ---- */

static void prepare_is_sent_once(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding move = box_move_of(VGUID(1), 7);

	refuse(b, "superseded", VHCA_ERR_CONFLICT);
	vhca_outbox_prepare(b->ob, &move);
	assert_int_equal(vhca_outbox_pending(b->ob), 0);
	box_wait_until(b, b->sm.n_seen == 1);
	box_spin(b, 250);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].path, "/v1/moves");
	assert_string_equal(b->sm.seen[0].phase, "prepare");
	assert_int_equal(b->n_answers, 0);
	assert_int_equal(box_rows(b), 0);
}

static void prepare_takes_no_effect(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding move = box_move_of(VGUID(1), 7);

	vhca_outbox_prepare(b->ob, &move);
	box_wait_until(b, b->sm.n_seen == 1);
	box_put_binding(b, move);
	box_wait_all_done(b);
	assert_string_equal(last_seen(b)->phase, "commit");
	assert_int_equal(false_sm_effects(&b->sm, VGUID(1)), 1);
}

static void only_moves_are_prepared(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding binding = box_binding_of(VGUID(1), 7, true),
				     move = box_move_of(VGUID(1), 7);

	vhca_outbox_prepare(b->ob, &binding);
	box_spin(b, 50);
	assert_int_equal(b->sm.n_seen, 0);
	false_sm_down(&b->sm);
	box_put_epoch(b, VGUID(2), 1);
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
	const struct vhca_sm_binding move = box_move_of(VGUID(1), 7);

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
		const struct vhca_sm_binding move = box_move_of(VGUID(i), 7);

		vhca_outbox_prepare(b->ob, &move);
	}
	box_put_epoch(b, VGUID(99), 1); /* reports do not wait for hints */
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
		const struct vhca_sm_binding move = box_move_of(VGUID(i), 7);

		box_wait_until(b, (vhca_outbox_prepare(b->ob, &move), b->sm.n_seen > n + 1 + i));
	}
}

static void free_with_prepares_in_flight(void **state)
{
	struct box *b = *state;
	const struct vhca_sm_binding move = box_move_of(VGUID(1), 7);

	b->sm.hold = true;
	vhca_outbox_prepare(b->ob, &move);
	vhca_outbox_prepare(b->ob, &move);
	box_wait_until(b, b->sm.n_held == 2);
	b->ob = vhca_outbox_free(b->ob);
	false_sm_answer_held(&b->sm);
	box_spin(b, 50);
	assert_int_equal(b->n_answers, 0);
}

/* ---- rebuilding ---- */

static void a_rebuilding_sm_gets_a_snapshot(void **state)
{
	struct box *b = *state;

	refuse(b, "rebuilding", VHCA_ERR_CONFLICT);
	box_put_epoch(b, VGUID(1), 1);
	box_put_binding(b, box_move_of(VGUID(2), 1));
	box_put_members(b, OTHER_PORT, keys, 1);
	box_wait_until(b, box_count_answers(b, VHCA_SM_RETRY) >= 6);
	assert_int_equal(b->n_snapshots, 1); /* within five seconds */
	assert_true(vhca_outbox_reachable(b->ob));
	assert_int_equal(vhca_outbox_pending(b->ob), 3);
	b->sm.refuse_code = NULL;
	box_wait_all_done(b);
	assert_int_equal(b->n_snapshots, 1);
}

static void snapshots_are_asked_for_again(void **state)
{
	struct box *b = *state;

	b->snapshot_ms = 150;
	box_reopen_outbox(b, 50);
	refuse(b, "rebuilding", VHCA_ERR_CONFLICT);
	box_put_epoch(b, VGUID(1), 1);
	box_wait_until(b, b->n_snapshots == 2);
	assert_true(box_count_answers(b, VHCA_SM_RETRY) > 2);
}

static void other_conflicts_ask_for_no_snapshot(void **state)
{
	struct box *b = *state;

	refuse(b, "unknown_port", VHCA_ERR_CONFLICT);
	box_put_epoch(b, VGUID(1), 1);
	box_wait_until(b, b->n_answers == 2);
	assert_int_equal(b->n_snapshots, 0);
}

/* ---- death ---- */

static void restart_sends_each_kind_as_it_was(void **state)
{
	struct box *b = *state;

	false_sm_down(&b->sm);
	box_put_members(b, BOX_PORT, keys, 2);
	box_put_binding(b, box_move_of(VGUID(1), 7));
	box_put_binding(b, box_binding_of(VGUID(2), 3, false));
	box_put_members(b, OTHER_PORT, NULL, 0);
	box_put_epoch(b, VGUID(3), UINT64_MAX - 1);
	box_put_members(b, BOX_PORT, keys, 1); /* in place of the first */
	box_wait_until(b, b->commits == 6);
	box_close_store(b);

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	assert_int_equal(vhca_outbox_pending(b->ob), 5);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 5);
	assert_string_equal(b->sm.seen[0].body, COMMIT_BODY);
	assert_string_equal(b->sm.seen[1].path, "/v1/bindings/0x0002c90000000002");
	assert_string_equal(b->sm.seen[1].method, "DELETE");
	assert_true(b->sm.seen[2].vguid == OTHER_PORT);
	assert_string_equal(b->sm.seen[2].body, "{\"pkeys\":[]}");
	assert_true(b->sm.seen[3].epoch == UINT64_MAX - 1);
	assert_string_equal(b->sm.seen[4].path, MEMBERS_PATH);
	assert_string_equal(b->sm.seen[4].body, "{\"pkeys\":[\"0x8001\"]}");
}

/* A row that is replaced takes over all of the newer report, also what only moves have. */
static void restart_sends_what_replaced_another_kind(void **state)
{
	struct box *b = *state;
	struct vhca_sm_binding elsewhere = box_move_of(VGUID(1), 6);

	false_sm_down(&b->sm);
	elsewhere.from_port_guid = OTHER_PORT;
	elsewhere.from_gid_index = 5;
	elsewhere.from_lid = 6;
	elsewhere.move_id.b[0] ^= 0xff;
	box_put_binding(b, elsewhere);
	box_put_binding(b, box_move_of(VGUID(1), 7));
	box_put_binding(b, box_move_of(VGUID(2), 7));
	box_put_epoch(b, VGUID(2), 8);
	box_put_epoch(b, VGUID(3), 1);
	elsewhere = box_move_of(VGUID(3), 2);
	elsewhere.vport = 9;
	box_put_binding(b, elsewhere);
	box_put_epoch(b, VGUID(4), 1);
	elsewhere = box_binding_of(VGUID(4), 2, true);
	elsewhere.dynamic_lid = true;
	box_put_binding(b, elsewhere);
	box_put_epoch(b, VGUID(5), 1);
	elsewhere = box_binding_of(VGUID(5), 2, false);
	elsewhere.keep_lid = true;
	box_put_binding(b, elsewhere);
	box_wait_until(b, b->commits == 10);
	box_close_store(b);

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 5);
	assert_string_equal(b->sm.seen[0].body, COMMIT_BODY);
	assert_string_equal(b->sm.seen[1].method, "PUT");
	assert_int_equal(b->sm.seen[1].epoch, 8);
	assert_string_equal(b->sm.seen[2].phase, "commit");
	assert_int_equal(b->sm.seen[2].epoch, 2);
	assert_non_null(strstr(b->sm.seen[2].body, "\"vport\":9"));
	assert_null(strstr(b->sm.seen[2].body, "dynamic"));
	assert_non_null(strstr(b->sm.seen[3].body, "\"lid_policy\":\"dynamic\""));
	assert_string_equal(b->sm.seen[4].method, "DELETE");
	assert_true(b->sm.seen[4].keep_lid);
}

/* The SM has acted, we die before we know: the same states go out again and change nothing. */
static void death_between_answer_and_delete_is_harmless(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_binding(b, box_move_of(VGUID(1), 7));
	box_put_members(b, OTHER_PORT, keys, 1);
	box_wait_until(b, b->sm.n_held == 2);
	box_close_store(b);
	assert_true(false_sm_take_effect(&b->sm, &b->sm.seen[0]));
	false_sm_down(&b->sm);
	b->sm.hold = false;

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 4);
	assert_string_equal(b->sm.seen[2].body, b->sm.seen[0].body);
	assert_string_equal(b->sm.seen[3].body, b->sm.seen[1].body);
	assert_int_equal(false_sm_effects(&b->sm, VGUID(1)), 1);
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 2);
}

/* The answer to an old declaration leaves the row of the newer one. */
static void answers_delete_their_own_row(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_members(b, BOX_PORT, keys, 1);
	box_wait_until(b, b->sm.n_held == 1);
	box_put_members(b, BOX_PORT, keys, 2);
	box_wait_until(b, b->commits == 2);
	false_sm_answer_held(&b->sm);
	box_wait_until(b, b->sm.n_held == 1);
	box_close_store(b);
	false_sm_down(&b->sm);
	b->sm.hold = false;

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	assert_int_equal(vhca_outbox_pending(b->ob), 1);
	box_wait_all_done(b);
	assert_string_equal(last_seen(b)->body, "{\"pkeys\":[\"0x8001\",\"0x8002\"]}");
}

/* ---- the tables ---- */

static void exec(struct box *b, const char *sql)
{
	struct vhca_txn *txn = vhca_txn_new(b->store);

	vhca_txn_exec(txn, sql, "");
	vhca_txn_commit(txn, NULL, NULL);
}

static void rows_of_the_first_schema_are_bindings(void **state)
{
	static const struct vhca_migration first[] = {{vhca_outbox_schema}};
	struct box *b = *state;
	struct vhca_error err;

	box_close_store(b);
	assert_int_equal(unlink(TREE_PATH(&b->tree, "state.db")), 0);
	assert_int_equal(vhca_store_open(TREE_PATH(&b->tree, "state.db"), first, 1, b->loop,
					 &b->store, &err),
			 0);
	exec(b, "INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '0x8001')");
	b->store = vhca_store_close(b->store);
	box_open_store(b);
	box_open_outbox(b);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 1);
	assert_string_equal(b->sm.seen[0].method, "PUT");
	assert_string_equal(b->sm.seen[0].path, "/v1/bindings/0x0000000000000007");
	assert_null(strstr(b->sm.seen[0].body, "lid_policy"));
}

static void wrong_rows_are_told(void **state)
{
	static const char *const rows[] = {
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 1, 'no uuid', 3, 1, 1, 0, "
		"0, 0)",
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 0, '', 3, 65536, 1, 0, 0, "
		"0)",
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 0, '', 3, 1, -1, 0, 0, 0)",
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 0, '', 3, 1, 1, 65536, 0, "
		"0)",
		"INSERT INTO outbox_members VALUES (7, 1, 0, 'nonsense')",
	};
	struct box *b = *state;

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		const char *url = "http://127.0.0.1:1";
		const struct vhca_outbox_conf conf = {
			.ops = &vhca_sm_vhcasm, .urls = &url, .n_urls = 1};
		struct vhca_outbox *ob = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		exec(b, "DELETE FROM outbox");
		exec(b, rows[i]);
		box_close_store(b);
		box_open_store(b);
		assert_int_equal(vhca_outbox_new(&conf, b->loop, b->store,
						 vhca_http_loop_client_multi(b->client), NULL, NULL,
						 &ob, &err),
				 -EBADMSG);
		assert_string_equal(err.code, "store_corrupt");
		assert_null(ob);
	}
}

static const char *member(struct json_object *list, size_t i, const char *key)
{
	struct json_object *value = NULL;

	(void)json_object_object_get_ex(json_object_array_get_idx(list, i), key, &value);
	return value ? json_object_get_string(value) : "absent";
}

static void each_kind_shows_itself(void **state)
{
	struct box *b = *state;
	struct json_object *list;

	b->sm.hold = true;
	knows_no_moves(b);
	box_put_binding(b, box_move_of(VGUID(1), 7));
	box_put_epoch(b, VGUID(2), 1);
	box_put_members(b, OTHER_PORT, keys, 1);
	box_wait_until(b, b->sm.n_held == 3);
	list = vhca_outbox_to_json(b->ob);
	assert_int_equal(json_object_array_length(list), 3);
	assert_string_equal(member(list, 0, "kind"), "move");
	assert_string_equal(member(list, 0, "port_guid"), VHCA_GUID_STR(BOX_PORT));
	assert_string_equal(member(list, 1, "kind"), "binding");
	assert_string_equal(member(list, 1, "vguid"), VHCA_GUID_STR(VGUID(2)));
	assert_string_equal(member(list, 2, "kind"), "members");
	assert_string_equal(member(list, 2, "port_guid"), VHCA_GUID_STR(OTHER_PORT));
	assert_string_equal(member(list, 2, "vguid"), "absent");
	assert_string_equal(member(list, 2, "state"), "in_flight");
	(void)json_object_put(list);
	false_sm_answer_held(&b->sm);
	box_wait_until(b, b->sm.n_held == 1);
	list = vhca_outbox_to_json(b->ob);
	assert_int_equal(json_object_array_length(list), 1);
	assert_string_equal(member(list, 0, "kind"), "binding"); /* the way it goes now */
	(void)json_object_put(list);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, box_setup, box_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(members_are_declared),
		CASE(no_members_is_a_declaration_too),
		CASE(too_many_members_are_no_report),
		CASE(newer_members_replace_what_was_not_sent),
		CASE(newer_members_wait_for_those_in_flight),
		CASE(refused_members_are_dropped),
		CASE(members_of_an_unknown_port_wait),
		CASE(members_do_not_overtake_bindings),
		CASE(bindings_do_not_overtake_members),
		CASE(nobody_waits_for_what_was_forgotten),
		CASE(none_has_members_in_effect_at_once),
		CASE(a_move_is_committed),
		CASE(only_a_binding_with_an_origin_is_a_move),
		CASE(superseded_moves_are_dropped),
		CASE(without_the_route_a_move_is_a_binding),
		CASE(without_the_method_a_move_is_a_binding),
		CASE(other_failures_of_a_move_are_no_reason),
		CASE(no_such_page_is_no_word_of_a_plugin),
		CASE(no_such_method_is_no_word_of_a_plugin),
		CASE(newer_replaces_a_move_that_is_unknown),
		CASE(prepare_is_sent_once),
		CASE(prepare_takes_no_effect),
		CASE(only_moves_are_prepared),
		CASE(prepare_without_an_sm_is_forgotten),
		CASE(few_are_prepared_at_a_time),
		CASE(free_with_prepares_in_flight),
		CASE(a_rebuilding_sm_gets_a_snapshot),
		CASE(snapshots_are_asked_for_again),
		CASE(other_conflicts_ask_for_no_snapshot),
		CASE(restart_sends_each_kind_as_it_was),
		CASE(restart_sends_what_replaced_another_kind),
		CASE(death_between_answer_and_delete_is_harmless),
		CASE(answers_delete_their_own_row),
		CASE(rows_of_the_first_schema_are_bindings),
		CASE(wrong_rows_are_told),
		CASE(each_kind_shows_itself),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
