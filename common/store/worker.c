// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Group commit: everything queued at the moment goes into one SQLite transaction, each of ours in a
 * savepoint, so that one that fails is undone alone and all others share one fsync. If the group as
 * a whole fails (a deferred constraint at COMMIT, or SQLite rolled back by itself), each
 * transaction is tried on its own, so that again only the guilty one suffers.
 *
 * One that the disk refuses stays where it is, at the head of the queue: what comes after it was
 * made by somebody who counts on it.
 */
#include <errno.h>
#include <stdio.h>

#include "common/base/cond.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"
#include "common/store/store_private.h"

/* Bounds the work lost and repeated when a group fails. */
#define GROUP_MAX 256
#define SOUND_MS  60000

/* What no other disk would take either: wrong statements, and constraints. */
static bool is_own_fault(int r)
{
	return r == -EINVAL || r == -EEXIST || r == -EMSGSIZE;
}

/* A disk that refuses is complained of once, not at every try. */
static int complain(struct vhca_store *store, const char *what, int r)
{
	bool again = store->complained && !is_own_fault(r);

	vhca_log(again ? VHCA_LOG_DEBUG : VHCA_LOG_ERROR, "%s: %s: %s", store->path, what,
		 sqlite3_errcode(store->db) == SQLITE_OK ? "wrong number of arguments or statements"
							 : sqlite3_errmsg(store->db));
	store->complained |= !is_own_fault(r);
	return r;
}

/* Runs the statements in a savepoint; txn->rc is a failure of its own. Returns <0 if the whole
 * group is lost. */
static int run_txn(struct vhca_store *store, struct vhca_txn *txn)
{
	int r = vhca_sql_exec(store->db, "SAVEPOINT txn");
	struct vhca_sql *sql;

	if (r < 0)
		return complain(store, "savepoint", r);
	STAILQ_FOREACH (sql, &txn->statements, entry) {
		r = vhca_sql_run(store->db, sql);
		if (r < 0) {
			(void)complain(store, sql->text, r);
			break;
		}
	}
	if (r < 0 && !is_own_fault(r))
		return r;
	txn->rc = r;
	if (sqlite3_get_autocommit(store->db)) /* SQLite has rolled back everything */
		return txn->rc < 0 ? txn->rc : -EIO;
	r = txn->rc < 0 ? vhca_sql_exec(store->db, "ROLLBACK TO txn") : 0;
	return r < 0 ? r : vhca_sql_exec(store->db, "RELEASE txn");
}

static int commit(struct vhca_store *store)
{
	int r = vhca_fault("store.commit");

	if (r < 0)
		return r;
	r = vhca_sql_exec(store->db, "COMMIT");
	if (r < 0)
		return complain(store, "commit", r);
	(void)vhca_fault("store.committed"); /* only to delay or to kill: too late for an error */
	return 0;
}

/* Returns 0 if everything is durable that has rc 0; else nothing of the list was applied. */
static int run_group(struct vhca_store *store, struct vhca_txn_list *list)
{
	struct vhca_txn *txn;
	int r;

	r = vhca_sql_exec(store->db, "BEGIN IMMEDIATE");
	if (r < 0)
		return complain(store, "begin", r);
	STAILQ_FOREACH (txn, list, entry) {
		if (r == 0 && txn->rc == 0)
			r = run_txn(store, txn);
	}
	if (r == 0)
		r = commit(store);
	if (r < 0 && !sqlite3_get_autocommit(store->db))
		(void)vhca_sql_exec(store->db,
				    "ROLLBACK"); /* a failure leaves nothing to roll back */
	return r;
}

static struct vhca_txn *pop(struct vhca_txn_list *list)
{
	struct vhca_txn *txn = STAILQ_FIRST(list);

	if (txn)
		STAILQ_REMOVE_HEAD(list, entry);
	return txn;
}

static void finish(struct vhca_store *store, struct vhca_txn *txn)
{
	if (txn->rc >= 0) {
		pthread_mutex_lock(&store->lock);
		vhca_histogram_add(&store->commits, vhca_now_us() - txn->begun_us);
		pthread_mutex_unlock(&store->lock);
	}
	vhca_txn_finish(txn);
}

/* Returns <0 if the disk has refused it; else it is finished. */
static int run_alone(struct vhca_store *store, struct vhca_txn *txn)
{
	struct vhca_txn_list one = STAILQ_HEAD_INITIALIZER(one);
	int r;

	STAILQ_INSERT_TAIL(&one, txn, entry);
	r = run_group(store, &one);
	if (r < 0 && !is_own_fault(r))
		return r;
	if (r < 0)
		txn->rc = r;
	finish(store, txn);
	return 0;
}

/* Returns <0 if the disk has refused one: it, and what came after it, is left on the list. */
static int run_list(struct vhca_store *store, struct vhca_txn_list *list)
{
	bool is_group = STAILQ_NEXT(STAILQ_FIRST(list), entry) != NULL;
	bool committed = is_group && run_group(store, list) == 0;
	struct vhca_txn *txn;
	int r;

	while ((txn = pop(list)) != NULL) {
		r = committed ? 0 : run_alone(store, txn);
		if (r < 0) {
			STAILQ_INSERT_HEAD(list, txn, entry);
			return r;
		}
		if (committed)
			finish(store, txn);
	}
	return 0;
}

/* ---- a disk that refuses ---- */

/* On the state thread. */
static void tell_watcher(void *arg)
{
	struct vhca_store *store = arg;
	int refusal;

	pthread_mutex_lock(&store->lock);
	store->telling = false;
	refusal = store->refusal;
	pthread_mutex_unlock(&store->lock);
	if (refusal == store->told)
		return;
	store->told = refusal;
	if (store->watch)
		store->watch(store->watch_arg, refusal);
}

/* The disk has refused (a negative errno), or works again (0). */
static void note_locked(struct vhca_store *store, int refusal)
{
	store->refusal = refusal;
	if (store->telling)
		return;
	store->telling = true;
	store->post = (struct vhca_post){.name = "store disk", .fn = tell_watcher, .arg = store};
	vhca_loop_post_node(store->loop, &store->post);
}

/* Ends those of the queue that do not wait; all, at the end of the store. */
static void fail_queued_locked(struct vhca_store *store)
{
	struct vhca_txn_list waiting = STAILQ_HEAD_INITIALIZER(waiting);
	struct vhca_txn *txn;

	while ((txn = pop(&store->queue)) != NULL) {
		if (!txn->fail_fast && !store->closing) {
			STAILQ_INSERT_TAIL(&waiting, txn, entry);
			continue;
		}
		store->n_queued--;
		txn->rc = store->refusal;
		vhca_txn_finish(txn);
	}
	STAILQ_CONCAT(&store->queue, &waiting);
}

/* Something has to be tried, and nobody may come while the disk refuses: this changes nothing, but
 * is written. */
static void queue_probe_locked(struct vhca_store *store)
{
	struct vhca_txn *txn = vhca_txn_new(store);
	char text[48];

	if (!txn)
		return; /* then the next transaction is the probe */
	(void)snprintf(text, sizeof(text), "PRAGMA user_version = %u", store->version);
	vhca_txn_exec(txn, text, "");
	STAILQ_INSERT_TAIL(&store->queue, txn, entry);
	store->n_queued++;
}

/* What is left on the list was first: it is again. */
static void note_refuses(struct vhca_store *store, struct vhca_txn_list *list, int refusal)
{
	const struct vhca_txn *txn;

	if (!store->refusal && vhca_now_ms() - store->worked_ms > SOUND_MS)
		vhca_backoff_reset(&store->backoff);
	if (!store->refusal)
		store->retry_ms = vhca_backoff_next(&store->backoff);
	pthread_mutex_lock(&store->lock);
	STAILQ_FOREACH (txn, list, entry)
		store->n_queued++;
	STAILQ_CONCAT(list, &store->queue);
	STAILQ_CONCAT(&store->queue, list);
	note_locked(store, refusal);
	fail_queued_locked(store);
	if (STAILQ_EMPTY(&store->queue) && !store->closing)
		queue_probe_locked(store);
	pthread_mutex_unlock(&store->lock);
}

static void note_works(struct vhca_store *store)
{
	store->complained = false;
	if (!store->refusal)
		return;
	store->worked_ms = vhca_now_ms();
	pthread_mutex_lock(&store->lock);
	note_locked(store, 0);
	pthread_mutex_unlock(&store->lock);
}

/* Until it is tried again. */
static void wait_for_disk(struct vhca_store *store)
{
	const struct timespec until = vhca_cond_deadline(store->retry_ms);

	pthread_mutex_lock(&store->lock);
	while (!store->closing &&
	       pthread_cond_timedwait(&store->changed, &store->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&store->lock);
}

/* Waits for work; false when the store closes and the queue is empty. */
static bool take_work(struct vhca_store *store, struct vhca_txn_list *list)
{
	STAILQ_INIT(list);
	pthread_mutex_lock(&store->lock);
	while (STAILQ_EMPTY(&store->queue) && !store->closing)
		pthread_cond_wait(&store->changed, &store->lock);
	for (int i = 0; i < GROUP_MAX && !STAILQ_EMPTY(&store->queue); i++) {
		struct vhca_txn *txn = pop(&store->queue);

		STAILQ_INSERT_TAIL(list, txn, entry);
		store->n_queued--;
	}
	pthread_mutex_unlock(&store->lock);
	return !STAILQ_EMPTY(list);
}

void *vhca_store_worker(void *arg)
{
	struct vhca_store *store = arg;
	struct vhca_txn_list list;

	while (take_work(store, &list)) {
		int r = run_list(store, &list);

		if (r == 0) {
			note_works(store);
			continue;
		}
		note_refuses(store, &list, r);
		wait_for_disk(store);
	}
	return NULL;
}
