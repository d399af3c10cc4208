/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_OUTBOX_ROW_H
#define VHCA_SM_OUTBOX_ROW_H
/*
 * One row of the outbox's tables; there is at most one per subject: a vGUID for bindings, a port
 * for members.
 */
#include "common/http/client.h"
#include "common/store/store.h"
#include "sm/proof.h"
#include "sm/sm.h"

/*
 * The tables, for the agent's schema. pkeys: "0x8001 0xffff"; the columns from moved to from_lid
 * are those of a move, and move_id is a UUID or empty.
 */
#define VHCA_OUTBOX_SCHEMA                                                                \
	"CREATE TABLE outbox (vguid INTEGER PRIMARY KEY, seq INTEGER NOT NULL UNIQUE,"    \
	" created_ms INTEGER NOT NULL, epoch INTEGER NOT NULL,"                           \
	" bound INTEGER NOT NULL CHECK (bound IN (0, 1)), port_guid INTEGER NOT NULL,"    \
	" gid_index INTEGER NOT NULL, lid INTEGER NOT NULL, pkeys TEXT NOT NULL,"         \
	" moved INTEGER NOT NULL CHECK (moved IN (0, 1)), move_id TEXT NOT NULL,"         \
	" from_port_guid INTEGER NOT NULL, from_gid_index INTEGER NOT NULL,"              \
	" from_lid INTEGER NOT NULL, vport INTEGER NOT NULL,"                             \
	" dynamic_lid INTEGER NOT NULL CHECK (dynamic_lid IN (0, 1)),"                    \
	" keep_lid INTEGER NOT NULL CHECK (keep_lid IN (0, 1)),"                          \
	" follow_lid INTEGER NOT NULL CHECK (follow_lid IN (0, 1)),"                      \
	" settled INTEGER NOT NULL CHECK (settled IN (0, 1))) STRICT;"                    \
	"CREATE TABLE outbox_members (port_guid INTEGER PRIMARY KEY,"                     \
	" seq INTEGER NOT NULL UNIQUE, created_ms INTEGER NOT NULL, pkeys TEXT NOT NULL)" \
	" STRICT;" VHCA_SM_PROOF_SCHEMA

enum vhca_outbox_kind { VHCA_OUTBOX_BINDING, VHCA_OUTBOX_MEMBERS };

struct vhca_outbox_row {
	uint64_t seq;	     /* order of vhca_outbox_put() and vhca_outbox_put_members() */
	uint64_t created_ms; /* wall clock */
	enum vhca_outbox_kind kind;
	bool plain; /* a move that goes as a binding: the SM knows no moves; not stored */
	struct vhca_sm_binding binding; /* one of these two, by kind */
	struct vhca_sm_members members;
};

/* Of members: repeated ones count once. False: more than VHCA_SM_PORT_PKEYS_MAX different ones. */
bool vhca_outbox_row_add_keys(struct vhca_outbox_row *row, const uint16_t *pkeys, size_t n);
/* The port that the report is about; 0 = unknown. */
uint64_t vhca_outbox_row_port(const struct vhca_outbox_row *row);
bool vhca_outbox_row_same_subject(const struct vhca_outbox_row *a, const struct vhca_outbox_row *b);

/* A binding that is sent as a move. */
bool vhca_outbox_row_is_move(const struct vhca_outbox_row *row);

/*
 * The request that carries the report (its body is the caller's), and what an answer to it means.
 */
int vhca_outbox_row_request(const struct vhca_sm_ops *ops, const struct vhca_outbox_row *row,
			    struct vhca_sm_request *ret);
enum vhca_sm_answer vhca_outbox_row_answer(const struct vhca_sm_ops *ops,
					   const struct vhca_outbox_row *row,
					   const struct vhca_http_result *res,
					   const struct vhca_error *err);
/* True if the answer speaks of one report only, and the SM is otherwise at work. */
bool vhca_outbox_row_waits_alone(int status, struct json_object *problem);
/* ...until somebody has settled whose vGUID it is. */
bool vhca_outbox_row_lacks_owner(struct json_object *problem);
/* The answer has ended it, and is no yes. */
void vhca_outbox_row_log_dropped(const struct vhca_outbox_row *row, enum vhca_sm_answer answer,
				 const char *reason);
/* What vhca_outbox_to_json() shows of the report itself. */
struct json_object *vhca_outbox_row_to_json(const struct vhca_outbox_row *row);

/* Inserts, or replaces the subject's row if that is older (lower seq). */
void vhca_outbox_row_put(struct vhca_txn *txn, const struct vhca_outbox_row *row);
/* Deletes this very report; a newer one of the same subject stays. */
void vhca_outbox_row_delete(struct vhca_txn *txn, const struct vhca_outbox_row *row);
/* Calls fn for each row, lowest seq first. Blocking: start-up only. */
int vhca_outbox_row_load(struct vhca_store *store,
			 int (*fn)(void *ctx, const struct vhca_outbox_row *row), void *ctx,
			 struct vhca_error *err);

#endif
