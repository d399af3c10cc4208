/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "pkey/guid.h"
#include "tests/unit/unit.h"

#define PREFIX UINT64_C(0x0225c90000000000)

static struct vhca_uuid uuid(const char *text)
{
	struct vhca_uuid u;

	assert_int_equal(vhca_uuid_parse(text, &u), 0);
	return u;
}

static uint64_t make(unsigned int bits, const char *domain, const char *name)
{
	struct vhca_uuid u = uuid(domain);
	uint64_t guid = 0;

	assert_int_equal(vhca_guid_auto(PREFIX, bits, &u, name, &guid), 0);
	return guid;
}

#define DOMAIN_A "6b3e0a5c-3a0e-4d0f-9c36-0f3d1f8f2a11"
#define DOMAIN_B "6b3e0a5c-3a0e-4d0f-9c36-0f3d1f8f2a12"

static void keeps_exactly_the_prefix(void **state)
{
	static const unsigned int bits[] = {8, 16, 24, 40, 48};

	(void)state;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		uint64_t mask = ~(UINT64_MAX >> bits[i]);

		assert_true((make(bits[i], DOMAIN_A, "ib0") & mask) == (PREFIX & mask));
		assert_true(vhca_guid_is_valid(make(bits[i], DOMAIN_A, "ib0")));
	}
}

static void depends_on_domain_and_name_and_nothing_else(void **state)
{
	(void)state;
	assert_true(make(24, DOMAIN_A, "ib0") == make(24, DOMAIN_A, "ib0"));
	assert_true(make(24, DOMAIN_A, "ib0") != make(24, DOMAIN_A, "ib1"));
	assert_true(make(24, DOMAIN_A, "ib0") != make(24, DOMAIN_B, "ib0"));
}

/* printf '\x6b\x3e…\x11ib0' | sha256sum: an address must not change from release to release. */
static void is_the_documented_hash(void **state)
{
	(void)state;
	assert_true(make(24, DOMAIN_A, "ib0") == UINT64_C(0x0225c9521ba7bcd4));
}

static void refuses_what_gives_no_unicast_guid(void **state)
{
	struct vhca_uuid u = uuid(DOMAIN_A);
	uint64_t guid = 7;

	(void)state;
	assert_int_equal(vhca_guid_auto(PREFIX, 7, &u, "ib0", &guid), -EINVAL);
	assert_int_equal(vhca_guid_auto(PREFIX, 49, &u, "ib0", &guid), -EINVAL);
	assert_int_equal(vhca_guid_auto(UINT64_C(0x0100000000000000), 8, &u, "ib0", &guid),
			 -EINVAL);
	assert_int_equal(vhca_guid_auto(UINT64_C(0x0000ffffffffffff), 16, &u, "ib0", &guid),
			 -EINVAL);
	assert_int_equal(vhca_guid_auto(PREFIX, 24, &u, "", &guid), -EINVAL);
	assert_int_equal(vhca_guid_auto(PREFIX, 24, &u, "a b", &guid), -EINVAL);
	assert_int_equal(
		vhca_guid_auto(PREFIX, 24, &u, "a-name-that-is-longer-than-31-chars", &guid),
		-EINVAL);
	assert_true(guid == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_exactly_the_prefix),
		cmocka_unit_test(depends_on_domain_and_name_and_nothing_else),
		cmocka_unit_test(is_the_documented_hash),
		cmocka_unit_test(refuses_what_gives_no_unicast_guid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
