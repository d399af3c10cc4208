/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_STORE_STORE_PRIVATE_H
#define VHCA_STORE_STORE_PRIVATE_H
/* What the files of this folder share. */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <sqlite3.h>

#include "common/base/cleanup.h"
#include "common/loop/post.h"
#include "common/store/store.h"

/* ---- sql.c: one statement with its arguments ---- */

struct vhca_sql_arg {
	char type; /* as in vhca_txn_exec() */
	int64_t number;
	char *text; /* owned */
};

struct vhca_sql {
	STAILQ_ENTRY(vhca_sql) entry;
	char *text;
	size_t n_args;
	struct vhca_sql_arg args[];
};

struct vhca_sql *vhca_sql_new(const char *text, const char *types,
			      va_list ap); /* NULL = no memory */
void vhca_sql_free(struct vhca_sql *sql);
VHCA_DEFINE_CLEANUP(struct vhca_sql, vhca_sql_free)
/* Prepares and binds. Returns 0 or a negative errno; the reason is sqlite3_errmsg(), except for
 * -EINVAL. */
int vhca_sql_prepare(sqlite3 *db, const struct vhca_sql *sql, sqlite3_stmt **ret);
/* Runs to the end, ignoring rows. */
int vhca_sql_run(sqlite3 *db, const struct vhca_sql *sql);
/* A constant statement without arguments. */
int vhca_sql_exec(sqlite3 *db, const char *text);
/* First column of the first row as a number. */
int vhca_sql_number(sqlite3 *db, const char *text, int64_t *ret);
int vhca_sql_errno(int rc); /* SQLite's result code as a negative errno, 0 for success */

/* ---- transactions ---- */

struct vhca_txn {
	STAILQ_ENTRY(vhca_txn) entry;
	struct vhca_store *store;
	STAILQ_HEAD(, vhca_sql) statements;
	int rc; /* set before submission: it never had enough memory */
	bool fail_fast;
	uint64_t begun_us; /* submitted (vhca_now_us) */
	void (*done)(void *arg, int rc);
	void *arg;
	struct vhca_post post;
};
STAILQ_HEAD(vhca_txn_list, vhca_txn);

struct vhca_store {
	struct vhca_loop *loop;
	sqlite3 *db;	 /* the worker's */
	sqlite3 *reader; /* vhca_store_query()'s: sees what is committed */
	char *path;
	unsigned int version; /* of the schema */
	bool has_worker;
	pthread_t worker;
	/* The worker's: the disk was complained of since it worked last; when it worked again; how
	 * often it is tried. */
	bool complained;
	uint64_t worked_ms;
	struct vhca_backoff backoff;
	uint32_t retry_ms;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed;
	struct vhca_txn_list queue;
	unsigned int n_queued;
	bool closing;
	int refusal;  /* of the disk, a negative errno; 0 = it takes what comes */
	bool telling; /* the post is queued */
	struct vhca_histogram commits;
	struct vhca_post post;
	/* The state thread's: who watches, and what it was told last. */
	void (*watch)(void *arg, int rc);
	void *watch_arg;
	int told;
};

/* migrate.c: brings the database to version n; version and schema change in one transaction each.
 */
int vhca_store_migrate(struct vhca_store *store, const struct vhca_migration *migrations,
		       unsigned int n, struct vhca_error *err);
/* worker.c: the thread */
void *vhca_store_worker(void *store);
/* Calls done() by way of the loop, in the order of these calls. */
void vhca_txn_finish(struct vhca_txn *txn);

#endif
