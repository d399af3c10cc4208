/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/ini/ini_file.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

/* Every pair as "LINE [SECTION] KEY=VALUE|" in one string. */
struct seen {
	char text[4096];
	struct vhca_strbuf sb;
};

static int collect(void *ctx, const char *section, const char *key, const char *value,
		   unsigned int line, struct vhca_error *err)
{
	struct seen *seen = ctx;

	if (strcmp(key, "bad") == 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_value", 0, "\"%s\" is no number",
				      value);
	vhca_strbuf_add(&seen->sb, "%u [%s] %s=%s|", line, section, key, value);
	return 0;
}

static struct vhca_error err;
static struct seen seen;

static int parse_bytes(const char *text, size_t len)
{
	vhca_strbuf_init(&seen.sb, seen.text, sizeof(seen.text));
	err = (struct vhca_error)VHCA_ERROR_INIT;
	return vhca_ini_parse_text("f.conf", text, len, collect, &seen, &err);
}

static int parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

static void pairs_come_with_section_and_line(void **state)
{
	(void)state;
	assert_int_equal(parse("top = 1\n\n[a]\nx=1\n# c\n y = two words  \r\n[hca 0000:03:00.0]\n"
			       "vfs = 8"),
			 0);
	assert_string_equal(seen.text, "1 [] top=1|4 [a] x=1|6 [a] y=two words|"
				       "8 [hca 0000:03:00.0] vfs=8|");
}

static void no_inline_comments_and_no_continuation(void **state)
{
	(void)state;
	assert_int_equal(parse("[s]\nurl = http://a/#x ; http://b/\n; c\n#c\n  next = [x] = y\n"),
			 0);
	assert_string_equal(seen.text, "2 [s] url=http://a/#x ; http://b/|5 [s] next=[x] = y|");
}

static void empty_value_is_a_value(void **state)
{
	(void)state;
	assert_int_equal(parse("[s]\nk =\nl=\t\n"), 0);
	assert_string_equal(seen.text, "2 [s] k=|3 [s] l=|");
}

static void bom_is_accepted_at_the_start_only(void **state)
{
	(void)state;
	assert_int_equal(parse("\xef\xbb\xbf[s]\nk=1\n"), 0);
	assert_string_equal(seen.text, "2 [s] k=1|");
	assert_int_equal(parse("[s]\n\xef\xbb\xbf[t]\n"), -EINVAL);
}

static void nul_byte_is_refused(void **state)
{
	(void)state;
	assert_int_equal(parse_bytes("[s]\nk=1\0 2\n", 11), -EINVAL);
	assert_string_equal(err.msg, "f.conf:2: NUL byte in the line");
	assert_string_equal(seen.text, "");
}

static void line_limit_is_exact(void **state)
{
	char text[VHCA_INI_LINE_MAX + 32];
	int n = snprintf(text, sizeof(text), "[s]\nk=%0*d\n", VHCA_INI_LINE_MAX - 2, 7);

	(void)state;
	assert_int_equal(parse_bytes(text, (size_t)n), 0);
	assert_int_equal(strlen(seen.text), strlen("2 [s] k=|") + VHCA_INI_LINE_MAX - 2);
	n = snprintf(text, sizeof(text), "[s]\nk=%0*d\n", VHCA_INI_LINE_MAX - 1, 7);
	assert_int_equal(parse_bytes(text, (size_t)n), -EINVAL);
	assert_string_equal(err.msg, "f.conf:2: line is longer than 1024 bytes");
}

static void long_names_are_refused_not_cut(void **state)
{
	char text[512];

	(void)state;
	(void)snprintf(text, sizeof(text), "[%049d]\nk=1\n", 0);
	assert_int_equal(parse(text), 0);
	(void)snprintf(text, sizeof(text), "[%050d]\nk=1\n", 0);
	assert_int_equal(parse(text), -EINVAL);
	assert_string_equal(err.msg, "f.conf:1: section name is longer than 49 bytes");
	(void)snprintf(text, sizeof(text), "[s]\n%0400d=1\n", 0);
	assert_int_equal(parse(text), -EINVAL);
	assert_non_null(strstr(err.msg, "f.conf:2: key is longer than"));
}

static void syntax_error_is_found_before_any_pair_counts(void **state)
{
	static const char *const bad[] = {"[s]\nk=1\nnonsense\n", "[s]\nk=1\n=1\n",
					  "[s]\nk=1\n[open\n", "[s]\nk=1\n[s] x\n",
					  "[s]\nk=1\na:b=1\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(bad[i]), -EINVAL);
		assert_int_equal(err.kind, VHCA_ERR_INVALID);
		assert_memory_equal(err.msg, "f.conf:3: ", 10);
		assert_string_equal(seen.text, "");
	}
}

static void refused_value_names_file_line_and_key(void **state)
{
	(void)state;
	assert_int_equal(parse("[s]\nk=1\nbad = x7\nlater=1\n"), -EIO);
	assert_string_equal(err.msg, "f.conf:3: bad: \"x7\" is no number");
	assert_string_equal(err.code, "bad_value");
	assert_string_equal(seen.text, "2 [s] k=1|"); /* nothing after the error */
}

static int collect_section(void *ctx, const char *section, const char *key, const char *value,
			   unsigned int line, struct vhca_error *error)
{
	if (strcmp(section, "bad") == 0)
		return vhca_error_set(error, VHCA_ERR_INVALID, "bad", EINVAL, "refused");
	return collect(ctx, section, key, value, line, error);
}

static void sections_are_listed_even_when_empty(void **state)
{
	const char *text = "[a]\n[b c]\nk=1\n[a]\n", *bad = "[a]\nk=1\n[bad]\n[c]\n";

	(void)state;
	vhca_strbuf_init(&seen.sb, seen.text, sizeof(seen.text));
	assert_int_equal(
		vhca_ini_list_sections("f", text, strlen(text), collect_section, &seen, &err), 0);
	assert_string_equal(seen.text, "1 [a] =|2 [b c] =|4 [a] =|");
	assert_int_equal(
		vhca_ini_list_sections("f", bad, strlen(bad), collect_section, &seen, &err),
		-EINVAL);
	assert_string_equal(err.msg, "f:3: [bad]: refused: Invalid argument");
}

static void file_errors_name_the_file(void **state)
{
	struct tree tree;
	char *text;
	size_t len;

	(void)state;
	tree_init(&tree);
	tree_put(&tree, "ok.conf", "[s]\nk=1\n");
	assert_int_equal(vhca_ini_read_file(TREE_PATH(&tree, "ok.conf"), &text, &len, &err), 0);
	assert_string_equal(text, "[s]\nk=1\n");
	assert_int_equal(len, strlen(text));
	free(text);
	assert_int_equal(vhca_ini_read_file(TREE_PATH(&tree, "no.conf"), &text, &len, &err),
			 -ENOENT);
	assert_int_equal(err.kind, VHCA_ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "no.conf: No such file"));
	assert_int_equal(vhca_ini_read_file("/dev/zero", &text, &len, &err), -EFBIG);
	tree_done(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_come_with_section_and_line),
		cmocka_unit_test(no_inline_comments_and_no_continuation),
		cmocka_unit_test(empty_value_is_a_value),
		cmocka_unit_test(bom_is_accepted_at_the_start_only),
		cmocka_unit_test(nul_byte_is_refused),
		cmocka_unit_test(line_limit_is_exact),
		cmocka_unit_test(long_names_are_refused_not_cut),
		cmocka_unit_test(syntax_error_is_found_before_any_pair_counts),
		cmocka_unit_test(refused_value_names_file_line_and_key),
		cmocka_unit_test(sections_are_listed_even_when_empty),
		cmocka_unit_test(file_errors_name_the_file),
	};

	return cmocka_run_group_tests_name("ini_file", tests, NULL, NULL);
}
