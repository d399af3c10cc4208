// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/store/store_private.h"

/* A disk that stands still must not make the queue grow for ever. */
#define QUEUE_MAX 8192

struct vhca_txn *vhca_txn_new(struct vhca_store *store)
{
	struct vhca_txn *txn = calloc(1, sizeof(*txn));

	if (!txn)
		return NULL;
	txn->store = store;
	STAILQ_INIT(&txn->statements);
	return txn;
}

void vhca_txn_exec(struct vhca_txn *txn, const char *sql, const char *types, ...)
{
	struct vhca_sql *statement;
	va_list ap;

	if (!txn)
		return;
	va_start(ap, types);
	statement = vhca_sql_new(sql, types, ap);
	va_end(ap);
	if (statement)
		STAILQ_INSERT_TAIL(&txn->statements, statement, entry);
	else
		txn->rc = -ENOMEM;
}

void vhca_txn_abort(struct vhca_txn *txn)
{
	struct vhca_sql *sql;

	if (!txn)
		return;
	while ((sql = STAILQ_FIRST(&txn->statements)) != NULL) {
		STAILQ_REMOVE_HEAD(&txn->statements, entry);
		vhca_sql_free(sql);
	}
	free(txn);
}

static void deliver(void *arg)
{
	struct vhca_txn *txn = arg;

	txn->done(txn->arg, txn->rc);
	vhca_txn_abort(txn);
}

static void drop(void *arg)
{
	vhca_txn_abort(arg);
}

void vhca_txn_finish(struct vhca_txn *txn)
{
	if (!txn->done) {
		vhca_txn_abort(txn);
		return;
	}
	txn->post =
		(struct vhca_post){.name = "store commit", .fn = deliver, .drop = drop, .arg = txn};
	vhca_loop_post_node(txn->store->loop, &txn->post);
}

void vhca_txn_fail_fast(struct vhca_txn *txn)
{
	if (txn)
		txn->fail_fast = true;
}

/* Returns 0 if it was queued, else why not. */
static int enqueue(struct vhca_store *store, struct vhca_txn *txn)
{
	int r = 0;

	pthread_mutex_lock(&store->lock);
	if (store->n_queued >= QUEUE_MAX)
		r = -EAGAIN;
	else if (txn->fail_fast)
		r = store->refusal;
	if (r == 0) {
		STAILQ_INSERT_TAIL(&store->queue, txn, entry);
		store->n_queued++;
		pthread_cond_signal(&store->changed);
	}
	pthread_mutex_unlock(&store->lock);
	return r;
}

void vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg)
{
	int r;

	if (!txn) { /* vhca_txn_new() had no memory */
		if (done)
			done(arg, -ENOMEM);
		return;
	}
	txn->done = done;
	txn->arg = arg;
	txn->begun_us = vhca_now_us();
	r = enqueue(txn->store, txn);
	if (r < 0) {
		txn->rc = r;
		vhca_txn_finish(txn);
	}
}

struct vhca_histogram vhca_store_commits(struct vhca_store *store)
{
	struct vhca_histogram commits;

	pthread_mutex_lock(&store->lock);
	commits = store->commits;
	pthread_mutex_unlock(&store->lock);
	return commits;
}
