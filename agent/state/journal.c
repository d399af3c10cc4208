/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "pkey/guid.h"
#include "sm/outbox.h"

/*
 * Every row that mirrors hardware carries the boot it was true in: VFs, their driver and their maps
 * do not survive a reboot. GUIDs and epochs are unsigned 64-bit numbers in SQLite's signed column.
 */
static const char schema_1[] =
	"CREATE TABLE vfs (bdf TEXT PRIMARY KEY, state TEXT NOT NULL, since INTEGER NOT NULL,"
	" claim TEXT, reason TEXT NOT NULL, boot_id TEXT NOT NULL, pf TEXT NOT NULL,"
	" idx INTEGER NOT NULL) STRICT;"
	"CREATE TABLE claims (id TEXT PRIMARY KEY, domain TEXT NOT NULL, domain_name TEXT NOT NULL,"
	" name TEXT NOT NULL, fabric TEXT NOT NULL, way TEXT NOT NULL, bdf TEXT NOT NULL UNIQUE,"
	" guid INTEGER NOT NULL UNIQUE, epoch INTEGER NOT NULL, pkeys TEXT NOT NULL,"
	" ending INTEGER NOT NULL, created INTEGER NOT NULL, UNIQUE (domain, name)) STRICT;"
	"CREATE TABLE attachments (claim TEXT PRIMARY KEY REFERENCES claims ON DELETE CASCADE,"
	" guest TEXT, granted INTEGER NOT NULL, updated INTEGER NOT NULL) STRICT;"
	"CREATE TABLE vguids (guid INTEGER PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;"
	"CREATE TABLE intents (bdf TEXT PRIMARY KEY, effect TEXT NOT NULL, started INTEGER NOT "
	"NULL) STRICT;"
	"CREATE TABLE suppressed (domain TEXT NOT NULL, name TEXT NOT NULL,"
	" PRIMARY KEY (domain, name)) STRICT;";

/* claims.ending: 0, 1, or this. */
#define ENDING_FORCED 2
/* claims.leaving: these. */
#define LEAVING	      1
#define LEAVING_ASKED 2

static const char schema_4[] =
	"ALTER TABLE claims ADD COLUMN migration TEXT;"
	"ALTER TABLE claims ADD COLUMN leaving INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE claims ADD COLUMN away INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE migrations (id TEXT PRIMARY KEY, role TEXT NOT NULL, domain TEXT NOT NULL,"
	" domain_name TEXT NOT NULL, peer TEXT NOT NULL, state TEXT NOT NULL, handed INTEGER NOT "
	"NULL,"
	" pinned INTEGER NOT NULL, started INTEGER NOT NULL, updated INTEGER NOT NULL,"
	" code TEXT NOT NULL, reason TEXT NOT NULL, steps TEXT NOT NULL) STRICT;";

static const char schema_5[] = "ALTER TABLE migrations ADD COLUMN vfs TEXT NOT NULL DEFAULT '[]';";

/* lease_until: CLOCK_BOOTTIME; of an earlier boot it is cut to the lease's length. */
static const char schema_6[] =
	"ALTER TABLE migrations ADD COLUMN mode TEXT NOT NULL DEFAULT 'managed';"
	"ALTER TABLE migrations ADD COLUMN lease INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE migrations ADD COLUMN lease_until INTEGER NOT NULL DEFAULT 0;";

/* At most one row: this host is drained. */
static const char schema_7[] = "CREATE TABLE drain (one INTEGER PRIMARY KEY CHECK (one = 1),"
			       " peers TEXT NOT NULL, since INTEGER NOT NULL) STRICT;";

/* When the epoch was written, by the wall clock: which ones are forgotten first. */
static const char schema_9[] = "ALTER TABLE vguids ADD COLUMN used INTEGER NOT NULL DEFAULT 0;";

/* 0 for what an earlier version has reported, until the port is reported again. */
static const char schema_10[] =
	"ALTER TABLE claims ADD COLUMN port_guid INTEGER NOT NULL DEFAULT 0;";

/* 0 for claims of an earlier version: the configured one. */
static const char schema_11[] = "ALTER TABLE claims ADD COLUMN port INTEGER NOT NULL DEFAULT 0;";

static const char schema_12[] = "ALTER TABLE claims ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;";

/* {}: one of an earlier version, which asked libvirt for nothing in particular. */
static const char schema_14[] =
	"ALTER TABLE migrations ADD COLUMN copy TEXT NOT NULL DEFAULT '{}';";

/*
 * What a claim wished of its place (numa: -1 = any), and how its VF has failed others: rests_until
 * is CLOCK_BOOTTIME, VFs of an earlier boot have not failed. And the migration that a claim was in
 * when it ended with its boot, until somebody says whose the epoch is.
 */
static const char schema_15[] = "ALTER TABLE claims ADD COLUMN pf TEXT;"
				"ALTER TABLE claims ADD COLUMN numa INTEGER NOT NULL DEFAULT -1;"
				"ALTER TABLE vfs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;"
				"ALTER TABLE vfs ADD COLUMN fault TEXT NOT NULL DEFAULT '';"
				"ALTER TABLE vfs ADD COLUMN rests_until INTEGER NOT NULL DEFAULT 0;"
				"ALTER TABLE vguids ADD COLUMN migration TEXT;";

const struct vhca_migration vhca_journal_migrations[] = {
	{schema_1},  {vhca_outbox_schema}, {vhca_outbox_schema_2}, {schema_4},	{schema_5},
	{schema_6},  {schema_7},	   {vhca_outbox_schema_3}, {schema_9},	{schema_10},
	{schema_11}, {schema_12},	   {vhca_outbox_schema_4}, {schema_14}, {schema_15},
};
const unsigned int vhca_journal_n_migrations = VHCA_ARRAY_SIZE(vhca_journal_migrations);

struct load {
	struct vhca_store *store;
	struct vhca_model *m;
	const struct vhca_journal_sink *sink;
	void *ctx;
};

int vhca_journal_uuid(const struct vhca_row *row, int col, struct vhca_uuid *ret)
{
	const char *text = vhca_row_text(row, col);

	return vhca_uuid_parse(text, ret) || strcmp(VHCA_UUID_STR(ret), text) ? -EBADMSG : 0;
}

int vhca_journal_bdf(const struct vhca_row *row, int col, struct vhca_bdf *ret)
{
	const char *text = vhca_row_text(row, col);

	return vhca_bdf_parse(text, ret) || strcmp(VHCA_BDF_STR(*ret), text) ? -EBADMSG : 0;
}

/* Before it is narrowed: 257 is not 1. */
static bool is_up_to(const struct vhca_row *row, int col, int64_t max)
{
	return vhca_row_i64(row, col) >= 0 && vhca_row_i64(row, col) <= max;
}

static int load_vf(void *ctx, const struct vhca_row *row)
{
	struct load *l = ctx;
	struct vhca_journal_vf vf = {.since_ms = vhca_row_u64(row, 2),
				     .index = (uint16_t)vhca_row_i64(row, 6),
				     .failures = (unsigned int)vhca_row_i64(row, 7),
				     .rests_until_ms = vhca_row_u64(row, 9)};

	if (!is_up_to(row, 6, VHCA_VFS_MAX - 1) || !is_up_to(row, 7, INT32_MAX) ||
	    vhca_journal_bdf(row, 0, &vf.bdf) || vhca_journal_bdf(row, 5, &vf.pf) ||
	    vhca_vf_state_parse(vhca_row_text(row, 1), &vf.state) ||
	    vhca_strcpy(vf.reason, sizeof(vf.reason), vhca_row_text(row, 3)) ||
	    vhca_strcpy(vf.boot_id, sizeof(vf.boot_id), vhca_row_text(row, 4)) ||
	    vhca_strcpy(vf.fault, sizeof(vf.fault), vhca_row_text(row, 8)))
		return -EBADMSG;
	return l->sink->vf(l->ctx, &vf);
}

/* What NULL stands for is not so; any other text has to be what it should. */
static int load_guest(const struct vhca_row *row, struct vhca_claim *c)
{
	c->has_guest = vhca_row_text(row, 12)[0] != '\0';
	return c->has_guest ? vhca_journal_bdf(row, 12, &c->guest) : 0;
}

static int load_migration(const struct vhca_row *row, struct vhca_claim *c)
{
	c->migrating = vhca_row_text(row, 13)[0] != '\0';
	return c->migrating ? vhca_journal_uuid(row, 13, &c->migration) : 0;
}

static int load_wishes(const struct vhca_row *row, struct vhca_claim *c)
{
	int64_t numa = vhca_row_i64(row, 20);

	if (numa < -1 || numa > VHCA_NUMA_NODE_MAX)
		return -EBADMSG;
	c->numa = (int)numa;
	c->has_pf = vhca_row_text(row, 19)[0] != '\0';
	return c->has_pf ? vhca_journal_bdf(row, 19, &c->pf) : 0;
}

static int fill_claim(struct vhca_claim *c, const struct vhca_row *row)
{
	if (vhca_journal_uuid(row, 0, &c->id) || vhca_journal_uuid(row, 1, &c->domain) ||
	    vhca_strcpy(c->domain_name, sizeof(c->domain_name), vhca_row_text(row, 2)) ||
	    vhca_strcpy(c->name, sizeof(c->name), vhca_row_text(row, 3)) ||
	    vhca_strcpy(c->fabric, sizeof(c->fabric), vhca_row_text(row, 4)) ||
	    vhca_way_parse(vhca_row_text(row, 5), &c->way) ||
	    vhca_pkeys_parse(vhca_row_text(row, 9), c->identity.pkeys, VHCA_VF_PKEYS_MAX,
			     &c->identity.n_pkeys) ||
	    load_guest(row, c) || load_migration(row, c) || load_wishes(row, c) ||
	    !is_up_to(row, 17, VHCA_PORTS_MAX))
		return -EBADMSG;
	c->identity.guid = vhca_row_u64(row, 7);
	c->epoch = vhca_row_u64(row, 8);
	c->ending = vhca_row_i64(row, 10) != 0;
	c->forced = vhca_row_i64(row, 10) == ENDING_FORCED;
	c->created_ms = vhca_row_u64(row, 11);
	c->leaving = vhca_row_i64(row, 14) & LEAVING;
	c->asked = vhca_row_i64(row, 14) & LEAVING_ASKED;
	c->away = c->withdrawn = vhca_row_i64(row, 15) != 0;
	c->port_guid = vhca_row_u64(row, 16);
	c->port = (uint8_t)vhca_row_i64(row, 17);
	c->kept_epoch = vhca_row_u64(row, 18);
	return vhca_name_is_valid(c->name) && vhca_name_is_valid(c->fabric) && c->identity.guid
		       ? 0
		       : -EBADMSG;
}

static int load_claim(void *ctx, const struct vhca_row *row)
{
	struct load *l = ctx;
	struct vhca_claim *c = vhca_model_add_claim(l->m);
	struct vhca_bdf bdf;

	if (!c)
		return -ENOMEM;
	if (vhca_journal_bdf(row, 6, &bdf) || fill_claim(c, row))
		return -EBADMSG;
	return l->sink->claim(l->ctx, c, bdf);
}

static int load_epoch(void *ctx, const struct vhca_row *row)
{
	struct load *l = ctx;
	struct vhca_uuid migration;
	int r = vhca_model_set_epoch(l->m, vhca_row_u64(row, 0), vhca_row_u64(row, 1));

	if (r || !vhca_row_text(row, 2)[0])
		return r;
	r = vhca_journal_uuid(row, 2, &migration);
	if (!r)
		vhca_model_strand_epoch(l->m, vhca_row_u64(row, 0), &migration);
	return r;
}

static int load_suppressed(void *ctx, const struct vhca_row *row)
{
	struct load *l = ctx;
	struct vhca_uuid domain;

	if (vhca_journal_uuid(row, 0, &domain) || !vhca_name_is_valid(vhca_row_text(row, 1)))
		return -EBADMSG;
	return vhca_model_suppress(l->m, &domain, vhca_row_text(row, 1));
}

int vhca_journal_load(struct vhca_store *store, struct vhca_model *m,
		      const struct vhca_journal_sink *sink, void *ctx, struct vhca_error *err)
{
	static const struct {
		const char *what, *sql;
		vhca_row_fn fn;
	} tables[] = {
		{"vfs",
		 "SELECT bdf, state, since, reason, boot_id, pf, idx, failures, fault, rests_until "
		 "FROM vfs",
		 load_vf},
		{"vguids", "SELECT guid, epoch, migration FROM vguids ORDER BY used", load_epoch},
		{"claims",
		 "SELECT id, domain, domain_name, name, fabric, way, bdf, claims.guid, epoch, "
		 "pkeys, ending,"
		 " created, attachments.guest, migration, leaving, away, port_guid, port, kept, "
		 "pf, numa "
		 "FROM "
		 "claims "
		 "LEFT JOIN "
		 "attachments ON "
		 "attachments.claim = claims.id"
		 " ORDER BY created",
		 load_claim},
		{"suppressed", "SELECT domain, name FROM suppressed", load_suppressed},
	};
	struct load l = {.store = store, .m = m, .sink = sink, .ctx = ctx};

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(tables); i++) {
		int r = vhca_store_query(store, tables[i].sql, tables[i].fn, &l, err, "");

		if (r == -EBADMSG)
			return vhca_error_set(
				err, VHCA_ERR_INTERNAL, "store_corrupt", EBADMSG,
				"state database: table %s holds a row that cannot be read",
				tables[i].what);
		if (r < 0)
			return r;
	}
	return 0;
}

void vhca_journal_vf(struct vhca_txn *txn, const struct vhca_vf *vf, enum vhca_vf_state state,
		     const char *boot_id)
{
	vhca_txn_exec(
		txn,
		"INSERT OR REPLACE INTO vfs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
		"ssussssiisu", VHCA_BDF_STR(vf->bdf), vhca_vf_state_to_string(state),
		vhca_wall_ms(), vf->claim ? VHCA_UUID_STR(&vf->claim->id) : NULL, vf->reason,
		boot_id, VHCA_BDF_STR(vf->hca->facts.bdf), (int64_t)vf->index,
		state == VHCA_VF_ATTACHED ? INT64_C(0) : (int64_t)vf->failures, vf->fault,
		vf->rests_until_ms);
}

void vhca_journal_forget_vf(struct vhca_txn *txn, struct vhca_bdf bdf)
{
	vhca_txn_exec(txn, "DELETE FROM vfs WHERE bdf = ?1", "s", VHCA_BDF_STR(bdf));
	vhca_journal_intent_done(txn, bdf);
}

void vhca_journal_claim(struct vhca_txn *txn, const struct vhca_claim *c)
{
	char text[VHCA_PKEYS_STRLEN(VHCA_VF_PKEYS_MAX)];

	vhca_pkeys_format(text, sizeof(text), c->identity.pkeys, c->identity.n_pkeys);
	vhca_txn_exec(
		txn,
		"INSERT INTO claims VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
		"?13, ?14,"
		" ?15, ?16, ?17, ?18, ?19, ?20) ON CONFLICT (id) DO UPDATE SET ending = "
		"excluded.ending, "
		"epoch = "
		"excluded.epoch,"
		" bdf = excluded.bdf, guid = excluded.guid, migration = excluded.migration, "
		"leaving = excluded.leaving,"
		" away = excluded.away, port_guid = excluded.port_guid, port = excluded.port,"
		" kept = excluded.kept",
		"sssssssuusiusiiuiusi", VHCA_UUID_STR(&c->id), VHCA_UUID_STR(&c->domain),
		c->domain_name, c->name, c->fabric, vhca_way_to_string(c->way),
		VHCA_BDF_STR(c->vf->bdf), c->identity.guid, c->epoch, text,
		(int64_t)(c->forced ? ENDING_FORCED : c->ending), c->created_ms,
		c->migrating ? VHCA_UUID_STR(&c->migration) : NULL,
		(int64_t)((c->leaving ? LEAVING : 0) | (c->asked ? LEAVING_ASKED : 0)),
		(int64_t)c->away, c->port_guid, (int64_t)c->port, c->kept_epoch,
		c->has_pf ? VHCA_BDF_STR(c->pf) : NULL, (int64_t)c->numa);
	if (!vhca_guid_is_stand_in(c->identity.guid))
		vhca_journal_epoch(txn, c->identity.guid, c->epoch);
}

void vhca_journal_epoch(struct vhca_txn *txn, uint64_t guid, uint64_t epoch)
{
	vhca_txn_exec(txn,
		      "INSERT INTO vguids (guid, epoch, used) VALUES (?1, ?2, ?3) ON CONFLICT "
		      "(guid) DO UPDATE SET epoch = excluded.epoch, used = excluded.used, "
		      "migration = CASE vguids.epoch WHEN excluded.epoch THEN vguids.migration END",
		      "uuu", guid, epoch, vhca_wall_ms());
}

void vhca_journal_strand_epoch(struct vhca_txn *txn, uint64_t guid,
			       const struct vhca_uuid *migration)
{
	vhca_txn_exec(txn, "UPDATE vguids SET migration = ?2 WHERE guid = ?1", "us", guid,
		      VHCA_UUID_STR(migration));
}

void vhca_journal_forget_epoch(struct vhca_txn *txn, uint64_t guid)
{
	vhca_txn_exec(txn, "DELETE FROM vguids WHERE guid = ?1", "u", guid);
}

void vhca_journal_claim_port(struct vhca_txn *txn, const struct vhca_claim *claim)
{
	vhca_txn_exec(txn, "UPDATE claims SET port_guid = ?2 WHERE id = ?1", "su",
		      VHCA_UUID_STR(&claim->id), claim->port_guid);
}

void vhca_journal_claim_end(struct vhca_txn *txn, const struct vhca_claim *claim)
{
	vhca_txn_exec(txn, "DELETE FROM claims WHERE id = ?1", "s", VHCA_UUID_STR(&claim->id));
}

void vhca_journal_attachment(struct vhca_txn *txn, const struct vhca_claim *claim, bool granted)
{
	vhca_txn_exec(txn, "INSERT OR REPLACE INTO attachments VALUES (?1, ?2, ?3, ?4)", "ssiu",
		      VHCA_UUID_STR(&claim->id),
		      claim->has_guest ? VHCA_BDF_STR(claim->guest) : NULL, (int64_t)granted,
		      vhca_wall_ms());
}

void vhca_journal_intent(struct vhca_txn *txn, struct vhca_bdf bdf, enum vhca_effect effect)
{
	vhca_txn_exec(txn, "INSERT OR REPLACE INTO intents VALUES (?1, ?2, ?3)", "ssu",
		      VHCA_BDF_STR(bdf), vhca_effect_to_string(effect), vhca_wall_ms());
}

void vhca_journal_intent_done(struct vhca_txn *txn, struct vhca_bdf bdf)
{
	vhca_txn_exec(txn, "DELETE FROM intents WHERE bdf = ?1", "s", VHCA_BDF_STR(bdf));
}

void vhca_journal_suppress(struct vhca_txn *txn, const struct vhca_uuid *domain, const char *name)
{
	vhca_txn_exec(txn, "INSERT OR IGNORE INTO suppressed VALUES (?1, ?2)", "ss",
		      VHCA_UUID_STR(domain), name);
}

void vhca_journal_unsuppress(struct vhca_txn *txn, const struct vhca_uuid *domain, const char *name)
{
	vhca_txn_exec(txn, "DELETE FROM suppressed WHERE domain = ?1 AND (?2 IS NULL OR name = ?2)",
		      "ss", VHCA_UUID_STR(domain), name);
}
