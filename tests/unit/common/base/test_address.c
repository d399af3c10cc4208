/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "tests/unit/unit.h"

static void bdf_round_trip(void **state)
{
	static const char *const good[] = {"0000:00:00.0", "0000:3b:1f.7", "ffff:ff:00.1",
					   "10e1:0a:02.3"};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(good); i++) {
		struct vhca_bdf bdf;

		assert_int_equal(vhca_bdf_parse(good[i], &bdf), 0);
		assert_string_equal(VHCA_BDF_STR(bdf), good[i]);
	}
}

static void bdf_refuses_other_forms(void **state)
{
	static const char *const bad[] = {"",
					  "00:1f.7",
					  "0000:3b:20.0",
					  "0000:3b:1f.8",
					  "0000:3b:1f.7 ",
					  " 0000:3b:1f.7",
					  "0000-3b-1f.7",
					  "0000:3b:1f:7",
					  "0000:3g:1f.7",
					  "0x00:3b:1f.7",
					  "0000:0x:1f.7",
					  "00000:3b:1f.7"};
	struct vhca_bdf bdf = {.domain = 1, .bus = 2, .dev = 3, .fn = 4};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		assert_int_equal(vhca_bdf_parse(bad[i], &bdf), -EINVAL);
	assert_string_equal(VHCA_BDF_STR(bdf), "0001:02:03.4"); /* left alone */
}

static void bdf_orders_by_domain_bus_device_function(void **state)
{
	static const char *const sorted[] = {"0000:01:00.1", "0000:01:00.2", "0000:01:01.0",
					     "0000:02:00.0", "0001:00:00.0", "ffff:00:00.0"};
	struct vhca_bdf a, b;

	(void)state;
	for (size_t i = 0; i + 1 < VHCA_ARRAY_SIZE(sorted); i++) {
		assert_int_equal(vhca_bdf_parse(sorted[i], &a), 0);
		assert_int_equal(vhca_bdf_parse(sorted[i + 1], &b), 0);
		assert_true(vhca_bdf_cmp(a, b) < 0);
		assert_true(vhca_bdf_cmp(b, a) > 0);
		assert_int_equal(vhca_bdf_cmp(a, a), 0);
	}
}

static void guid_has_four_text_forms(void **state)
{
	static const char *const forms[] = {"0x0002c90300a1b2c3",      "0002c90300a1b2c3",
					    "00:02:c9:03:00:a1:b2:c3", "0002:c903:00a1:b2c3",
					    "0x2c90300a1b2c3",	       "0002C90300A1B2C3"};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		uint64_t guid = 0;

		assert_int_equal(vhca_guid_parse(forms[i], &guid), 0);
		assert_true(guid == UINT64_C(0x0002c90300a1b2c3));
		assert_string_equal(VHCA_GUID_STR(guid), "0x0002c90300a1b2c3");
	}
}

static void guid_refuses_other_forms(void **state)
{
	static const char *const bad[] = {"",
					  "0x",
					  "2c90300a1b2c3", /* short without 0x: a typing error */
					  "0x0002c90300a1b2c3f",
					  "0x00002c90300a1b2c3",
					  "0002c90300a1b2c3 ",
					  "0002c90300a1b2cg",
					  "00:02:c9:03:00:a1:b2",
					  "00:02:c9:03:00:a1:b2:c3:",
					  "0002:c903:00a1-b2c3",
					  "0002:c903:0x:b2c3",
					  "0002:c903:0x12:b2c3",
					  "auto"};
	uint64_t guid = 42;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		if (vhca_guid_parse(bad[i], &guid) != -EINVAL || guid != 42)
			fail_msg("\"%s\" was accepted", bad[i]);
}

static void guid_of_a_port_is_unicast(void **state)
{
	(void)state;
	assert_true(vhca_guid_is_valid(UINT64_C(0x0002c90300a1b2c3)));
	assert_true(vhca_guid_is_valid(UINT64_C(0x02c9ab0000000001)));
	assert_false(vhca_guid_is_valid(VHCA_GUID_NONE));
	assert_false(vhca_guid_is_valid(VHCA_GUID_ALL1));
	assert_false(vhca_guid_is_valid(UINT64_C(0x0102c90300a1b2c3)));
}

static void guid_of_a_mac_has_a_unicast_one(void **state)
{
	(void)state;
	assert_true(vhca_guid_is_of_mac(UINT64_C(0xfa163e0000123456)));
	assert_false(vhca_guid_is_of_mac(UINT64_C(0xfa163e0001123456)));
	assert_false(vhca_guid_is_of_mac(UINT64_C(0xfa163e0100123456)));
	assert_false(vhca_guid_is_of_mac(UINT64_C(0x01005e0000123456))); /* multicast */
	assert_false(vhca_guid_is_of_mac(VHCA_GUID_NONE));
}

/* The same bits as eswitchd's: a Nova guest keeps its address when this agent takes over. */
static void guid_wishes(void **state)
{
	static const char *const bad[] = {"",
					  "Auto",
					  "mac:",
					  "mac:fa:16:3e:12:34",
					  "mac:fa:16:3e:12:34:5",
					  "mac:fa:16:3e:12:34:56:",
					  "mac:fa163e123456",
					  "fa:16:3e:12:34:56",
					  "mac:fb:16:3e:12:34:56", /* multicast */
					  "mac:00:00:00:00:00:00",
					  "0x0102c90300a1b2c3",
					  "0"};
	uint64_t guid = 42;

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		if (vhca_guid_wish_parse(bad[i], &guid) != -EINVAL || guid != 42)
			fail_msg("\"%s\" was accepted", bad[i]);
	assert_int_equal(vhca_guid_wish_parse("mac:fa:16:3e:12:34:56", &guid), 0);
	assert_true(guid == UINT64_C(0xfa163e0000123456));
	assert_int_equal(vhca_guid_wish_parse("mac:00:02:C9:a1:b2:c3", &guid), 0);
	assert_true(guid == UINT64_C(0x0002c90000a1b2c3));
	assert_int_equal(vhca_guid_wish_parse("0x0002c90300a1b2c3", &guid), 0);
	assert_true(guid == UINT64_C(0x0002c90300a1b2c3));
	assert_int_equal(vhca_guid_wish_parse("sm", &guid), 0);
	assert_true(guid == VHCA_GUID_BY_SM && !vhca_guid_is_valid(guid));
	assert_int_equal(vhca_guid_wish_parse("auto", &guid), 0);
	assert_true(guid == 0);
}

static void gid_splits_into_prefix_and_guid(void **state)
{
	uint64_t prefix = 1, guid = 2;

	(void)state;
	assert_int_equal(vhca_gid_parse("fe80:0000:0000:0000:0002:c903:00a1:b2c3", &prefix, &guid),
			 0);
	assert_true(prefix == UINT64_C(0xfe80000000000000));
	assert_true(guid == UINT64_C(0x0002c90300a1b2c3));
	assert_int_equal(vhca_gid_parse("fe80::2:c903:a1:b2c3", &prefix, &guid), -EINVAL);
	assert_int_equal(vhca_gid_parse("fe80:0000:0000:0000:0002:c903:00a1:b2cx", &prefix, &guid),
			 -EINVAL);
	assert_int_equal(vhca_gid_parse("fe80:0000:0000:0000-0002:c903:00a1:b2c3", &prefix, &guid),
			 -EINVAL);
	assert_true(prefix == UINT64_C(0xfe80000000000000));
}

static void pkey_full_and_limited_of_one_key_differ(void **state)
{
	uint16_t full = 0, limited = 0;

	(void)state;
	assert_int_equal(vhca_pkey_parse("0x8001", &full), 0);
	assert_int_equal(vhca_pkey_parse("0x0001", &limited), 0);
	assert_int_not_equal(full, limited);
	assert_int_equal(vhca_pkey_base(full), vhca_pkey_base(limited));
	assert_true(vhca_pkey_is_full(full));
	assert_false(vhca_pkey_is_full(limited));
	assert_string_equal(VHCA_PKEY_STR(full), "0x8001");
	assert_string_equal(VHCA_PKEY_STR(limited), "0x0001");
}

static void pkey_text_forms(void **state)
{
	uint16_t pkey = 5;

	(void)state;
	assert_int_equal(vhca_pkey_parse("32769", &pkey), 0);
	assert_int_equal(pkey, 0x8001);
	assert_int_equal(vhca_pkey_parse("0xffff", &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(vhca_pkey_parse("0x7fff", &pkey), 0);
	assert_int_equal(vhca_pkey_base(pkey), VHCA_PKEY_DEFAULT);
	assert_int_equal(vhca_pkey_parse("0x0000", &pkey), -EINVAL); /* invalid by the standard */
	assert_int_equal(vhca_pkey_parse("0x8000", &pkey), -EINVAL);
	assert_int_equal(vhca_pkey_parse("0x10000", &pkey), -ERANGE);
	assert_int_equal(vhca_pkey_parse("8001", &pkey), 0); /* decimal without 0x */
	assert_int_equal(pkey, 8001);
	assert_int_equal(vhca_pkey_parse("ffff", &pkey), -EINVAL);
	assert_int_equal(vhca_pkey_parse("", &pkey), -EINVAL);
	assert_int_equal(pkey, 8001);
}

static void pkey_lists(void **state)
{
	static const uint16_t keys[] = {0x8001, 0x0002};
	char text[VHCA_PKEYS_STRLEN(2)];
	uint16_t read[2] = {0};
	uint8_t n = 9;

	(void)state;
	assert_string_equal(vhca_pkeys_format(text, sizeof(text), keys, 2), "0x8001 0x0002");
	assert_int_equal(vhca_pkeys_parse(text, read, 2, &n), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(read, keys, sizeof(keys));
	assert_int_equal(vhca_pkeys_parse("0x8001 0x0002 0x0003", read, 2, &n), -EINVAL);
	assert_int_equal(vhca_pkeys_parse("0x8001 0x8000", read, 2, &n), -EINVAL);
	assert_int_equal(vhca_pkeys_parse("0x8001,0x0002", read, 2, &n), -EINVAL);
	assert_int_equal(n, 2);
	assert_string_equal(vhca_pkeys_format(text, sizeof(text), keys, 0), "");
	assert_int_equal(vhca_pkeys_parse(text, read, 2, &n), 0);
	assert_int_equal(n, 0);
}

static void uuid_round_trip_and_refusals(void **state)
{
	static const char *const bad[] = {"",
					  "6b3e550f-3ff1-46fa-a8d6-7d5d5e6e4d0",
					  "6b3e550f-3ff1-46fa-a8d6-7d5d5e6e4d0aa",
					  "6b3e550f03ff1-46fa-a8d6-7d5d5e6e4d0a",
					  "6b3e550f3ff146faa8d67d5d5e6e4d0a",
					  "6b3e550f-3ff1-46fa-a8d6-7d5d5e6e4d0g",
					  "0x3e550f-3ff1-46fa-a8d6-7d5d5e6e4d0a"};
	struct vhca_uuid u, v;

	(void)state;
	assert_int_equal(vhca_uuid_parse("6B3E550F-3ff1-46fa-a8d6-7d5d5e6e4d0a", &u), 0);
	assert_string_equal(VHCA_UUID_STR(&u), "6b3e550f-3ff1-46fa-a8d6-7d5d5e6e4d0a");
	v = u;
	assert_true(vhca_uuid_equal(&u, &v));
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		assert_int_equal(vhca_uuid_parse(bad[i], &v), -EINVAL);
	assert_true(vhca_uuid_equal(&u, &v));
	v.b[15] ^= 1;
	assert_false(vhca_uuid_equal(&u, &v));
}

static void uuid_random_is_version_4_and_new_each_time(void **state)
{
	struct vhca_uuid u, v;
	char text[VHCA_UUID_STRLEN];

	(void)state;
	assert_int_equal(vhca_uuid_random(&u), 0);
	assert_int_equal(vhca_uuid_random(&v), 0);
	assert_false(vhca_uuid_equal(&u, &v));
	(void)vhca_uuid_format(text, &u);
	assert_int_equal(text[14], '4');
	assert_non_null(strchr("89ab", text[19]));
}

static void loopback_is_told_from_the_network(void **state)
{
	static const char *const here[] = {"127.0.0.1:1", "127.9.8.7",	   "[::1]:8515",
					   "localhost:1", "LocalHost/v1/", "localhost"};
	static const char *const there[] = {"",
					    "0.0.0.0:1",
					    "10.0.0.1:1",
					    "128.0.0.1:1",
					    "[::]:1",
					    "[::ffff:10.0.0.1]:1",
					    "sm1:8515",
					    "localhost.example.org:1",
					    "127.0.0.1.example.org:1",
					    "127.0.0.1@sm1:1",
					    "localhost:x@sm1",
					    "[::1]@sm1:1"};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(here); i++)
		if (!vhca_is_loopback(here[i]))
			fail_msg("%s", here[i]);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(there); i++)
		if (vhca_is_loopback(there[i]))
			fail_msg("%s", there[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bdf_round_trip),
		cmocka_unit_test(bdf_refuses_other_forms),
		cmocka_unit_test(bdf_orders_by_domain_bus_device_function),
		cmocka_unit_test(guid_has_four_text_forms),
		cmocka_unit_test(guid_refuses_other_forms),
		cmocka_unit_test(guid_of_a_port_is_unicast),
		cmocka_unit_test(guid_of_a_mac_has_a_unicast_one),
		cmocka_unit_test(guid_wishes),
		cmocka_unit_test(gid_splits_into_prefix_and_guid),
		cmocka_unit_test(pkey_full_and_limited_of_one_key_differ),
		cmocka_unit_test(pkey_text_forms),
		cmocka_unit_test(pkey_lists),
		cmocka_unit_test(uuid_round_trip_and_refusals),
		cmocka_unit_test(uuid_random_is_version_4_and_new_each_time),
		cmocka_unit_test(loopback_is_told_from_the_network),
	};

	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
