/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "sm/sm.h"
#include "tests/unit/unit.h"

static const struct vhca_sm_binding bound = {
	.vguid = UINT64_C(0x0002c90300a1b2c3),
	.epoch = UINT64_C(0x123456789abcdef0),
	.bound = true,
	.port_guid = UINT64_C(0x0002c90300000001),
	.gid_index = 3,
	.lid = 7,
	.n_pkeys = 2,
	.pkeys = {0x8001, 0x7fff},
};

static void finds_back_ends(void **state)
{
	(void)state;
	assert_ptr_equal(vhca_sm_find("vhcasm"), &vhca_sm_vhcasm);
	assert_ptr_equal(vhca_sm_find("none"), &vhca_sm_none);
	assert_null(vhca_sm_find("ufm"));
	assert_null(vhca_sm_find(""));
	assert_true(vhca_sm_vhcasm.fenced && vhca_sm_vhcasm.sends && vhca_sm_vhcasm.members);
	assert_false(vhca_sm_none.fenced || vhca_sm_none.sends || vhca_sm_none.members);
}

static void none_sends_nothing(void **state)
{
	struct vhca_sm_request req;

	(void)state;
	assert_int_equal(vhca_sm_none.binding_request(&bound, &req), -EOPNOTSUPP);
	assert_int_equal(vhca_sm_none.binding_answer(0, NULL, NULL), VHCA_SM_ACCEPTED);
}

static void put_carries_the_state(void **state)
{
	struct vhca_sm_request req;

	(void)state;
	assert_int_equal(vhca_sm_vhcasm.binding_request(&bound, &req), 0);
	assert_string_equal(req.method, "PUT");
	assert_string_equal(req.path, "/v1/bindings/0x0002c90300a1b2c3");
	assert_string_equal(json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
			    "{\"epoch\":1311768467463790320,\"port_guid\":\"0x0002c90300000001\","
			    "\"gid_index\":3,\"lid\":7,\"pkeys\":[\"0x8001\",\"0x7fff\"]}");
	(void)json_object_put(req.body);
}

static void put_without_keys_has_an_empty_list(void **state)
{
	struct vhca_sm_binding b = bound;
	struct vhca_sm_request req;

	(void)state;
	b.n_pkeys = 0;
	assert_int_equal(vhca_sm_vhcasm.binding_request(&b, &req), 0);
	assert_non_null(strstr(json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
			       "\"pkeys\":[]"));
	(void)json_object_put(req.body);
}

static void delete_carries_the_epoch(void **state)
{
	struct vhca_sm_binding b = bound;
	struct vhca_sm_request req;

	(void)state;
	b.bound = false;
	b.epoch = UINT64_MAX;
	assert_int_equal(vhca_sm_vhcasm.binding_request(&b, &req), 0);
	assert_string_equal(req.method, "DELETE");
	assert_string_equal(
		req.path,
		"/v1/bindings/"
		"0x0002c90300a1b2c3?epoch=18446744073709551615&port_guid=0x0002c90300000001");
	assert_null(req.body);
	b.keep_lid = true; /* for its next owner */
	assert_int_equal(vhca_sm_vhcasm.binding_request(&b, &req), 0);
	assert_non_null(strstr(req.path, "&port_guid=0x0002c90300000001&keep_lid=yes"));
}

static void a_dynamic_lid_is_asked_for_with_the_binding(void **state)
{
	struct vhca_sm_binding b = bound;
	struct vhca_sm_request req;

	(void)state;
	b.dynamic_lid = true;
	assert_int_equal(vhca_sm_vhcasm.binding_request(&b, &req), 0);
	assert_non_null(strstr(json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
			       "\"lid_policy\":\"dynamic\""));
	(void)json_object_put(req.body);
	b.moved = true;
	b.from_port_guid = UINT64_C(0x0002c90300000009);
	assert_int_equal(vhca_sm_vhcasm.commit_request(&b, &req), 0);
	assert_non_null(strstr(json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
			       "\"lid_policy\":\"dynamic\""));
	(void)json_object_put(req.body);
}

static void moves_carry_both_places(void **state)
{
	struct vhca_sm_binding b = bound;
	struct vhca_sm_request req;

	(void)state;
	b.moved = true;
	assert_false(vhca_sm_binding_is_move(&b)); /* from where? */
	b.from_port_guid = UINT64_C(0x0002c90300000009);
	b.from_gid_index = 2;
	assert_true(vhca_sm_binding_is_move(&b));
	assert_int_equal(vhca_uuid_parse("6B3E1C3A-1111-4222-8333-00000000000a", &b.move_id), 0);
	assert_int_equal(vhca_sm_vhcasm.prepare_request(&b, &req), 0);
	assert_string_equal(req.method, "POST");
	assert_string_equal(req.path, "/v1/moves");
	assert_string_equal(
		json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
		"{\"id\":\"6b3e1c3a-1111-4222-8333-00000000000a\",\"epoch\":1311768467463790320,"
		"\"vguid\":\"0x0002c90300a1b2c3\",\"phase\":\"prepare\",\"from\":{\"port_guid\":"
		"\"0x0002c90300000009\",\"gid_index\":2,\"lid\":0},\"to\":{\"port_guid\":"
		"\"0x0002c90300000001\",\"gid_index\":3,\"lid\":7},\"pkeys\":[\"0x8001\","
		"\"0x7fff\"]}");
	(void)json_object_put(req.body);
	b.vport = 4;
	assert_int_equal(vhca_sm_vhcasm.commit_request(&b, &req), 0);
	assert_non_null(strstr(json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
			       "\"gid_index\":3,\"lid\":7,\"vport\":4}"));
	assert_non_null(strstr(json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
			       "\"lid_policy\":\"vport\""));
	(void)json_object_put(req.body);
	b.bound = false;
	assert_false(vhca_sm_binding_is_move(&b));
}

static void members_are_the_keys_of_a_port(void **state)
{
	const struct vhca_sm_members m = {
		.port_guid = UINT64_MAX, .n_pkeys = 2, .pkeys = {0x8001, 0x0002}};
	struct vhca_sm_request req;

	(void)state;
	assert_int_equal(vhca_sm_vhcasm.members_request(&m, &req), 0);
	assert_string_equal(req.method, "PUT");
	assert_string_equal(req.path, "/v1/members/0xffffffffffffffff");
	assert_string_equal(json_object_to_json_string_ext(req.body, JSON_C_TO_STRING_PLAIN),
			    "{\"pkeys\":[\"0x8001\",\"0x0002\"]}");
	(void)json_object_put(req.body);
}

struct answer {
	int status;
	const char *body;
	enum vhca_sm_answer answer;
};

static const struct answer answers[] = {
	{200, "{\"vguid\":\"0x0002c90300a1b2c3\",\"epoch\":1,\"state\":\"pending\"}",
	 VHCA_SM_ACCEPTED},
	{201, "{\"vguid\":\"0x0002c90300a1b2c3\"}", VHCA_SM_ACCEPTED},
	{200, "{\"status\":\"ok\"}", VHCA_SM_RETRY}, /* some other server */
	{200, "[]", VHCA_SM_RETRY},
	{200, NULL, VHCA_SM_RETRY},
	{204, NULL, VHCA_SM_RETRY},
	{0, NULL, VHCA_SM_RETRY},
	{409, "{\"code\":\"superseded\",\"retryable\":false}", VHCA_SM_SUPERSEDED},
	{409, "{\"code\":\"epoch_tie\"}", VHCA_SM_SUPERSEDED},
	{409, "{\"code\":\"unknown_port\",\"retryable\":true}", VHCA_SM_RETRY},
	{409, "{\"code\":\"rebuilding\",\"retryable\":true}", VHCA_SM_RETRY},
	{400, "{\"code\":\"bad_request\"}", VHCA_SM_REFUSED},
	{403, "{\"code\":\"unknown_partition\"}", VHCA_SM_REFUSED},
	{403, "{\"code\":\"not_your_port\",\"retryable\":false}", VHCA_SM_RETRY},
	{403, "{\"code\":\"not_the_owner\",\"retryable\":false}", VHCA_SM_SUPERSEDED},
	{403, "{\"code\":\"ticket_not_valid\",\"retryable\":false}", VHCA_SM_RETRY},
	{409, "{\"code\":\"guid_is_a_port\",\"retryable\":true}", VHCA_SM_RETRY},
	{409, "{\"code\":\"epoch_too_high\",\"retryable\":false}", VHCA_SM_REFUSED},
	{401, "{\"code\":\"unauthorized\",\"retryable\":false}", VHCA_SM_RETRY},
	{413, "{\"code\":\"body_too_large\"}", VHCA_SM_REFUSED},
	{421, "{\"code\":\"not_master\"}", VHCA_SM_RETRY},
	{507, "{\"code\":\"table_full\"}", VHCA_SM_RETRY},
	{403, "{\"code\":\"role_needed\"}", VHCA_SM_RETRY},
	{400, "{\"code\":\"of_the_future\",\"retryable\":false}", VHCA_SM_REFUSED},
	{400, "{\"code\":\"of_the_future\"}", VHCA_SM_RETRY},
	/* Not the plugin's words: nothing is thrown away for them. */
	{404, NULL, VHCA_SM_RETRY},
	{404, "{\"error\":\"no such page\"}", VHCA_SM_RETRY},
	{403, "{\"code\":403}", VHCA_SM_RETRY},
	{301, NULL, VHCA_SM_RETRY},
	{500, "{\"code\":\"state_not_saved\",\"retryable\":false}", VHCA_SM_RETRY},
	{500, NULL, VHCA_SM_RETRY},
	{503, "{}", VHCA_SM_RETRY},
};

/* What is said of errors is the same for all reports; these differ. */
static const struct answer commit_answers[] = {
	{200, "{\"id\":\"x\",\"state\":\"committed\",\"evicted\":true}", VHCA_SM_ACCEPTED},
	{200, "{\"id\":\"x\",\"state\":\"prepared\"}", VHCA_SM_RETRY},
	{200, "{\"vguid\":\"0x0002c90300a1b2c3\"}", VHCA_SM_RETRY},
	{409, "{\"code\":\"superseded\"}", VHCA_SM_SUPERSEDED},
	{409, "{\"code\":\"rebuilding\",\"retryable\":true}", VHCA_SM_RETRY},
	{403, "{\"code\":\"unknown_partition\"}", VHCA_SM_REFUSED},
	{404, NULL, VHCA_SM_RETRY},
	{0, NULL, VHCA_SM_RETRY},
};

static const struct answer prepare_answers[] = {
	{200, "{\"id\":\"x\",\"state\":\"prepared\",\"evicted\":true}", VHCA_SM_ACCEPTED},
	{200, "{\"id\":\"x\",\"state\":\"committed\"}", VHCA_SM_RETRY},
	{409, "{\"code\":\"superseded\"}", VHCA_SM_SUPERSEDED},
	{409, "{\"code\":\"rebuilding\",\"retryable\":true}", VHCA_SM_RETRY},
	{404, NULL, VHCA_SM_RETRY},
	{0, NULL, VHCA_SM_RETRY},
};

static const struct answer members_answers[] = {
	{200, "{\"port_guid\":\"0x0002c90300000001\",\"pkeys\":[],\"effective\":[]}",
	 VHCA_SM_ACCEPTED},
	{200, "{\"status\":\"ok\"}", VHCA_SM_RETRY},
	{409, "{\"code\":\"unknown_port\"}", VHCA_SM_RETRY},
	{400, "{\"code\":\"bad_request\"}", VHCA_SM_REFUSED},
	{404, NULL, VHCA_SM_RETRY},
	{0, NULL, VHCA_SM_RETRY},
};

static enum vhca_sm_answer binding_answer(int status, struct json_object *body)
{
	return vhca_sm_vhcasm.binding_answer(status, body, NULL);
}

static struct json_object *parse(const char *text)
{
	struct json_object *body = NULL;

	if (text)
		assert_int_equal(vhca_json_parse(text, strlen(text), &body, NULL), 0);
	return body;
}

static void classify(enum vhca_sm_answer (*fn)(int status, struct json_object *body),
		     const struct answer *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct json_object *body = parse(table[i].body);
		enum vhca_sm_answer answer = fn(table[i].status, body);

		if (answer != table[i].answer)
			fail_msg("%d %s: %d, not %d", table[i].status, table[i].body, (int)answer,
				 (int)table[i].answer);
		(void)json_object_put(body);
	}
}

static void classifies_answers(void **state)
{
	(void)state;
	classify(binding_answer, answers, VHCA_ARRAY_SIZE(answers));
	classify(vhca_sm_vhcasm.commit_answer, commit_answers, VHCA_ARRAY_SIZE(commit_answers));
	classify(vhca_sm_vhcasm.prepare_answer, prepare_answers, VHCA_ARRAY_SIZE(prepare_answers));
	classify(vhca_sm_vhcasm.members_answer, members_answers, VHCA_ARRAY_SIZE(members_answers));
}

static void knows_an_older_plugin(void **state)
{
	static const struct {
		int status;
		const char *body;
		bool unknown;
	} table[] = {
		{404, "{\"code\":\"no_such_path\"}", true},
		{405, "{\"code\":\"method_not_allowed\"}", true},
		{404, "{\"code\":\"unknown_lid\"}", false},
		{404, "{\"error\":\"no such page\"}", false},
		{404, "[]", false},
		{404, NULL, false},
		{405, NULL, false},
		{403, "{\"code\":\"no_such_path\"}", false},
		{0, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct json_object *body = parse(table[i].body);

		assert_int_equal(vhca_sm_vhcasm.commit_unknown(table[i].status, body),
				 table[i].unknown);
		(void)json_object_put(body);
	}
}

static void knows_who_wants_a_snapshot(void **state)
{
	static const struct {
		int status;
		const char *body;
		bool wants;
	} table[] = {
		{409, "{\"code\":\"rebuilding\"}", true},
		{503, "{\"code\":\"rebuilding\"}", false},
		{409, "{\"code\":\"superseded\"}", false},
		{409, "{\"code\":null}", false},
		{409, "[]", false},
		{409, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct json_object *body = parse(table[i].body);

		assert_int_equal(vhca_sm_vhcasm.wants_snapshot(table[i].status, body),
				 table[i].wants);
		(void)json_object_put(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_back_ends),
		cmocka_unit_test(none_sends_nothing),
		cmocka_unit_test(put_carries_the_state),
		cmocka_unit_test(put_without_keys_has_an_empty_list),
		cmocka_unit_test(delete_carries_the_epoch),
		cmocka_unit_test(a_dynamic_lid_is_asked_for_with_the_binding),
		cmocka_unit_test(moves_carry_both_places),
		cmocka_unit_test(members_are_the_keys_of_a_port),
		cmocka_unit_test(classifies_answers),
		cmocka_unit_test(knows_an_older_plugin),
		cmocka_unit_test(knows_who_wants_a_snapshot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
