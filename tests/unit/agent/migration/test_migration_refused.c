/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store refuses a transaction beside a promise of an epoch: no memory, or a full queue. */
#include <errno.h>

#include "tests/unit/agent/migration/migration_pair.h"

static struct {
	const struct pair *p; /* NULL = none, or it is done */
	enum vhca_mig_state to;
} refuse;

void __real_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg);

void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*fn)(void *arg, int rc), void *arg)
{
	const struct vhca_mig *m = refuse.p ? vhca_migrations_first(refuse.p->ms[0]) : NULL;

	if (!m || m->next != refuse.to) {
		__real_vhca_txn_commit(txn, fn, arg);
		return;
	}
	refuse.p = NULL;
	vhca_txn_abort(txn);
	fn(arg, -ENOMEM);
}

/* On host 0, what its newest migration is about to write. */
static void refuse_once(const struct pair *p, enum vhca_mig_state to)
{
	refuse.p = p;
	refuse.to = to;
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
	refuse_once(p, VHCA_MIG_COPYING);
	(void)pair_migrate(p, 0);
	assert_true(pair_until(p, has_ended, &zero));
	assert_null(refuse.p);
	assert_int_equal(pair_state(p, 0), VHCA_MIG_DONE);
	assert_int_equal(claim_on(p, 1)->epoch, epoch + 1);
	assert_int_equal(vhca_model_epoch(vhca_engine_model(p->w[0].engine), guid), epoch + 1);
}

static bool is_ready(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_state(p, 0) == VHCA_MIG_READY;
}

/* The destination has it: what is refused is more time for the orchestrator, and no promise. */
static void test_a_delivered_promise_stays(void **state)
{
	struct pair *p = *state;
	uint64_t epoch = claim_on(p, 0)->epoch;
	struct vhca_uuid id = pair_request(p, 0, VHCA_MIG_MODE_EXTERNAL);
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(pair_until(p, is_ready, NULL));
	refuse_once(p, VHCA_MIG_READY);
	assert_int_equal(vhca_migrations_extend(p->ms[0], &id, 3600000, &err), 0);
	assert_null(refuse.p);
	assert_int_equal(claim_on(p, 1)->epoch, epoch + 1);
	assert_int_equal(claim_on(p, 0)->epoch, epoch + 1);
	assert_true(vhca_migration_promised(vhca_migrations_find(p->ms[0], &id)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_refused_promise_is_not_spent, setup_pair,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_delivered_promise_stays, setup_pair,
						teardown),
	};

	return cmocka_run_group_tests_name("migration_refused", tests, NULL, NULL);
}
