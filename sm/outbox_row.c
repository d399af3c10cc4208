/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sm/outbox_row.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "sm/outbox.h"

#define PKEYS_TEXT_MAX VHCA_PKEYS_STRLEN(VHCA_SM_PORT_PKEYS_MAX)

static void put_binding(struct vhca_txn *txn, const struct vhca_outbox_row *row)
{
	const struct vhca_sm_binding *b = &row->binding;
	char pkeys[PKEYS_TEXT_MAX];

	vhca_txn_exec(
		txn,
		"INSERT INTO outbox (vguid, seq, created_ms, epoch, bound, port_guid, gid_index,"
		" lid, pkeys, moved, move_id, from_port_guid, from_gid_index, from_lid, vport,"
		" dynamic_lid, keep_lid, follow_lid, settled)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,"
		" ?17, ?18, ?19)"
		" ON CONFLICT (vguid) DO UPDATE SET seq = excluded.seq,"
		" created_ms = excluded.created_ms, epoch = excluded.epoch,"
		" bound = excluded.bound, port_guid = excluded.port_guid,"
		" gid_index = excluded.gid_index, lid = excluded.lid, pkeys = excluded.pkeys,"
		" moved = excluded.moved, move_id = excluded.move_id,"
		" from_port_guid = excluded.from_port_guid,"
		" from_gid_index = excluded.from_gid_index, from_lid = excluded.from_lid,"
		" vport = excluded.vport, dynamic_lid = excluded.dynamic_lid,"
		" keep_lid = excluded.keep_lid, follow_lid = excluded.follow_lid,"
		" settled = excluded.settled"
		" WHERE excluded.seq > outbox.seq",
		"uuuuiuiisisuiiiiiii", b->vguid, row->seq, row->created_ms, b->epoch,
		(int64_t)b->bound, b->port_guid, (int64_t)b->gid_index, (int64_t)b->lid,
		vhca_pkeys_format(pkeys, sizeof(pkeys), b->pkeys, b->n_pkeys), (int64_t)b->moved,
		b->moved ? VHCA_UUID_STR(&b->move_id) : "", b->from_port_guid,
		(int64_t)b->from_gid_index, (int64_t)b->from_lid, (int64_t)b->vport,
		(int64_t)b->dynamic_lid, (int64_t)b->keep_lid, (int64_t)b->follow_lid,
		(int64_t)b->settled);
}

static void put_members(struct vhca_txn *txn, const struct vhca_outbox_row *row)
{
	const struct vhca_sm_members *m = &row->members;
	char pkeys[PKEYS_TEXT_MAX];

	vhca_txn_exec(txn,
		      "INSERT INTO outbox_members (port_guid, seq, created_ms, pkeys)"
		      " VALUES (?1, ?2, ?3, ?4)"
		      " ON CONFLICT (port_guid) DO UPDATE SET seq = excluded.seq,"
		      " created_ms = excluded.created_ms, pkeys = excluded.pkeys"
		      " WHERE excluded.seq > outbox_members.seq",
		      "uuus", m->port_guid, row->seq, row->created_ms,
		      vhca_pkeys_format(pkeys, sizeof(pkeys), m->pkeys, m->n_pkeys));
}

void vhca_outbox_row_put(struct vhca_txn *txn, const struct vhca_outbox_row *row)
{
	if (row->kind == VHCA_OUTBOX_MEMBERS)
		put_members(txn, row);
	else
		put_binding(txn, row);
}

void vhca_outbox_row_delete(struct vhca_txn *txn, const struct vhca_outbox_row *row)
{
	if (row->kind == VHCA_OUTBOX_MEMBERS)
		vhca_txn_exec(txn, "DELETE FROM outbox_members WHERE port_guid = ?1 AND seq = ?2",
			      "uu", row->members.port_guid, row->seq);
	else
		vhca_txn_exec(txn, "DELETE FROM outbox WHERE vguid = ?1 AND seq = ?2", "uu",
			      row->binding.vguid, row->seq);
}

static int read_u16(const struct vhca_row *row, int col, uint16_t *ret)
{
	int64_t value = vhca_row_i64(row, col);

	if (value < 0 || value > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)value;
	return 0;
}

static int read_move(const struct vhca_row *db, struct vhca_sm_binding *b)
{
	b->moved = vhca_row_i64(db, 9) != 0;
	b->from_port_guid = vhca_row_u64(db, 11);
	if (read_u16(db, 12, &b->from_gid_index) < 0 || read_u16(db, 13, &b->from_lid) < 0 ||
	    read_u16(db, 14, &b->vport) < 0)
		return -EINVAL;
	return b->moved ? vhca_uuid_parse(vhca_row_text(db, 10), &b->move_id) : 0;
}

struct loading {
	int (*fn)(void *ctx, const struct vhca_outbox_row *row);
	void *ctx;
};

static int load_binding(const struct loading *loading, const struct vhca_row *db)
{
	struct vhca_outbox_row row = {
		.kind = VHCA_OUTBOX_BINDING,
		.seq = vhca_row_u64(db, 1),
		.created_ms = vhca_row_u64(db, 2),
		.binding = {.vguid = vhca_row_u64(db, 0),
			    .epoch = vhca_row_u64(db, 3),
			    .bound = vhca_row_i64(db, 4) != 0,
			    .port_guid = vhca_row_u64(db, 5)},
	};
	struct vhca_sm_binding *b = &row.binding;

	if (read_u16(db, 6, &b->gid_index) < 0 || read_u16(db, 7, &b->lid) < 0 ||
	    vhca_pkeys_parse(vhca_row_text(db, 8), b->pkeys, VHCA_SM_PKEYS_MAX, &b->n_pkeys) < 0 ||
	    read_move(db, b) < 0)
		return -EBADMSG;
	b->dynamic_lid = vhca_row_i64(db, 15) != 0;
	b->keep_lid = vhca_row_i64(db, 16) != 0;
	b->follow_lid = vhca_row_i64(db, 17) != 0;
	b->settled = vhca_row_i64(db, 18) != 0;
	return loading->fn(loading->ctx, &row);
}

static int load_members(const struct loading *loading, const struct vhca_row *db)
{
	struct vhca_outbox_row row = {
		.kind = VHCA_OUTBOX_MEMBERS,
		.seq = vhca_row_u64(db, 1),
		.created_ms = vhca_row_u64(db, 2),
		.members = {.port_guid = vhca_row_u64(db, 0)},
	};
	struct vhca_sm_members *m = &row.members;

	if (vhca_pkeys_parse(vhca_row_text(db, 8), m->pkeys, VHCA_SM_PORT_PKEYS_MAX, &m->n_pkeys) <
	    0)
		return -EBADMSG;
	return loading->fn(loading->ctx, &row);
}

static int load_row(void *ctx, const struct vhca_row *db)
{
	return vhca_row_i64(db, 19) ? load_members(ctx, db) : load_binding(ctx, db);
}

int vhca_outbox_row_load(struct vhca_store *store,
			 int (*fn)(void *ctx, const struct vhca_outbox_row *row), void *ctx,
			 struct vhca_error *err)
{
	struct loading loading = {fn, ctx};
	int r = vhca_store_query(
		store,
		"SELECT vguid, seq, created_ms, epoch, bound, port_guid, gid_index, lid, pkeys,"
		" moved, move_id, from_port_guid, from_gid_index, from_lid, vport,"
		" dynamic_lid, keep_lid, follow_lid, settled, 0 FROM outbox"
		" UNION ALL"
		" SELECT port_guid, seq, created_ms, 0, 0, 0, 0, 0, pkeys, 0, '', 0, 0, 0, 0, 0,"
		" 0, 0, 0, 1"
		" FROM outbox_members ORDER BY seq",
		load_row, &loading, err, "");

	if (r == -EBADMSG)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "store_corrupt", EBADMSG,
				      "state database: the outbox holds a row that cannot be read");
	return r;
}
