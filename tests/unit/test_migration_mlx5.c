/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Managed migration between two hosts with mlx5 adapters, by the production back end. */
#include "tests/unit/migration_pair.h"

#include "tests/sim/world_mlx5.h"

static int setup(void **state)
{
	static struct world_mlx5 mlx5[2];
	static struct pair p;

	pair_init_mlx5(&p, mlx5);
	*state = &p;
	return 0;
}

/* How many vports of the host's firmware show the GUID, with their link up. */
static unsigned int shown(const struct pair *p, unsigned int host, uint64_t guid)
{
	unsigned int n = 0;

	for (unsigned int v = 0; v < WORLD_VFS; v++) {
		const struct sim_rtnl_vf *fw = &p->w[host].mlx5->kernel.vfs[v];

		n += fw->port == guid && fw->node == guid && fw->policy != VHCA_LINK_DOWN;
	}
	return n;
}

static void test_the_address_moves_from_vport_to_vport(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;

	assert_int_equal(shown(p, 0, guid), 1);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
	assert_true(pair_until(p, has_ended, &zero));
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_int_equal(shown(p, 0, guid), 0);
	assert_int_equal(shown(p, 1, guid), 1);
	assert_int_equal(p->copies, 1);
}

/* What the destination's port is a member of does not concern a vport. */
static void test_keys_of_the_port_do_not_matter(void **state)
{
	struct pair *p = *state;

	world_set_key(&p->w[1], 1, 0);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
}

static void test_copy_fails(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid;

	p->copy_fails = true;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, at_home, &zero));
	assert_int_equal(shown(p, 0, guid), 1);
	assert_int_equal(shown(p, 1, guid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_address_moves_from_vport_to_vport),
		TEST(test_keys_of_the_port_do_not_matter),
		TEST(test_copy_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
