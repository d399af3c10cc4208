// SPDX-License-Identifier: LGPL-2.1-or-later
/* Migrations between two simulated hosts, one of which has a state disk that is full, for one
 * write or for long. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/migration/migration_pair.h"
#include "tests/unit/common/store/slow_vfs.h"

static const struct vhca_mig *newest(const struct pair *p, unsigned int host)
{
	const struct vhca_mig *m = vhca_migrations_first(p->ms[host]);

	while (m && TAILQ_NEXT(m, link))
		m = TAILQ_NEXT(m, link);
	return m;
}

static const struct vhca_mig *expect_final(const struct pair *p, unsigned int host)
{
	const struct vhca_mig *m = newest(p, host);

	if (!m)
		abort(); /* nobody has begun one */
	assert_true(vhca_mig_state_is_final(m->state));
	return m;
}

static void expect_failed(const struct pair *p, unsigned int host)
{
	assert_string_equal(expect_final(p, host)->failure.code, "state_disk");
}

static void expect_room_helps(struct pair *p)
{
	slow_vfs_fill(NULL);
	for (unsigned int host = 0; host < 2; host++)
		unit_until(vhca_engine_check_ready(p->w[host].engine, NULL) == 0, pair_settle(p));
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, at_home, &one));
}

static void test_a_full_destination_refuses_at_once(void **state)
{
	struct pair *p = *state;

	slow_vfs_fill(p->w[1].dir);
	for (unsigned int i = 0; i < 2; i++) { /* who finds it out, and the next one */
		(void)pair_migrate(p, 0);
		assert_true(pair_until(p, has_ended, &zero));
		expect_failed(p, 0);
		assert_true(pair_until(p, at_home, &zero));
		(void)expect_final(p, 1);
		assert_null(claim_on(p, 1));
	}
	expect_room_helps(p);
}

static void test_a_full_source_does_not_begin(void **state)
{
	struct pair *p = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m;

	pair_settle(p);
	slow_vfs_fill(p->w[0].dir);
	(void)pair_migrate(p, 0); /* who finds it out */
	assert_true(pair_until(p, has_ended, &zero));
	expect_failed(p, 0);
	assert_true(pair_at_home(p, 0));
	assert_false(claim_on(p, 0)->migrating);
	assert_null(newest(p, 1));
	assert_true(vhca_migrations_start(p->ms[0], &p->w[0].domains[0].info.uuid, "host1", &m,
					  &err) < 0);
	assert_string_equal(err.code, "state_disk");
	expect_room_helps(p);
}

static bool is_over(const struct pair *p, const void *arg)
{
	(void)arg;
	return has_ended(p, &zero) && (pair_at_home(p, 0) || pair_at_home(p, 1));
}

/* The nth commit of the host's is refused; false: there are not so many. */
static bool migrate_with_refusal(struct pair *p, unsigned int host, unsigned int nth)
{
	bool refused;

	pair_init(p);
	vhca_store_set_retry(p->w[host].store, 50);
	slow_vfs_fill_briefly(p->w[host].dir, nth, 1);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, is_over, NULL));
	pair_settle(p);
	refused = slow_vfs_refused() > 0;
	slow_vfs_fill(NULL);
	/* What was begun is finished: only a migration that never began fails. */
	if (pair_at_home(p, 0))
		expect_failed(p, 0);
	pair_done(p);
	return refused;
}

static void refuse_each(unsigned int host)
{
	static struct pair p;
	unsigned int nth = 0;

	while (migrate_with_refusal(&p, host, nth))
		nth++;
	assert_true(nth > 5);
}

static void test_whichever_commit_of_the_source_is_refused(void **state)
{
	(void)state;
	refuse_each(0);
}

static void test_whichever_commit_of_the_destination_is_refused(void **state)
{
	(void)state;
	refuse_each(1);
}

static int teardown_with_room(void **state)
{
	slow_vfs_fill(NULL);
	return teardown(state);
}

#define DISK_TEST(f) cmocka_unit_test_setup_teardown(f, setup_pair, teardown_with_room)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DISK_TEST(test_a_full_destination_refuses_at_once),
		DISK_TEST(test_a_full_source_does_not_begin),
		cmocka_unit_test(test_whichever_commit_of_the_source_is_refused),
		cmocka_unit_test(test_whichever_commit_of_the_destination_is_refused),
	};

	slow_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
