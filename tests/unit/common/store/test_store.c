/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store: a database is opened, migrated, written and read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/unit/common/store/slow_vfs.h"
#include "tests/unit/common/store/store_box.h"

/* ---- opening and migrations ---- */

static void a_new_database_is_private_and_current(void **state)
{
	struct store_box *f = *state;
	mode_t old = umask(0);
	struct stat st;

	store_box_open(f);
	(void)umask(old);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(store_box_number(f, "PRAGMA user_version"), STORE_BOX_VERSION);
	assert_int_equal(
		store_box_number(f, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
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
	struct store_box *f = *state;
	struct stat st;

	run_sql(f->path,
		"CREATE TABLE vf (bdf TEXT PRIMARY KEY, state TEXT NOT NULL);"
		"INSERT INTO vf VALUES ('0000:01:00.1', 'attached'); PRAGMA user_version = 1");
	assert_int_equal(chmod(f->path, 0644), 0);
	store_box_open(f);
	assert_int_equal(store_box_number(f, "PRAGMA user_version"), STORE_BOX_VERSION);
	assert_int_equal(store_box_number(f, "SELECT guid FROM vf WHERE state = 'attached'"), 7);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	f->store = vhca_store_close(f->store);
	store_box_open(f); /* nothing to do any more */
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 1);
}

static int try_open(struct store_box *f, const struct vhca_migration *m, unsigned int n,
		    struct vhca_error *err)
{
	return vhca_store_open(f->path, m, n, f->loop, &f->store, err);
}

static void a_newer_database_is_refused_untouched(void **state)
{
	struct store_box *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;

	run_sql(f->path, "PRAGMA user_version = 4");
	assert_true(try_open(f, store_box_migrations, STORE_BOX_VERSION, &err) < 0);
	assert_string_equal(err.code, "store_newer");
	assert_non_null(strstr(err.msg, "schema version 4 is newer than this program's 3"));
	assert_string_not_equal(err.hint, "");
}

static void a_failed_migration_leaves_the_version_before(void **state)
{
	struct store_box *f = *state;
	const struct vhca_migration broken[] = {
		store_box_migrations[0],
		{"INSERT INTO vf VALUES ('a', 'b', 0); INSERT INTO nowhere VALUES (1)"},
	};
	const struct vhca_migration dangling[] = {
		store_box_migrations[0],
		{"CREATE TABLE c (bdf TEXT REFERENCES vf(bdf)); INSERT INTO c VALUES ('none')"},
	};
	struct vhca_error err = VHCA_ERROR_INIT;

	assert_true(try_open(f, broken, 2, &err) < 0);
	assert_non_null(strstr(err.msg, "migration to version 2"));
	assert_true(try_open(f, dangling, 2, &err) < 0);
	assert_non_null(strstr(err.msg, "references to rows that do not exist"));
	assert_int_equal(try_open(f, store_box_migrations, 1, &err), 0);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 0);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM sqlite_master WHERE name = 'c'"),
			 0);
}

static void what_is_no_database_is_refused(void **state)
{
	struct store_box *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	static const char text[] = "this is a text, and long enough to be taken for a header of it";
	char good[sizeof(f->path)];

	assert_int_equal(vhca_write_file_atomic(f->path, text, sizeof(text), 0600), 0);
	assert_true(try_open(f, store_box_migrations, STORE_BOX_VERSION, &err) < 0);
	assert_non_null(strstr(err.msg, "not a database"));
	assert_string_not_equal(err.hint, "");

	memcpy(good, f->path, sizeof(good));
	(void)snprintf(f->path, sizeof(f->path), "%s/none/state.db", f->dir);
	assert_int_equal(try_open(f, store_box_migrations, STORE_BOX_VERSION, &err), -ENOENT);
	memcpy(f->path, f->dir, sizeof(f->dir));
	assert_true(try_open(f, store_box_migrations, STORE_BOX_VERSION, &err) <
		    0); /* a directory */
	memcpy(f->path, good, sizeof(good));
}

static void a_damaged_database_is_noticed_at_once(void **state)
{
	struct store_box *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	char junk[4096];
	int fd;

	store_box_open(f);
	f->store = vhca_store_close(f->store);
	memset(junk, 0x5a, sizeof(junk));
	fd = open(f->path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, junk, sizeof(junk), 4096), sizeof(junk));
	(void)close(fd);
	assert_true(try_open(f, store_box_migrations, STORE_BOX_VERSION, &err) < 0);
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
	struct store_box *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct store_result r = {.f = f};
	char bdf[] = "0000:01:00.1";
	int rows = 0;

	vhca_txn_exec(txn, "CREATE TABLE t (a TEXT, b TEXT, c INTEGER, d INTEGER)", "");
	vhca_txn_exec(txn, "INSERT INTO t VALUES (?1, ?2, ?3, ?4);", "ssui", bdf, NULL,
		      UINT64_MAX - 1, INT64_MIN);
	memset(bdf, 'x', sizeof(bdf) - 1); /* arguments were copied */
	vhca_txn_commit(txn, store_box_done, &r);
	store_box_run_until(f, 1);
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

	assert_int_equal(vhca_store_query(((struct store_box *)*state)->store,
					  "VALUES (1), (2), (3)", stop_at_second, &rows, NULL, ""),
			 42);
	assert_int_equal(rows, 2);
}

static void wrong_statements_are_errors(void **state)
{
	struct store_box *f = *state;
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
	struct store_box *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct store_result r = {.f = f};

	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('a', 'free')", "");
	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('a', 'free')", "");
	vhca_txn_commit(txn, store_box_done, &r);
	store_box_run_until(f, 1);
	assert_int_equal(r.rc, -EEXIST);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 0);
}

static void an_aborted_transaction_leaves_no_trace(void **state)
{
	struct store_box *f = *state;
	struct vhca_txn *txn = vhca_txn_new(f->store);
	struct store_result r;

	vhca_txn_exec(txn, "INSERT INTO vf (bdf, state) VALUES ('x', 'free')", "");
	vhca_txn_abort(txn);
	vhca_txn_abort(NULL);
	store_box_put_vf(f, "y", &r);
	store_box_run_until(f, 1);
	assert_int_equal(store_box_number(f, "SELECT count(*) FROM vf"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_CASE_EMPTY(a_new_database_is_private_and_current),
		STORE_CASE_EMPTY(older_databases_are_migrated_with_their_rows),
		STORE_CASE_EMPTY(a_newer_database_is_refused_untouched),
		STORE_CASE_EMPTY(a_failed_migration_leaves_the_version_before),
		STORE_CASE_EMPTY(what_is_no_database_is_refused),
		STORE_CASE_EMPTY(a_damaged_database_is_noticed_at_once),
		STORE_CASE(values_survive_unchanged),
		STORE_CASE(a_row_function_can_stop_the_query),
		STORE_CASE(wrong_statements_are_errors),
		STORE_CASE(a_transaction_is_all_or_nothing),
		STORE_CASE(an_aborted_transaction_leaves_no_trace),
	};

	slow_vfs_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
