/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The outbox and reports of each kind over a restart: its rows, and what an SM is told that has
 * lost its state.
 */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "tests/unit/sm/outbox_box.h"
#include "tests/unit/unit.h"

/* ---- rebuilding ---- */

static void a_rebuilding_sm_gets_a_snapshot(void **state)
{
	struct box *b = *state;

	box_refuse(b, "rebuilding", VHCA_ERR_CONFLICT);
	box_put_epoch(b, BOX_VGUID(1), 1);
	box_put_binding(b, box_move_of(BOX_VGUID(2), 1));
	box_put_members(b, BOX_OTHER_PORT, box_keys, 1);
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
	box_refuse(b, "rebuilding", VHCA_ERR_CONFLICT);
	box_put_epoch(b, BOX_VGUID(1), 1);
	box_wait_until(b, b->n_snapshots == 2);
	assert_true(box_count_answers(b, VHCA_SM_RETRY) > 2);
}

static void other_conflicts_ask_for_no_snapshot(void **state)
{
	struct box *b = *state;

	box_refuse(b, "unknown_port", VHCA_ERR_CONFLICT);
	box_put_epoch(b, BOX_VGUID(1), 1);
	box_wait_until(b, b->n_answers == 2);
	assert_int_equal(b->n_snapshots, 0);
}

/* ---- death ---- */

static void restart_sends_each_kind_as_it_was(void **state)
{
	struct box *b = *state;

	false_sm_down(&b->sm);
	box_put_members(b, BOX_PORT, box_keys, 2);
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_put_binding(b, box_binding_of(BOX_VGUID(2), 3, false));
	box_put_members(b, BOX_OTHER_PORT, NULL, 0);
	box_put_epoch(b, BOX_VGUID(3), UINT64_MAX - 1);
	box_put_members(b, BOX_PORT, box_keys, 1); /* in place of the first */
	box_wait_until(b, b->commits == 6);
	box_close_store(b);

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	assert_int_equal(vhca_outbox_pending(b->ob), 5);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 5);
	assert_string_equal(b->sm.seen[0].body, BOX_COMMIT_BODY);
	assert_string_equal(b->sm.seen[1].path, "/v1/bindings/0x0002c90000000002");
	assert_string_equal(b->sm.seen[1].method, "DELETE");
	assert_true(b->sm.seen[2].vguid == BOX_OTHER_PORT);
	assert_string_equal(b->sm.seen[2].body, "{\"pkeys\":[]}");
	assert_true(b->sm.seen[3].epoch == UINT64_MAX - 1);
	assert_string_equal(b->sm.seen[4].path, BOX_MEMBERS_PATH);
	assert_string_equal(b->sm.seen[4].body, "{\"pkeys\":[\"0x8001\"]}");
}

/* A row that is replaced takes over all of the newer report, also what only moves have. */
static void restart_sends_what_replaced_another_kind(void **state)
{
	struct box *b = *state;
	struct vhca_sm_binding elsewhere = box_move_of(BOX_VGUID(1), 6);

	false_sm_down(&b->sm);
	elsewhere.from_port_guid = BOX_OTHER_PORT;
	elsewhere.from_gid_index = 5;
	elsewhere.from_lid = 6;
	elsewhere.move_id.b[0] ^= 0xff;
	box_put_binding(b, elsewhere);
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_put_binding(b, box_move_of(BOX_VGUID(2), 7));
	box_put_epoch(b, BOX_VGUID(2), 8);
	box_put_epoch(b, BOX_VGUID(3), 1);
	elsewhere = box_move_of(BOX_VGUID(3), 2);
	elsewhere.vport = 9;
	box_put_binding(b, elsewhere);
	box_put_epoch(b, BOX_VGUID(4), 1);
	elsewhere = box_binding_of(BOX_VGUID(4), 2, true);
	elsewhere.dynamic_lid = true;
	box_put_binding(b, elsewhere);
	box_put_epoch(b, BOX_VGUID(5), 1);
	elsewhere = box_binding_of(BOX_VGUID(5), 2, false);
	elsewhere.keep_lid = true;
	box_put_binding(b, elsewhere);
	box_put_epoch(b, BOX_VGUID(6), 1);
	elsewhere = box_move_of(BOX_VGUID(6), 2);
	elsewhere.follow_lid = true;
	box_put_binding(b, elsewhere);
	box_wait_until(b, b->commits == 12);
	box_close_store(b);

	false_sm_up(&b->sm);
	box_open_store(b);
	box_open_outbox(b);
	box_wait_all_done(b);
	assert_int_equal(b->sm.n_seen, 6);
	assert_string_equal(b->sm.seen[0].body, BOX_COMMIT_BODY);
	assert_string_equal(b->sm.seen[1].method, "PUT");
	assert_int_equal(b->sm.seen[1].epoch, 8);
	assert_string_equal(b->sm.seen[2].phase, "commit");
	assert_int_equal(b->sm.seen[2].epoch, 2);
	assert_non_null(strstr(b->sm.seen[2].body, "\"vport\":9"));
	assert_null(strstr(b->sm.seen[2].body, "dynamic"));
	assert_non_null(strstr(b->sm.seen[3].body, "\"lid_policy\":\"dynamic\""));
	assert_string_equal(b->sm.seen[4].method, "DELETE");
	assert_true(b->sm.seen[4].keep_lid);
	assert_non_null(strstr(b->sm.seen[5].body, "\"lid_policy\":\"follow\""));
}

/* The SM has acted, we die before we know: the same states go out again and change nothing. */
static void death_between_answer_and_delete_is_harmless(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_put_members(b, BOX_OTHER_PORT, box_keys, 1);
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
	assert_int_equal(false_sm_effects(&b->sm, BOX_VGUID(1)), 1);
	assert_int_equal(box_count_answers(b, VHCA_SM_ACCEPTED), 2);
}

/* The answer to an old declaration leaves the row of the newer one. */
static void answers_delete_their_own_row(void **state)
{
	struct box *b = *state;

	b->sm.hold = true;
	box_put_members(b, BOX_PORT, box_keys, 1);
	box_wait_until(b, b->sm.n_held == 1);
	box_put_members(b, BOX_PORT, box_keys, 2);
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
	assert_string_equal(box_last_seen(b)->body, "{\"pkeys\":[\"0x8001\",\"0x8002\"]}");
}

/* ---- the tables ---- */

static void exec(struct box *b, const char *sql)
{
	struct vhca_txn *txn = vhca_txn_new(b->store);

	vhca_txn_exec(txn, sql, "");
	vhca_txn_commit(txn, NULL, NULL);
}

static void wrong_rows_are_told(void **state)
{
	static const char *const rows[] = {
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 1, 'no uuid', 3, 1, 1, 0, "
		"0, 0, 0, 0)",
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 0, '', 3, 65536, 1, 0, 0, "
		"0, 0, 0)",
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 0, '', 3, 1, -1, 0, 0, 0, "
		"0, 0)",
		"INSERT INTO outbox VALUES (7, 1, 0, 2, 1, 9, 1, 0, '', 0, '', 3, 1, 1, 65536, 0, "
		"0, 0, 0)",
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
	box_know_no_moves(b);
	box_put_binding(b, box_move_of(BOX_VGUID(1), 7));
	box_put_epoch(b, BOX_VGUID(2), 1);
	box_put_members(b, BOX_OTHER_PORT, box_keys, 1);
	box_wait_until(b, b->sm.n_held == 3);
	list = vhca_outbox_to_json(b->ob);
	assert_int_equal(json_object_array_length(list), 3);
	assert_string_equal(member(list, 0, "kind"), "move");
	assert_string_equal(member(list, 0, "port_guid"), VHCA_GUID_STR(BOX_PORT));
	assert_string_equal(member(list, 1, "kind"), "binding");
	assert_string_equal(member(list, 1, "vguid"), VHCA_GUID_STR(BOX_VGUID(2)));
	assert_string_equal(member(list, 2, "kind"), "members");
	assert_string_equal(member(list, 2, "port_guid"), VHCA_GUID_STR(BOX_OTHER_PORT));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOX_CASE(a_rebuilding_sm_gets_a_snapshot),
		BOX_CASE(snapshots_are_asked_for_again),
		BOX_CASE(other_conflicts_ask_for_no_snapshot),
		BOX_CASE(restart_sends_each_kind_as_it_was),
		BOX_CASE(restart_sends_what_replaced_another_kind),
		BOX_CASE(death_between_answer_and_delete_is_harmless),
		BOX_CASE(answers_delete_their_own_row),
		BOX_CASE(wrong_rows_are_told),
		BOX_CASE(each_kind_shows_itself),
	};

	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
