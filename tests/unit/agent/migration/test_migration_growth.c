// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Nothing grows with the number of migrations: once the history is full, an agent needs no more
 * memory for the next hundred.
 */
#include <malloc.h>

#include "tests/unit/agent/migration/migration_pair.h"

#define ROUNDS 30
/* What a request or a report may hold just then; an ended migration has 3 KiB on each host. */
#define TRANSIENT (16u * 1024)

/*
 * Of a program that is built with the address sanitizer, whose allocator mallinfo2() does not know.
 */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	if (__sanitizer_get_current_allocated_bytes)
		return __sanitizer_get_current_allocated_bytes();
	return mallinfo2().uordblks;
}

/* To and fro. */
static void migrate_times(struct pair *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		unsigned int from = i % 2, to = !from;

		(void)pair_migrate(p, from);
		assert_true(pair_until(p, at_home, &to));
		assert_true(pair_until(p, has_ended, &from));
		assert_true(pair_until(p, has_ended, &to));
	}
	pair_settle(p);
}

static void test_nothing_grows(void **state)
{
	struct pair *p = *state;
	size_t full;

	/* Of each two, one is the host's own and one its peer's. */
	migrate_times(p, 2 * VHCA_MIGRATION_HISTORY_MAX + 20);
	full = allocated();
	migrate_times(p, ROUNDS);
	print_message("# %zu bytes, then %zu\n", full, allocated());
	assert_in_range(allocated(), 0, full + TRANSIENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_nothing_grows)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
