/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long a copy is expected to take, and guests whose copy would take too long. */
#include <string.h>

#include "agent/state/guest_copy.h"
#include "tests/sim/libvirt/sim_copy.h"
#include "tests/unit/agent/migration/migration_pair.h"

#define GIB UINT64_C(1048576) /* in KiB */

/* ---- the estimate ---- */

/* A guest of 2 GiB at 1 GiB/s; a page of the simulation is a MiB. */
static void assert_near(unsigned int written_in_s, uint64_t seed)
{
	const struct sim_guest guest = {
		.pages = 2048, .written_in_s = written_in_s, .sent_in_s = 1024, .seed = seed};
	const struct vhca_guest_copy copy = {.memory_kib = 2 * GIB,
					     .bandwidth_mib = guest.sent_in_s,
					     .dirty_is_known = true,
					     .dirty_mib = sim_dirty_rate(&guest)};
	uint64_t real = sim_copy_ms(&guest), expected = vhca_guest_copy_ms(&copy);

	if (expected * 5 < real * 4 || expected * 5 > real * 6)
		fail_msg("%u written in a second, seed %llu: %llu ms are expected, and it took "
			 "%llu",
			 written_in_s, (unsigned long long)seed, (unsigned long long)expected,
			 (unsigned long long)real);
}

static void test_estimate_is_near_the_copy(void **state)
{
	static const unsigned int rates[] = {0, 10, 100, 300, 500, 700, 900};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		for (uint64_t seed = 1; seed <= 20; seed++)
			assert_near(rates[i], seed);
}

static void test_guest_that_writes_too_fast_is_never_copied(void **state)
{
	struct vhca_guest_copy copy = {
		.memory_kib = GIB, .bandwidth_mib = 100, .dirty_is_known = true, .dirty_mib = 100};

	(void)state;
	assert_true(vhca_guest_copy_ms(&copy) == VHCA_COPY_NEVER);
	copy.dirty_mib = 90;
	assert_in_range(vhca_guest_copy_ms(&copy), 10240, 100000);
	copy.dirty_is_known = false; /* once through the memory */
	assert_in_range(vhca_guest_copy_ms(&copy), 10240, 10240);
}

/* ---- the limit ---- */

/* 1 GiB at 100 MiB/s: more than 10 s, whatever it writes. */
static void set(struct pair *p, uint32_t max_ms, bool dirty_is_known, uint64_t dirty_mib)
{
	p->w[0].domains[0].info.memory.kib = GIB;
	world_sync_domains(&p->w[0]);
	pair_settle(p);
	p->w[0].conf.copy.bandwidth_mib = 100;
	p->w[0].conf.copy.expected_max_ms = max_ms;
	p->dirty_is_known = dirty_is_known;
	p->dirty_mib = dirty_mib;
}

/* No VF was touched, and the peer was not asked. */
static void assert_refused(struct pair *p, const char *why)
{
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_uuid id = pair_migrate(p, 0);
	const struct vhca_mig *m;

	assert_true(pair_until(p, has_ended, &zero));
	m = vhca_migrations_find(p->ms[0], &id);
	assert_int_equal(m->state, VHCA_MIG_FAILED);
	assert_string_equal(m->failure.code, "copy_too_long");
	assert_string_equal(m->reason, why);
	assert_true(m->expected.is_known);
	assert_false(pair_told(p, 0, "-> detaching"));
	assert_true(pair_at_home(p, 0));
	assert_int_equal(claim_on(p, 0)->epoch, epoch);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_STATE_COUNT);
}

static void test_refused_above_the_limit(void **state)
{
	struct pair *p = *state;

	set(p, 15000, true, 50);
	assert_refused(p, "the copy would take 18 s at 100 MiB/s; 15 s are allowed");
	set(p, 15000, true, 100);
	assert_refused(p, "the copy would take for ever at 100 MiB/s; 15 s are allowed");
	assert_true(vhca_migrations_first(p->ms[0])->expected.dirty_is_known);
}

static const struct vhca_mig *migrate(struct pair *p)
{
	struct vhca_uuid id = pair_migrate(p, 0);

	assert_true(pair_until(p, at_home, &one));
	return vhca_migrations_find(p->ms[0], &id);
}

static void test_copied_below_the_limit(void **state)
{
	struct pair *p = *state;
	const struct vhca_mig *m;

	set(p, 18000, true, 50);
	m = migrate(p);
	assert_true(m->expected.is_known && m->expected.dirty_is_known);
	assert_in_range(m->expected.ms, 17000, 18000);
}

/* Then it ends, and how long that takes the memory alone says. */
static void test_auto_converge_ends_a_copy(void **state)
{
	struct pair *p = *state;
	const struct vhca_mig *m;

	set(p, 10000, true, 100);
	p->w[0].conf.copy.auto_converge = true;
	assert_refused(p, "the copy would take 11 s at 100 MiB/s if the guest wrote nothing; "
			  "10 s are allowed");
	set(p, 15000, true, 100);
	m = migrate(p);
	assert_true(m->expected.dirty_is_known && m->expected.is_slowed);
	assert_in_range(m->expected.ms, 10240, 10240);
}

/* Then the memory alone says so. */
static void test_dirty_rate_not_known(void **state)
{
	struct pair *p = *state;
	const struct vhca_mig *m;

	set(p, 10000, false, 0);
	assert_refused(p, "the copy would take 11 s at 100 MiB/s if the guest wrote nothing; "
			  "10 s are allowed");
	set(p, 11000, false, 0);
	m = migrate(p);
	assert_true(m->expected.is_known);
	assert_false(m->expected.dirty_is_known);
	assert_in_range(m->expected.ms, 10240, 10240);
}

static void test_nothing_is_expected_without_a_bandwidth(void **state)
{
	struct pair *p = *state;

	set(p, 0, true, 1);
	p->w[0].conf.copy.bandwidth_mib = 0;
	assert_false(migrate(p)->expected.is_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_estimate_is_near_the_copy),
		cmocka_unit_test(test_guest_that_writes_too_fast_is_never_copied),
		TEST(test_refused_above_the_limit),
		TEST(test_copied_below_the_limit),
		TEST(test_auto_converge_ends_a_copy),
		TEST(test_dirty_rate_not_known),
		TEST(test_nothing_is_expected_without_a_bandwidth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
