// SPDX-License-Identifier: LGPL-2.1-or-later
/* Addresses in [hca] exclude that no VF has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state/exclude.h"
#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

static char told[1000];

static void tell(void *ctx, const char *text)
{
	size_t len = strlen(told);

	(void)ctx;
	(void)snprintf(told + len, sizeof(told) - len, "%s\n", text);
}

static struct vhca_bdf bdf(const char *text)
{
	struct vhca_bdf ret;

	assert_int_equal(vhca_bdf_parse(text, &ret), 0);
	return ret;
}

/* 0000:01:00.0 with VFs .1 and .2, and 0000:03:00.0 with .1. */
static bool check(const char *conf_text)
{
	static struct vhca_pf_facts pfs[2];
	struct vhca_inventory inv = {.n_pfs = 2, .pfs = pfs};
	VHCA_AUTO_FREE struct vhca_conf *conf = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	pfs[0] = (struct vhca_pf_facts){.bdf = bdf("0000:01:00.0"), .num_vfs = 2, .n_vfs = 2};
	pfs[0].vfs[0].bdf = bdf("0000:01:00.1");
	pfs[0].vfs[1].bdf = bdf("0000:01:00.2");
	pfs[1] = (struct vhca_pf_facts){.bdf = bdf("0000:03:00.0"), .num_vfs = 1, .n_vfs = 1};
	pfs[1].vfs[0].bdf = bdf("0000:03:00.1");
	told[0] = '\0';
	assert_int_equal(vhca_conf_parse("test", conf_text, strlen(conf_text), &conf, &err), 0);
	return vhca_exclude_check(conf, &inv, tell, NULL);
}

static void vfs_are_not_told_of(void **state)
{
	(void)state;
	assert_true(check(""));
	assert_true(check("[hca 0000:01:00.0]\nexclude = 0000:01:00.2\n"));
	assert_true(check("[hca default]\nexclude = 0000:01:00.1 0000:03:00.1\n"));
	assert_string_equal(told, "");
}

static void strays_are_named(void **state)
{
	(void)state;
	assert_true(check("[hca 0000:01:00.0]\nexclude = 0000:01:00.1 0000:01:00.3 "
			  "0000:03:00.1\n"));
	assert_string_equal(told, "[hca 0000:01:00.0] exclude leaves nothing alone at an address "
				  "that no VF has: 0000:01:00.3 0000:03:00.1\n");
	/* The section of the adapter alone counts for its VFs. */
	assert_true(check("[hca 0000:01:00.0]\nmanage = yes\n[hca default]\n"
			  "exclude = 0000:01:00.1 0000:03:00.1\n"));
	assert_non_null(strstr(told, "[hca default]"));
	assert_non_null(strstr(told, ": 0000:01:00.1\n"));
}

static void reserved_strays_are_named(void **state)
{
	(void)state;
	assert_true(check("[hca 0000:01:00.0]\nexclude = 0000:01:00.2\nreserve = 0000:01:00.1 "
			  "0000:01:00.3\n"));
	assert_string_equal(told, "[hca 0000:01:00.0] reserve keeps nothing at an address that no "
				  "VF has: 0000:01:00.3\n");
}

/* They may be VFs one day. */
static void of_what_is_not_there_nothing_is_told(void **state)
{
	(void)state;
	assert_false(check("[hca 0000:05:00.0]\nexclude = 0000:05:00.1\n"));
	assert_false(check("[hca 0000:01:00.0]\nvfs = 4\nexclude = 0000:01:00.3\n"));
	assert_string_equal(told, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vfs_are_not_told_of),
		cmocka_unit_test(strays_are_named),
		cmocka_unit_test(reserved_strays_are_named),
		cmocka_unit_test(of_what_is_not_there_nothing_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
