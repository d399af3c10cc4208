// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/resource.h>

#include "opensm/http/descriptors.h"
#include "tests/unit/unit.h"

/* Lowering the hard limit cannot be undone: the cases go down. */
#define HARD (1024 + VHCA_OSM_DESCRIPTORS_OTHER)

static struct rlimit limit(void)
{
	struct rlimit now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	return now;
}

static void lower(rlim_t soft, rlim_t hard)
{
	const struct rlimit wanted = {.rlim_cur = soft, .rlim_max = hard};

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &wanted), 0);
}

static void the_soft_limit_is_raised(void **state)
{
	(void)state;
	lower(64, HARD);
	assert_int_equal(vhca_osm_descriptors_for(500), 500);
	assert_int_equal(limit().rlim_cur, 500 + VHCA_OSM_DESCRIPTORS_OTHER);
}

static void what_suffices_is_left_alone(void **state)
{
	(void)state;
	lower(HARD, HARD);
	assert_int_equal(vhca_osm_descriptors_for(500), 500);
	assert_int_equal(limit().rlim_cur, HARD);
}

static void the_hard_limit_means_fewer(void **state)
{
	(void)state;
	lower(64, HARD);
	assert_int_equal(vhca_osm_descriptors_for(4096), HARD - VHCA_OSM_DESCRIPTORS_OTHER);
	assert_int_equal(limit().rlim_cur, HARD);
	lower(VHCA_OSM_DESCRIPTORS_OTHER, VHCA_OSM_DESCRIPTORS_OTHER);
	assert_int_equal(vhca_osm_descriptors_for(4096), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_soft_limit_is_raised),
		cmocka_unit_test(what_suffices_is_left_alone),
		cmocka_unit_test(the_hard_limit_means_fewer),
	};

	return cmocka_run_group_tests_name("osm_descriptors", tests, NULL, NULL);
}
