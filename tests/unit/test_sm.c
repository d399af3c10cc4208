/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sm/sm.h"

#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

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
	assert_string_equal(req.path, "/v1/bindings/0x0002c90300a1b2c3?epoch=18446744073709551615");
	assert_null(req.body);
}

static const struct {
	int status;
	const char *body;
	enum vhca_sm_answer answer;
} answers[] = {
	{200, "{\"vguid\":\"0x0002c90300a1b2c3\",\"epoch\":1,\"state\":\"pending\"}",
	 VHCA_SM_ACCEPTED},
	{201, "{\"vguid\":\"0x0002c90300a1b2c3\"}", VHCA_SM_ACCEPTED},
	{200, "{\"status\":\"ok\"}", VHCA_SM_RETRY}, /* some other server */
	{200, "[]", VHCA_SM_RETRY},
	{200, NULL, VHCA_SM_RETRY},
	{204, NULL, VHCA_SM_RETRY},
	{0, NULL, VHCA_SM_RETRY},
	{409, "{\"code\":\"superseded\",\"retryable\":false}", VHCA_SM_SUPERSEDED},
	{409, "{\"code\":\"epoch_tie\"}", VHCA_SM_REFUSED},
	{409, "{\"code\":\"unknown_port\",\"retryable\":true}", VHCA_SM_RETRY},
	{409, "{\"code\":\"rebuilding\",\"retryable\":true}", VHCA_SM_RETRY},
	{400, "{\"code\":\"bad_request\"}", VHCA_SM_REFUSED},
	{403, "{\"code\":\"unknown_partition\"}", VHCA_SM_REFUSED},
	{413, "{\"code\":\"body_too_large\"}", VHCA_SM_REFUSED},
	{421, "{\"code\":\"not_master\"}", VHCA_SM_RETRY},
	{507, "{\"code\":\"table_full\"}", VHCA_SM_RETRY},
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

static void classifies_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(answers); i++) {
		struct json_object *body = NULL;
		enum vhca_sm_answer answer;

		if (answers[i].body)
			assert_int_equal(vhca_json_parse(answers[i].body, strlen(answers[i].body),
							 &body, NULL),
					 0);
		answer = vhca_sm_vhcasm.binding_answer(answers[i].status, body, NULL);
		if (answer != answers[i].answer)
			fail_msg("%d %s: %d, not %d", answers[i].status, answers[i].body,
				 (int)answer, (int)answers[i].answer);
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
		cmocka_unit_test(classifies_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
