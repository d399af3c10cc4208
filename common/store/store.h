/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_STORE_STORE_H
#define VHCA_STORE_STORE_H
/*
 * SQLite behind one worker thread. WAL, synchronous=FULL, foreign keys on. The schema is an array
 * of migrations, applied in order and recorded in PRAGMA user_version; a database newer than the
 * program is refused.
 *
 * Writers build a transaction on the state thread and submit it; the worker commits in groups (all
 * transactions queued at that moment in one fsync) and then calls each one's done() on the state
 * thread. A state machine starts an effect only in done().
 *
 * What the disk refuses (no space, an I/O error, a lock that somebody holds) is not lost: it waits,
 * and all that was submitted after it, and is tried again until the disk takes it. So a disk that
 * fails is a slow one to whoever submits; who wants to know of it watches. Only a transaction's own
 * fault fails it.
 */
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/histogram.h"
#include "common/loop/loop.h"

struct vhca_store;
struct vhca_txn;

struct vhca_migration {
	const char *sql; /* several statements; migration i brings user_version from i to i+1 */
};

/* Opens or creates path (directory must exist, file mode 0600) and migrates. Blocking: start-up
 * only. */
int vhca_store_open(const char *path, const struct vhca_migration *migrations, unsigned int n,
		    struct vhca_loop *loop, struct vhca_store **ret, struct vhca_error *err);

/* Reads with a prepared SELECT, blocking; only before the loop runs, and in tests. row() gets
 * columns through the typed accessors below; a non-zero result stops and is returned. Parameters as
 * in vhca_txn_exec(). */
struct vhca_row;
typedef int (*vhca_row_fn)(void *ctx, const struct vhca_row *row);
int vhca_store_query(struct vhca_store *store, const char *sql, vhca_row_fn fn, void *ctx,
		     struct vhca_error *err, const char *types, ...);
int64_t vhca_row_i64(const struct vhca_row *row, int col);
uint64_t vhca_row_u64(const struct vhca_row *row, int col); /* stored as the same 64 bits, signed */
const char *vhca_row_text(const struct vhca_row *row,
			  int col); /* "" for NULL; borrowed until row() returns */

/* A transaction under construction. Out of memory is remembered and reported by vhca_txn_commit().
 */
struct vhca_txn *vhca_txn_new(struct vhca_store *store);
/* Adds one statement with ?1, ?2, ... bound from the varargs: types is a string of
 * 's' const char * (copied, NULL allowed), 'i' int64_t, 'u' uint64_t. */
void vhca_txn_exec(struct vhca_txn *txn, const char *sql, const char *types, ...);
/* This one does not wait for a disk that refuses it, but fails at once. */
void vhca_txn_fail_fast(struct vhca_txn *txn);
/* Submits. done(arg, rc) runs on the state thread: 0 = durable, else negative errno and nothing of
 * it was applied. Consumes txn. done may be NULL. */
void vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);
void vhca_txn_abort(struct vhca_txn *txn); /* frees without submitting; accepts NULL */

/* fn(arg, rc) runs on the state thread: rc < 0 when the disk has begun to refuse (before done() of
 * any that failed for it), 0 when it has taken what waited. One watcher, until the store is closed.
 */
void vhca_store_watch(struct vhca_store *store, void (*fn)(void *arg, int rc), void *arg);

/* How long those took, from their submission, that are durable. */
struct vhca_histogram vhca_store_commits(struct vhca_store *store);

/* A disk that refuses is tried again after so long at first, instead of 500 ms. Before anything
 * that it refuses is submitted. */
void vhca_store_set_retry(struct vhca_store *store, uint32_t ms);

/* Commits what is queued (what the disk refuses now fails), joins the worker, closes. Accepts NULL.
 * Returns NULL. */
struct vhca_store *vhca_store_close(struct vhca_store *store);

#endif
