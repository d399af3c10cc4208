// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which role a caller has by which rules, and what a role may. */
#include <string.h>

#include "common/base/caller.h"
#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "tests/unit/unit.h"

static void a_role_may_what_those_before_it_may(void **state)
{
	static const char *const may[VHCA_CALLER_ROLES] = {
		[VHCA_CALLER_NOBODY] = "nobody",
		[VHCA_CALLER_METRICS] = "nobody metrics",
		[VHCA_CALLER_READ] = "nobody metrics read",
		[VHCA_CALLER_OPERATE] = "nobody metrics read operate",
		[VHCA_CALLER_ADMIN] = "nobody metrics read operate admin agent",
		[VHCA_CALLER_AGENT] = "nobody agent",
		[VHCA_CALLER_AGENT_READ] = "nobody metrics read agent",
	};

	(void)state;
	for (unsigned int has = 0; has < VHCA_CALLER_ROLES; has++)
		for (unsigned int needed = 0; needed <= VHCA_CALLER_AGENT; needed++) {
			const char *word = vhca_caller_role_to_string(needed);

			if (vhca_caller_may(has, needed) != (strstr(may[has], word) != NULL))
				fail_msg("%s, %s", vhca_caller_role_to_string(has), word);
		}
}

/* Root's ids are the only ones that every system has. */
static void the_first_rule_that_fits_decides(void **state)
{
	static const struct {
		const char *rules;
		uid_t uid;
		gid_t gid;
		enum vhca_caller_role role;
	} table[] = {
		{"", 7, 7, VHCA_CALLER_OPERATE},
		{"", 0, 7, VHCA_CALLER_ADMIN},
		{"root:read", 0, 7, VHCA_CALLER_ADMIN},
		{"root:read", 7, 0, VHCA_CALLER_OPERATE},
		{"@root:read", 7, 0, VHCA_CALLER_READ},
		{"\troot:metrics  @root:admin @root:read ", 7, 0, VHCA_CALLER_ADMIN},
		{"@root:read @root:admin", 7, 0, VHCA_CALLER_READ},
		{"@root:read *:metrics", 7, 7, VHCA_CALLER_METRICS},
		{"*:metrics @root:read", 7, 0, VHCA_CALLER_METRICS},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct vhca_caller_rules rules = {.others = VHCA_CALLER_OPERATE};
		gid_t gids[] = {100, table[i].gid};
		const struct vhca_caller caller = {
			.local = true, .uid = table[i].uid, .n_gids = 2, .gids = gids};
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_int_equal(vhca_caller_rules_parse(&rules, table[i].rules, true, &err), 0);
		assert_int_equal(vhca_caller_role(&rules, &caller), table[i].role);
	}
}

/* Who comes by the network has an uid of 0 only because nobody has set it. */
static void on_the_network_names_count(void **state)
{
	static const struct {
		const char *rules, *name;
		enum vhca_caller_role role;
	} table[] = {
		{"", "address:10.0.0.1", VHCA_CALLER_AGENT_READ},
		{"address:10.0.0.1:admin", "address:10.0.0.1", VHCA_CALLER_ADMIN},
		{"address:10.0.0.1:admin", "address:10.0.0.11", VHCA_CALLER_AGENT_READ},
		{"address:fe80::1:read *:agent", "address:fe80::1", VHCA_CALLER_READ},
		{"address:fe80::1:read *:agent", "address:fe80::2", VHCA_CALLER_AGENT},
		{"address:FE80:0::1:read *:agent", "address:fe80::1", VHCA_CALLER_READ},
		{"cert:HV1.Example.org:admin", "cert:hv1.example.org", VHCA_CALLER_ADMIN},
		{"cert-sha256:00FF:admin", "cert-sha256:00ff", VHCA_CALLER_ADMIN},
		{"cert:FD00:0::1:admin", "cert:fd00::1", VHCA_CALLER_ADMIN},
		{"cert:spiffe://Site/HV1:admin", "cert:spiffe://Site/HV1", VHCA_CALLER_ADMIN},
		{"cert:spiffe://Site/HV1:admin", "cert:spiffe://site/hv1", VHCA_CALLER_AGENT_READ},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct vhca_caller_rules rules = {.others = VHCA_CALLER_AGENT_READ};
		struct vhca_caller caller = {.local = false};
		struct vhca_error err = VHCA_ERROR_INIT;

		(void)vhca_strcpy(caller.name, sizeof(caller.name), table[i].name);
		assert_int_equal(vhca_caller_rules_parse(&rules, table[i].rules, false, &err), 0);
		assert_int_equal(vhca_caller_role(&rules, &caller), table[i].role);
	}
}

static void wrong_rules_are_named(void **state)
{
	static const struct {
		const char *text;
		bool local;
		const char *why;
	} table[] = {
		{"root", true, "\"root\" is not WHO:ROLE"},
		{":read", true, "\":read\" is not WHO:ROLE"},
		{"@:read", true, "there is no group \"\""},
		{"root:nobody", true, "\"nobody\" is not one of metrics | read | operate |"},
		{"root:read no-such-user:read", true, "there is no user \"no-such-user\""},
		{"root:read", false, "\"root\" is no name on the network"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct vhca_caller_rules rules = {.n = 0};
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(vhca_caller_rules_parse(&rules, table[i].text, table[i].local, &err) <
			    0);
		if (strncmp(err.msg, table[i].why, strlen(table[i].why)) != 0)
			fail_msg("%s: %s", table[i].text, err.msg);
	}
}

static void rules_have_a_bound(void **state)
{
	struct vhca_caller_rules rules = {.n = 0};
	struct vhca_error err = VHCA_ERROR_INIT;
	char text[(VHCA_CALLER_RULES_MAX + 1) * 10 + 1] = "";

	(void)state;
	for (unsigned int i = 0; i < VHCA_CALLER_RULES_MAX; i++)
		memcpy(text + i * 10, "root:read ", 11);
	assert_int_equal(vhca_caller_rules_parse(&rules, text, true, &err), 0);
	assert_int_equal(rules.n, VHCA_CALLER_RULES_MAX);
	memcpy(text + VHCA_CALLER_RULES_MAX * 10, "root:read ", 11);
	assert_true(vhca_caller_rules_parse(&rules, text, true, &err) < 0);
	assert_string_equal(err.msg, "more than 64 rules");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_role_may_what_those_before_it_may),
		cmocka_unit_test(the_first_rule_that_fits_decides),
		cmocka_unit_test(on_the_network_names_count),
		cmocka_unit_test(wrong_rules_are_named),
		cmocka_unit_test(rules_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
