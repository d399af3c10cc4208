// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cond.h"
#include "common/base/role.h"
#include "common/loop/thread.h"
#include "common/store/store_private.h"

/* Somebody who looks into the database with sqlite3(1) holds a lock for a moment only. */
#define BUSY_TIMEOUT_MS 5000
/* A disk that refuses is tried again so often: room may be made at any time, and a try costs
 * little. One that works for moments only is let alone longer each time. */
#define RETRY_FIRST_MS 500
#define RETRY_CAP_MS   30000

VHCA_DEFINE_CLEANUP(struct vhca_store, vhca_store_close)

struct vhca_row {
	sqlite3_stmt *stmt;
};

/* ---- opening ---- */

/* SQLite gives its journal files the mode of the database, so it is enough to create that one. */
static int create_private(const char *path)
{
	VHCA_AUTO_CLOSE int fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return fchmod(fd, 0600) < 0 ? -errno : 0;
}

static int open_connection(const char *path, int flags, sqlite3 **ret)
{
	/* NOMUTEX: each connection is used by one thread at a time. */
	int rc = sqlite3_open_v2(path, ret, flags | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(*ret, BUSY_TIMEOUT_MS);
	return vhca_sql_errno(rc);
}

static int open_database(struct vhca_store *store, struct vhca_error *err)
{
	int r = create_private(store->path);
	int64_t is_sound = 0;

	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "store", -r, "%s: open", store->path);
	r = open_connection(store->path, SQLITE_OPEN_READWRITE, &store->db);
	/*
	 * quick_check answers with rows of text: one "ok", or what is wrong. SQLite 3.46 takes an
	 * argument of pragma_quick_check() for the name of a table, so the number of rows is the
	 * statement's.
	 */
	if (r == 0)
		r = vhca_sql_number(store->db,
				    "SELECT quick_check = 'ok' FROM pragma_quick_check LIMIT 1",
				    &is_sound);
	if (r == 0 && !is_sound)
		r = -EUCLEAN;
	if (r == 0)
		r = vhca_sql_exec(store->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
					     "PRAGMA journal_size_limit = 4194304");
	if (r == 0)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_INTERNAL, "store", -r, "%s: %s", store->path,
			   store->db ? sqlite3_errmsg(store->db) : "open");
	vhca_error_hint(err, "move the file away to start with an empty one; VFs in use are then "
			     "found as unmanaged and can be adopted");
	return r;
}

static struct vhca_store *new_store(const char *path, struct vhca_loop *loop)
{
	VHCA_AUTO_FREE struct vhca_store *store = calloc(1, sizeof(*store));
	VHCA_AUTO_FREE char *copy = strdup(path);

	if (!store || !copy || pthread_mutex_init(&store->lock, NULL) != 0)
		return NULL;
	if (vhca_cond_init(&store->changed) < 0) {
		(void)pthread_mutex_destroy(&store->lock);
		return NULL;
	}
	store->loop = loop;
	store->backoff = (struct vhca_backoff){.first_ms = RETRY_FIRST_MS, .cap_ms = RETRY_CAP_MS};
	store->path = vhca_steal_ptr(&copy);
	STAILQ_INIT(&store->queue);
	return vhca_steal_ptr(&store);
}

int vhca_store_open(const char *path, const struct vhca_migration *migrations, unsigned int n,
		    struct vhca_loop *loop, struct vhca_store **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_store_closep) struct vhca_store *store = NULL;
	int r;

	vhca_may_block("store open");
	store = new_store(path, loop);
	if (!store)
		return vhca_error_no_memory(err, path);
	r = open_database(store, err);
	if (r < 0)
		return r;
	r = vhca_store_migrate(store, migrations, n, err);
	if (r < 0)
		return r;
	r = vhca_sql_exec(store->db, "PRAGMA foreign_keys = ON");
	if (r == 0)
		r = open_connection(path, SQLITE_OPEN_READONLY, &store->reader);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "store", -r, "%s: set up", path);
	store->version = n;
	r = vhca_thread_start(&store->worker, "store", vhca_store_worker, store);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "store", -r, "%s: thread", path);
	store->has_worker = true;
	*ret = vhca_steal_ptr(&store);
	return 0;
}

void vhca_store_watch(struct vhca_store *store, void (*fn)(void *arg, int rc), void *arg)
{
	store->watch = fn;
	store->watch_arg = arg;
}

void vhca_store_set_retry(struct vhca_store *store, uint32_t ms)
{
	store->backoff.first_ms = ms;
}

struct vhca_store *vhca_store_close(struct vhca_store *store)
{
	if (!store)
		return NULL;
	pthread_mutex_lock(&store->lock);
	store->closing = true;
	pthread_cond_signal(&store->changed);
	pthread_mutex_unlock(&store->lock);
	if (store->has_worker)
		(void)pthread_join(store->worker, NULL); /* fails only for a thread that is none */
	if (store->telling)
		(void)vhca_loop_unpost(store->loop, &store->post); /* it is the store's */
	(void)sqlite3_close(store->reader); /* these fail only with statements left open */
	(void)sqlite3_close(store->db);
	(void)pthread_cond_destroy(&store->changed);
	(void)pthread_mutex_destroy(&store->lock);
	free(store->path);
	free(store);
	return NULL;
}

/* ---- reading ---- */

static int walk(sqlite3_stmt *stmt, vhca_row_fn fn, void *ctx, bool *ret_by_caller)
{
	const struct vhca_row row = {.stmt = stmt};
	int rc, r;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		r = fn(ctx, &row);
		if (r != 0) {
			*ret_by_caller = true;
			return r;
		}
	}
	return vhca_sql_errno(rc);
}

static int query(struct vhca_store *store, const struct vhca_sql *sql, vhca_row_fn fn, void *ctx,
		 struct vhca_error *err)
{
	sqlite3_stmt *stmt = NULL;
	bool by_caller = false;
	int r;

	r = vhca_sql_prepare(store->reader, sql, &stmt);
	if (r == 0)
		r = walk(stmt, fn, ctx, &by_caller);
	if (r != 0 && !by_caller)
		r = vhca_error_set(err, VHCA_ERR_INTERNAL, "store", -r, "%s: %.80s: %s",
				   store->path, sql->text, sqlite3_errmsg(store->reader));
	(void)sqlite3_finalize(stmt); /* repeats the error of the last step */
	return r;
}

int vhca_store_query(struct vhca_store *store, const char *sql, vhca_row_fn fn, void *ctx,
		     struct vhca_error *err, const char *types, ...)
{
	VHCA_CLEANUP(vhca_sql_freep) struct vhca_sql *statement = NULL;
	va_list ap;

	vhca_may_block("store query");
	va_start(ap, types);
	statement = vhca_sql_new(sql, types, ap);
	va_end(ap);
	if (!statement)
		return vhca_error_no_memory(err, store->path);
	return query(store, statement, fn, ctx, err);
}

int64_t vhca_row_i64(const struct vhca_row *row, int col)
{
	return sqlite3_column_int64(row->stmt, col);
}

uint64_t vhca_row_u64(const struct vhca_row *row, int col)
{
	return (uint64_t)sqlite3_column_int64(row->stmt, col);
}

const char *vhca_row_text(const struct vhca_row *row, int col)
{
	const char *text = (const char *)sqlite3_column_text(row->stmt, col);

	return text ? text : "";
}
