/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_PROOF_H
#define VHCA_SM_PROOF_H
/*
 * By which this host has the vGUIDs that others had (docs/design/0014-authority.md). A proof is a
 * JSON array of tickets (common/ticket/ticket.h), oldest first: from the last owner that an SM has
 * said yes to, to this host. One a vGUID, until the SM says yes here.
 */
#include <sys/queue.h>

#include <json-c/json_object.h>

#include "common/store/store.h"

#define VHCA_SM_PROOF_SCHEMA \
	"CREATE TABLE proofs (vguid INTEGER PRIMARY KEY, tickets TEXT NOT NULL) STRICT;"

/*
 * At least one ticket and at most VHCA_TICKETS_MAX of them; all are the vGUID's, each at a higher
 * epoch than the one before it, the last at `epoch`. Whose word they are is not looked at. Error:
 * bad_ticket.
 */
int vhca_sm_proof_check(struct json_object *proof, uint64_t vguid, uint64_t epoch,
			struct vhca_error *err);

struct vhca_sm_proofs {
	LIST_HEAD(, sm_proof) all;
};

/* Adds what the table holds. Blocking: start-up only. Error: store_corrupt. */
int vhca_sm_proofs_load(struct vhca_sm_proofs *all, struct vhca_store *store,
			struct vhca_error *err);
void vhca_sm_proofs_done(struct vhca_sm_proofs *all);

/* Borrowed, NULL = none. */
struct json_object *vhca_sm_proof_of(const struct vhca_sm_proofs *all, uint64_t vguid);
/* In place of the one before, with the transaction; proof was checked, and is borrowed. */
void vhca_sm_proof_put(struct vhca_sm_proofs *all, struct vhca_txn *txn, uint64_t vguid,
		       struct json_object *proof);
/* Nobody needs it any more, from this transaction on. */
void vhca_sm_proof_drop(struct vhca_sm_proofs *all, struct vhca_txn *txn, uint64_t vguid);
/* The vGUID of one that nobody needs; 0 = there is none. */
uint64_t vhca_sm_proof_unneeded(const struct vhca_sm_proofs *all,
				bool (*needs)(void *arg, uint64_t vguid), void *arg);
/* The SM has said yes here, at this epoch: what leads to a later one is kept. */
bool vhca_sm_proof_is_over(const struct vhca_sm_proofs *all, uint64_t vguid, uint64_t epoch);

/* What an SM that knows no proofs says to one, among others. */
bool vhca_sm_proof_is_unknown(struct json_object *problem);
/* What only one says that knows them. */
bool vhca_sm_proof_is_wanted(struct json_object *problem);

#endif
