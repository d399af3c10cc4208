/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The isolation proof on mlx5: random tenants and accidents on the production engine
 * (tests/sim/host/iso_walk.h), by both doors to its vports.
 */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "tests/sim/host/iso_walk.h"
#include "tests/unit/unit.h"

#define STEPS	     20000
#define RUNS	     2
#define OFED_STEPS   5000
#define BROKEN_STEPS 1000

static void tenants_stay_apart_by_rtnetlink(void **state)
{
	(void)state;
	assert_true(iso_walk_sound(
		&(struct iso_plan){.seed = 1, .card = HW_MLX5, .n_keys = HW_KEYS_FEW}, RUNS,
		STEPS));
}

static void tenants_stay_apart_by_files(void **state)
{
	(void)state;
	assert_true(iso_walk_sound(
		&(struct iso_plan){.seed = 2, .card = HW_MLX5_OFED, .n_keys = HW_KEYS_FEW}, 1,
		OFED_STEPS));
}

/* Its tries while there was no RDMA device have been in vain; it does not wait for the next. */
static void a_stranger_loses_the_identity_when_the_driver_is_back(void **state)
{
	static struct iso it;
	unsigned int v = 0;

	(void)state;
	iso_init(&it, &(struct iso_plan){.seed = 1, .card = HW_MLX5, .n_keys = HW_KEYS_FEW});
	iso_start(&it);
	iso_run(&it, 3000);
	iso_domain_boot(&it, 0, "0x8010");
	iso_run(&it, 10000);
	while (v < HW_VFS && it.listed[v] != 0)
		v++;
	assert_true(v < HW_VFS && !truth_clean(&it.truth, v));
	it.truth.hw.registered = false;
	iso_tell_inventory(&it);
	iso_domain_stop(&it, 0);
	iso_run(&it, 6000);
	iso_domain_boot(&it, 1, "");
	iso_plug(&it, v, 1);
	iso_run(&it, 20000);
	assert_true(it.truth.vfs[v].foreign && !truth_clean(&it.truth, v));
	it.truth.hw.registered = true;
	iso_tell_inventory(&it);
	iso_run(&it, 100);
	assert_true(it.truth.vfs[v].foreign && truth_clean(&it.truth, v));
	iso_done(&it);
}

static void broken_agents_are_caught(void **state)
{
	static const enum iso_breakage broken[] = {
		ISO_NO_SCRUB,	     ISO_GUID_LEFT,  ISO_GROUP_NOT_PROBED, ISO_FOREIGN_IGNORED,
		ISO_WITHDRAWAL_LEFT, ISO_LINK_LEFT,  ISO_CACHE_LEFT,	   ISO_GUID_LATE,
		ISO_SM_NOT_AWAITED,  ISO_PLACE_LEFT,
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(broken); i++)
		assert_true(iso_walk_catches(&(struct iso_plan){.card = HW_MLX5,
								.n_keys = HW_KEYS_FEW,
								.broken = broken[i]},
					     BROKEN_STEPS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_stay_apart_by_rtnetlink),
		cmocka_unit_test(tenants_stay_apart_by_files),
		cmocka_unit_test(a_stranger_loses_the_identity_when_the_driver_is_back),
		cmocka_unit_test(broken_agents_are_caught),
	};

	/* Somebody looks into one run. */
	if (getenv("VHCA_ISO_SEED"))
		return _cmocka_run_group_tests("isolation_mlx5", tests, 2, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
