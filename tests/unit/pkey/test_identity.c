/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/identity.h"
#include "tests/unit/unit.h"

#define GUID UINT64_C(0x0225c90012345678)

static struct vhca_identity_state shown(void)
{
	struct vhca_identity_state s = {.requested = GUID, .gid_index = 1, .n_virtual = 127};

	for (unsigned int i = 0; i < VHCA_PKEY_TABLE_MAX; i++)
		s.map[i] = VHCA_PKEY_UNMAPPED;
	s.map[0] = 5;
	s.value[0] = 0x8001;
	s.map[1] = 0;
	s.value[1] = 0xffff;
	return s;
}

static const struct vhca_identity wanted = {.guid = GUID, .n_pkeys = 2, .pkeys = {0x8001, 0xffff}};

static void full_and_limited_member_are_different_entries(void **state)
{
	const uint16_t table[] = {0xffff, 0x0001, 0x8001, 0x8002};

	(void)state;
	assert_int_equal(vhca_pkey_find(table, 4, 0x8001), 2);
	assert_int_equal(vhca_pkey_find(table, 4, 0x0001), 1);
	assert_int_equal(vhca_pkey_find(table, 4, 0x0002), VHCA_PKEY_UNMAPPED);
	assert_int_equal(vhca_pkey_find(table, 4, 0x7fff), VHCA_PKEY_UNMAPPED);
}

static void an_empty_slot_is_never_found(void **state)
{
	const uint16_t table[] = {0xffff, 0, 0x8000};

	(void)state;
	assert_int_equal(vhca_pkey_find(table, 3, 0), VHCA_PKEY_UNMAPPED);
	assert_int_equal(vhca_pkey_find(table, 3, 0x8000), VHCA_PKEY_UNMAPPED);
	assert_int_equal(vhca_pkey_find(table, 0, 0xffff), VHCA_PKEY_UNMAPPED);
}

static void equal_state_matches(void **state)
{
	struct vhca_identity_state s = shown();
	unsigned int missing = 9;

	(void)state;
	assert_true(vhca_identity_matches(&s, &wanted, &missing));
	assert_int_equal(missing, 0);
}

static void unmapped_wanted_key_is_missing_not_different(void **state)
{
	struct vhca_identity_state s = shown();
	unsigned int missing = 9;

	(void)state;
	s.map[1] = VHCA_PKEY_UNMAPPED;
	s.value[1] = 0;
	assert_true(vhca_identity_matches(&s, &wanted, &missing));
	assert_int_equal(missing, 1);
}

static void every_difference_is_seen(void **state)
{
	struct vhca_identity_state s = shown();
	unsigned int missing;

	(void)state;
	s.requested = GUID + 1;
	assert_false(vhca_identity_matches(&s, &wanted, &missing));
	s = shown();
	s.value[0] = 0x0001; /* limited instead of full */
	assert_false(vhca_identity_matches(&s, &wanted, &missing));
	s = shown();
	/* mapped to a slot that the SM has emptied: the next key there could be anybody's */
	s.value[0] = 0;
	assert_false(vhca_identity_matches(&s, &wanted, &missing));
	s = shown();
	s.map[126] = 0; /* one key too many */
	assert_false(vhca_identity_matches(&s, &wanted, &missing));
	s = shown();
	s.n_virtual = 1;
	assert_false(vhca_identity_matches(&s, &wanted, &missing));
}

static void differences_are_told_with_what_should_be(void **state)
{
	struct vhca_identity_state s = shown();
	char text[VHCA_IDENTITY_TEXT_MAX];

	(void)state;
	vhca_identity_describe(&s, &wanted, text);
	assert_string_equal(text, "");
	s.requested = GUID + 1;
	s.map[1] = VHCA_PKEY_UNMAPPED;
	s.other_guids = 1;
	vhca_identity_describe(&s, &wanted, text);
	assert_string_equal(text, "GUID 0x0225c90012345679 instead of 0x0225c90012345678, "
				  "P_Key index 1 shows none instead of 0xffff, "
				  "0 P_Keys and a GUID on the adapter's other port");
	s = shown();
	s.map[2] = 7;
	s.value[2] = 0x8003;
	vhca_identity_describe(&s, &wanted, text);
	assert_string_equal(text, "P_Key index 2 shows 0x8003 instead of none");
}

static void differences_of_a_vport_are_told(void **state)
{
	struct vhca_identity_state s = {
		.sm_pkeys = true, .requested = GUID, .node_guid = GUID, .policy = VHCA_LINK_ENABLE};
	char text[VHCA_IDENTITY_TEXT_MAX];

	(void)state;
	vhca_identity_describe(&s, &wanted, text);
	assert_string_equal(text, "");
	s.node_guid = 0;
	s.policy = VHCA_LINK_DOWN;
	vhca_identity_describe(&s, &wanted, text);
	assert_string_equal(
		text, "node GUID 0x0000000000000000 instead of 0x0225c90012345678, link down");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_and_limited_member_are_different_entries),
		cmocka_unit_test(an_empty_slot_is_never_found),
		cmocka_unit_test(equal_state_matches),
		cmocka_unit_test(unmapped_wanted_key_is_missing_not_different),
		cmocka_unit_test(every_difference_is_seen),
		cmocka_unit_test(differences_are_told_with_what_should_be),
		cmocka_unit_test(differences_of_a_vport_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
