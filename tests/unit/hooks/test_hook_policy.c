/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "common/base/cleanup.h"
#include "hooks/policy.h"
#include "tests/unit/unit.h"

/* The table of docs/man/vhca-qemu-hook.7, spelt out: may the hook refuse? */
enum may { NEVER, IF_AGENT_SAYS, IF_VF, IF_AWAY };

static const struct {
	const char *op, *subop;
	bool waits;
	enum may answered, silent;
} expected[] = {
	{"prepare", "begin", true, IF_AGENT_SAYS, IF_VF},
	{"start", "begin", true, IF_AGENT_SAYS, IF_VF},
	{"migrate", "begin", true, IF_AGENT_SAYS, IF_AWAY},
	{"restore", "begin", true, IF_AGENT_SAYS, IF_AWAY},
	{"started", "begin", false, NEVER, NEVER},
	{"stopped", "end", false, NEVER, NEVER},
	{"release", "end", false, NEVER, NEVER},
	{"reconnect", "begin", false, NEVER, NEVER},
	{"attach", "begin", false, NEVER, NEVER},
	{"migrate", "end", false, NEVER, NEVER},
	{"prepare", "end", false, NEVER, NEVER}, /* libvirt has no such thing; a later one may */
	{"invented", "begin", false, NEVER, NEVER},
	{"", "", false, NEVER, NEVER},
	{"PREPARE", "begin", false, NEVER, NEVER},
};

static bool should_refuse(enum may may, bool agent_passes, struct vhca_hook_found found)
{
	if (may == IF_AGENT_SAYS)
		return !agent_passes;
	return (may == IF_VF && found.has_vf) || (may == IF_AWAY && found.has_away);
}

static void check(size_t i, bool agent_passes, struct vhca_hook_found found)
{
	const struct vhca_hook_rule *rule = vhca_hook_rule(expected[i].op, expected[i].subop);

	assert_int_equal(vhca_hook_rule_waits(rule), expected[i].waits);
	assert_false(vhca_hook_rule_refuses(rule, VHCA_HOOK_NOT_OURS, agent_passes, found));
	assert_int_equal(vhca_hook_rule_refuses(rule, VHCA_HOOK_ANSWERED, agent_passes, found),
			 should_refuse(expected[i].answered, agent_passes, found));
	assert_int_equal(vhca_hook_rule_refuses(rule, VHCA_HOOK_SILENT, agent_passes, found),
			 should_refuse(expected[i].silent, agent_passes, found));
}

static void table_is_the_designs(void **state)
{
	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(expected); i++)
		for (unsigned int bits = 0; bits < 8; bits++)
			check(i, bits & 1, (struct vhca_hook_found){bits & 2, bits & 4});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_the_designs),
	};

	return cmocka_run_group_tests_name("hook_policy", tests, NULL, NULL);
}
