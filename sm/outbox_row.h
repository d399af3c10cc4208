/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SM_OUTBOX_ROW_H
#define VHCA_SM_OUTBOX_ROW_H
/* One row of the outbox table; there is at most one per vGUID. */
#include "common/store/store.h"
#include "sm/sm.h"

struct vhca_outbox_row {
	uint64_t seq;	     /* order of vhca_outbox_put() */
	uint64_t created_ms; /* wall clock */
	struct vhca_sm_binding binding;
};

/* Inserts, or replaces the vGUID's row if that is older (lower seq). */
void vhca_outbox_row_put(struct vhca_txn *txn, const struct vhca_outbox_row *row);
/* Deletes this very report; a newer one of the same vGUID stays. */
void vhca_outbox_row_delete(struct vhca_txn *txn, const struct vhca_outbox_row *row);
/* Calls fn for each row, lowest seq first. Blocking: start-up only. */
int vhca_outbox_row_load(struct vhca_store *store,
			 int (*fn)(void *ctx, const struct vhca_outbox_row *row), void *ctx,
			 struct vhca_error *err);

#endif
