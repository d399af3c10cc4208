/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_MEMSTORE_H
#define VHCA_TESTS_SIM_HOST_MEMSTORE_H
/*
 * The store without disk and thread: SQLite in memory, one database per path, which outlives the
 * agent that opens it. What it runs is the production schema and the production SQL; when a
 * transaction becomes durable, and when its owner hears of it, the test decides. The production
 * symbols are replaced at link time (tests/sim/meson.build).
 */
#include <stddef.h>

#include "common/store/store.h"

#define MEMSTORE_BOXES 8
#define MEMSTORE_LABEL 64

struct memstore_commit {
	struct vhca_txn *txn;
	void (*done)(void *arg, int rc);
	void *arg;
	char label
		[MEMSTORE_LABEL]; /* "source: handing_over", "VF: detaching"; "" = of no interest */
};

/*
 * Every transaction comes here: to be made durable by memstore_apply(), or dropped by
 * memstore_drop().
 */
void memstore_use(void (*submit)(struct vhca_store *store, const struct memstore_commit *c));
/* What begins so is not run, though the transaction is; NULL: nothing. */
void memstore_skip(const char *begins);
/* An empty database for this path. */
void memstore_create(const char *path);
void memstore_remove_all(void);
/* Executes; frees the transaction; done is the caller's. */
int memstore_apply(struct memstore_commit *c);
void memstore_drop(struct memstore_commit *c);
/* First column of the first row as text, "" if there is none. param is ?1, or NULL. */
void memstore_ask(const char *path, const char *sql, const char *param, char *buf, size_t size);
/* The loop it was opened with. */
struct vhca_loop *memstore_loop(const struct vhca_store *store);

#endif
