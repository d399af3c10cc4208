/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The isolation proof on mlx4: random tenants and accidents on the production engine
 * (tests/sim/host/iso_walk.h).
 */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "tests/sim/host/iso_walk.h"
#include "tests/unit/unit.h"

#define STEPS	     20000
#define RUNS	     4
#define LARGE_STEPS  3000
#define BROKEN_STEPS 5000

/* So few entries that not all keys have room at once, and each entry goes from key to key. */
static void tenants_stay_apart(void **state)
{
	(void)state;
	assert_true(iso_walk_sound(
		&(struct iso_plan){.seed = 1, .n_keys = HW_KEYS_FEW, .strangers = 8}, RUNS, STEPS));
}

/* A card's table, with keys of many others. */
static void tenants_stay_apart_in_a_large_table(void **state)
{
	(void)state;
	assert_true(
		iso_walk_sound(&(struct iso_plan){.seed = 2, .n_keys = HW_KEYS, .strangers = 100},
			       1, LARGE_STEPS));
}

static void a_seed_is_a_run(void **state)
{
	const struct iso_plan plan = {.seed = 7, .n_keys = HW_KEYS_FEW};
	static struct iso a, b;

	(void)state;
	assert_true(iso_walk(&a, &plan, 300));
	assert_true(iso_walk(&b, &plan, 300));
	assert_int_equal(a.rng, b.rng);
	assert_memory_equal(&a.stats, &b.stats, sizeof(a.stats));
}

static void broken_agents_are_caught(void **state)
{
	static const enum iso_breakage broken[] = {
		ISO_NO_SCRUB,	     ISO_GUID_LEFT,	  ISO_GROUP_NOT_PROBED,
		ISO_FOREIGN_IGNORED, ISO_WITHDRAWAL_LEFT, ISO_DEFAULT_LEFT,
		ISO_REORDER_IGNORED, ISO_DEAF_LEFT,	  ISO_PLACE_LEFT,
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(broken); i++)
		assert_true(iso_walk_catches(
			&(struct iso_plan){.n_keys = HW_KEYS_FEW, .broken = broken[i]},
			BROKEN_STEPS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_stay_apart),
		cmocka_unit_test(tenants_stay_apart_in_a_large_table),
		cmocka_unit_test(a_seed_is_a_run),
		cmocka_unit_test(broken_agents_are_caught),
	};

	/* Somebody looks into one run. */
	if (getenv("VHCA_ISO_SEED"))
		return _cmocka_run_group_tests("isolation", tests, 2, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
