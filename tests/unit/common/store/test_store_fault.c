// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What only a fault point can bring about: a COMMIT that fails. Built with -Dfault-points=true
 * only.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/store/store.h"
#include "tests/unit/unit.h"

static const struct vhca_migration migrations[] = {{"CREATE TABLE t (n INTEGER NOT NULL)"}};

struct fixture {
	char dir[64], path[96];
	struct vhca_loop *loop;
	struct vhca_store *store;
	int n_done, last_rc;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vhca-fault-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/state.db", f->dir);
	assert_int_equal(vhca_loop_new(&f->loop), 0);
	if (vhca_store_open(f->path, migrations, 1, f->loop, &f->store, &err) < 0)
		fail_msg("%s", err.msg);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	(void)vhca_store_close(f->store);
	(void)vhca_loop_free(f->loop);
	(void)unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void done(void *arg, int rc)
{
	struct fixture *f = arg;

	f->n_done++;
	f->last_rc = rc;
}

static int insert(struct fixture *f, int64_t n, bool fail_fast)
{
	struct vhca_txn *txn = vhca_txn_new(f->store);
	int before = f->n_done;

	vhca_txn_exec(txn, "INSERT INTO t VALUES (?1)", "i", n);
	if (fail_fast)
		vhca_txn_fail_fast(txn);
	vhca_txn_commit(txn, done, f);
	while (f->n_done == before)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
	return f->last_rc;
}

static int take_number(void *ctx, const struct vhca_row *row)
{
	*(int64_t *)ctx = vhca_row_i64(row, 0);
	return 0;
}

static int64_t sum(const struct fixture *f)
{
	int64_t n = -1;

	assert_int_equal(vhca_store_query(f->store, "SELECT coalesce(sum(n), 0) FROM t",
					  take_number, &n, NULL, ""),
			 0);
	return n;
}

static void a_failed_commit_applies_nothing(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(insert(f, 1, true), 0);
	assert_int_equal(insert(f, 10, true), -EIO); /* store.commit=errno:5:2 */
	assert_int_equal(sum(f), 1);
	assert_int_equal(insert(f, 100, false), 0);
	assert_int_equal(sum(f), 101);
}

static void or_it_is_tried_again(void **state)
{
	struct fixture *f = *state;
	uint64_t start = vhca_now_ms();

	assert_int_equal(insert(f, 1, false), 0); /* store.commit=errno:5:3 */
	assert_true(vhca_now_ms() - start >= 200);
	assert_int_equal(sum(f), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_failed_commit_applies_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(or_it_is_tried_again, setup, teardown),
	};

	/* Read at the first fault point. The second counts only what the first lets pass. */
	(void)setenv("VHCA_FAULT", "store.commit=errno:5:2,store.commit=errno:5:3", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
