// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/store/store_private.h"

/* Foreign keys are not enforced while a migration may rebuild a table, so what it leaves is checked
 * before the commit. */
static int check_references(struct vhca_store *store)
{
	int64_t ignored;
	int r = vhca_sql_number(store->db, "SELECT 1 FROM pragma_foreign_key_check LIMIT 1",
				&ignored);

	if (r == -ENODATA)
		return 0;
	return r < 0 ? r : -EEXIST;
}

static int apply_one(struct vhca_store *store, const char *sql, unsigned int version)
{
	char set_version[64];
	int r;

	(void)snprintf(set_version, sizeof(set_version), "PRAGMA user_version = %u", version);
	r = vhca_sql_exec(store->db, "BEGIN IMMEDIATE");
	if (r == 0)
		r = vhca_sql_exec(store->db, sql);
	if (r == 0)
		r = vhca_sql_exec(store->db, set_version);
	if (r == 0)
		r = check_references(store);
	if (r == 0)
		r = vhca_sql_exec(store->db, "COMMIT");
	return r;
}

static int apply(struct vhca_store *store, const char *sql, unsigned int version,
		 struct vhca_error *err)
{
	int r = apply_one(store, sql, version);

	if (r == 0)
		return 0;
	/* Without an objection of SQLite's own it was check_references(). */
	r = vhca_error_set(err, VHCA_ERR_INTERNAL, "store_migration", -r,
			   "%s: migration to version %u: %s", store->path, version,
			   sqlite3_errcode(store->db) == SQLITE_OK
				   ? "it leaves references to rows that do not exist"
				   : sqlite3_errmsg(store->db));
	if (!sqlite3_get_autocommit(store->db))
		(void)vhca_sql_exec(store->db, "ROLLBACK"); /* closing does the same */
	return r;
}

int vhca_store_migrate(struct vhca_store *store, const struct vhca_migration *migrations,
		       unsigned int n, struct vhca_error *err)
{
	int64_t version;
	int r;

	r = vhca_sql_number(store->db, "PRAGMA user_version", &version);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "store", -r, "%s: schema version",
				      store->path);
	if (version < 0 || version > n) {
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, "store_newer", EPROTONOSUPPORT,
				   "%s: its schema version %" PRId64
				   " is newer than this program's %u",
				   store->path, version, n);
		vhca_error_hint(err, "start the vhcad that wrote it (of versions 3 to 15: one from "
				     "before 0.1.0), restore an older copy, or move it away: VFs "
				     "in use are left alone then, and `vhcactl adopt` takes them");
		return r;
	}
	for (unsigned int i = (unsigned int)version; i < n; i++) {
		r = apply(store, migrations[i].sql, i + 1, err);
		if (r < 0)
			return r;
	}
	return 0;
}
