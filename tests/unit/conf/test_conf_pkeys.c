/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf/conf.h"
#include "tests/unit/unit.h"

static struct vhca_conf conf;
static struct vhca_error err;
static uint16_t pkeys[4];
static size_t n;

static int setup(void **state)
{
	(void)state;
	vhca_conf_set_defaults(&conf);
	conf.allow_default_partition = true;
	conf.n_partitions = 2;
	conf.partitions[0] = (struct vhca_conf_partition){.name = "storage", .pkey = 0x8001};
	conf.partitions[1] = (struct vhca_conf_partition){.name = "clients", .pkey = 0x0001};
	n = 99;
	return 0;
}

static int resolve(const char *text)
{
	return vhca_conf_resolve_pkeys(&conf, text, pkeys, 4, &n, &err);
}

static void order_and_membership_are_kept(void **state)
{
	(void)state;
	assert_int_equal(resolve(" 0x8002\tstorage 3  0xffff "), 0);
	assert_int_equal(n, 4);
	assert_int_equal(pkeys[0], 0x8002);
	assert_int_equal(pkeys[1], 0x8001);
	assert_int_equal(pkeys[2], 0x0003);
	assert_int_equal(pkeys[3], 0xffff);
	assert_int_equal(resolve("clients"), 0);
	assert_int_equal(n, 1);
	assert_int_equal(pkeys[0], 0x0001); /* limited stays limited */
}

static void refusals_name_the_word(void **state)
{
	static const struct {
		const char *text, *code, *word;
	} rows[] = {
		{"", "no_partition", "empty"},
		{" \t", "no_partition", "empty"},
		{"0x8002 storag", "no_such_partition", "\"storag\""},
		{"0x10000", "bad_pkey", "\"0x10000\""},
		{"0x8000", "bad_pkey", "\"0x8000\""},
		{"0", "bad_pkey", "\"0\""},
		{"storage 0x8001", "duplicate_partition", "\"0x8001\""},
		{"storage clients", "duplicate_partition", "\"clients\""},
		{"1 2 3 4 5", "too_many_partitions", "\"5\""},
		{"0123456789012345678901234567890123456789012345678901234567890123",
		 "no_such_partition", "0123456789012345..."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(resolve(rows[i].text) < 0);
		assert_string_equal(err.code, rows[i].code);
		if (!strstr(err.msg, rows[i].word))
			fail_msg("%s: %s", rows[i].text, err.msg);
		if (!err.hint[0])
			fail_msg("%s: what to write instead?", rows[i].text);
		assert_int_equal(n, 99);
	}
}

static void default_partition_needs_permission(void **state)
{
	(void)state;
	assert_int_equal(resolve("0x7fff"), 0);
	vhca_conf_set_defaults(&conf);
	conf.n_partitions = 1;
	(void)snprintf(conf.partitions[0].name, sizeof(conf.partitions[0].name), "storage");
	assert_int_equal(resolve("0x8002 0x7fff"), -EACCES);
	assert_int_equal(err.kind, VHCA_ERR_DENIED);
	assert_string_equal(err.code, "default_partition_denied");
	assert_non_null(strstr(err.hint, "allow_default_partition"));
	assert_int_equal(resolve("0xffff"), -EACCES);
	conf.partitions[0].pkey = 0xffff; /* nor by another name */
	assert_int_equal(resolve("storage"), -EACCES);
	assert_int_equal(resolve("0x8002"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(order_and_membership_are_kept, setup),
		cmocka_unit_test_setup(refusals_name_the_word, setup),
		cmocka_unit_test_setup(default_partition_needs_permission, setup),
	};

	return cmocka_run_group_tests_name("conf_pkeys", tests, NULL, NULL);
}
