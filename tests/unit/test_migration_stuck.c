// SPDX-License-Identifier: LGPL-2.1-or-later
/* A VF of a migration that cannot be proven clean: the others, and the guest, do not wait for it. */
#include "agent/migration.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/pair.h"

static int setup(void **state)
{
	static struct pair p;

	pair_init(&p);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	pair_done(*state);
	return 0;
}

static bool at_home(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_at_home(p, 0);
}

static bool source_ended(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_mig_state_is_final(pair_state(p, 0));
}

static const char *const both[] = {"ib0", "ib1", NULL};

static bool has_vfs(const struct pair *p, const void *arg)
{
	for (const char *const *name = arg; *name; name++)
		if (world_vf_of(&p->w[0], 0, *name) < 0)
			return false;
	return true;
}

/* In the guest, settled, and written down. */
static bool at_rest(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &vhca_engine_model(p->w[0].engine)->claims, link)
		if (!vhca_claim_rests_in(c, VHCA_VF_ATTACHED) || c->migrating)
			return false;
	return has_vfs(p, arg);
}

static void ask_for_another(struct pair *p)
{
	struct vhca_dom_info *info = &p->w[0].domains[0].info;

	info->requests[1] = info->requests[0];
	(void)snprintf(info->requests[1].name, sizeof(info->requests[1].name), "ib1");
	info->n_requests = 2;
	world_look(&p->w[0], 0);
	assert_true(pair_until(p, at_rest, both));
}

static bool one_hangs(const struct pair *p, const void *arg)
{
	const struct vhca_claim *c;
	unsigned int n = 0;

	(void)arg;
	TAILQ_FOREACH (c, &vhca_engine_model(p->w[0].engine)->claims, link)
		n += c->away;
	return n == 1 && p->w[0].hung;
}

static void test_scrub_that_fails_holds_nothing_up(void **state)
{
	struct pair *p = *state;
	const char *back[] = {"ib0", NULL};
	const struct vhca_mig *m;
	struct vhca_uuid id;

	ask_for_another(p);
	p->w[0].fault = WORLD_HANG;
	p->w[0].fault_effect = VHCA_EFFECT_SCRUB;
	p->w[0].fault_at = p->w[0].effects + 1;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, one_hangs, NULL));
	p->w[0].vfs_lie = true;
	world_release(&p->w[0]);
	assert_true(pair_until(p, source_ended, NULL));
	m = vhca_migrations_find(p->ms[0], &id);
	assert_int_equal(m->state, VHCA_MIG_FAILED);
	assert_true(m->degraded);
	assert_string_equal(m->failure.code, "vf_quarantined");
	if (strstr(m->reason, "VF ib0 ("))
		back[0] = "ib1";
	else
		assert_non_null(strstr(m->reason, "VF ib1 ("));
	assert_true(has_vfs(p, back));
	assert_int_equal(pair_state(p, 1), VHCA_MIG_ENDED);
	p->w[0].vfs_lie = false;
	assert_true(pair_until(p, at_rest, both));
}

/* It heals while the other one is given back: nothing is lacking in the end. What it withdrew late is not said of the epoch at which it is back. */
static void test_scrub_that_fails_once(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id;
	uint64_t epoch;

	p->w[0].fault = WORLD_FAIL;
	p->w[0].fault_effect = VHCA_EFFECT_SCRUB;
	p->w[0].fault_at = p->w[0].effects + 1;
	p->patience_ms = 15000;
	pair_silence(p, 0);
	pair_revive(p, 0);
	assert_true(pair_until(p, at_home, NULL));
	epoch = TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->claims)->epoch;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, source_ended, NULL));
	assert_string_equal(vhca_migrations_find(p->ms[0], &id)->failure.code, "vf_quarantined");
	assert_true(TAILQ_FIRST(&vhca_engine_model(p->w[0].engine)->claims)->epoch > epoch);
	assert_false(vhca_migrations_find(p->ms[0], &id)->degraded);
	assert_true(pair_until(p, at_home, NULL));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scrub_that_fails_holds_nothing_up),
		TEST(test_scrub_that_fails_once),
	};

	return cmocka_run_group_tests_name("migration_stuck", tests, NULL, NULL);
}
