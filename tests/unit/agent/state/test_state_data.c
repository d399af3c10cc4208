// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * State databases of each version of the schema, kept as SQL in tests/data/state by
 * tools/keep-state. Each is opened by what would open it after an upgrade, and each row has to mean
 * what it meant. What a row says is asked by SQL before, and of the agent's own objects after.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "agent/migration/drain.h"
#include "agent/state/journal.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/http/http_loop.h"
#include "common/http/json.h"
#include "sm/outbox_row.h"
#include "tests/sim/host/world.h"
#include "tests/unit/tree.h"
#include "tests/unit/unit.h"

#define FILES_MAX     200
#define FILE_MAX_SIZE (1 << 20)
#define ROWS_MAX      200
#define ROW_MAX	      1200

struct rows {
	char text[ROWS_MAX][ROW_MAX];
	unsigned int n;
};

struct fixture {
	struct tree tree;
	char path[TREE_PATH_MAX];
	struct dirent **files;
	int n_files;
	struct rows before, after;
	struct world w; /* its configuration; nobody starts it */
};

static int is_sql(const struct dirent *entry)
{
	return strstr(entry->d_name, ".sql") != NULL;
}

static const char *data_path(const char *name)
{
	static char path[512];

	(void)snprintf(path, sizeof(path), "%s/tests/data/state/%s", getenv("VHCA_SOURCE_DIR"),
		       name);
	return path;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tree_init(&f->tree);
	(void)tree_path(&f->tree, "state.db", f->path);
	world_init(&f->w);
	f->n_files = scandir(data_path(""), &f->files, is_sql, alphasort);
	assert_in_range(f->n_files, 1, FILES_MAX);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < f->n_files; i++)
		free(f->files[i]);
	free(f->files);
	world_done(&f->w);
	tree_done(&f->tree);
	free(f);
	return 0;
}

/* ---- SQL ---- */

static sqlite3 *open_db(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	return db;
}

static void exec(sqlite3 *db, const char *sql)
{
	char *problem = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &problem) != SQLITE_OK)
		fail_msg("%s: %.200s", problem, sql);
}

/* A fresh state.db with what a file holds; WAL, as the agent has it. */
static void load_file(struct fixture *f, const char *name)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;
	sqlite3 *db;

	if (tree_has(&f->tree, "state.db"))
		tree_remove(&f->tree, "state.db");
	assert_int_equal(vhca_read_file(data_path(name), FILE_MAX_SIZE, &text, &len), 0);
	db = open_db(f->path);
	exec(db, "PRAGMA synchronous = OFF");
	exec(db, "PRAGMA journal_mode = WAL");
	exec(db, text);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void add(struct rows *rows, const char *text)
{
	assert_in_range(rows->n, 0, ROWS_MAX - 1);
	(void)snprintf(rows->text[rows->n++], ROW_MAX, "%s", text);
}

static void ask(sqlite3 *db, const char *sql, struct rows *rows)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sqlite3_errmsg(db), sql);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		add(rows, (const char *)sqlite3_column_text(stmt, 0));
	assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

/* ---- what rows say, by SQL ---- */

static void ask_claims(sqlite3 *db, struct rows *rows)
{
	ask(db,
	    "SELECT format('claim %s %s %s %s %s %s %s %lld %lld [%s] %d %lld %s %s %s %d %lld %d"
	    " %lld %s %d %d %lld %d', id, domain, domain_name, name, fabric, way, bdf, guid, "
	    "epoch, pkeys,"
	    " ending, created, COALESCE(guest, '-'), COALESCE(migration, '-'), custody, asked,"
	    " port_guid, port, kept, COALESCE(pf, '-'), numa, lease, follow_port, follow_lid)"
	    " FROM claims",
	    rows);
}

static void ask_migrations(sqlite3 *db, struct rows *rows)
{
	ask(db,
	    "SELECT format('migration %s %s %s %s %s %s %d %d %lld %lld %d [%s] %d %s %lld %lld',"
	    " id, role, domain, domain_name, peer, state, handed, pinned, started, updated,"
	    " code <> '', reason, json_array_length(vfs), mode, lease,"
	    " COALESCE(json_extract(copy, '$.timeout'), 0)) FROM migrations",
	    rows);
}

static void ask_reports(sqlite3 *db, struct rows *rows)
{
	ask(db,
	    "SELECT format('report %lld %lld %lld %d %lld %d %d [%s] %d %s %lld %d %d %d %d %d"
	    " %d %lld', vguid, seq, epoch, bound, port_guid, gid_index, lid, pkeys, moved,"
	    " CASE moved WHEN 1 THEN move_id ELSE '-' END, from_port_guid, from_gid_index,"
	    " from_lid, vport, dynamic_lid, keep_lid, follow_lid, created_ms) FROM outbox",
	    rows);
	ask(db,
	    "SELECT format('members %lld %lld %lld [%s]', port_guid, seq, created_ms, pkeys)"
	    " FROM outbox_members",
	    rows);
}

static void ask_vguids(sqlite3 *db, struct rows *rows)
{
	ask(db, "SELECT format('vguid %lld %lld', guid, epoch) FROM vguids", rows);
	ask(db,
	    "SELECT format('stranded %lld %s', guid, migration) FROM vguids"
	    " WHERE migration IS NOT NULL",
	    rows);
}

static void ask_all(sqlite3 *db, struct rows *rows)
{
	ask(db,
	    "SELECT format('vf %s %s %lld [%s] %s %s %d %d [%s] %lld', bdf, state, since, reason,"
	    " boot_id, pf, idx, failures, fault, rests_until) FROM vfs",
	    rows);
	ask_claims(db, rows);
	ask_vguids(db, rows);
	ask(db, "SELECT format('suppressed %s %s', domain, name) FROM suppressed", rows);
	ask_migrations(db, rows);
	ask_reports(db, rows);
	ask(db, "SELECT format('drain %lld [%s]', since, peers) FROM drain", rows);
}

/* ---- what the agent makes of them ---- */

static const char *keys(const uint16_t *pkeys, unsigned int n)
{
	static char text[VHCA_SM_PORT_PKEYS_MAX * VHCA_PKEY_STRLEN + 1];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	text[0] = '\0';
	for (unsigned int i = 0; i < n; i++)
		vhca_strbuf_add(&sb, "%s%s", i ? " " : "", VHCA_PKEY_STR(pkeys[i]));
	return text;
}

#define SAY(rows, ...)                                           \
	do {                                                     \
		char line[ROW_MAX];                              \
                                                                 \
		(void)snprintf(line, sizeof(line), __VA_ARGS__); \
		add(rows, line);                                 \
	} while (0)
#define LL(n) ((long long)(n))

static int on_vf(void *ctx, const struct vhca_journal_vf *vf)
{
	SAY(ctx, "vf %s %s %lld [%s] %s %s %u %u [%s] %lld", VHCA_BDF_STR(vf->bdf),
	    vhca_vf_state_to_string(vf->state), LL(vf->since_ms), vf->reason, vf->boot_id,
	    VHCA_BDF_STR(vf->pf), vf->index, vf->failures, vf->fault, LL(vf->rests_until_ms));
	return 0;
}

static int on_claim(void *ctx, struct vhca_claim *c, struct vhca_bdf bdf)
{
	SAY(ctx,
	    "claim %s %s %s %s %s %s %s %lld %lld [%s] %d %lld %s %s %s %d %lld %u %lld "
	    "%s %d %u %lld %u",
	    VHCA_UUID_STR(&c->id), VHCA_UUID_STR(&c->domain), c->domain_name, c->name, c->fabric,
	    vhca_origin_to_string(c->origin), VHCA_BDF_STR(bdf), LL(c->identity.guid), LL(c->epoch),
	    keys(c->identity.pkeys, c->identity.n_pkeys), (int)c->end, LL(c->created_ms),
	    c->has_guest ? VHCA_BDF_STR(c->guest) : "-",
	    c->migrating ? VHCA_UUID_STR(&c->migration) : "-", vhca_custody_to_string(c->custody),
	    c->asked, LL(c->port_guid), c->port, LL(c->kept_epoch),
	    c->has_pf ? VHCA_BDF_STR(c->pf) : "-", c->numa, c->lease_s, LL(c->follow_port),
	    c->follow_lid);
	return 0;
}

static int load_journal(struct vhca_store *store, struct rows *rows, struct vhca_error *err)
{
	static const struct vhca_journal_sink sink = {on_vf, on_claim};
	const struct vhca_suppressed *s;
	struct vhca_model m;
	int r;

	vhca_model_init(&m);
	r = vhca_journal_load(store, &m, &sink, rows, err);
	for (size_t i = 0; i < m.n_epochs; i++) {
		SAY(rows, "vguid %lld %lld", LL(m.epochs[i].guid), LL(m.epochs[i].epoch));
		if (m.epochs[i].stranded)
			SAY(rows, "stranded %lld %s", LL(m.epochs[i].guid),
			    VHCA_UUID_STR(&m.epochs[i].migration));
	}
	TAILQ_FOREACH (s, &m.suppressed, link)
		SAY(rows, "suppressed %s %s", VHCA_UUID_STR(&s->domain), s->name);
	vhca_model_done(&m);
	return r;
}

static int on_report(void *ctx, const struct vhca_outbox_row *row)
{
	const struct vhca_sm_binding *b = &row->binding;
	const struct vhca_sm_members *m = &row->members;

	if (row->kind == VHCA_OUTBOX_MEMBERS)
		SAY(ctx, "members %lld %lld %lld [%s]", LL(m->port_guid), LL(row->seq),
		    LL(row->created_ms), keys(m->pkeys, m->n_pkeys));
	else
		SAY(ctx,
		    "report %lld %lld %lld %d %lld %u %u [%s] %d %s %lld %u %u %u %d %d %d %lld",
		    LL(b->vguid), LL(row->seq), LL(b->epoch), b->bound, LL(b->port_guid),
		    b->gid_index, b->lid, keys(b->pkeys, b->n_pkeys), b->moved,
		    b->moved ? VHCA_UUID_STR(&b->move_id) : "-", LL(b->from_port_guid),
		    b->from_gid_index, b->from_lid, b->vport, b->dynamic_lid, b->keep_lid,
		    b->follow_lid, LL(row->created_ms));
	return 0;
}

static void say_migrations(struct vhca_migrations *ms, struct rows *rows)
{
	const struct vhca_mig *m;

	for (m = vhca_migrations_first(ms); m; m = TAILQ_NEXT(m, link))
		SAY(rows, "migration %s %s %s %s %s %s %d %d %lld %lld %d [%s] %u %s %lld %u",
		    VHCA_UUID_STR(&m->id), m->source ? "source" : "destination",
		    VHCA_UUID_STR(&m->domain), m->domain_name, m->peer,
		    vhca_mig_state_to_string(m->state), vhca_migration_promised(m), m->pinned,
		    LL(m->started_ms), LL(m->updated_ms), m->failure.kind != VHCA_ERR_NONE,
		    m->reason, m->n_vfs, vhca_mig_mode_to_string(m->mode), LL(m->lease_ms),
		    m->copy.timeout_ms / 1000);
}

static void say_drain(struct vhca_drain *drain, struct rows *rows)
{
	struct json_object *view = vhca_drain_view(drain), *peers, *since;
	char text[500] = "";
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	assert_true(json_object_object_get_ex(view, "peers", &peers));
	for (size_t i = 0; i < json_object_array_length(peers); i++)
		vhca_strbuf_add(&sb, "%s%s", i ? " " : "",
				json_object_get_string(json_object_array_get_idx(peers, i)));
	if (json_object_object_get_ex(view, "since_ms", &since) && vhca_drain_is_on(drain))
		SAY(rows, "drain %lld [%s]", LL(json_object_get_int64(since)), text);
	json_object_put(view);
}

static void start_nothing(void *ctx, struct vhca_vf *vf, enum vhca_effect effect)
{
	(void)ctx;
	(void)vf;
	(void)effect;
}

static void refresh_nothing(void *ctx, const struct vhca_uuid *uuid)
{
	(void)ctx;
	(void)uuid;
}

static void tell_nobody(void *ctx)
{
	(void)ctx;
}

static void move_nothing(void *ctx, struct vhca_mig *m, enum vhca_mig_effect effect)
{
	(void)ctx;
	(void)m;
	(void)effect;
}

/* As main.c makes them, on a host whose hardware was not seen yet. */
static int load_machines(struct fixture *f, struct rows *rows, struct vhca_error *err)
{
	struct world *w = &f->w;
	struct vhca_engine_args engine = {
		.loop = w->loop,
		.store = w->store,
		.events = w->events,
		.conf = &w->conf,
		.boot_id = "another boot",
		.effects = {start_nothing, refresh_nothing, tell_nobody, NULL}};
	struct vhca_migrations_args migrations = {.loop = w->loop,
						  .store = w->store,
						  .events = w->events,
						  .conf = &w->conf,
						  .effects = {move_nothing, tell_nobody, NULL}};
	struct vhca_drain_args drain = {
		.loop = w->loop, .store = w->store, .events = w->events, .conf = &w->conf};
	struct vhca_migrations *ms = NULL;
	struct vhca_drain *d = NULL;
	int r = vhca_engine_new(&engine, &w->engine, err);

	migrations.engine = drain.engine = w->engine;
	if (r == 0)
		r = vhca_migrations_new(&migrations, &ms, err);
	if (r == 0)
		say_migrations(ms, rows);
	drain.migrations = ms;
	if (r == 0)
		r = vhca_drain_new(&drain, &d, err);
	if (r == 0)
		say_drain(d, rows);
	vhca_drain_free(d);
	vhca_migrations_free(ms);
	w->engine = vhca_engine_free(w->engine);
	return r;
}

static int open_store(struct fixture *f, struct vhca_error *err)
{
	return vhca_store_open(f->path, vhca_journal_migrations, vhca_journal_n_migrations,
			       f->w.loop, &f->w.store, err);
}

/* Migrates and reads all. */
static int upgrade(struct fixture *f, struct vhca_error *err)
{
	struct vhca_sm_proofs proofs = {.all = {NULL}};
	int r;

	f->after.n = 0;
	assert_int_equal(vhca_loop_new(&f->w.loop), 0);
	assert_int_equal(vhca_events_new(&f->w.events), 0);
	r = open_store(f, err);
	if (r == 0)
		r = load_journal(f->w.store, &f->after, err);
	if (r == 0)
		r = vhca_outbox_row_load(f->w.store, on_report, &f->after, err);
	if (r == 0)
		r = vhca_sm_proofs_load(&proofs, f->w.store, err);
	vhca_sm_proofs_done(&proofs);
	if (r == 0)
		r = load_machines(f, &f->after, err);
	f->w.store = vhca_store_close(f->w.store);
	f->w.events = vhca_events_free(f->w.events);
	f->w.loop = vhca_loop_free(f->w.loop);
	return r;
}

/* ---- cases ---- */

static int compare_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void sort(struct rows *rows)
{
	qsort(rows->text, rows->n, sizeof(rows->text[0]), compare_text);
}

/* Sorts both; the first row that differs, or the number of rows that both have. */
static unsigned int differs_at(struct rows *before, struct rows *after)
{
	unsigned int i = 0;

	sort(before);
	sort(after);
	while (i < before->n && i < after->n && !strcmp(before->text[i], after->text[i]))
		i++;
	return i;
}

static void assert_same(struct rows *before, struct rows *after, const char *name)
{
	unsigned int i = differs_at(before, after);

	if (i < before->n || i < after->n)
		fail_msg("%s:\n# was    %s\n# is now %s", name,
			 i < before->n ? before->text[i] : "-",
			 i < after->n ? after->text[i] : "-");
}

static void ask_file(struct fixture *f, const char *name)
{
	sqlite3 *db;

	load_file(f, name);
	f->before.n = 0;
	db = open_db(f->path);
	ask_all(db, &f->before);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void every_row_means_what_it_meant(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < f->n_files; i++) {
		const char *name = f->files[i]->d_name;
		struct vhca_error err = VHCA_ERROR_INIT;

		ask_file(f, name);
		if (upgrade(f, &err) < 0)
			fail_msg("%s: %s", name, err.msg);
		assert_same(&f->before, &f->after, name);
	}
}

/* Tables, columns and all, in the order of their names. */
static void ask_schema(const char *path, struct rows *rows)
{
	sqlite3 *db = open_db(path);

	rows->n = 0;
	ask(db, "SELECT type || ' ' || name || ' ' || COALESCE(sql, '') FROM sqlite_master", rows);
	ask(db, "SELECT 'version ' || user_version FROM pragma_user_version", rows);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void make_schema(struct fixture *f, const struct vhca_migration *migrations, unsigned int n)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (tree_has(&f->tree, "state.db"))
		tree_remove(&f->tree, "state.db");
	assert_int_equal(vhca_loop_new(&f->w.loop), 0);
	if (vhca_store_open(f->path, migrations, n, f->w.loop, &f->w.store, &err) < 0)
		fail_msg("%s", err.msg);
	f->w.store = vhca_store_close(f->w.store);
	f->w.loop = vhca_loop_free(f->w.loop);
}

static unsigned int version_of(const char *name)
{
	return (unsigned int)strtoul(name, NULL, 10);
}

static bool is_same_schema(struct fixture *f, const char *name,
			   const struct vhca_migration *migrations)
{
	load_file(f, name);
	ask_schema(f->path, &f->before);
	make_schema(f, migrations, version_of(name));
	ask_schema(f->path, &f->after);
	return f->before.n == f->after.n && differs_at(&f->before, &f->after) == f->after.n;
}

static void a_version_is_what_it_was(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < f->n_files; i++) {
		const char *name = f->files[i]->d_name;

		if (!is_same_schema(f, name, vhca_journal_migrations))
			fail_msg("%s has another schema than migrations make of nothing: a change "
				 "needs a version of its own",
				 name);
	}
}

/* The test above, tested: a column that was added in place. */
static void a_schema_changed_in_place_is_seen(void **state)
{
	struct fixture *f = *state;
	const char *name = f->files[f->n_files - 1]->d_name;
	struct vhca_migration changed[64];
	char sql[4000];

	assert_in_range(vhca_journal_n_migrations, 1, VHCA_ARRAY_SIZE(changed));
	memcpy(changed, vhca_journal_migrations, vhca_journal_n_migrations * sizeof(changed[0]));
	(void)snprintf(sql, sizeof(sql), "%s ALTER TABLE claims ADD COLUMN sabotage INTEGER;",
		       changed[0].sql);
	changed[0].sql = sql;
	assert_true(is_same_schema(f, name, vhca_journal_migrations));
	assert_false(is_same_schema(f, name, changed));
}

static const char *const kinds[] = {"vf ",     "claim ",     "vguid ", "stranded ",  "members ",
				    "report ", "migration ", "drain ", "suppressed "};
#define KINDS VHCA_ARRAY_SIZE(kinds)

static void count_kinds(const struct rows *rows, unsigned int counts[static KINDS])
{
	for (unsigned int r = 0; r < rows->n; r++)
		for (size_t k = 0; k < KINDS; k++)
			counts[k] += !strncmp(rows->text[r], kinds[k], strlen(kinds[k]));
}

static void every_version_has_rows_of_all_kinds(void **state)
{
	unsigned int counts[64][KINDS] = {0};
	struct fixture *f = *state;

	assert_in_range(vhca_journal_n_migrations, 1, VHCA_ARRAY_SIZE(counts) - 1);
	for (int i = 0; i < f->n_files; i++) {
		unsigned int version = version_of(f->files[i]->d_name);

		assert_in_range(version, 1, vhca_journal_n_migrations);
		ask_file(f, f->files[i]->d_name);
		count_kinds(&f->before, counts[version]);
	}
	for (unsigned int version = 1; version <= vhca_journal_n_migrations; version++)
		for (size_t k = 0; k < KINDS; k++)
			if (!counts[version][k])
				fail_msg("version %u: no row '%s': tools/keep-state", version,
					 kinds[k]);
}

/* The first file of the newest version: it has rows of all kinds. */
static const char *newest_with_rows(const struct fixture *f)
{
	for (int i = 0; i < f->n_files; i++)
		if (version_of(f->files[i]->d_name) == vhca_journal_n_migrations)
			return f->files[i]->d_name;
	fail_msg("no data of the present version");
	return NULL;
}

static void a_word_that_is_not_known_is_told(void **state)
{
	static const char *const wrong[] = {
		"UPDATE vfs SET state = 'renamed'", "UPDATE claims SET way = 'renamed'",
		"UPDATE claims SET custody = 'renamed'", "UPDATE migrations SET state = 'renamed'",
		"UPDATE outbox SET lid = 65536"};
	struct fixture *f = *state;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(wrong); i++) {
		struct vhca_error err = VHCA_ERROR_INIT;
		sqlite3 *db;

		load_file(f, newest_with_rows(f));
		db = open_db(f->path);
		exec(db, wrong[i]);
		assert_true(sqlite3_changes(db) > 0);
		assert_int_equal(sqlite3_close(db), SQLITE_OK);
		assert_true(upgrade(f, &err) < 0);
		assert_string_equal(err.code, "store_corrupt");
	}
}

static void set_version(struct fixture *f, unsigned int version)
{
	sqlite3 *db = open_db(f->path);
	char sql[100];

	(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %u", version);
	exec(db, sql);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void assert_refused(struct fixture *f, unsigned int version)
{
	VHCA_AUTO_FREE char *was = NULL, *is = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	char words[TREE_PATH_MAX + 100];
	size_t was_len, is_len;

	set_version(f, version);
	assert_int_equal(vhca_read_file(f->path, FILE_MAX_SIZE, &was, &was_len), 0);
	assert_true(upgrade(f, &err) < 0);
	assert_string_equal(err.code, "store_newer");
	(void)snprintf(words, sizeof(words),
		       "%s: its schema version %u is newer than this program's %u", f->path,
		       version, vhca_journal_n_migrations);
	assert_non_null(strstr(err.msg, words));
	assert_non_null(strstr(err.hint, "move it away"));
	assert_int_equal(vhca_read_file(f->path, FILE_MAX_SIZE, &is, &is_len), 0);
	assert_int_equal(is_len, was_len);
	assert_memory_equal(is, was, was_len);
}

/* The next one, and those that development had before the first release. */
static void a_newer_one_is_refused_by_name_and_untouched(void **state)
{
	struct fixture *f = *state;

	load_file(f, f->files[f->n_files - 1]->d_name);
	assert_refused(f, vhca_journal_n_migrations + 1);
	assert_refused(f, 15);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_row_means_what_it_meant),
		CASE(a_version_is_what_it_was),
		CASE(a_schema_changed_in_place_is_seen),
		CASE(every_version_has_rows_of_all_kinds),
		CASE(a_word_that_is_not_known_is_told),
		CASE(a_newer_one_is_refused_by_name_and_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
