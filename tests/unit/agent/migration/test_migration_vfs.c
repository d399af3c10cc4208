// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest with several VFs, at the destination of its migration. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/agent/migration/migration_pair.h"

struct box {
	struct pair p;
	struct vhca_mig_offer offer; /* to host 1, of two VFs */
	unsigned int answers;
	char refused[VHCA_ERROR_CODE_MAX];
};

static void on_answer(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	struct box *b = arg;

	(void)m;
	b->answers++;
	(void)snprintf(b->refused, sizeof(b->refused), "%s", err ? err->code : "");
}

static void fill_vf(struct vhca_mig_offer *offer, unsigned int i)
{
	struct vhca_reservation *vf = &offer->vfs[i];

	vf->req.domain = offer->domain;
	vf->req.vf.numa = -1;
	(void)snprintf(vf->req.domain_name, sizeof(vf->req.domain_name), "%s", offer->domain_name);
	(void)snprintf(vf->req.vf.name, sizeof(vf->req.vf.name), "ib%u", i);
	(void)snprintf(vf->req.vf.fabric, sizeof(vf->req.vf.fabric), "default");
	vf->identity = (struct vhca_identity){
		.guid = 0x0002c9aabb000001 + i, .n_pkeys = 1, .pkeys = {0x8001}};
	vf->migration = offer->id;
	vf->epoch = 5;
}

static int setup(void **state)
{
	static struct box b;

	memset(&b, 0, sizeof(b));
	pair_init(&b.p);
	b.offer.id.b[0] = 0xee;
	b.offer.domain.b[0] = 0xdd;
	(void)snprintf(b.offer.domain_name, sizeof(b.offer.domain_name), "vm7");
	fill_vf(&b.offer, 0);
	fill_vf(&b.offer, 1);
	*state = &b;
	return 0;
}

static int teardown_box(void **state)
{
	struct box *b = *state;

	pair_done(&b->p);
	return 0;
}

static void offer(struct box *b, unsigned int n_vfs)
{
	b->offer.n_vfs = n_vfs;
	vhca_migrations_offer(b->p.ms[1], &b->offer, on_answer, b);
}

static bool answered(const struct pair *p, const void *arg)
{
	const struct box *b = (const void *)p;

	return b->answers >= *(const unsigned int *)arg;
}

/* What a destination knows that was killed between the transactions of two claims. */
static void know_one(struct box *b)
{
	offer(b, 1);
	assert_true(pair_until(&b->p, answered, &one));
	assert_string_equal(b->refused, "");
	assert_int_equal(pair_state(&b->p, 1), VHCA_MIG_RESERVED);
}

static void test_repeated_offer_completes_the_reservation(void **state)
{
	static const unsigned int two = 2, three = 3;
	struct box *b = *state;
	const struct vhca_mig *m;
	const struct vhca_claim *first, *second;

	know_one(b);
	offer(b, 2);
	assert_true(pair_until(&b->p, answered, &two));
	pair_settle(&b->p);
	assert_int_equal(pair_state(&b->p, 1), VHCA_MIG_RESERVED);
	m = vhca_migrations_find(b->p.ms[1], &b->offer.id);
	first = vhca_migration_claim(m, NULL);
	second = vhca_migration_claim(m, (struct vhca_claim *)first);
	assert_non_null(second);
	assert_string_equal(second->name, "ib1");
	assert_true(first->vf != second->vf && vhca_claim_is_withheld(second));
	assert_true(vhca_claim_rests_in(second, VHCA_VF_CLAIMED));
	offer(b, 2); /* nothing is missing: the answer of the first */
	assert_true(pair_until(&b->p, answered, &three));
	assert_null(vhca_migration_claim(m, (struct vhca_claim *)second));
}

static bool nothing_is_reserved(const struct pair *p, const void *arg)
{
	(void)arg;
	return TAILQ_EMPTY(&vhca_engine_model(p->w[1].engine)->claims);
}

static void test_reservation_that_cannot_be_completed(void **state)
{
	static const unsigned int two = 2;
	struct box *b = *state;

	know_one(b);
	b->offer.vfs[1].identity.guid = b->offer.vfs[0].identity.guid;
	offer(b, 2);
	assert_true(pair_until(&b->p, answered, &two));
	assert_string_equal(b->refused, "guid_in_use");
	assert_true(pair_until(&b->p, has_ended, &one));
	assert_int_equal(pair_state(&b->p, 1), VHCA_MIG_ENDED);
	assert_true(pair_until(&b->p, nothing_is_reserved, NULL));
}

static bool is_durable(const struct pair *p, const void *claim)
{
	(void)p;
	return vhca_claim_rests_in(claim, VHCA_VF_CLAIMED);
}

/* The claim is durable, and the agent is killed before its migration is. */
static void test_reservation_of_a_migration_that_was_never_written(void **state)
{
	struct box *b = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *c;

	assert_int_equal(vhca_engine_reserve(b->p.w[1].engine, &b->offer.vfs[0], &c, &err), 0);
	assert_true(pair_until(&b->p, is_durable, c));
	pair_silence(&b->p, 1);
	pair_revive(&b->p, 1);
	assert_true(pair_until(&b->p, nothing_is_reserved, NULL));
}

#define TEST_BOX(f) cmocka_unit_test_setup_teardown(f, setup, teardown_box)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_BOX(test_repeated_offer_completes_the_reservation),
		TEST_BOX(test_reservation_that_cannot_be_completed),
		TEST_BOX(test_reservation_of_a_migration_that_was_never_written),
	};

	return cmocka_run_group_tests_name("migration_vfs", tests, NULL, NULL);
}
