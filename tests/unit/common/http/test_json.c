// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "tests/unit/unit.h"

static void put(struct json_object **obj)
{
	(void)json_object_put(*obj);
}
#define AUTO_PUT VHCA_CLEANUP(put) struct json_object *

static struct json_object *parse(const char *text)
{
	struct json_object *obj = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_json_parse(text, strlen(text), &obj, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return obj;
}

static void whole_values_are_accepted(void **state)
{
	static const char *const good[] = {
		"{}",
		" {\"a\":1}\n",
		"[1,2]",
		"12",
		"12 ",
		"\"x\"",
		"true",
		"null",
		"{\"a\":{\"b\":[1,{\"c\":null}]}}",
		"{\"\\u00e9\":\"\xc3\xa9\"}",
		"\"\xc3\xa9\xe2\x82\xac\\\\\xf0\x9f\x90\xa7 x\"",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(good); i++) {
		AUTO_PUT obj = parse(good[i]);

		(void)obj; /* null is a value too */
	}
}

static void everything_else_is_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		" ",
		"{",
		"[1,",
		"tru",
		"{a:1}",
		"['a']",
		"{\"a\":1,}",
		"[1,]",
		"{} x",
		"1 2",
		"{}{}",
		"/* c */ {}",
		"\"\xff\"",
		"{\"a\" 1}",
		"01",
		"\"unended",
		"\xef\xbb\xbf{}",

		"nul\n",
		"\"\xc3\"",
		"\"\\\xc3\xa9\"",
		"\xc3\xa9",
		"12\xc3\xa9",
		"{}\xc3\xa9",
		"\"\xc3\"\xa9",
	};
	struct json_object *obj = (void *)1;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(wrong); i++) {
		struct vhca_error err = VHCA_ERROR_INIT;

		if (vhca_json_parse(wrong[i], strlen(wrong[i]), &obj, &err) != -EINVAL)
			fail_msg("accepted: %s", wrong[i]);
		assert_int_equal(err.kind, VHCA_ERR_INVALID);
		assert_string_equal(err.code, "bad_request");
		assert_ptr_equal(obj, (void *)1); /* written only on success */
	}
	assert_int_equal(vhca_json_parse("{}\0x", 4, &obj, NULL), -EINVAL);
	assert_int_equal(vhca_json_parse("12\0", 3, &obj, NULL), -EINVAL);
}

/* json-c keeps the last one: {"peers": [...], "peers": []} asked for something else. */
static void members_given_twice_are_refused(void **state)
{
	static const char *const wrong[] = {
		"{\"a\":1,\"a\":1}",
		"{\"a\":1,\"b\":2,\"\\u0061\":3}",
		"[{\"a\":{\"b\":[],\"b\":null}}]",
	};
	struct json_object *obj;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(wrong); i++) {
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_int_equal(vhca_json_parse(wrong[i], strlen(wrong[i]), &obj, &err), -EINVAL);
		assert_string_equal(err.code, "bad_request");
	}
	AUTO_PUT good = parse("[{\"a:\":\"\\\":{:\"},{\"a:\":{\"a:\":[]}},{\"\\\"\":\":\\\\\"}]");
	assert_int_equal(json_object_array_length(good), 3);
}

static void text_need_not_be_terminated(void **state)
{
	struct json_object *obj;

	(void)state;
	assert_int_equal(vhca_json_parse("{\"a\":1}garbage", 7, &obj, NULL), 0);
	(void)json_object_put(obj);
	assert_int_equal(vhca_json_parse("123", 2, &obj, NULL), 0);
	assert_int_equal(json_object_get_int(obj), 12);
	(void)json_object_put(obj);
}

static void nesting_is_bounded(void **state)
{
	char text[2 * (VHCA_JSON_DEPTH_MAX + 1)];
	struct json_object *obj;

	(void)state;
	for (size_t depth = VHCA_JSON_DEPTH_MAX - 1; depth <= VHCA_JSON_DEPTH_MAX + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		if (depth < VHCA_JSON_DEPTH_MAX) {
			assert_int_equal(vhca_json_parse(text, 2 * depth, &obj, NULL), 0);
			(void)json_object_put(obj);
		} else if (depth > VHCA_JSON_DEPTH_MAX) {
			assert_int_equal(vhca_json_parse(text, 2 * depth, &obj, NULL), -EINVAL);
		}
	}
}

static void strings_are_typed_and_required(void **state)
{
	AUTO_PUT obj = parse("{\"s\":\"text\",\"n\":1,\"z\":null,\"nul\":\"a\\u0000b\"}");
	struct vhca_error err = VHCA_ERROR_INIT;
	const char *s = "before";

	(void)state;
	assert_int_equal(vhca_json_get_string(obj, "n", &s, &err), -EINVAL);
	assert_string_equal(err.msg, "body: n: a string is expected");
	assert_int_equal(vhca_json_get_string(obj, "x", &s, &err), -EINVAL);
	assert_string_equal(err.msg, "body: x: is missing");
	assert_int_equal(vhca_json_get_string(obj, "z", &s, &err), -EINVAL);
	assert_int_equal(vhca_json_get_string(obj, "nul", &s, &err), -EINVAL);
	assert_int_equal(vhca_json_get_string(NULL, "s", &s, &err), -EINVAL);
	assert_string_equal(err.msg, "body: a JSON object is expected");
	assert_int_equal(vhca_json_opt_string(obj, "x", &s, &err), 0);
	assert_int_equal(vhca_json_opt_string(obj, "z", &s, &err), 0);
	assert_int_equal(vhca_json_opt_string(obj, "n", &s, &err), -EINVAL);
	assert_string_equal(s, "before");
	assert_int_equal(vhca_json_get_string(obj, "s", &s, &err), 0);
	assert_string_equal(s, "text");
}

static void numbers_keep_64_bits_and_their_range(void **state)
{
	AUTO_PUT obj = parse("{\"max\":18446744073709551614,\"neg\":-1,\"f\":1.5,\"e\":1e3,"
			     "\"s\":\"5\",\"b\":true,\"i\":7}");
	static const char *const no_number[] = {"neg", "f", "e", "s", "b", "x"};
	uint64_t n = 99;
	bool flag = false;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(no_number); i++)
		assert_int_equal(vhca_json_get_u64(obj, no_number[i], UINT64_MAX, &n, NULL),
				 -EINVAL);
	assert_int_equal(vhca_json_get_u64(obj, "i", 6, &n, NULL), -EINVAL);
	assert_int_equal(vhca_json_get_u64(obj, "max", UINT64_MAX - 2, &n, NULL), -EINVAL);
	assert_int_equal(vhca_json_opt_u64(obj, "x", UINT64_MAX, &n, NULL), 0);
	assert_true(n == 99);
	assert_int_equal(vhca_json_get_u64(obj, "max", UINT64_MAX, &n, NULL), 0);
	assert_true(n == UINT64_MAX - 1);
	assert_int_equal(vhca_json_opt_u64(obj, "i", 7, &n, NULL), 0);
	assert_true(n == 7);
	assert_int_equal(vhca_json_opt_bool(obj, "b", &flag, NULL), 0);
	assert_true(flag);
	assert_int_equal(vhca_json_opt_bool(obj, "i", &flag, NULL), -EINVAL);
	assert_int_equal(vhca_json_opt_bool(obj, "x", &flag, NULL), 0);
}

/* json-c 0.16 hands them on as the largest number it has, 0.18 refuses the text. */
static void numbers_beyond_64_bits_are_refused(void **state)
{
	static const char text[] = "{\"over\":18446744073709551616}";
	AUTO_PUT obj = NULL;
	uint64_t n = 99;

	(void)state;
	if (vhca_json_parse(text, strlen(text), &obj, NULL) == 0)
		assert_int_equal(vhca_json_get_u64(obj, "over", UINT64_MAX, &n, NULL), -EINVAL);
	assert_true(n == 99);
}

static void addresses_come_as_text(void **state)
{
	AUTO_PUT obj = parse(
		"{\"g\":\"0x0002c90300a1b2c3\",\"bad\":\"0x12z\",\"k\":[\"0x8001\",\"0x0001\"],"
		"\"twice\":[\"0x8001\",\"32769\"],\"num\":[32769],\"no\":\"0x8001\",\"none\":[]}");
	struct vhca_error err = VHCA_ERROR_INIT;
	uint16_t pkeys[2];
	uint64_t guid;
	size_t n;

	(void)state;
	assert_int_equal(vhca_json_get_guid(obj, "g", &guid, &err), 0);
	assert_true(guid == UINT64_C(0x0002c90300a1b2c3));
	assert_int_equal(vhca_json_get_guid(obj, "bad", &guid, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "bad: \"0x12z\" is no GUID"));
	assert_int_equal(vhca_json_get_pkeys(obj, "k", pkeys, 2, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(pkeys[0], 0x8001);
	assert_int_equal(pkeys[1], 0x0001); /* full and limited of one key differ */
	assert_int_equal(vhca_json_get_pkeys(obj, "none", pkeys, 2, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(vhca_json_get_pkeys(obj, "k", pkeys, 1, &n, &err), -EINVAL);
	assert_string_equal(err.msg, "body: k: 2 P_Keys, at most 1 are possible");
	assert_int_equal(vhca_json_get_pkeys(obj, "twice", pkeys, 2, &n, &err), -EINVAL);
	assert_string_equal(err.msg, "body: twice[1]: 0x8001 is there twice");
	assert_int_equal(vhca_json_get_pkeys(obj, "num", pkeys, 2, &n, &err), -EINVAL);
	assert_int_equal(vhca_json_get_pkeys(obj, "no", pkeys, 2, &n, &err), -EINVAL);
}

static void unknown_members_are_named(void **state)
{
	static const char *const allowed[] = {"a", "b", NULL};
	AUTO_PUT good = parse("{\"b\":1}");
	AUTO_PUT wrong = parse("{\"a\":1,\"guidd\":2}");
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_json_check_members(good, allowed, &err), 0);
	assert_int_equal(vhca_json_check_members(wrong, allowed, &err), -EINVAL);
	assert_string_equal(err.msg, "body: guidd: unknown member");
	assert_int_equal(vhca_json_check_members(NULL, allowed, &err), -EINVAL);
}

static void builders_write_what_accessors_read(void **state)
{
	static const uint16_t pkeys[] = {0x8001, 0x7fff};
	AUTO_PUT obj = json_object_new_object();

	(void)state;
	vhca_json_add_string(obj, "s", "text");
	vhca_json_add_string(obj, "no", NULL);
	vhca_json_add_u64(obj, "n", UINT64_MAX);
	vhca_json_add_bool(obj, "b", true);
	vhca_json_add_guid(obj, "g", UINT64_C(0x2c90300a1b2c3));
	vhca_json_add_guid(obj, "g0", 0);
	vhca_json_add_pkeys(obj, "k", pkeys, 2);
	vhca_json_add(obj, "c", json_object_new_object());
	assert_string_equal(
		json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN),
		"{\"s\":\"text\",\"no\":null,\"n\":18446744073709551615,\"b\":true,"
		"\"g\":\"0x0002c90300a1b2c3\",\"g0\":null,\"k\":[\"0x8001\",\"0x7fff\"],"
		"\"c\":{}}");
	vhca_json_add_u64(NULL, "n",
			  1); /* out of memory earlier on: nothing happens, nothing leaks */
}

static void a_list_is_cut(void **state)
{
	AUTO_PUT doc = parse(
		"[{\"bdf\": \"1\", \"ports\": [{\"a\": 2}], \"state\": null}, {\"a\": 1}, {}]");

	(void)state;
	vhca_json_cut_list(doc, NULL);
	assert_int_equal(json_object_object_length(json_object_array_get_idx(doc, 0)), 3);
	vhca_json_cut_list(doc, "state,ports,a");
	assert_string_equal(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN),
			    "[{\"ports\":[{\"a\":2}],\"state\":null},{\"a\":1},{}]");
	vhca_json_cut_list(doc, "stat");
	assert_string_equal(json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN),
			    "[{},{},{}]");
}

static void problems_survive_the_wire(void **state)
{
	static const char *const codes[] = {"busy", "superseded"};
	struct vhca_error err = VHCA_ERROR_INIT, back = VHCA_ERROR_INIT;
	uint64_t status;
	bool retryable = true;

	(void)state;
	(void)vhca_error_set(&err, VHCA_ERR_CONFLICT, "superseded", 0, "0x1: epoch %d is known", 9);
	vhca_error_hint(&err, "send a higher one");
	AUTO_PUT doc = vhca_json_problem(&err);
	assert_int_equal(vhca_json_get_u64(doc, "status", 999, &status, NULL), 0);
	assert_int_equal(status, 409);
	assert_int_equal(vhca_json_opt_bool(doc, "retryable", &retryable, NULL), 0);
	assert_false(retryable);
	vhca_json_problem_to_error(doc, 409, &back);
	assert_int_equal(back.kind, err.kind);
	assert_string_equal(back.code, "superseded");
	assert_string_equal(back.msg, err.msg);
	assert_string_equal(back.hint, err.hint);
	assert_int_equal(vhca_json_problem_find(doc, codes, VHCA_ARRAY_SIZE(codes)), 1);
	assert_true(vhca_json_problem_find(doc, codes, 1) < 0);
	assert_true(vhca_json_problem_find(NULL, codes, VHCA_ARRAY_SIZE(codes)) < 0);
}

static void some_codes_have_their_own_status(void **state)
{
	static const struct {
		enum vhca_err kind;
		const char *code;
		int status;
		bool retryable;
	} table[] = {
		{VHCA_ERR_UNAVAILABLE, "not_master", 421, true},
		{VHCA_ERR_CONFLICT, "unknown_port", 409, true},
		{VHCA_ERR_CONFLICT, "guest_busy", 409, true},
		{VHCA_ERR_CONFLICT, "job_held", 409, true},
		{VHCA_ERR_EXHAUSTED, "no_root_port", 507, false},
		{VHCA_ERR_CONFLICT, "epoch_tie", 409, false},
		{VHCA_ERR_EXHAUSTED, "table_full", 507, true},
		{VHCA_ERR_DENIED, "unknown_partition", 403, false},
		{VHCA_ERR_INVALID, "body_too_large", 413, false},
		{VHCA_ERR_UNAVAILABLE, "timeout", 503, true},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct vhca_error err = VHCA_ERROR_INIT;

		(void)vhca_error_set(&err, table[i].kind, table[i].code, 0, "x");
		assert_int_equal(vhca_json_problem_status(&err), table[i].status);
		assert_int_equal(vhca_json_problem_retryable(&err), table[i].retryable);
	}
}

static void foreign_answers_become_errors_too(void **state)
{
	AUTO_PUT doc = parse("{\"detail\":5,\"code\":null}");
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	vhca_json_problem_to_error(NULL, 503, &err);
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	assert_string_equal(err.msg, "the server answered with status 503");
	assert_string_equal(err.code, "unavailable");
	vhca_json_problem_to_error(doc, 418, &err);
	assert_int_equal(err.kind, VHCA_ERR_INTERNAL);
	assert_string_equal(err.code, "internal");
}

/* One that sends ever new codes takes nothing from those who say what we act upon. */
static void a_flood_of_codes_drowns_none(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char text[64];

	(void)state;
	for (int i = 0; i < 200; i++) {
		(void)snprintf(text, sizeof(text), "{\"kind\":\"denied\",\"code\":\"code_%d\"}", i);
		AUTO_PUT doc = parse(text);
		vhca_json_problem_to_error(doc, 403, &err);
	}
	AUTO_PUT late = parse("{\"kind\":\"conflict\",\"code\":\"too_late\"}");
	vhca_json_problem_to_error(late, 409, &err);
	assert_string_equal(err.code, "too_late");
}

static void a_code_that_does_not_fit_is_its_kind(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char code[VHCA_ERROR_CODE_MAX + 1], text[128];

	(void)state;
	for (size_t len = VHCA_ERROR_CODE_MAX - 1; len <= VHCA_ERROR_CODE_MAX; len++) {
		memset(code, 'x', len);
		code[len] = '\0';
		(void)snprintf(text, sizeof(text), "{\"kind\":\"denied\",\"code\":\"%s\"}", code);
		AUTO_PUT doc = parse(text);
		vhca_json_problem_to_error(doc, 403, &err);
		assert_string_equal(err.code, len < VHCA_ERROR_CODE_MAX ? code : "denied");
	}
}

/*
 * What is told is what was asked, cut somewhere: /v1/vfs/%ff, or 40 bytes that end inside of a
 * character.
 */
static void whatever_is_written_can_be_read(void **state)
{
	static const struct {
		const char *text, *told;
	} strings[] = {
		{"vm1", "vm1"},
		{"g\xc3\xa4ste \xe2\x82\xac \xf0\x9f\x90\xa7",
		 "g\xc3\xa4ste \xe2\x82\xac \xf0\x9f\x90\xa7"},
		{"\xff", "?"},
		{"cut \xc3", "cut ?"},
		{"cut \xe2\x82", "cut ??"},
		{"cut \xf0\x9f\x90", "cut ???"},
		{"\xe2x", "?x"},
		{"\xc0\xaf", "??"},
		{"\xe0\x80\xaf", "???"},
		{"\xed\xa0\x80", "???"},
		{"\xf4\x90\x80\x80", "????"},
		{"\xf5\x80\x80\x80", "????"},
		{"\x80", "?"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		AUTO_PUT doc = json_object_new_object();
		const char *told = NULL;

		vhca_json_add_string(doc, "detail", strings[i].text);
		AUTO_PUT again = parse(json_object_to_json_string(doc));
		assert_int_equal(vhca_json_get_string(again, "detail", &told, NULL), 0);
		assert_string_equal(told, strings[i].told);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_values_are_accepted),
		cmocka_unit_test(everything_else_is_refused),
		cmocka_unit_test(members_given_twice_are_refused),
		cmocka_unit_test(text_need_not_be_terminated),
		cmocka_unit_test(nesting_is_bounded),
		cmocka_unit_test(strings_are_typed_and_required),
		cmocka_unit_test(numbers_keep_64_bits_and_their_range),
		cmocka_unit_test(numbers_beyond_64_bits_are_refused),
		cmocka_unit_test(addresses_come_as_text),
		cmocka_unit_test(unknown_members_are_named),
		cmocka_unit_test(builders_write_what_accessors_read),
		cmocka_unit_test(whatever_is_written_can_be_read),
		cmocka_unit_test(a_list_is_cut),
		cmocka_unit_test(problems_survive_the_wire),
		cmocka_unit_test(some_codes_have_their_own_status),
		cmocka_unit_test(foreign_answers_become_errors_too),
		cmocka_unit_test(a_flood_of_codes_drowns_none),
		cmocka_unit_test(a_code_that_does_not_fit_is_its_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
