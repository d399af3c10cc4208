/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store refuses the transaction that promises an epoch: no memory, or a full queue. */
#include <errno.h>

#include "tests/unit/agent/migration/migration_pair.h"

static struct {
	const struct pair *p;
	bool done;
} refuse;

void __real_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg);

void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg)
{
	const struct vhca_mig *m = refuse.p ? vhca_migrations_first(refuse.p->ms[0]) : NULL;

	if (!m || refuse.done || m->next != VHCA_MIG_COPYING) {
		__real_vhca_txn_commit(txn, fn, arg);
		return;
	}
	refuse.done = true;
	vhca_txn_abort(txn);
	fn(arg, -ENOMEM);
}

/* The destination hears of no promise, and takes the epoch after the one that it was offered. */
static void test_a_refused_promise_is_not_spent(void **state)
{
	struct pair *p = *state;
	uint64_t guid = claim_on(p, 0)->identity.guid, epoch = claim_on(p, 0)->epoch;

	p->alone_ms = 150;
	pair_silence(p, 1);
	pair_revive(p, 1);
	p->cut_handover = true;
	refuse.p = p;
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	refuse.p = NULL;
	assert_true(refuse.done);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_int_equal(claim_on(p, 1)->epoch, epoch + 1);
	assert_int_equal(vhca_model_epoch(vhca_engine_model(p->w[0].engine), guid), epoch + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_refused_promise_is_not_spent, setup_pair,
						teardown),
	};

	return cmocka_run_group_tests_name("migration_refused", tests, NULL, NULL);
}
