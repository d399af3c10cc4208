// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A migration that is asked for with an Idempotency-Key, and asked for again after a kill. A killed
 * agent's store commits what is queued here; test_repeats.py kills before that, too.
 */
#include <stdio.h>

#include "agent/state/repeats.h"
#include "tests/unit/agent/migration/migration_pair.h"

static struct vhca_repeats *repeats;

static void reopen(struct pair *p)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	repeats = vhca_repeats_free(repeats);
	assert_int_equal(vhca_repeats_new(p->w[0].store, &repeats, &err), 0);
}

static bool have_passed(const struct pair *p, const void *arg)
{
	static unsigned int passed;

	(void)p;
	passed = passed < *(const unsigned int *)arg ? passed + 1 : 0;
	return passed == 0;
}

static void restart(struct pair *p, unsigned int rounds)
{
	assert_true(pair_until(p, have_passed, &rounds));
	pair_silence(p, 0);
	pair_revive(p, 0);
	reopen(p);
}

/* As the API does it: begun, found, or gone (false). */
static bool ask(struct pair *p, const char *key)
{
	const struct vhca_repeat_request req = {.caller = "uid:0", .key = key, .fingerprint = "f"};
	struct vhca_mig_request want = {.domain = p->w[0].domains[0].info.uuid,
					.mode = VHCA_MIG_MODE_PARK};
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m;
	struct vhca_repeat *r;

	assert_int_equal(vhca_repeats_admit(repeats, &req, &r, &err), 0);
	want.id = vhca_repeat_object(r);
	m = vhca_migrations_find(p->ms[0], want.id);
	if (!m && vhca_repeat_has_begun(r))
		return false;
	if (!m)
		assert_int_equal(vhca_migrations_request(p->ms[0], &want, &m, &err), 0);
	assert_true(vhca_uuid_equal(&m->id, want.id));
	return true;
}

static unsigned int count(const struct pair *p)
{
	unsigned int n = 0;

	for (const struct vhca_mig *m = vhca_migrations_first(p->ms[0]); m; m = TAILQ_NEXT(m, link))
		n++;
	return n;
}

static void unpark(struct pair *p)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	/* Refused: it has failed by itself, because its claims were not in the journal yet. */
	(void)vhca_migrations_cancel(p->ms[0], &vhca_migrations_first(p->ms[0])->id, &err);
	assert_true(pair_until(p, has_ended, &zero));
	assert_true(pair_until(p, at_home, &zero));
}

static void forget_history(struct pair *p)
{
	struct vhca_txn *txn = vhca_txn_new(p->w[0].store);

	vhca_txn_exec(txn, "DELETE FROM migrations", "");
	vhca_txn_commit(txn, NULL, NULL);
	pair_settle(p);
	restart(p, 0);
}

static void test_killed_after_any_number_of_rounds(void **state)
{
	struct pair *p = *state;
	char key[16];

	reopen(p);
	for (unsigned int rounds = 0; rounds < 12; rounds++) {
		(void)snprintf(key, sizeof(key), "%u", rounds);
		assert_true(ask(p, key));
		restart(p, rounds);
		assert_int_equal(count(p), 1);
		assert_true(ask(p, key));
		assert_int_equal(count(p), 1);
		pair_settle(p);
		unpark(p);
		restart(p, 0);
		assert_true(ask(p, key)); /* it has ended, and is known */
		assert_int_equal(count(p), 1);
		forget_history(p);
		assert_false(ask(p, key));
	}
	repeats = vhca_repeats_free(repeats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_killed_after_any_number_of_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
