/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/error.h"
#include "tests/unit/unit.h"

static void set_returns_negative_errno(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(
		vhca_error_set(&err, VHCA_ERR_DEVICE, "bind_failed", EBUSY, "%s: bind", "vf0"),
		-EBUSY);
	assert_int_equal(err.kind, VHCA_ERR_DEVICE);
	assert_int_equal(err.errnum, EBUSY);
	assert_string_equal(err.code, "bind_failed");
	assert_string_equal(err.msg, "vf0: bind: Device or resource busy");
	assert_string_equal(err.hint, "");
}

static void set_without_errno_is_still_a_failure(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_error_set(&err, VHCA_ERR_CONFLICT, "c", 0, "in use"), -EIO);
	assert_int_equal(err.errnum, 0);
	assert_string_equal(err.msg, "in use");
}

static void negative_errno_never_becomes_success(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_error_set(&err, VHCA_ERR_DEVICE, "c", -ENODEV, "x"), -ENODEV);
	assert_int_equal(err.errnum, ENODEV);
}

static void unknown_errno_is_shown_as_a_number(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_error_set(&err, VHCA_ERR_DEVICE, "c", 4095, "x"), -4095);
	assert_string_equal(err.msg, "x: errno 4095");
}

static void null_error_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(vhca_error_set(NULL, VHCA_ERR_INVALID, "c", EINVAL, "x"), -EINVAL);
	vhca_error_hint(NULL, "x");
	vhca_error_prefix(NULL, "x");
}

static void set_clears_an_old_hint(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	(void)vhca_error_set(&err, VHCA_ERR_INVALID, "a", 0, "a");
	vhca_error_hint(&err, "try %d", 1);
	assert_string_equal(err.hint, "try 1");
	(void)vhca_error_set(&err, VHCA_ERR_INVALID, "b", 0, "b");
	assert_string_equal(err.hint, "");
}

static void prefix_goes_to_the_front_and_cuts_the_end(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char longtext[300];

	(void)state;
	memset(longtext, 'x', sizeof(longtext) - 1);
	longtext[sizeof(longtext) - 1] = '\0';
	(void)vhca_error_set(&err, VHCA_ERR_INVALID, "a", EINVAL, "%s", longtext);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	vhca_error_prefix(&err, "vm%d", 7);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_memory_equal(err.msg, "vm7: xxx", 8);
}

static void text_has_the_way_out(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char text[sizeof(err.msg) + sizeof(err.hint)];

	(void)state;
	vhca_error_text(&err, text, sizeof(text));
	assert_string_equal(text, "");
	(void)vhca_error_set(&err, VHCA_ERR_INVALID, "a", 0, "it is closed");
	vhca_error_text(&err, text, sizeof(text));
	assert_string_equal(text, "it is closed");
	vhca_error_hint(&err, "open it");
	vhca_error_text(&err, text, sizeof(text));
	assert_string_equal(text, "it is closed; open it");
	vhca_error_text(&err, text, 10);
	assert_string_equal(text, "it is clo");
}

static void kinds_map_to_words_and_numbers(void **state)
{
	static const struct {
		const char *word;
		int http, exit;
	} want[] = {{"invalid", 400, 2},   {"not-found", 404, 3}, {"conflict", 409, 4},
		    {"exhausted", 507, 5}, {"device", 502, 6},	  {"unavailable", 503, 7},
		    {"denied", 403, 8},	   {"internal", 500, 1}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		enum vhca_err kind = vhca_err_from_string(want[i].word);

		assert_int_equal(kind, VHCA_ERR_INVALID + i);
		assert_string_equal(vhca_err_to_string(kind), want[i].word);
		assert_int_equal(vhca_err_to_http(kind), want[i].http);
		assert_int_equal(vhca_err_to_exit(kind), want[i].exit);
	}
	assert_int_equal(vhca_err_from_string("none"), VHCA_ERR_INTERNAL);
	assert_int_equal(vhca_err_from_string("bogus"), VHCA_ERR_INTERNAL);
	assert_int_equal(vhca_err_from_string(NULL), VHCA_ERR_INTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_returns_negative_errno),
		cmocka_unit_test(set_without_errno_is_still_a_failure),
		cmocka_unit_test(negative_errno_never_becomes_success),
		cmocka_unit_test(unknown_errno_is_shown_as_a_number),
		cmocka_unit_test(null_error_is_accepted),
		cmocka_unit_test(set_clears_an_old_hint),
		cmocka_unit_test(prefix_goes_to_the_front_and_cuts_the_end),
		cmocka_unit_test(text_has_the_way_out),
		cmocka_unit_test(kinds_map_to_words_and_numbers),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
