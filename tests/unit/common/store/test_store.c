// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/store/store.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/unit/common/store/slow_vfs.h"

#define MANY 200

static const struct vhca_migration migrations[] = {
	{"CREATE TABLE vf (bdf TEXT PRIMARY KEY, state TEXT NOT NULL);"},
	{"ALTER TABLE vf ADD COLUMN guid INTEGER; UPDATE vf SET guid = 7;"
	 "CREATE TABLE claim (id INTEGER PRIMARY KEY, bdf TEXT NOT NULL REFERENCES vf(bdf),"
	 " late TEXT REFERENCES vf(bdf) DEFERRABLE INITIALLY DEFERRED);"},
	{"CREATE TRIGGER bomb BEFORE INSERT ON claim WHEN NEW.id = 666"
	 " BEGIN SELECT RAISE(ROLLBACK, 'everything is lost'); END;"},
};
#define VERSION 3

struct fixture {
	char dir[64], path[96];
	struct vhca_loop *loop;
	struct vhca_store *store;
	pthread_t state_thread;
	unsigned int n_done;
	char order[MANY + 1]; /* a letter for each done() */
};

struct result {
	struct fixture *f;
	char letter;
	bool called;
	int rc;
};

static void no_log(enum vhca_log_level level, const char *msg)
{
	(void)level;
	(void)msg;
}

static void open_store(struct fixture *f)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_store_open(f->path, migrations, VERSION, f->loop, &f->store, &err) < 0)
		fail_msg("%s", err.msg);
}

static int setup_empty(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vhca-store-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/state.db", f->dir);
	assert_int_equal(vhca_loop_new(&f->loop), 0);
	f->state_thread = pthread_self();
	vhca_log_set_sink(no_log); /* failing statements are what is tested */
	*state = f;
	return 0;
}

static int setup(void **state)
{
	(void)setup_empty(state);
	open_store(*state);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	slow_vfs_delay_ms(0);
	slow_vfs_fill(NULL);
	f->store = vhca_store_close(f->store);
	(void)vhca_loop_free(f->loop);
	vhca_log_set_sink(NULL);
	(void)unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0); /* closing has removed the journal files */
	free(f);
	return 0;
}

/* ---- helpers ---- */

static void done(void *arg, int rc)
{
	struct result *r = arg;

	assert_true(pthread_equal(pthread_self(), r->f->state_thread));
	assert_false(r->called);
	r->called = true;
	r->rc = rc;
	r->f->order[r->f->n_done++] = r->letter;
}

static void submit_vf(struct fixture *f, const char *bdf, struct result *r)
{
	struct vhca_txn *txn = vhca_txn_new(f->store);

	*r = (struct result){.f = f, .letter = bdf[0]};
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES (?1, ?2)", "ss", bdf, "free");
	vhca_txn_commit(txn, done, r);
}

static void submit_claim(struct fixture *f, int64_t id, const char *bdf, const char *late,
			 struct result *r)
{
	struct vhca_txn *txn = vhca_txn_new(f->store);

	*r = (struct result){.f = f, .letter = 'c'};
	vhca_txn_exec(txn, "INSERT INTO claim (id, bdf, late) VALUES (?1, ?2, ?3)", "iss", id, bdf,
		      late);
	vhca_txn_commit(txn, done, r);
}

static void run_until(struct fixture *f, unsigned int n_done)
{
	while (f->n_done < n_done)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
}

static int take_number(void *ctx, const struct vhca_row *row)
{
	*(int64_t *)ctx = vhca_row_i64(row, 0);
	return 0;
}

static int64_t number(struct fixture *f, const char *sql)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int64_t n = -1;

	if (vhca_store_query(f->store, sql, take_number, &n, &err, "") < 0)
		fail_msg("%s", err.msg);
	return n;
}

/* Keeps the worker busy in a sync, so that what is submitted next forms one group. */
static void hold_worker(struct fixture *f, struct result *first)
{
	unsigned int before = slow_vfs_syncs();
	const struct timespec ts = {.tv_nsec = 1000000};

	slow_vfs_delay_ms(80);
	submit_vf(f, "A", first);
	while (slow_vfs_syncs() == before)
		(void)nanosleep(&ts, NULL);
	slow_vfs_delay_ms(0); /* the sync under way has read its delay */
}

/* ---- opening and migrations ---- */

static void a_new_database_is_private_and_current(void **state)
{
	struct fixture *f = *state;
	mode_t old = umask(0);
	struct stat st;

	open_store(f);
	(void)umask(old);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(number(f, "PRAGMA user_version"), VERSION);
	assert_int_equal(number(f, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
}

static void run_sql(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void older_databases_are_migrated_with_their_rows(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	run_sql(f->path,
		"CREATE TABLE vf (bdf TEXT PRIMARY KEY, state TEXT NOT NULL);"
		"INSERT INTO vf VALUES ('0000:01:00.1', 'attached'); PRAGMA user_version = 1");
	assert_int_equal(chmod(f->path, 0644), 0);
	open_store(f);
	assert_int_equal(number(f, "PRAGMA user_version"), VERSION);
	assert_int_equal(number(f, "SELECT guid FROM vf WHERE state = 'attached'"), 7);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	f->store = vhca_store_close(f->store);
	open_store(f); /* nothing to do any more */
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 1);
}

static int try_open(struct fixture *f, const struct vhca_migration *m, unsigned int n,
		    struct vhca_error *err)
{
	return vhca_store_open(f->path, m, n, f->loop, &f->store, err);
}

static void a_newer_database_is_refused_untouched(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	run_sql(f->path, "PRAGMA user_version = 4");
	assert_true(try_open(f, migrations, VERSION, &err) < 0);
	assert_string_equal(err.code, "store_newer");
	assert_non_null(strstr(err.msg, "schema version 4 is newer than this program's 3"));
	assert_string_not_equal(err.hint, "");
}

static void a_failed_migration_leaves_the_version_before(void **state)
{
	struct fixture *f = *state;
	const struct vhca_migration broken[] = {
		migrations[0],
		{"INSERT INTO vf VALUES ('a', 'b', 0); INSERT INTO nowhere VALUES (1)"},
	};
	const struct vhca_migration dangling[] = {
		migrations[0],
		{"CREATE TABLE c (bdf TEXT REFERENCES vf(bdf)); INSERT INTO c VALUES ('none')"},
	};
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(try_open(f, broken, 2, &err) < 0);
	assert_non_null(strstr(err.msg, "migration to version 2"));
	assert_true(try_open(f, dangling, 2, &err) < 0);
	assert_non_null(strstr(err.msg, "references to rows that do not exist"));
	assert_int_equal(try_open(f, migrations, 1, &err), 0);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 0);
	assert_int_equal(number(f, "SELECT count(*) FROM sqlite_master WHERE name = 'c'"), 0);
}

static void what_is_no_database_is_refused(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	static const char text[] = "this is a text, and long enough to be taken for a header of it";
	char good[sizeof(f->path)];

	assert_int_equal(vhca_write_file_atomic(f->path, text, sizeof(text), 0600), 0);
	assert_true(try_open(f, migrations, VERSION, &err) < 0);
	assert_non_null(strstr(err.msg, "not a database"));
	assert_string_not_equal(err.hint, "");

	memcpy(good, f->path, sizeof(good));
	(void)snprintf(f->path, sizeof(f->path), "%s/none/state.db", f->dir);
	assert_int_equal(try_open(f, migrations, VERSION, &err), -ENOENT);
	memcpy(f->path, f->dir, sizeof(f->dir));
	assert_true(try_open(f, migrations, VERSION, &err) < 0); /* a directory */
	memcpy(f->path, good, sizeof(good));
}

static void a_damaged_database_is_noticed_at_once(void **state)
{
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	char junk[4096];
	int fd;

	open_store(f);
	f->store = vhca_store_close(f->store);
	memset(junk, 0x5a, sizeof(junk));
	fd = open(f->path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, junk, sizeof(junk), 4096), sizeof(junk));
	(void)close(fd);
	assert_true(try_open(f, migrations, VERSION, &err) < 0);
	assert_non_null(strstr(err.msg, f->path));
}

/* ---- reading and writing ---- */

static int compare_row(void *ctx, const struct vhca_row *row)
{
	(*(int *)ctx)++;
	assert_string_equal(vhca_row_text(row, 0), "0000:01:00.1");
	assert_string_equal(vhca_row_text(row, 1), ""); /* NULL */
	assert_true(vhca_row_u64(row, 2) == UINT64_MAX - 1);
	assert_true(vhca_row_i64(row, 3) == INT64_MIN);
	return 0;
}

static void values_survive_unchanged(void **state)
{
	struct fixture *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct result r = {.f = f};
	char bdf[] = "0000:01:00.1";
	int rows = 0;

	vhca_txn_exec(txn, "CREATE TABLE t (a TEXT, b TEXT, c INTEGER, d INTEGER)", "");
	vhca_txn_exec(txn, "INSERT INTO t VALUES (?1, ?2, ?3, ?4);", "ssui", bdf, NULL,
		      UINT64_MAX - 1, INT64_MIN);
	memset(bdf, 'x', sizeof(bdf) - 1); /* arguments were copied */
	vhca_txn_commit(txn, done, &r);
	run_until(f, 1);
	assert_int_equal(r.rc, 0);
	assert_int_equal(vhca_store_query(f->store, "SELECT * FROM t WHERE c = ?1", compare_row,
					  &rows, NULL, "u", UINT64_MAX - 1),
			 0);
	assert_int_equal(rows, 1);
}

static int stop_at_second(void *ctx, const struct vhca_row *row)
{
	(void)row;
	return ++*(int *)ctx == 2 ? 42 : 0;
}

static void a_row_function_can_stop_the_query(void **state)
{
	int rows = 0;

	assert_int_equal(vhca_store_query(((struct fixture *)*state)->store, "VALUES (1), (2), (3)",
					  stop_at_second, &rows, NULL, ""),
			 42);
	assert_int_equal(rows, 2);
}

static void wrong_statements_are_errors(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *sql, *types;
	} wrong[] = {
		{"SELECT nothing FROM nowhere", ""},
		{"SELECT ?1, ?2", "i"},
		{"SELECT 1", "i"},
		{"SELECT 1; SELECT 2", ""},
		{"", ""},
		{"SELECT ?1", "x"},
		{"INSERT INTO vf VALUES ('a', 'b', 1)", ""}, /* the reader cannot write */
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(wrong); i++) {
		struct vhca_error err = VHCA_ERROR_INIT;
		int rows = 0;

		if (vhca_store_query(f->store, wrong[i].sql, stop_at_second, &rows, &err,
				     wrong[i].types, INT64_C(1)) >= 0)
			fail_msg("accepted: %s", wrong[i].sql);
		assert_string_equal(err.code, "store");
	}
}

static void a_transaction_is_all_or_nothing(void **state)
{
	struct fixture *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct result r = {.f = f};

	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('a', 'free')", "");
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('a', 'free')", "");
	vhca_txn_commit(txn, done, &r);
	run_until(f, 1);
	assert_int_equal(r.rc, -EEXIST);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 0);
}

static void an_aborted_transaction_leaves_no_trace(void **state)
{
	struct fixture *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct result r;

	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('x', 'free')", "");
	vhca_txn_abort(txn);
	vhca_txn_abort(NULL);
	submit_vf(f, "y", &r);
	run_until(f, 1);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 1);
}

/* ---- group commit ---- */

static void one_sync_serves_all_that_wait(void **state)
{
	struct fixture *f = *state;
	struct result first, results[MANY - 1];
	unsigned int syncs;
	char bdf[16];

	hold_worker(f, &first);
	syncs = slow_vfs_syncs();
	for (int i = 0; i < MANY - 1; i++) {
		(void)snprintf(bdf, sizeof(bdf), "%c%d", 'a' + i % 26, i);
		submit_vf(f, bdf, &results[i]);
	}
	run_until(f, MANY);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), MANY);
	assert_in_range(slow_vfs_syncs() - syncs, 1, 2); /* the second: a new round of the log */
	assert_int_equal(f->order[0], 'A');
	for (int i = 0; i < MANY - 1; i++) {
		assert_int_equal(results[i].rc, 0);
		assert_int_equal(f->order[i + 1], 'a' + i % 26); /* in order of submission */
	}
}

static void one_that_fails_does_not_take_the_others_down(void **state)
{
	struct fixture *f = *state;
	struct result r[6];

	hold_worker(f, &r[0]);
	submit_vf(f, "B", &r[1]);
	submit_vf(f, "A", &r[2]);		 /* exists */
	submit_claim(f, 1, "none", NULL, &r[3]); /* refers to nothing */
	submit_claim(f, 2, "B", NULL, &r[4]);
	submit_vf(f, "C", &r[5]);
	run_until(f, 6);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(r[2].rc, -EEXIST);
	assert_int_equal(r[3].rc, -EEXIST);
	assert_int_equal(r[4].rc, 0);
	assert_int_equal(r[5].rc, 0);
	assert_string_equal(f->order, "ABAccC");
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 3);
	assert_int_equal(number(f, "SELECT id FROM claim"), 2);
}

static void not_even_one_that_fails_at_the_commit(void **state)
{
	struct fixture *f = *state;
	struct result r[4];

	hold_worker(f, &r[0]);
	submit_vf(f, "B", &r[1]);
	submit_claim(f, 1, "A", "none", &r[2]); /* found out at COMMIT only */
	submit_vf(f, "C", &r[3]);
	run_until(f, 4);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(r[2].rc, -EEXIST);
	assert_int_equal(r[3].rc, 0);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 3);
	assert_int_equal(number(f, "SELECT count(*) FROM claim"), 0);
}

static void nor_one_that_makes_sqlite_roll_back_everything(void **state)
{
	struct fixture *f = *state;
	struct result r[4];

	hold_worker(f, &r[0]);
	submit_vf(f, "B", &r[1]);
	submit_claim(f, 666, "A", NULL, &r[2]);
	submit_vf(f, "C", &r[3]);
	run_until(f, 4);
	assert_int_equal(r[1].rc, 0);
	assert_true(r[2].rc < 0);
	assert_int_equal(r[3].rc, 0);
	assert_string_equal(f->order, "ABcC");
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 3);
}

static void count_result(void *arg, int rc)
{
	unsigned int *counts = arg; /* of 0, -EAGAIN, others */

	counts[rc == 0 ? 0 : rc == -EAGAIN ? 1 : 2]++;
}

static void the_queue_is_bounded(void **state)
{
	struct fixture *f = *state;
	unsigned int counts[3] = {0};
	struct result first;

	hold_worker(f, &first);
	for (int i = 0; i < 9000; i++)
		vhca_txn_commit(vhca_txn_new(f->store), count_result, counts);
	while (counts[0] + counts[1] + counts[2] < 9000)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
	assert_int_equal(counts[0], 8192);
	assert_int_equal(counts[1], 9000 - 8192);
}

/* ---- time and crashes ---- */

struct ticker {
	struct vhca_timer *timer;
	uint64_t last, longest;
};

static void on_tick(void *arg)
{
	struct ticker *t = arg;
	uint64_t now = vhca_now_ms();

	if (now - t->last > t->longest)
		t->longest = now - t->last;
	t->last = now;
	vhca_timer_arm_ms(t->timer, 5);
}

static void a_slow_disk_does_not_stall_the_loop(void **state)
{
	struct fixture *f = *state;
	struct ticker t = {.last = vhca_now_ms()};
	uint64_t start = vhca_now_ms();
	struct result r[3];

	assert_int_equal(vhca_timer_new(f->loop, "tick", on_tick, &t, &t.timer), 0);
	vhca_timer_arm_ms(t.timer, 0);
	slow_vfs_delay_ms(300);
	for (int i = 0; i < 3; i++)
		submit_vf(f, (const char *[]){"a", "b", "c"}[i], &r[i]);
	run_until(f, 3);
	assert_true(vhca_now_ms() - start >= 300); /* done() waited for the disk */
	assert_true(t.longest < 150);		   /* and nothing else did */
	assert_true(vhca_loop_max_callback_us(f->loop) < 50000);
	(void)vhca_timer_free(t.timer);
}

static void closing_commits_what_is_queued(void **state)
{
	struct fixture *f = *state;
	struct result r[3];

	hold_worker(f, &r[0]);
	submit_vf(f, "B", &r[1]);
	submit_vf(f, "C", &r[2]);
	f->store = vhca_store_close(f->store);
	assert_int_equal(f->n_done, 0);
	run_until(f, 3);
	open_store(f);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 3);
}

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

static void submit_fast(struct fixture *f, const char *bdf, struct result *r)
{
	struct vhca_txn *txn = vhca_txn_new(f->store);

	*r = (struct result){.f = f, .letter = bdf[0]};
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES (?1, 'free')", "s", bdf);
	vhca_txn_fail_fast(txn);
	vhca_txn_commit(txn, done, r);
}

static void what_a_full_disk_refuses_waits_in_its_order(void **state)
{
	struct fixture *f = *state;
	struct watched w = {0};
	struct result r[4];

	vhca_store_watch(f->store, on_disk, &w);
	slow_vfs_fill(f->path);
	submit_vf(f, "A", &r[0]);
	while (slow_vfs_refused() < 3) /* tried again and again */
		(void)vhca_loop_once(f->loop, 50);
	submit_claim(f, 1, "A", NULL, &r[1]); /* needs the one before it */
	submit_vf(f, "A", &r[2]);	      /* exists */
	submit_vf(f, "B", &r[3]);
	while (slow_vfs_refused() < 6)
		(void)vhca_loop_once(f->loop, 50);
	assert_int_equal(f->n_done, 0);
	assert_int_equal(w.refusals, 1);
	assert_int_equal(w.last, -ENOSPC);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 0);
	slow_vfs_fill(NULL);
	run_until(f, 4);
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
	struct fixture *f = *state;
	struct watched w = {0};
	struct result r[3];

	vhca_store_watch(f->store, on_disk, &w);
	slow_vfs_fill(f->path);
	submit_fast(f, "A", &r[0]); /* who finds it out */
	run_until(f, 1);
	assert_int_equal(r[0].rc, -ENOSPC);
	assert_int_equal(w.last, -ENOSPC); /* told before */
	submit_vf(f, "B", &r[1]);
	submit_fast(f, "C", &r[2]);
	run_until(f, 2);
	assert_int_equal(r[2].rc, -ENOSPC);
	assert_false(r[1].called);
	slow_vfs_fill(NULL);
	run_until(f, 3);
	assert_int_equal(r[1].rc, 0);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 1);
}

/* Nobody waits, and nobody comes. */
static void a_disk_that_works_again_is_told_of(void **state)
{
	struct fixture *f = *state;
	struct watched w = {0};
	struct result r;

	vhca_store_watch(f->store, on_disk, &w);
	slow_vfs_fill(f->path);
	submit_fast(f, "A", &r);
	run_until(f, 1);
	while (slow_vfs_refused() < 3)
		(void)vhca_loop_once(f->loop, 50);
	assert_int_equal(w.works, 0);
	slow_vfs_fill(NULL);
	while (w.works == 0)
		assert_true(vhca_loop_once(f->loop, 5000) > 0);
}

static void the_end_does_not_wait_for_the_disk(void **state)
{
	struct fixture *f = *state;
	uint64_t start = vhca_now_ms();
	struct result r[2];

	slow_vfs_fill(f->path);
	submit_vf(f, "A", &r[0]);
	submit_vf(f, "B", &r[1]);
	f->store = vhca_store_close(f->store);
	assert_true(vhca_now_ms() - start < 5000);
	slow_vfs_fill(NULL);
	run_until(f, 2);
	assert_int_equal(r[0].rc, -ENOSPC);
	assert_int_equal(r[1].rc, -ENOSPC);
	open_store(f);
	assert_int_equal(number(f, "SELECT count(*) FROM vf"), 0);
}

static void a_loop_freed_first_drops_the_results(void **state)
{
	struct fixture *f = *state;
	struct result r;

	submit_vf(f, "B", &r);
	f->store = vhca_store_close(f->store);
	f->loop = vhca_loop_free(f->loop); /* ASAN sees that nothing leaks */
	assert_false(r.called);
}

/* The child: commits, sees by a second connection that the row is there, and dies before its loop
 * could run done(). */
_Noreturn static void commit_and_die(struct fixture *f)
{
	struct vhca_store *store = NULL;
	struct result r = {.f = f};
	struct vhca_txn *txn;
	int64_t n = 0;

	if (vhca_store_open(f->path, migrations, VERSION, f->loop, &store, NULL) < 0)
		_exit(1);
	txn = vhca_txn_new(store);
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('kept', 'claimed')", "");
	vhca_txn_commit(txn, done, &r);
	while (n == 0)
		if (vhca_store_query(store, "SELECT count(*) FROM vf", take_number, &n, NULL, "") <
		    0)
			_exit(2);
	(void)kill(getpid(), SIGKILL);
	_exit(3);
}

static void a_commit_survives_a_kill_before_done(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		commit_and_die(f);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	open_store(f);
	assert_int_equal(number(f, "SELECT count(*) FROM vf WHERE bdf = 'kept'"), 1);
}

#define T(name)	      cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_EMPTY(name) cmocka_unit_test_setup_teardown(name, setup_empty, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T_EMPTY(a_new_database_is_private_and_current),
		T_EMPTY(older_databases_are_migrated_with_their_rows),
		T_EMPTY(a_newer_database_is_refused_untouched),
		T_EMPTY(a_failed_migration_leaves_the_version_before),
		T_EMPTY(what_is_no_database_is_refused),
		T_EMPTY(a_damaged_database_is_noticed_at_once),
		T(values_survive_unchanged),
		T(a_row_function_can_stop_the_query),
		T(wrong_statements_are_errors),
		T(a_transaction_is_all_or_nothing),
		T(an_aborted_transaction_leaves_no_trace),
		T(one_sync_serves_all_that_wait),
		T(one_that_fails_does_not_take_the_others_down),
		T(not_even_one_that_fails_at_the_commit),
		T(nor_one_that_makes_sqlite_roll_back_everything),
		T(the_queue_is_bounded),
		T(a_slow_disk_does_not_stall_the_loop),
		T(closing_commits_what_is_queued),
		T(what_a_full_disk_refuses_waits_in_its_order),
		T(who_cannot_wait_hears_at_once),
		T(a_disk_that_works_again_is_told_of),
		T(the_end_does_not_wait_for_the_disk),
		T(a_loop_freed_first_drops_the_results),
		T_EMPTY(a_commit_survives_a_kill_before_done),
	};

	slow_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
