// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The agents' own share of the time that a guest is without its VFs, in the record of its
 * migration.
 */
#include "common/base/file.h"
#include "tests/unit/agent/migration/migration_pair.h"

static uint64_t time_of(const struct pair *p, unsigned int host, const struct vhca_uuid *id,
			enum vhca_mig_time time)
{
	return vhca_migrations_find(p->ms[host], id)->time_us[time];
}

static bool granted_at(const struct pair *p, const void *id)
{
	return time_of(p, 1, id, VHCA_MIG_RESUMED_TO_GRANTED) != 0;
}

static void assert_times(const struct pair *p, unsigned int host, const struct vhca_uuid *id,
			 const uint64_t want[static VHCA_MIG_TIME_COUNT])
{
	for (unsigned int i = 0; i < VHCA_MIG_TIME_COUNT; i++)
		assert_int_equal(time_of(p, host, id, i), want[i]);
}

/*
 * Shorter than all that there is, and kept over a restart although the grant comes after the end.
 */
static void test_there(void **state)
{
	struct pair *p = *state;
	uint64_t began = vhca_now_us(), here[VHCA_MIG_TIME_COUNT] = {0},
		 there[VHCA_MIG_TIME_COUNT] = {0}, took;
	struct vhca_uuid id;

	p->w[1].sm_grants = false;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
	assert_true(pair_until(p, has_ended, &zero));
	pair_settle(p);
	assert_int_equal(pair_state(p, 1), VHCA_MIG_DONE);
	assert_false(granted_at(p, &id));
	p->w[1].sm_grants = true;
	assert_true(pair_until(p, granted_at, &id));
	took = vhca_now_us() - began;
	here[VHCA_MIG_REMOVED_TO_MIGRATE] = time_of(p, 0, &id, VHCA_MIG_REMOVED_TO_MIGRATE);
	there[VHCA_MIG_RESUMED_TO_ATTACH] = time_of(p, 1, &id, VHCA_MIG_RESUMED_TO_ATTACH);
	there[VHCA_MIG_RESUMED_TO_GRANTED] = time_of(p, 1, &id, VHCA_MIG_RESUMED_TO_GRANTED);
	assert_in_range(here[VHCA_MIG_REMOVED_TO_MIGRATE], 1, took);
	assert_in_range(there[VHCA_MIG_RESUMED_TO_ATTACH], 1,
			there[VHCA_MIG_RESUMED_TO_GRANTED] - 1);
	assert_in_range(there[VHCA_MIG_RESUMED_TO_GRANTED], 1, took);
	pair_settle(p); /* until it is on the disk */
	for (unsigned int h = 0; h < 2; h++) {
		assert_times(p, h, &id, h ? there : here);
		world_kill(&p->w[h]);
		world_start(&p->w[h]);
		assert_times(p, h, &id, h ? there : here);
	}
}

static bool is_ready(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_READY;
}

static void test_ready(void **state)
{
	struct pair *p = *state;
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);

	assert_true(pair_until(p, is_ready, NULL));
	assert_true(time_of(p, 0, &id, VHCA_MIG_REMOVED_TO_READY) > 0);
	assert_int_equal(time_of(p, 0, &id, VHCA_MIG_REMOVED_TO_MIGRATE), 0);
}

/* The live XML says what happened, but not when: no figure is better than a wrong one. */
static void test_without_events(void **state)
{
	static const uint64_t nothing[VHCA_MIG_TIME_COUNT];
	struct pair *p = *state;
	struct vhca_uuid id;

	p->w[0].events_lost = p->w[1].events_lost = true;
	id = pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
	assert_true(pair_until(p, has_ended, &zero));
	pair_settle(p);
	assert_times(p, 0, &id, nothing);
	assert_times(p, 1, &id, nothing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_there),
		TEST(test_ready),
		TEST(test_without_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
