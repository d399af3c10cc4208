/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A state database with rows of any content that its schema lets in: a line each, the table's name
 * and its columns between tabs, \N for NULL. The agent refuses to start and names the table, or
 * what it holds in memory is what stands in the rows, within every limit; and its first round is
 * survived.
 */
#include <errno.h>
#include <string.h>

#include "agent/migration/drain.h"
#include "agent/migration/states.h"
#include "agent/state/journal.h"
#include "agent/state/repeats.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/store/store_private.h"
#include "common/ticket/ticket.h"
#include "sm/outbox_row.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kit/input.h"
#include "tests/sim/host/memstore.h"

#define PATH	"state.db"
#define BOOT_ID "b0000000-0000-0000-0000-000000000000"
#define ROUNDS	3

/* By column: s text, i number. As the schema has them. */
static const struct table {
	const char *name, *columns, *told; /* told: in the refusal */
} tables[] = {
	{"vfs", "ssisssiisi", "table vfs"},
	{"claims", "sssssssisiiissisiisiiiii", "table claims"},
	{"vguids", "iiis", "table vguids"},
	{"suppressed", "ss", "table suppressed"},
	{"migrations", "ssssssiiiisssssiiss", "table migrations"},
	{"drain", "isi", "table drain"},
	{"repeats", "ssssiiis", "table repeats"},
	{"outbox", "iiiiiiiisisiiiiiiii", "outbox"},
	{"outbox_members", "iiis", "outbox"},
	{"proofs", "is", "table proofs"},
};

static struct {
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_events *events;
	struct vhca_conf conf;
	struct vhca_engine *engine;
	struct vhca_migrations *migrations;
	struct vhca_drain *drain;
	struct vhca_repeats *repeats;
	struct vhca_sm_proofs proofs;
	unsigned int reports;
} t;

/* ---- what the agent does, and what comes of it: nothing ---- */

static void submit(struct vhca_store *store, const struct memstore_commit *c)
{
	struct memstore_commit commit = *c;

	(void)store;
	memstore_drop(&commit);
}

static void start_effect(void *ctx, struct vhca_vf *vf, enum vhca_effect effect)
{
	(void)ctx, (void)vf, (void)effect;
}

static void refresh(void *ctx, const struct vhca_uuid *uuid)
{
	(void)ctx, (void)uuid;
}

static void vfs_changed(void *ctx)
{
	(void)ctx;
}

static void start_migration_effect(void *ctx, struct vhca_mig *m, enum vhca_mig_effect effect)
{
	(void)ctx, (void)m, (void)effect;
}

/* ---- rows ---- */

static void bind(sqlite3_stmt *stmt, int i, char type, const char *text)
{
	int rc;

	if (strcmp(text, "\\N") == 0)
		rc = sqlite3_bind_null(stmt, i);
	else if (type == 's')
		rc = sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC);
	else
		rc = sqlite3_bind_int64(stmt, i, strtoll(text, NULL, 10));
	FUZZ_ASSERT(rc == SQLITE_OK);
}

/* What breaks a constraint is no row of any database. */
static void insert(const struct table *table, char *columns)
{
	size_t n = strlen(table->columns);
	char sql[128], *save = columns, *column;
	sqlite3_stmt *stmt = NULL;
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, sql, sizeof(sql));
	vhca_strbuf_add(&sb, "INSERT OR IGNORE INTO %s VALUES (?", table->name);
	for (size_t i = 1; i < n; i++)
		vhca_strbuf_add(&sb, ", ?");
	vhca_strbuf_add(&sb, ")");
	FUZZ_ASSERT(sqlite3_prepare_v2(t.store->db, sql, -1, &stmt, NULL) == SQLITE_OK);
	for (size_t i = 0; i < n; i++) {
		column = save ? strsep(&save, "\t") : NULL;
		bind(stmt, (int)i + 1, table->columns[i], column ? column : "");
	}
	(void)sqlite3_step(stmt);
	(void)sqlite3_finalize(stmt);
}

static void insert_rows(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *text = strndup(size ? (const char *)data : "", size);
	char *rest = text, *line;

	while ((line = input_line(&rest))) {
		const char *name = strsep(&line, "\t");

		for (size_t i = 0; line && i < VHCA_ARRAY_SIZE(tables); i++)
			if (strcmp(name, tables[i].name) == 0)
				insert(&tables[i], line);
	}
}

static void empty_tables(void)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(tables); i++) {
		char sql[64];
		struct vhca_strbuf sb;

		vhca_strbuf_init(&sb, sql, sizeof(sql));
		vhca_strbuf_add(&sb, "DELETE FROM %s", tables[i].name);
		FUZZ_ASSERT(vhca_sql_exec(t.store->db, sql) == 0);
	}
}

/* ---- what is in memory is what stands there ---- */

static int check_vf_row(void *ctx, const struct vhca_row *row)
{
	const struct vhca_vf *vf = NULL;
	struct vhca_bdf bdf;

	(void)ctx;
	FUZZ_ASSERT(vhca_bdf_parse(vhca_row_text(row, 0), &bdf) == 0);
	vf = vhca_model_vf(vhca_engine_model(t.engine), bdf);
	FUZZ_ASSERT(vf && vf->index == vhca_row_i64(row, 1) && vf->index < VHCA_VFS_MAX);
	return 0;
}

static int check_claim_row(void *ctx, const struct vhca_row *row)
{
	const struct vhca_claim *c = NULL;
	struct vhca_uuid id;

	(void)ctx;
	FUZZ_ASSERT(vhca_uuid_parse(vhca_row_text(row, 0), &id) == 0);
	c = vhca_model_claim(vhca_engine_model(t.engine), &id);
	FUZZ_ASSERT(c && c->vf && c->vf->claim == c);
	FUZZ_ASSERT(c->port == vhca_row_i64(row, 1) && c->port <= VHCA_PORTS_MAX);
	FUZZ_ASSERT(c->identity.guid == vhca_row_u64(row, 2) && c->identity.guid != 0);
	FUZZ_ASSERT(vhca_name_is_valid(c->name) && vhca_name_is_valid(c->fabric));
	FUZZ_ASSERT(c->identity.n_pkeys <= VHCA_VF_PKEYS_MAX);
	FUZZ_ASSERT(c->migrating == (vhca_row_text(row, 3)[0] != '\0'));
	FUZZ_ASSERT(c->has_guest == (vhca_row_text(row, 4)[0] != '\0'));
	FUZZ_ASSERT(c->lease_s == vhca_row_i64(row, 5) && c->lease_s <= VHCA_CLAIM_LEASE_MAX);
	return 0;
}

static int check_migration_row(void *ctx, const struct vhca_row *row)
{
	const struct vhca_mig *m;
	struct vhca_uuid id;

	(void)ctx;
	FUZZ_ASSERT(vhca_uuid_parse(vhca_row_text(row, 0), &id) == 0);
	m = vhca_migrations_find(t.migrations, &id);
	FUZZ_ASSERT(m && m->state < VHCA_MIG_STATE_COUNT && m->mode < VHCA_MIG_MODE_COUNT);
	FUZZ_ASSERT(strcmp(vhca_row_text(row, 1), m->source ? "source" : "destination") == 0);
	FUZZ_ASSERT(m->source ? mig_states[m->state].source : mig_states[m->state].destination);
	FUZZ_ASSERT(m->n_vfs <= VHCA_MIGRATION_VFS_MAX);
	return 0;
}

static void check_rows(const char *sql, vhca_row_fn fn)
{
	FUZZ_ASSERT(vhca_store_query(t.store, sql, fn, NULL, NULL, "") == 0);
}

static int check_proof_row(void *ctx, const struct vhca_row *row)
{
	struct json_object *proof = vhca_sm_proof_of(&t.proofs, vhca_row_u64(row, 0));

	(void)ctx;
	FUZZ_ASSERT(json_object_array_length(proof) <= VHCA_TICKETS_MAX);
	return 0;
}

static int on_report(void *ctx, const struct vhca_outbox_row *row)
{
	(void)ctx;
	if (row->kind == VHCA_OUTBOX_MEMBERS)
		FUZZ_ASSERT(row->members.n_pkeys <= VHCA_SM_PORT_PKEYS_MAX);
	else
		FUZZ_ASSERT(row->binding.n_pkeys <= VHCA_SM_PKEYS_MAX);
	t.reports++;
	return 0;
}

static int count_row(void *ctx, const struct vhca_row *row)
{
	*(unsigned int *)ctx = (unsigned int)vhca_row_i64(row, 0);
	return 0;
}

static void check_outbox(void)
{
	unsigned int n = 0;

	FUZZ_ASSERT(vhca_store_query(t.store,
				     "SELECT (SELECT count(*) FROM outbox) +"
				     " (SELECT count(*) FROM outbox_members)",
				     count_row, &n, NULL, "") == 0);
	FUZZ_ASSERT(t.reports == n);
}

/* ---- a start of the agent ---- */

/* Before the migrations end what was left of those that have gone. */
static void check_engine(void)
{
	check_rows("SELECT bdf, idx FROM vfs", check_vf_row);
	check_rows("SELECT id, port, guid, migration, guest, lease FROM claims", check_claim_row);
}

static int start_machines(struct vhca_error *err)
{
	struct vhca_engine_args engine = {.loop = t.loop,
					  .store = t.store,
					  .events = t.events,
					  .conf = &t.conf,
					  .effects = {start_effect, refresh, vfs_changed, NULL},
					  .boot_id = BOOT_ID};
	struct vhca_migrations_args migrations = {
		.loop = t.loop,
		.store = t.store,
		.events = t.events,
		.conf = &t.conf,
		.effects = {start_migration_effect, vfs_changed, NULL}};
	struct vhca_drain_args drain = {
		.loop = t.loop, .store = t.store, .events = t.events, .conf = &t.conf};
	int r = vhca_engine_new(&engine, &t.engine, err);

	if (r < 0)
		return r;
	check_engine();
	migrations.engine = drain.engine = t.engine;
	r = vhca_migrations_new(&migrations, &t.migrations, err);
	if (r < 0)
		return r;
	drain.migrations = t.migrations;
	r = vhca_drain_new(&drain, &t.drain, err);
	if (r == 0)
		r = vhca_repeats_new(t.store, &t.repeats, err);
	if (r == 0)
		r = vhca_outbox_row_load(t.store, on_report, NULL, err);
	return r < 0 ? r : vhca_sm_proofs_load(&t.proofs, t.store, err);
}

static void stop_machines(void)
{
	vhca_sm_proofs_done(&t.proofs);
	t.repeats = vhca_repeats_free(t.repeats);
	t.drain = vhca_drain_free(t.drain);
	t.migrations = vhca_migrations_free(t.migrations);
	t.engine = vhca_engine_free(t.engine);
	t.reports = 0;
}

static void check_refused(const struct vhca_error *err)
{
	bool named = false;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(tables); i++)
		named |= strstr(err->msg, tables[i].told) != NULL;
	FUZZ_ASSERT(err->kind == VHCA_ERR_INTERNAL && !strcmp(err->code, "store_corrupt") && named);
}

static void check_started(void)
{
	check_rows("SELECT id, role FROM migrations", check_migration_row);
	check_rows("SELECT vguid FROM proofs", check_proof_row);
	check_outbox();
	for (int i = 0; i < ROUNDS; i++)
		(void)vhca_loop_once(t.loop, 0);
}

static void open_store(void)
{
	vhca_log_set_level(VHCA_LOG_ERROR);
	vhca_conf_set_defaults(&t.conf);
	memstore_use(submit);
	memstore_create(PATH);
	FUZZ_ASSERT(vhca_loop_new(&t.loop) == 0 && vhca_events_new(&t.events) == 0);
	FUZZ_ASSERT(vhca_store_open(PATH, vhca_journal_migrations, vhca_journal_n_migrations,
				    t.loop, &t.store, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r;

	if (!t.store)
		open_store();
	empty_tables();
	insert_rows(data, size);
	r = start_machines(&err);
	fuzz_verdict(r == 0);
	if (r < 0)
		check_refused(&err);
	else
		check_started();
	stop_machines();
	return 0;
}
