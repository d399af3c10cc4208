/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "common/base/ratelimit.h"
#include "tests/unit/unit.h"

#define NOW UINT64_C(5000)
#define END (NOW + VHCA_RATELIMIT_MS)

static unsigned int allowed(struct vhca_ratelimit *rl, const char *name, unsigned int n,
			    uint64_t now_ms)
{
	unsigned int told = 0;

	for (unsigned int i = 0; i < n; i++)
		told += vhca_ratelimit_allows(rl, name, now_ms);
	return told;
}

static void a_name_has_so_many_lines_a_minute(void **state)
{
	struct vhca_ratelimit rl = {0};
	uint64_t n = 0;

	(void)state;
	assert_int_equal(allowed(&rl, "a", 1000, NOW), VHCA_RATELIMIT_LINES);
	assert_int_equal(allowed(&rl, "b", 3, NOW), 3);
	assert_int_equal(vhca_ratelimit_timeout_ms(&rl, NOW), VHCA_RATELIMIT_MS);
	assert_int_equal(vhca_ratelimit_timeout_ms(&rl, END + 1), 0);
	assert_null(vhca_ratelimit_next(&rl, END - 1, &n));
	assert_string_equal(vhca_ratelimit_next(&rl, END, &n), "a");
	assert_int_equal(n, 1000 - VHCA_RATELIMIT_LINES);
	assert_null(vhca_ratelimit_next(&rl, END, &n));
	assert_int_equal(vhca_ratelimit_timeout_ms(&rl, END), -1);
	assert_int_equal(allowed(&rl, "a", 1000, END), VHCA_RATELIMIT_LINES);
}

/* Who has many of them pushes nobody else out, and has no more lines than so many have. */
static void many_names_share_the_last_place(void **state)
{
	struct vhca_ratelimit rl = {0};
	unsigned int told = 0;
	uint64_t n = 0;
	char name[16];

	(void)state;
	assert_int_equal(allowed(&rl, "a", 1000, NOW), VHCA_RATELIMIT_LINES);
	for (unsigned int i = 0; i < 10000; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		told += allowed(&rl, name, 1, NOW);
	}
	assert_int_equal(told, VHCA_RATELIMIT_NAMES - 1 + VHCA_RATELIMIT_LINES);
	assert_int_equal(allowed(&rl, "a", 10, NOW), 0);
	assert_string_equal(vhca_ratelimit_next(&rl, END, &n), "a");
	assert_int_equal(n, 1000 - VHCA_RATELIMIT_LINES + 10);
	assert_string_equal(vhca_ratelimit_next(&rl, END, &n), VHCA_RATELIMIT_OTHERS);
	assert_int_equal(n, 10000 - told);
	assert_int_equal(allowed(&rl, "n9999", 10, END), 10); /* there is room again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_so_many_lines_a_minute),
		cmocka_unit_test(many_names_share_the_last_place),
	};

	return cmocka_run_group_tests_name("ratelimit", tests, NULL, NULL);
}
