/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/cpus.h"
#include "common/base/text.h"
#include "tests/unit/unit.h"

static void sets_of_cpus_parse_strictly(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *same;
	} rows[] = {
		{"", 0, ""},
		{"0-2,8", 0, "8,1,0,2"},
		{"0-8191,^0-8190", 0, "8191"},
		{"^1,1", 0, "1"},
		{"8192", -ERANGE, ""},
		{"3-1", -EINVAL, ""},
		{"1,", -EINVAL, ""},
		{",1", -EINVAL, ""},
		{"1-", -EINVAL, ""},
		{"1-2-3", -EINVAL, ""},
		{"^", -EINVAL, ""},
		{"0000000000000000001", -EINVAL, ""},
		{"1 2", -EINVAL, ""},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		struct vhca_cpus set = {{0}}, same;

		assert_int_equal(vhca_cpus_parse(rows[i].text, &set), rows[i].rc);
		assert_int_equal(vhca_cpus_parse(rows[i].same, &same), 0);
		assert_memory_equal(&set, &same, sizeof(set));
	}
}

static void numbers_parse_strictly(void **state)
{
	static const struct {
		const char *text;
		unsigned int base;
		int rc;
		uint64_t value;
	} rows[] = {
		{"0", 10, 0, 0},
		{"007", 10, 0, 7}, /* never octal */
		{"010", 0, 0, 10},
		{"18446744073709551615", 10, 0, UINT64_MAX},
		{"18446744073709551616", 10, -ERANGE, 0},
		{"99999999999999999999999", 10, -ERANGE, 0},
		{"0x10", 0, 0, 16},
		{"0x10", 16, 0, 16},
		{"10", 16, 0, 16},
		{"fF", 16, 0, 255},
		{"0x10", 10, -EINVAL, 0},
		{"ff", 0, -EINVAL, 0},
		{"", 10, -EINVAL, 0},
		{"0x", 0, -EINVAL, 0},
		{"0x", 16, -EINVAL, 0},
		{"-1", 10, -EINVAL, 0},
		{"+1", 10, -EINVAL, 0},
		{" 1", 10, -EINVAL, 0},
		{"1 ", 10, -EINVAL, 0},
		{"1\n", 10, -EINVAL, 0},
		{"1k", 10, -EINVAL, 0},
		{"0x0x1", 16, -EINVAL, 0},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		uint64_t value = 4711;
		int rc = vhca_parse_u64(rows[i].text, rows[i].base, UINT64_MAX, &value);

		if (rc != rows[i].rc || value != (rc ? 4711 : rows[i].value))
			fail_msg("\"%s\": rc %d, value %llu", rows[i].text, rc,
				 (unsigned long long)value);
	}
}

static void numbers_respect_their_maximum(void **state)
{
	uint64_t big = 1;
	uint32_t small = 1;

	(void)state;
	assert_int_equal(vhca_parse_u64("100", 10, 99, &big), -ERANGE);
	assert_int_equal(vhca_parse_u64("99", 10, 99, &big), 0);
	assert_int_equal(big, 99);
	assert_int_equal(vhca_parse_u32("4294967296", 10, UINT32_MAX, &small), -ERANGE);
	assert_int_equal(small, 1);
	assert_int_equal(vhca_parse_u32("4294967295", 10, UINT32_MAX, &small), 0);
	assert_int_equal(small, UINT32_MAX);
}

static void bool_takes_four_pairs_of_words_only(void **state)
{
	static const char *const yes[] = {"yes", "true", "on", "1"};
	static const char *const no[] = {"no", "false", "off", "0"};
	static const char *const bad[] = {"", "Yes", "y", "2", "yes ", "nope", "enabled"};
	bool value;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(yes); i++) {
		value = false;
		assert_int_equal(vhca_parse_bool(yes[i], &value), 0);
		assert_true(value);
		assert_int_equal(vhca_parse_bool(no[i], &value), 0);
		assert_false(value);
	}
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		assert_int_equal(vhca_parse_bool(bad[i], &value), -EINVAL);
}

static void names_are_short_words(void **state)
{
	(void)state;
	assert_true(vhca_words_have("bdf state", ' ', "state", 5));
	assert_true(vhca_words_have("bdf  state", ' ', "bdf,x", 3));
	assert_false(vhca_words_have("bdf state", ' ', "stat", 4));
	assert_false(vhca_words_have("bdf stat", ' ', "state", 5));
	assert_false(vhca_words_have("", ',', "", 0));
	assert_true(vhca_name_is_valid("ib0"));
	assert_true(vhca_name_is_valid("A-Z_09"));
	assert_true(vhca_name_is_valid("1234567890123456789012345678901"));
	assert_false(vhca_name_is_valid("12345678901234567890123456789012"));
	assert_false(vhca_name_is_valid(""));
	assert_false(vhca_name_is_valid("a b"));
	assert_false(vhca_name_is_valid("a/b"));
	assert_false(vhca_name_is_valid("caf\xc3\xa9"));
}

static void strcpy_refuses_what_does_not_fit(void **state)
{
	char dst[4] = "old";

	(void)state;
	assert_int_equal(vhca_strcpy(dst, sizeof(dst), "abc"), 0);
	assert_string_equal(dst, "abc");
	assert_int_equal(vhca_strcpy(dst, sizeof(dst), "abcd"), -ENAMETOOLONG);
	assert_string_equal(dst, "");
	assert_int_equal(vhca_strcpy(dst, 0, ""), -ENAMETOOLONG);
}

static void control_characters_are_found_whole(void **state)
{
	char text[] = "a\n\x1b[2J\x7f\xc2\x9b"
		      "2J\xc2\x80\xc2\xa0\xc3\x9b\xc2";

	(void)state;
	assert_int_equal(vhca_control_len(""), 0);
	assert_int_equal(vhca_control_len("\x01"), 1);
	assert_int_equal(vhca_control_len("\x7f"), 1);
	assert_int_equal(vhca_control_len("\xc2\x80"), 2);
	assert_int_equal(vhca_control_len("\xc2\x9f"), 2);
	assert_int_equal(vhca_control_len("\xc2\xa0"), 0); /* no-break space */
	assert_int_equal(vhca_control_len("\x80"),
			 0); /* the middle of another character, or no UTF-8 */
	vhca_blot_controls(text);
	assert_string_equal(text, "a??[2J???2J??\xc2\xa0\xc3\x9b\xc2");
}

static void strbuf_adds_whole_pieces_until_full(void **state)
{
	struct vhca_strbuf sb;
	char buf[8];

	(void)state;
	vhca_strbuf_init(&sb, buf, sizeof(buf));
	vhca_strbuf_add(&sb, "%d-", 12);
	vhca_strbuf_add(&sb, "%s", "abcd"); /* fills it to the last byte */
	assert_string_equal(buf, "12-abcd");
	assert_false(sb.truncated);
	vhca_strbuf_add(&sb, "%s", "");
	assert_false(sb.truncated);
	vhca_strbuf_add(&sb, "x");
	assert_true(sb.truncated);
	vhca_strbuf_add(&sb, "%s", "");
	assert_string_equal(buf, "12-abcd");
	assert_int_equal(sb.len, 7);
}

static void strbuf_of_no_size_is_full_at_once(void **state)
{
	struct vhca_strbuf sb;

	(void)state;
	vhca_strbuf_init(&sb, NULL, 0);
	vhca_strbuf_add(&sb, "x");
	assert_true(sb.truncated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_parse_strictly),
		cmocka_unit_test(sets_of_cpus_parse_strictly),
		cmocka_unit_test(numbers_respect_their_maximum),
		cmocka_unit_test(bool_takes_four_pairs_of_words_only),
		cmocka_unit_test(names_are_short_words),
		cmocka_unit_test(strcpy_refuses_what_does_not_fit),
		cmocka_unit_test(control_characters_are_found_whole),
		cmocka_unit_test(strbuf_adds_whole_pieces_until_full),
		cmocka_unit_test(strbuf_of_no_size_is_full_at_once),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
