/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sriov/vf_state.h"
#include "tests/unit/unit.h"

static void names_round_trip(void **state)
{
	enum vhca_vf_state parsed;

	(void)state;
	for (unsigned int i = 0; i < VHCA_VF_STATE_COUNT; i++) {
		assert_int_equal(vhca_vf_state_parse(vhca_vf_state_to_string((enum vhca_vf_state)i),
						     &parsed),
				 0);
		assert_int_equal(parsed, i);
	}
	assert_string_equal(vhca_vf_state_to_string(VHCA_VF_QUARANTINED), "quarantined");
	assert_string_equal(vhca_vf_state_to_string((enum vhca_vf_state)99), "invalid");
}

static void unknown_words_are_refused(void **state)
{
	enum vhca_vf_state parsed = VHCA_VF_FREE;

	(void)state;
	assert_int_equal(vhca_vf_state_parse("", &parsed), -EINVAL);
	assert_int_equal(vhca_vf_state_parse("Free", &parsed), -EINVAL);
	assert_int_equal(vhca_vf_state_parse("free ", &parsed), -EINVAL);
	assert_int_equal(parsed, VHCA_VF_FREE);
}

/* The header's table once more, as text: the two must agree. */
static const char *const allowed[] = {
	"unmanaged>attached",	 "unmanaged>preparing",	   "preparing>free",
	"preparing>quarantined", "preparing>unmanaged",	   "preparing>claimed",
	"scrubbing>claimed",	 "free>quarantined",	   "free>unmanaged",
	"free>claimed",		 "free>preparing",	   "claimed>programmed",
	"claimed>scrubbing",	 "programmed>attached",	   "programmed>scrubbing",
	"attached>detaching",	 "attached>scrubbing",	   "detaching>scrubbing",
	"detaching>attached",	 "scrubbing>free",	   "scrubbing>quarantined",
	"quarantined>detaching", "quarantined>preparing",  "scrubbing>detaching",
	"claimed>quarantined",	 "programmed>quarantined", "attached>quarantined",
	"detaching>quarantined",
};

static bool is_allowed(enum vhca_vf_state from, enum vhca_vf_state to)
{
	char arrow[64];

	snprintf(arrow, sizeof(arrow), "%s>%s", vhca_vf_state_to_string(from),
		 vhca_vf_state_to_string(to));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (strcmp(allowed[i], arrow) == 0)
			return true;
	}
	return false;
}

static void transitions_are_those_of_the_table(void **state)
{
	unsigned int n = 0;

	(void)state;
	for (unsigned int from = 0; from < VHCA_VF_STATE_COUNT; from++) {
		for (unsigned int to = 0; to < VHCA_VF_STATE_COUNT; to++) {
			bool may =
				vhca_vf_state_may((enum vhca_vf_state)from, (enum vhca_vf_state)to);

			assert_int_equal(
				may, is_allowed((enum vhca_vf_state)from, (enum vhca_vf_state)to));
			n += may;
		}
	}
	assert_int_equal(n, sizeof(allowed) / sizeof(allowed[0]));
	assert_false(vhca_vf_state_may((enum vhca_vf_state)99, VHCA_VF_FREE));
	assert_false(vhca_vf_state_may(VHCA_VF_FREE, VHCA_VF_STATE_COUNT));
}

/* Invariants 1 and 2: nothing becomes free, attached or given away without its proof in between. */
static void no_way_around_the_proofs(void **state)
{
	(void)state;
	assert_false(vhca_vf_state_may(VHCA_VF_CLAIMED, VHCA_VF_ATTACHED));
	assert_false(vhca_vf_state_may(VHCA_VF_ATTACHED, VHCA_VF_FREE));
	assert_false(vhca_vf_state_may(VHCA_VF_CLAIMED, VHCA_VF_FREE));
	assert_false(vhca_vf_state_may(VHCA_VF_QUARANTINED, VHCA_VF_CLAIMED));
	assert_false(vhca_vf_state_may(VHCA_VF_UNMANAGED, VHCA_VF_SCRUBBING));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_round_trip),
		cmocka_unit_test(unknown_words_are_refused),
		cmocka_unit_test(transitions_are_those_of_the_table),
		cmocka_unit_test(no_way_around_the_proofs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
