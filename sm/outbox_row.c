/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sm/outbox_row.h"

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "sm/outbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* pkeys: "0x8001 0xffff". */
const char vhca_outbox_schema[] = "CREATE TABLE outbox ("
				  " vguid INTEGER PRIMARY KEY,"
				  " seq INTEGER NOT NULL UNIQUE,"
				  " created_ms INTEGER NOT NULL,"
				  " epoch INTEGER NOT NULL,"
				  " bound INTEGER NOT NULL CHECK (bound IN (0, 1)),"
				  " port_guid INTEGER NOT NULL,"
				  " gid_index INTEGER NOT NULL,"
				  " lid INTEGER NOT NULL,"
				  " pkeys TEXT NOT NULL"
				  ") STRICT;";

#define PKEYS_TEXT_MAX (VHCA_SM_PKEYS_MAX * VHCA_PKEY_STRLEN + 1)

void vhca_outbox_row_put(struct vhca_txn *txn, const struct vhca_outbox_row *row)
{
	const struct vhca_sm_binding *b = &row->binding;
	char pkeys[PKEYS_TEXT_MAX];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, pkeys, sizeof(pkeys));
	for (unsigned int i = 0; i < b->n_pkeys; i++)
		vhca_strbuf_add(&sb, "%s%s", i ? " " : "", VHCA_PKEY_STR(b->pkeys[i]));
	vhca_txn_exec(txn,
		      "INSERT INTO outbox VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
		      " ON CONFLICT (vguid) DO UPDATE SET seq = excluded.seq,"
		      " created_ms = excluded.created_ms, epoch = excluded.epoch,"
		      " bound = excluded.bound, port_guid = excluded.port_guid,"
		      " gid_index = excluded.gid_index, lid = excluded.lid, pkeys = excluded.pkeys"
		      " WHERE excluded.seq > outbox.seq",
		      "uuuuiuiis", b->vguid, row->seq, row->created_ms, b->epoch, (int64_t)b->bound,
		      b->port_guid, (int64_t)b->gid_index, (int64_t)b->lid, pkeys);
}

void vhca_outbox_row_delete(struct vhca_txn *txn, const struct vhca_outbox_row *row)
{
	vhca_txn_exec(txn, "DELETE FROM outbox WHERE vguid = ?1 AND seq = ?2", "uu",
		      row->binding.vguid, row->seq);
}

static int read_pkeys(const char *text, struct vhca_sm_binding *b)
{
	for (const char *p = text; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");
		char one[VHCA_PKEY_STRLEN];

		if (len >= sizeof(one) || b->n_pkeys == VHCA_SM_PKEYS_MAX)
			return -EINVAL;
		(void)snprintf(one, sizeof(one), "%.*s", (int)len, p);
		if (vhca_pkey_parse(one, &b->pkeys[b->n_pkeys]) < 0)
			return -EINVAL;
		b->n_pkeys++;
		p += len;
	}
	return 0;
}

static int read_u16(const struct vhca_row *row, int col, uint16_t *ret)
{
	int64_t value = vhca_row_i64(row, col);

	if (value < 0 || value > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)value;
	return 0;
}

struct loading {
	int (*fn)(void *ctx, const struct vhca_outbox_row *row);
	void *ctx;
};

static int load_row(void *ctx, const struct vhca_row *db)
{
	const struct loading *loading = ctx;
	struct vhca_outbox_row row = {
		.seq = vhca_row_u64(db, 1),
		.created_ms = vhca_row_u64(db, 2),
		.binding = {.vguid = vhca_row_u64(db, 0),
			    .epoch = vhca_row_u64(db, 3),
			    .bound = vhca_row_i64(db, 4) != 0,
			    .port_guid = vhca_row_u64(db, 5)},
	};

	if (read_u16(db, 6, &row.binding.gid_index) < 0 || read_u16(db, 7, &row.binding.lid) < 0 ||
	    read_pkeys(vhca_row_text(db, 8), &row.binding) < 0)
		return -EBADMSG;
	return loading->fn(loading->ctx, &row);
}

int vhca_outbox_row_load(struct vhca_store *store,
			 int (*fn)(void *ctx, const struct vhca_outbox_row *row), void *ctx,
			 struct vhca_error *err)
{
	struct loading loading = {fn, ctx};

	return vhca_store_query(
		store,
		"SELECT vguid, seq, created_ms, epoch, bound, port_guid, gid_index, lid,"
		" pkeys FROM outbox ORDER BY seq",
		load_row, &loading, err, "");
}
