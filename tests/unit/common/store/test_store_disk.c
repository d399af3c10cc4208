/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store on a disk that refuses: what waits, who hears of it, and how it ends. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "tests/unit/common/store/slow_vfs.h"
#include "tests/unit/common/store/store_box.h"

/* ---- a disk that refuses ---- */

struct watched {
	unsigned int refusals, works;
	int last;
};

static void on_disk(void *arg, int rc)
{
	struct watched *w = arg;

	w->refusals += rc < 0;
	w->works += rc == 0;
	w->last = rc;
}

static void submit_fast(struct store_box *f, const char *bdf, struct store_result *r)
{
	struct vhca_txn *txn = vhca_txn_new(f->store);

	*r = (struct store_result){.f = f, .letter = bdf[0]};
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES (?1, 'free')", "s", bdf);
	vhca_txn_fail_fast(txn);
	vhca_txn_commit(txn, store_box_done, r);
}

static void what_a_full_disk_refuses_waits_in_its_order(void **state)
{
	struct store_box *f = *state;
	struct watched w = {0};
	struct store_result r[4];

	vhca_store_watch(f->store, on_disk, &w);
	slow_vfs_fill(f->path);
	store_box_put_vf(f, "A", &r[0]);
	/* Tried again and again. */
	unit_until(slow_vfs_refused() >= 3, (void)vhca_loop_once(f->loop, 50));
	store_box_put_claim(f, 1, "A", NULL, &r[1]); /* needs the one before it */
	store_box_put_vf(f, "A", &r[2]);	     /* exists */
	store_box_put_vf(f, "B", &r[3]);
	unit_until(slow_vfs_refused() >= 6, (void)vhca_loop_once(f->loop, 50));
	assert_int_equal(f->n_done, 0);
	assert_int_equal(w.refusals, 1);
	assert_int_equal(w.last, -ENOSPC);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 0);
	slow_vfs_fill(NULL);
	store_box_run_until(f, 4);
	while (w.works == 0)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
	assert_string_equal(f->order, "AcAB");
	assert_int_equal(r[0].rc, 0);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(r[2].rc, -EEXIST);
	assert_int_equal(r[3].rc, 0);
	assert_int_equal(w.refusals, 1);
	assert_int_equal(w.works, 1);
}

static void who_cannot_wait_hears_at_once(void **state)
{
	struct store_box *f = *state;
	struct watched w = {0};
	struct store_result r[3];

	vhca_store_watch(f->store, on_disk, &w);
	slow_vfs_fill(f->path);
	submit_fast(f, "A", &r[0]); /* who finds it out */
	store_box_run_until(f, 1);
	assert_int_equal(r[0].rc, -ENOSPC);
	assert_int_equal(w.last, -ENOSPC); /* told before */
	store_box_put_vf(f, "B", &r[1]);
	submit_fast(f, "C", &r[2]);
	store_box_run_until(f, 2);
	assert_int_equal(r[2].rc, -ENOSPC);
	assert_false(r[1].called);
	slow_vfs_fill(NULL);
	store_box_run_until(f, 3);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 1);
}

/* Nobody waits, and nobody comes. */
static void a_disk_that_works_again_is_told_of(void **state)
{
	struct store_box *f = *state;
	struct watched w = {0};
	struct store_result r;

	vhca_store_watch(f->store, on_disk, &w);
	slow_vfs_fill(f->path);
	submit_fast(f, "A", &r);
	store_box_run_until(f, 1);
	unit_until(slow_vfs_refused() >= 3, (void)vhca_loop_once(f->loop, 50));
	assert_int_equal(w.works, 0);
	slow_vfs_fill(NULL);
	while (w.works == 0)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
}

static void the_end_does_not_wait_for_the_disk(void **state)
{
	struct store_box *f = *state;
	uint64_t start = vhca_now_ms();
	struct store_result r[2];

	slow_vfs_fill(f->path);
	store_box_put_vf(f, "A", &r[0]);
	store_box_put_vf(f, "B", &r[1]);
	f->store = vhca_store_close(f->store);
	assert_true(vhca_now_ms() - start < 5000);
	slow_vfs_fill(NULL);
	store_box_run_until(f, 2);
	assert_int_equal(r[0].rc, -ENOSPC);
	assert_int_equal(r[1].rc, -ENOSPC);
	store_box_open(f);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 0);
}

static void a_loop_freed_first_drops_the_results(void **state)
{
	struct store_box *f = *state;
	struct store_result r;

	store_box_put_vf(f, "B", &r);
	f->store = vhca_store_close(f->store);
	f->loop = vhca_loop_free(f->loop); /* ASAN sees that nothing leaks */
	assert_false(r.called);
}

/* The child: commits, sees by a second connection that the row is there, and dies before its loop
 * could run done(). */
_Noreturn static void commit_and_die(struct store_box *f)
{
	struct vhca_store *store = NULL;
	struct store_result r = {.f = f};
	struct vhca_txn *txn;
	int64_t n = 0;

	if (vhca_store_open(f->path, store_box_migrations, STORE_BOX_VERSION, f->loop, &store,
			    NULL) < 0)
		_exit(1);
	txn = vhca_txn_new(store);
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('kept', 'claimed')", "");
	vhca_txn_commit(txn, store_box_done, &r);
	while (n == 0)
		if (vhca_store_query(store, "SELECT count(*) FROM vf", store_box_take_number, &n,
				     NULL, "") < 0)
			_exit(2);
	(void)kill(getpid(), SIGKILL);
	_exit(3);
}

static void a_commit_survives_a_kill_before_done(void **state)
{
	struct store_box *f = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		commit_and_die(f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	store_box_open(f);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf WHERE bdf = 'kept'"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_CASE(what_a_full_disk_refuses_waits_in_its_order),
		STORE_CASE(who_cannot_wait_hears_at_once),
		STORE_CASE(a_disk_that_works_again_is_told_of),
		STORE_CASE(the_end_does_not_wait_for_the_disk),
		STORE_CASE(a_loop_freed_first_drops_the_results),
		STORE_CASE_EMPTY(a_commit_survives_a_kill_before_done),
	};

	slow_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
