/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_AGENT_MIGRATION_MIGRATION_PAIR_H
#define VHCA_TESTS_UNIT_AGENT_MIGRATION_MIGRATION_PAIR_H
/* What tests of migrations between two simulated hosts (tests/sim/hosts/pair.h) have in common. */
#include "agent/migration/migration.h"
#include "tests/sim/hosts/pair.h"
#include "tests/unit/unit.h"

static const unsigned int zero = 0, one = 1;

static inline int setup_pair(void **state)
{
	static struct pair p;

	pair_init(&p);
	*state = &p;
	return 0;
}

static inline int setup_fenced(void **state)
{
	static struct pair p;

	pair_init_fenced(&p);
	*state = &p;
	return 0;
}

static inline int teardown(void **state)
{
	pair_done(*state);
	return 0;
}

/* Of host *arg. */
static inline bool at_home(const struct pair *p, const void *arg)
{
	return pair_at_home(p, *(const unsigned int *)arg);
}

/* The newest migration on host *arg. */
static inline bool has_ended(const struct pair *p, const void *arg)
{
	return vhca_mig_state_is_final(pair_state(p, *(const unsigned int *)arg));
}

static inline const struct vhca_claim *claim_on(const struct pair *p, unsigned int host)
{
	return TAILQ_FIRST(&vhca_engine_model(p->w[host].engine)->claims);
}

/* Of the claim on host 0. */
static inline bool is_away(const struct pair *p, const void *arg)
{
	(void)arg;
	return vhca_claim_is_withheld(claim_on(p, 0));
}

static inline bool is_granted(const struct pair *p, const void *arg)
{
	(void)arg;
	return claim_on(p, 0)->vf->granted;
}

static inline bool is_copying(const struct pair *p, const void *arg)
{
	(void)arg;
	return p->copying;
}

/*
 * A migration from host 0 in which the at-th effect fails, or the victim's agent is killed at it.
 * False: there are not so many.
 */
static inline bool migrate_with(struct pair *p, enum pair_fault fault, unsigned int victim,
				unsigned int at,
				bool (*home)(const struct pair *p, const void *arg))
{
	p->fault = fault;
	p->victim = victim;
	p->fault_at = at;
	print_message("# fault %u of host %u at effect %u\n", fault, victim, at);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, home, NULL));
	return p->effects >= at;
}

struct each_effect {
	/* A migration with this fault; false: it has fewer effects. */
	bool (*run)(enum pair_fault fault, unsigned int victim, unsigned int at);
};

/* At each effect in turn. */
static inline void run_all(const struct each_effect *each, enum pair_fault fault,
			   unsigned int victim)
{
	unsigned int at = 1;

	while (each->run(fault, victim, at))
		at++;
	/* claim, mark, handover, copy, unmark at the destination: fewer would prove nothing */
	assert_true(at > 5);
}

static inline void test_every_effect_fails_once(void **state)
{
	run_all(*state, PAIR_FAIL, 0);
}

static inline void test_source_killed_before_every_effect(void **state)
{
	run_all(*state, PAIR_KILL_BEFORE, 0);
}

static inline void test_source_killed_after_every_effect(void **state)
{
	run_all(*state, PAIR_KILL_AFTER, 0);
}

static inline void test_destination_killed_before_every_effect(void **state)
{
	run_all(*state, PAIR_KILL_BEFORE, 1);
}

static inline void test_destination_killed_after_every_effect(void **state)
{
	run_all(*state, PAIR_KILL_AFTER, 1);
}

/* All of them, for a static struct each_effect. */
#define TESTS_OF(each)                                                                           \
	cmocka_unit_test_prestate(test_every_effect_fails_once, &(each)),                        \
		cmocka_unit_test_prestate(test_source_killed_before_every_effect, &(each)),      \
		cmocka_unit_test_prestate(test_source_killed_after_every_effect, &(each)),       \
		cmocka_unit_test_prestate(test_destination_killed_before_every_effect, &(each)), \
		cmocka_unit_test_prestate(test_destination_killed_after_every_effect, &(each))

static inline void ignore_answer(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	(void)arg;
	(void)m;
	(void)err;
}

#define TEST_WITH(setup, f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST(f)		    TEST_WITH(setup_pair, f)
#define TEST_FENCED(f)	    TEST_WITH(setup_fenced, f)

#endif
