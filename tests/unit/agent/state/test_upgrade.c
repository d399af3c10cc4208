// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The agent of a running host is upgraded: its guest has its VF before, meanwhile and after
 * (tests/sim/host/world.h). The state.db that the new agent finds is the live one, with the schema
 * of an older version: rows and columns that this did not have are gone.
 */
#include "agent/state/journal.h"

#include "tests/unit/agent/vf/engine_world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"

#define FIRST_VERSION 3 /* before there was no engine */
#define COLUMNS_MAX   600

static void exec(sqlite3 *db, const char *sql)
{
	char *problem = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &problem) != SQLITE_OK)
		fail_msg("%s: %s", problem, sql);
}

/* First column of the first row. */
static void ask(sqlite3 *db, const char *sql, char buf[static COLUMNS_MAX])
{
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	(void)snprintf(buf, COLUMNS_MAX, "%s", (const char *)sqlite3_column_text(stmt, 0));
	assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

static void copy_table(sqlite3 *old, const char *table)
{
	char sql[2 * COLUMNS_MAX + 100], columns[COLUMNS_MAX];

	(void)snprintf(sql, sizeof(sql),
		       "SELECT group_concat(name, ', ') FROM pragma_table_info('%s')", table);
	ask(old, sql, columns);
	(void)snprintf(sql, sizeof(sql), "INSERT INTO %s (%s) SELECT %s FROM live.%s", table,
		       columns, columns, table);
	exec(old, sql);
}

/* No agent runs: its state.db becomes one of this version. */
static void make_older(struct world *w, unsigned int version)
{
	static const char *const tables[] = {"vfs",	"claims",     "attachments", "vguids",
					     "intents", "suppressed", "outbox"};
	char live[96], older[96], sql[200];
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_error err = VHCA_ERROR_INIT;
	sqlite3 *db;

	(void)snprintf(live, sizeof(live), "%s/state.db", w->dir);
	(void)snprintf(older, sizeof(older), "%s/older.db", w->dir);
	assert_int_equal(vhca_loop_new(&loop), 0);
	assert_int_equal(
		vhca_store_open(older, vhca_journal_migrations, version, loop, &store, &err), 0);
	vhca_store_close(store);
	vhca_loop_free(loop);
	assert_int_equal(sqlite3_open(older, &db), SQLITE_OK);
	(void)snprintf(sql, sizeof(sql), "ATTACH '%s' AS live", live);
	exec(db, sql);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(tables); i++)
		copy_table(db, tables[i]);
	exec(db, "DETACH live");
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(rename(older, live), 0);
}

static int64_t count_claims(const struct world *w)
{
	const struct vhca_claim *c;
	int64_t n = 0;

	TAILQ_FOREACH (c, &vhca_engine_model(w->engine)->claims, link)
		n++;
	return n;
}

/*
 * From this version to the present one, with a guest; then another one comes, and the first one
 * goes.
 */
static void upgrade_from(struct world *w, unsigned int version)
{
	struct world_vf before;
	unsigned int v;

	world_start(w);
	world_domain_start(w, 0, "0x8001");
	assert_true(world_until(w, served, &zero));
	v = (unsigned int)world_vf_of(w, 0, "ib0");
	before = w->vfs[v];
	world_kill(w);
	make_older(w, version);
	w->effects = 0;
	w->fault_at = UINT32_MAX;
	w->fault_effect = VHCA_EFFECT_PROGRAM;
	world_start(w);
	assert_true(world_until(w, served, &zero));
	world_settle(w);
	assert_int_equal(w->effects, 0);
	assert_memory_equal(&before, &w->vfs[v], sizeof(before));
	assert_int_equal(count_claims(w), 1);
	world_domain_start(w, 1, "0x8002");
	assert_true(world_until(w, served, &one));
	world_domain_stop(w, 0);
	world_domain_stop(w, 1);
	assert_true(world_until(w, nothing_attached, NULL));
	assert_true(world_clean(w, v));
	world_kill(w);
}

static void a_guest_keeps_its_vf(void **state)
{
	(void)state;
	for (unsigned int version = FIRST_VERSION; version <= vhca_journal_n_migrations;
	     version++) {
		struct world w;

		world_init(&w);
		upgrade_from(&w, version);
		world_done(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_guest_keeps_its_vf)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
