// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Group commit: everything queued at the moment goes into one SQLite transaction, each of ours in a
 * savepoint, so that one that fails is undone alone and all others share one fsync. If the group as
 * a whole fails (a deferred constraint at COMMIT, or SQLite rolled back by itself), each
 * transaction is tried on its own, so that again only the guilty one suffers.
 */
#include <errno.h>

#include "common/base/log.h"
#include "common/base/role.h"
#include "common/store/store_private.h"

/* Bounds the work lost and repeated when a group fails. */
#define GROUP_MAX 256

static int complain(const struct vhca_store *store, const char *what, int r)
{
	vhca_log_error("%s: %s: %s", store->path, what,
		       r == -EINVAL ? "wrong number of arguments or statements"
				    : sqlite3_errmsg(store->db));
	return r;
}

/* Runs the statements in a savepoint; a failure is the transaction's own. Returns <0 if the whole
 * group is lost. */
static int run_txn(struct vhca_store *store, struct vhca_txn *txn)
{
	struct vhca_sql *sql;
	int r;

	r = vhca_sql_exec(store->db, "SAVEPOINT txn");
	if (r < 0)
		return complain(store, "savepoint", r);
	STAILQ_FOREACH (sql, &txn->statements, entry) {
		txn->rc = vhca_sql_run(store->db, sql);
		if (txn->rc < 0) {
			(void)complain(store, sql->text, txn->rc);
			break;
		}
	}
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

static void run_alone(struct vhca_store *store, struct vhca_txn *txn)
{
	struct vhca_txn_list one = STAILQ_HEAD_INITIALIZER(one);
	int r;

	STAILQ_INSERT_TAIL(&one, txn, entry);
	r = run_group(store, &one);
	if (r < 0)
		txn->rc = r;
	vhca_txn_finish(txn);
}

static void run_list(struct vhca_store *store, struct vhca_txn_list *list)
{
	bool is_group = STAILQ_NEXT(STAILQ_FIRST(list), entry) != NULL;
	bool committed = is_group && run_group(store, list) == 0;
	struct vhca_txn *txn;

	while ((txn = pop(list)) != NULL) {
		if (committed)
			vhca_txn_finish(txn);
		else
			run_alone(store, txn);
	}
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

	while (take_work(store, &list))
		run_list(store, &list);
	return NULL;
}
