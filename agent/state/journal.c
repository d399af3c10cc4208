/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/journal.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "pkey/guid.h"
#include "sm/outbox_row.h"

/*
 * A row that mirrors hardware carries the boot it was true in: VFs, their driver and their maps do
 * not survive a reboot, and a VF of an earlier boot has failed nobody. GUIDs and epochs are
 * unsigned 64-bit numbers in SQLite's signed column. claims.numa is -1 for any node; of a claim
 * that ended with its boot, vguids.migration is the one that it was in, until somebody says whose
 * the epoch is. Two columns are CLOCK_BOOTTIME: vfs.rests_until, and migrations.lease_until, which
 * is cut to the lease's length if it is of an earlier boot. drain has at most one row: this host is
 * drained. repeats.object is the id of what a request with an Idempotency-Key makes: begun tells
 * that its row was written, also when it has gone since.
 */
#define SCHEMA                                                                                    \
	"CREATE TABLE vfs (bdf TEXT PRIMARY KEY, state TEXT NOT NULL, since INTEGER NOT NULL,"    \
	" reason TEXT NOT NULL, boot_id TEXT NOT NULL, pf TEXT NOT NULL, idx INTEGER NOT NULL,"   \
	" failures INTEGER NOT NULL, fault TEXT NOT NULL, rests_until INTEGER NOT NULL) STRICT;"  \
	"CREATE TABLE claims (id TEXT PRIMARY KEY, domain TEXT NOT NULL, domain_name TEXT NOT"    \
	" NULL, name TEXT NOT NULL, fabric TEXT NOT NULL, way TEXT NOT NULL, pf TEXT,"            \
	" numa INTEGER NOT NULL, bdf TEXT NOT NULL UNIQUE, port INTEGER NOT NULL,"                \
	" guid INTEGER NOT NULL UNIQUE, epoch INTEGER NOT NULL, pkeys TEXT NOT NULL, guest TEXT," \
	" ending INTEGER NOT NULL, custody TEXT NOT NULL, asked INTEGER NOT NULL,"                \
	" kept INTEGER NOT NULL, migration TEXT, port_guid INTEGER NOT NULL,"                     \
	" created INTEGER NOT NULL, lease INTEGER NOT NULL, follow_port INTEGER NOT NULL,"        \
	" follow_lid INTEGER NOT NULL, UNIQUE (domain, name)) STRICT;"                            \
	"CREATE TABLE vguids (guid INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"                  \
	" used INTEGER NOT NULL, migration TEXT) STRICT;"                                         \
	"CREATE TABLE suppressed (domain TEXT NOT NULL, name TEXT NOT NULL,"                      \
	" PRIMARY KEY (domain, name)) STRICT;"                                                    \
	"CREATE TABLE migrations (id TEXT PRIMARY KEY, role TEXT NOT NULL, domain TEXT NOT NULL," \
	" domain_name TEXT NOT NULL, peer TEXT NOT NULL, state TEXT NOT NULL,"                    \
	" handed INTEGER NOT NULL, pinned INTEGER NOT NULL, started INTEGER NOT NULL,"            \
	" updated INTEGER NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL, steps TEXT NOT"     \
	" NULL, vfs TEXT NOT NULL, mode TEXT NOT NULL, lease INTEGER NOT NULL,"                   \
	" lease_until INTEGER NOT NULL, copy TEXT NOT NULL, tickets TEXT NOT NULL) STRICT;"       \
	"CREATE TABLE drain (one INTEGER PRIMARY KEY CHECK (one = 1), peers TEXT NOT NULL,"       \
	" since INTEGER NOT NULL) STRICT;"                                                        \
	"CREATE TABLE repeats (caller TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT"     \
	" NULL, object TEXT NOT NULL UNIQUE, begun INTEGER NOT NULL, made INTEGER NOT NULL,"      \
	" status INTEGER NOT NULL, answer TEXT NOT NULL, PRIMARY KEY (caller, key)) STRICT;"      \
	"CREATE TRIGGER claim_begins AFTER INSERT ON claims BEGIN UPDATE repeats SET begun = 1"   \
	" WHERE object = NEW.id; END;"                                                            \
	"CREATE TRIGGER migration_begins AFTER INSERT ON migrations BEGIN UPDATE repeats SET"     \
	" begun = 1 WHERE object = NEW.id; END;"

const struct vhca_migration vhca_journal_migrations[] = {{SCHEMA VHCA_OUTBOX_SCHEMA}};
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

	return vhca_uuid_parse(text, ret) < 0 || strcmp(VHCA_UUID_STR(ret), text) != 0 ? -EBADMSG
										       : 0;
}

static int read_bdf(const struct vhca_row *row, int col, struct vhca_bdf *ret)
{
	const char *text = vhca_row_text(row, col);

	return vhca_bdf_parse(text, ret) < 0 || strcmp(VHCA_BDF_STR(*ret), text) != 0 ? -EBADMSG
										      : 0;
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
	    read_bdf(row, 0, &vf.bdf) < 0 || read_bdf(row, 5, &vf.pf) < 0 ||
	    vhca_vf_state_parse(vhca_row_text(row, 1), &vf.state) < 0 ||
	    vhca_strcpy(vf.reason, sizeof(vf.reason), vhca_row_text(row, 3)) < 0 ||
	    vhca_strcpy(vf.boot_id, sizeof(vf.boot_id), vhca_row_text(row, 4)) < 0 ||
	    vhca_strcpy(vf.fault, sizeof(vf.fault), vhca_row_text(row, 8)) < 0)
		return -EBADMSG;
	return l->sink->vf(l->ctx, &vf);
}

/*
 * ending: as enum vhca_claim_end has it, and so much more if a cloud's port is released besides: 4
 * is ASKED, which is WHEN_LEFT again if its guest keeps the VF, and 5 is FORCED.
 */
#define ENDING_RELEASED VHCA_END_WHEN_LEFT

/* In `asked`, beside 0 and 1: the SM has refused its partitions, and not accepted them since. */
#define ASKED_REFUSED 2

/* The columns of claims, as the schema has them. */
enum {
	CLAIM_ID,
	CLAIM_DOMAIN,
	CLAIM_DOMAIN_NAME,
	CLAIM_NAME,
	CLAIM_FABRIC,
	CLAIM_WAY,
	CLAIM_PF,
	CLAIM_NUMA,
	CLAIM_BDF,
	CLAIM_PORT,
	CLAIM_GUID,
	CLAIM_EPOCH,
	CLAIM_PKEYS,
	CLAIM_GUEST,
	CLAIM_ENDING,
	CLAIM_CUSTODY,
	CLAIM_ASKED,
	CLAIM_KEPT,
	CLAIM_MIGRATION,
	CLAIM_PORT_GUID,
	CLAIM_CREATED,
	CLAIM_LEASE,
	CLAIM_FOLLOW_PORT,
	CLAIM_FOLLOW_LID,
};

/* NULL is none; any other text has to be an address. */
static int load_bdf(const struct vhca_row *row, int col, bool *ret_has, struct vhca_bdf *ret)
{
	*ret_has = vhca_row_text(row, col)[0] != '\0';
	return *ret_has ? read_bdf(row, col, ret) : 0;
}

static int load_place(const struct vhca_row *row, struct vhca_claim *c)
{
	int64_t numa = vhca_row_i64(row, CLAIM_NUMA);

	if (numa < -1 || numa > VHCA_NUMA_NODE_MAX || vhca_row_i64(row, CLAIM_PORT) == 0 ||
	    !is_up_to(row, CLAIM_PORT, VHCA_PORTS_MAX) ||
	    load_bdf(row, CLAIM_PF, &c->has_pf, &c->pf) < 0 ||
	    load_bdf(row, CLAIM_GUEST, &c->has_guest, &c->guest) < 0)
		return -EBADMSG;
	c->numa = (int)numa;
	c->port = (uint8_t)vhca_row_i64(row, CLAIM_PORT);
	return 0;
}

static int load_names(const struct vhca_row *row, struct vhca_claim *c)
{
	if (vhca_journal_uuid(row, CLAIM_ID, &c->id) < 0 ||
	    vhca_journal_uuid(row, CLAIM_DOMAIN, &c->domain) < 0 ||
	    vhca_strcpy(c->domain_name, sizeof(c->domain_name),
			vhca_row_text(row, CLAIM_DOMAIN_NAME)) < 0 ||
	    vhca_strcpy(c->name, sizeof(c->name), vhca_row_text(row, CLAIM_NAME)) < 0 ||
	    vhca_strcpy(c->fabric, sizeof(c->fabric), vhca_row_text(row, CLAIM_FABRIC)) < 0 ||
	    vhca_origin_parse(vhca_row_text(row, CLAIM_WAY), &c->origin) < 0)
		return -EBADMSG;
	return vhca_name_is_valid(c->name) && vhca_name_is_valid(c->fabric) ? 0 : -EBADMSG;
}

static int fill_claim(struct vhca_claim *c, const struct vhca_row *row)
{
	int64_t ending = vhca_row_i64(row, CLAIM_ENDING);

	c->migrating = vhca_row_text(row, CLAIM_MIGRATION)[0] != '\0';
	if (c->migrating && vhca_journal_uuid(row, CLAIM_MIGRATION, &c->migration) < 0)
		return -EBADMSG;
	if (load_names(row, c) < 0 || load_place(row, c) < 0 ||
	    vhca_custody_parse(vhca_row_text(row, CLAIM_CUSTODY), &c->custody) < 0 ||
	    !is_up_to(row, CLAIM_LEASE, VHCA_CLAIM_LEASE_MAX) ||
	    !is_up_to(row, CLAIM_FOLLOW_LID, UINT16_MAX) ||
	    vhca_pkeys_parse(vhca_row_text(row, CLAIM_PKEYS), c->identity.pkeys, VHCA_VF_PKEYS_MAX,
			     &c->identity.n_pkeys) < 0)
		return -EBADMSG;
	c->identity.guid = vhca_row_u64(row, CLAIM_GUID);
	c->epoch = vhca_row_u64(row, CLAIM_EPOCH);
	c->released = ending >= VHCA_END_WHEN_LEFT && ending <= VHCA_END_FORCED + ENDING_RELEASED;
	if (c->released && ending > ENDING_RELEASED)
		ending -= ENDING_RELEASED;
	c->end = ending >= VHCA_END_NONE && ending <= VHCA_END_WHEN_LEFT
			 ? (enum vhca_claim_end)ending
			 : VHCA_END_ASKED;
	c->withdrawn = vhca_claim_is_withheld(c);
	c->asked = vhca_row_i64(row, CLAIM_ASKED) & 1;
	if (vhca_row_i64(row, CLAIM_ASKED) & ASKED_REFUSED)
		c->word = VHCA_WORD_NO;
	c->kept_epoch = vhca_row_u64(row, CLAIM_KEPT);
	c->port_guid = vhca_row_u64(row, CLAIM_PORT_GUID);
	c->created_ms = vhca_row_u64(row, CLAIM_CREATED);
	c->lease_s = (uint32_t)vhca_row_i64(row, CLAIM_LEASE);
	c->follow_port = vhca_row_u64(row, CLAIM_FOLLOW_PORT);
	c->follow_lid = (uint16_t)vhca_row_i64(row, CLAIM_FOLLOW_LID);
	return c->identity.guid ? 0 : -EBADMSG;
}

static int load_claim(void *ctx, const struct vhca_row *row)
{
	struct load *l = ctx;
	struct vhca_claim *c = vhca_model_add_claim(l->m);
	struct vhca_bdf bdf;

	if (!c)
		return -ENOMEM;
	if (read_bdf(row, CLAIM_BDF, &bdf) < 0 || fill_claim(c, row) < 0)
		return -EBADMSG;
	return l->sink->claim(l->ctx, c, bdf);
}

static int load_epoch(void *ctx, const struct vhca_row *row)
{
	struct load *l = ctx;
	struct vhca_uuid migration;
	int r = vhca_model_set_epoch(l->m, vhca_row_u64(row, 0), vhca_row_u64(row, 1));

	if (r < 0 || !vhca_row_text(row, 2)[0])
		return r;
	r = vhca_journal_uuid(row, 2, &migration);
	if (r == 0)
		vhca_model_strand_epoch(l->m, vhca_row_u64(row, 0), &migration);
	return r;
}

static int load_suppressed(void *ctx, const struct vhca_row *row)
{
	struct load *l = ctx;
	struct vhca_uuid domain;

	if (vhca_journal_uuid(row, 0, &domain) < 0 || !vhca_name_is_valid(vhca_row_text(row, 1)))
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
		 "SELECT bdf, state, since, reason, boot_id, pf, idx, failures, fault, rests_until"
		 " FROM vfs",
		 load_vf},
		{"vguids", "SELECT guid, epoch, migration FROM vguids ORDER BY used", load_epoch},
		{"claims",
		 "SELECT id, domain, domain_name, name, fabric, way, pf, numa, bdf, port, guid,"
		 " epoch, pkeys, guest, ending, custody, asked, kept, migration, port_guid,"
		 " created, lease, follow_port, follow_lid FROM claims ORDER BY created",
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
		txn, "INSERT OR REPLACE INTO vfs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
		"ssusssiisu", VHCA_BDF_STR(vf->bdf), vhca_vf_state_to_string(state), vhca_wall_ms(),
		vf->reason, boot_id, VHCA_BDF_STR(vf->hca->facts.bdf), (int64_t)vf->index,
		state == VHCA_VF_ATTACHED ? INT64_C(0) : (int64_t)vf->failures, vf->fault,
		vf->rests_until_ms);
}

void vhca_journal_forget_vf(struct vhca_txn *txn, struct vhca_bdf bdf)
{
	vhca_txn_exec(txn, "DELETE FROM vfs WHERE bdf = ?1", "s", VHCA_BDF_STR(bdf));
}

/* What a migration has to say in each life of the agent is not durable. */
static const char *durable_custody(const struct vhca_claim *c)
{
	if (c->custody == VHCA_CUSTODY_BARE)
		return vhca_custody_to_string(VHCA_CUSTODY_WITHHELD);
	if (c->custody == VHCA_CUSTODY_RESTORED)
		return vhca_custody_to_string(VHCA_CUSTODY_HERE);
	return vhca_custody_to_string(c->custody);
}

/* What a claim was made with stays. */
void vhca_journal_claim(struct vhca_txn *txn, const struct vhca_claim *c)
{
	int64_t asked = c->asked;
	char text[VHCA_PKEYS_STRLEN(VHCA_VF_PKEYS_MAX)];

	if (c->word == VHCA_WORD_NO && vhca_claim_is_refused(c)) /* else it is asked anew */
		asked += ASKED_REFUSED;
	vhca_pkeys_format(text, sizeof(text), c->identity.pkeys, c->identity.n_pkeys);
	vhca_txn_exec(txn,
		      "INSERT INTO claims VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
		      " ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,"
		      " ?23, ?24)"
		      " ON CONFLICT (id) DO UPDATE SET bdf = excluded.bdf,"
		      " guid = excluded.guid, epoch = excluded.epoch, pkeys = excluded.pkeys,"
		      " guest = excluded.guest,"
		      " ending = excluded.ending, custody = excluded.custody,"
		      " asked = excluded.asked, kept = excluded.kept,"
		      " migration = excluded.migration, port_guid = excluded.port_guid,"
		      " lease = excluded.lease, follow_port = excluded.follow_port,"
		      " follow_lid = excluded.follow_lid",
		      "sssssssisiuussisiusuuiui", VHCA_UUID_STR(&c->id), VHCA_UUID_STR(&c->domain),
		      c->domain_name, c->name, c->fabric, vhca_origin_to_string(c->origin),
		      c->has_pf ? VHCA_BDF_STR(c->pf) : NULL, (int64_t)c->numa,
		      VHCA_BDF_STR(c->vf->bdf), (int64_t)c->port, c->identity.guid, c->epoch, text,
		      c->has_guest ? VHCA_BDF_STR(c->guest) : NULL,
		      (int64_t)c->end +
			      (c->released && vhca_claim_is_ending(c) ? ENDING_RELEASED : 0),
		      durable_custody(c), asked, c->kept_epoch,
		      c->migrating || c->awaited_signer[0] ? VHCA_UUID_STR(&c->migration) : NULL,
		      c->port_guid, c->created_ms, (int64_t)c->lease_s, c->follow_port,
		      (int64_t)c->follow_lid);
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
