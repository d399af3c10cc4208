// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/http/route.h"
#include "common/http/server.h"
#include "tests/unit/unit.h"

static void escapes_are_decoded_strictly(void **state)
{
	static const struct {
		const char *in, *out; /* out NULL = refused */
	} table[] = {
		{"plain", "plain"}, {"a%20b", "a b"},  {"%2f%2F", "//"}, {"%25%41", "%A"},
		{"", ""},	    {"%c3%a9", "é"},   {"%", NULL},	 {"%4", NULL},
		{"%4g", NULL},	    {"a%00b", NULL},   {"%%41", NULL},	 {"%-1", NULL},
		{"+", "+"},	    {"x%0ay", "x\ny"}, {"%zz", NULL},
	};
	char s[32];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		(void)snprintf(s, sizeof(s), "%s", table[i].in);
		if (!table[i].out) {
			assert_int_equal(vhca_http_decode(s), -EINVAL);
			continue;
		}
		assert_int_equal(vhca_http_decode(s), 0);
		assert_string_equal(s, table[i].out);
	}
}

static int split(const char *path, const char *segments[static VHCA_HTTP_SEGMENTS_MAX])
{
	static char buf[256];

	(void)snprintf(buf, sizeof(buf), "%s", path);
	return vhca_http_split_path(buf, segments);
}

static void an_escaped_slash_stays_in_its_segment(void **state)
{
	const char *s[VHCA_HTTP_SEGMENTS_MAX];

	(void)state;
	assert_int_equal(split("/v1/a%2fb/", s), 3);
	assert_string_equal(s[0], "v1");
	assert_string_equal(s[1], "a/b");
	assert_string_equal(s[2], "");
	assert_int_equal(split("/", s), 1);
	assert_int_equal(split("", s), -EINVAL);
	assert_int_equal(split("v1", s), -EINVAL);
	assert_int_equal(split("*", s), -EINVAL);
	assert_int_equal(split("/a/%0", s), -EINVAL);
	assert_int_equal(split("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", s), 16);
	assert_int_equal(split("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", s), -E2BIG);
}

static bool matches(const char *pattern, const char *path)
{
	const char *s[VHCA_HTTP_SEGMENTS_MAX], *params[VHCA_HTTP_PARAMS_MAX];
	int n = split(path, s);

	assert_true(n > 0);
	return vhca_http_match(pattern, s, (size_t)n, params);
}

static void patterns_match_whole_paths(void **state)
{
	const char *s[VHCA_HTTP_SEGMENTS_MAX], *params[VHCA_HTTP_PARAMS_MAX];

	(void)state;
	assert_true(matches("/v1/vfs", "/v1/vfs"));
	assert_true(matches("/v1/vfs", "/v1/%76fs"));
	assert_false(matches("/v1/vfs", "/v1/vfs/"));
	assert_false(matches("/v1/vfs", "/v1/vf"));
	assert_false(matches("/v1/vfs", "/v1/vfss"));
	assert_false(matches("/v1/vfs", "/v1"));
	assert_false(matches("/v1/vfs", "/"));
	assert_false(matches("/v1/vfs/{}", "/v1/vfs/"));
	assert_false(matches("/v1/vfs/{}", "/v1/vfs"));
	assert_false(matches("/v1/vfs/{}", "/v1/vfs/a/b"));
	assert_true(matches("/v1/vfs/{}", "/v1/vfs/{}"));
	assert_int_equal(split("/v1/domains/vm%201/vfs/ib0", s), 5);
	assert_true(vhca_http_match("/v1/domains/{}/vfs/{}", s, 5, params));
	assert_string_equal(params[0], "vm 1");
	assert_string_equal(params[1], "ib0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes_are_decoded_strictly),
		cmocka_unit_test(an_escaped_slash_stays_in_its_segment),
		cmocka_unit_test(patterns_match_whole_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
