/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/memstore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/store_private.h"

#define STATEMENTS 128

struct statement {
	char *text;
	sqlite3_stmt *stmt;
};

struct box {
	char path[96];
	sqlite3 *db;
	struct statement statements[STATEMENTS];
};

/* What is wrapped has no argument for a context, so there is one per process. */
static struct {
	struct box boxes[MEMSTORE_BOXES];
	void (*submit)(struct vhca_store *store, const struct memstore_commit *c);
	const char *skipped;
} ms;

static struct box *box_of(const char *path)
{
	for (unsigned int i = 0; i < MEMSTORE_BOXES; i++)
		if (ms.boxes[i].db && !strcmp(ms.boxes[i].path, path))
			return &ms.boxes[i];
	return NULL;
}

void memstore_use(void (*submit)(struct vhca_store *store, const struct memstore_commit *c))
{
	ms.submit = submit;
}

void memstore_skip(const char *begins)
{
	ms.skipped = begins;
}

void memstore_create(const char *path)
{
	struct box *b = ms.boxes;

	/* Else SQLite makes room for twenty pages at each statement that needs a table. */
	(void)sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
	assert(!box_of(path));
	while (b->db)
		assert(++b < ms.boxes + MEMSTORE_BOXES);
	(void)snprintf(b->path, sizeof(b->path), "%s", path);
	assert(sqlite3_open_v2(":memory:", &b->db,
			       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			       NULL) == SQLITE_OK);
}

void memstore_remove_all(void)
{
	for (unsigned int i = 0; i < MEMSTORE_BOXES; i++) {
		struct box *b = &ms.boxes[i];

		for (unsigned int s = 0; s < STATEMENTS; s++) {
			sqlite3_finalize(b->statements[s].stmt);
			free(b->statements[s].text);
		}
		if (b->db)
			assert(sqlite3_close(b->db) == SQLITE_OK);
		memset(b, 0, sizeof(*b));
	}
}

/* Prepared once per database: compiling would cost more than running. */
static sqlite3_stmt *prepared(struct box *b, const char *text)
{
	uint32_t hash = 2166136261u;
	struct statement *s;

	for (const char *p = text; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 16777619u;
	for (unsigned int i = 0; i < STATEMENTS; i++) {
		s = &b->statements[(hash + i) % STATEMENTS];
		if (!s->text) {
			s->text = strdup(text);
			if (sqlite3_prepare_v2(b->db, text, -1, &s->stmt, NULL) != SQLITE_OK) {
				fprintf(stderr, "# store: %s: %s\n", text, sqlite3_errmsg(b->db));
				abort();
			}
		}
		if (!strcmp(s->text, text))
			return s->stmt;
	}
	abort(); /* the product has fewer */
}

static int run(struct box *b, const struct vhca_sql *sql)
{
	sqlite3_stmt *stmt = prepared(b, sql->text);
	int rc = SQLITE_OK;

	for (size_t i = 0; i < sql->n_args && rc == SQLITE_OK; i++) {
		const struct vhca_sql_arg *arg = &sql->args[i];

		rc = arg->type == 's'
			     ? sqlite3_bind_text(stmt, (int)i + 1, arg->text, -1, SQLITE_STATIC)
			     : sqlite3_bind_int64(stmt, (int)i + 1, arg->number);
	}
	while (rc == SQLITE_OK || rc == SQLITE_ROW)
		rc = sqlite3_step(stmt);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	if (rc != SQLITE_DONE)
		fprintf(stderr, "# store: %s: %s\n", sql->text, sqlite3_errmsg(b->db));
	return vhca_sql_errno(rc);
}

static int run_text(struct box *b, const char *text)
{
	sqlite3_stmt *stmt = prepared(b, text);
	int rc = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return vhca_sql_errno(rc);
}

int memstore_apply(struct memstore_commit *c)
{
	struct box *b = box_of(c->txn->store->path);
	const struct vhca_sql *sql;
	int r = run_text(b, "BEGIN");

	STAILQ_FOREACH (sql, &c->txn->statements, entry)
		if (r == 0 && !(ms.skipped && strstr(sql->text, ms.skipped) == sql->text))
			r = run(b, sql);
	assert(run_text(b, r == 0 ? "COMMIT" : "ROLLBACK") == 0);
	memstore_drop(c);
	return r;
}

void memstore_drop(struct memstore_commit *c)
{
	vhca_txn_abort(c->txn);
	c->txn = NULL;
}

void memstore_ask(const char *path, const char *sql, const char *param, char *buf, size_t size)
{
	sqlite3_stmt *stmt = prepared(box_of(path), sql);

	if (param)
		sqlite3_bind_text(stmt, 1, param, -1, SQLITE_STATIC);
	(void)snprintf(buf, size, "%s",
		       sqlite3_step(stmt) == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0)
							: "");
	sqlite3_reset(stmt);
}

struct vhca_loop *memstore_loop(const struct vhca_store *store)
{
	return store->loop;
}

/* ---- what a transaction stands for ---- */

static void label(const struct vhca_txn *txn, char *buf, size_t size)
{
	static const struct {
		const char *begins, *what;
		int what_arg; /* instead of what */
		int state;
	} kinds[] = {
		{"INSERT OR REPLACE INTO migrations", NULL, 1, 5},
		{"INSERT OR REPLACE INTO vfs", "VF", -1, 1},
		{"INSERT INTO claims", "claim", -1, -1},
		{"DELETE FROM claims", "claim ends", -1, -1},
		{"INSERT INTO outbox_members", "outbox: members", -1, -1},
		{"INSERT INTO outbox", "outbox: report", -1, -1},
		{"DELETE FROM outbox", "outbox: answered", -1, -1},
		{"UPDATE migrations", "migration: times", -1, -1},
	};
	const struct vhca_sql *sql;

	buf[0] = '\0';
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		STAILQ_FOREACH (sql, &txn->statements, entry) {
			if (strncmp(sql->text, kinds[k].begins, strlen(kinds[k].begins)) != 0)
				continue;
			(void)snprintf(buf, size, "%s%s%s",
				       kinds[k].what ? kinds[k].what
						     : sql->args[kinds[k].what_arg].text,
				       kinds[k].state < 0 ? "" : ": ",
				       kinds[k].state < 0 ? "" : sql->args[kinds[k].state].text);
			return;
		}
	}
}

/* ---- what stands in for the production symbols ---- */

int __wrap_vhca_store_open(const char *path, const struct vhca_migration *migrations,
			   unsigned int n, struct vhca_loop *loop, struct vhca_store **ret,
			   struct vhca_error *err);
int __wrap_vhca_store_open(const char *path, const struct vhca_migration *migrations,
			   unsigned int n, struct vhca_loop *loop, struct vhca_store **ret,
			   struct vhca_error *err)
{
	struct vhca_store *store = calloc(1, sizeof(*store));
	struct box *b = box_of(path);
	int r;

	assert(store && b);
	store->loop = loop;
	store->db = store->reader = b->db;
	store->path = b->path;
	r = vhca_store_migrate(store, migrations, n, err);
	if (r == 0)
		r = vhca_sql_exec(b->db, "PRAGMA foreign_keys = ON");
	if (r < 0) {
		free(store);
		return r;
	}
	*ret = store;
	return 0;
}

struct vhca_store *__wrap_vhca_store_close(struct vhca_store *store);
struct vhca_store *__wrap_vhca_store_close(struct vhca_store *store)
{
	free(store);
	return NULL;
}

void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg);
void __wrap_vhca_txn_commit(struct vhca_txn *txn, void (*done)(void *arg, int rc), void *arg)
{
	struct memstore_commit c = {.txn = txn, .done = done, .arg = arg};

	assert(txn && !txn->rc);
	label(txn, c.label, sizeof(c.label));
	ms.submit(txn->store, &c);
}
