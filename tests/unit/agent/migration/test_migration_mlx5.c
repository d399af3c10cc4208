/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Managed migration between two hosts with mlx5 adapters, by the production back end. */
#include "tests/sim/host/world_mlx5.h"
#include "tests/unit/agent/migration/migration_pair.h"

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

/* What a host reports of the address, and whether a vport of its alone showed it at that moment. */
struct reports {
	const struct pair *p;
	unsigned int host;
	unsigned int n, with_vport;
	uint16_t vport;
	bool early;
};

static void on_report(void *arg, const struct vhca_sm_binding *binding, enum vhca_sm_answer answer,
		      const char *reason, struct json_object *doc)
{
	struct reports *r = arg;

	(void)answer;
	(void)reason;
	(void)doc;
	if (!binding->bound)
		return;
	r->n++;
	if (!binding->vport)
		return;
	assert_true(vhca_sm_binding_is_move(binding));
	r->with_vport++;
	r->vport = binding->vport;
	r->early |= shown(r->p, r->host, binding->vguid) != 1 ||
		    shown(r->p, 1 - r->host, binding->vguid) != 0;
}

/* Migrates domain 0 to host 1; the reports of the host where it ends go through a real outbox. */
static struct reports migrate_and_listen(struct pair *p, unsigned int end,
					 enum vhca_conf_lid_policy policy)
{
	struct reports reports = {.p = p, .host = end};
	const struct vhca_outbox_conf conf = {
		.ops = &vhca_sm_none}; /* hands over what is durable */
	struct vhca_outbox *outbox = NULL;
	struct world *w = &p->w[end];

	w->conf.lid_policy = policy;
	assert_int_equal(
		vhca_outbox_new(&conf, w->loop, w->store, NULL, on_report, &reports, &outbox, NULL),
		0);
	vhca_engine_set_outbox(w->engine, outbox);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &end));
	assert_true(pair_until(p, has_ended, &zero));
	vhca_engine_set_outbox(w->engine, NULL);
	(void)vhca_outbox_free(outbox);
	return reports;
}

static void test_a_vport_is_reported_when_it_shows_the_address(void **state)
{
	struct pair *p = *state;
	struct reports r = migrate_and_listen(p, 1, VHCA_LID_VPORT);

	assert_true(r.with_vport > 0);
	assert_true(r.n > r.with_vport); /* first the binding: the SM has to accept it before */
	assert_int_equal(r.vport, claim_on(p, 1)->vf->index + 1);
	assert_false(r.early);
}

/* The destination may have reported it as its own. */
static void test_a_vport_that_comes_back_is_reported(void **state)
{
	struct pair *p = *state;
	struct reports r;

	p->copy_fails = true;
	r = migrate_and_listen(p, 0, VHCA_LID_VPORT);
	assert_true(r.with_vport > 0);
	assert_int_equal(r.vport, claim_on(p, 0)->vf->index + 1);
	assert_false(r.early);
}

static void test_vports_are_not_reported_unasked(void **state)
{
	struct pair *p = *state;
	struct reports r = migrate_and_listen(p, 1, VHCA_LID_HOST);

	assert_true(r.n > 0);
	assert_int_equal(r.with_vport, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_WITH(setup, test_the_address_moves_from_vport_to_vport),
		TEST_WITH(setup, test_keys_of_the_port_do_not_matter),
		TEST_WITH(setup, test_copy_fails),
		TEST_WITH(setup, test_a_vport_is_reported_when_it_shows_the_address),
		TEST_WITH(setup, test_a_vport_that_comes_back_is_reported),
		TEST_WITH(setup, test_vports_are_not_reported_unasked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
