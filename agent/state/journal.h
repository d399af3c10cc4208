/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_JOURNAL_H
#define VHCA_AGENT_STATE_JOURNAL_H
/*
 * What survives the agent: its tables, and the rows of one transition. Everything that a transition
 * changes goes into one transaction; the engine acts only after it is durable.
 */
#include "agent/state/model.h"
#include "common/store/store.h"

extern const struct vhca_migration vhca_journal_migrations[];
extern const unsigned int vhca_journal_n_migrations;

/* A VF's row as loaded; the VF itself may not exist (any more) on this host. */
struct vhca_journal_vf {
	struct vhca_bdf bdf, pf;
	uint16_t index;
	enum vhca_vf_state state;
	uint64_t since_ms;
	char reason[VHCA_REASON_MAX];
	char boot_id[VHCA_UUID_STRLEN];
	unsigned int failures;
	char fault[VHCA_REASON_MAX];
	uint64_t rests_until_ms;
};

struct vhca_journal_sink {
	int (*vf)(void *ctx, const struct vhca_journal_vf *row);
	/* The claim is owned by the model already; bdf tells its VF. */
	int (*claim)(void *ctx, struct vhca_claim *claim, struct vhca_bdf bdf);
};

/*
 * Loads everything into the model (claims, epochs, suppressions) and hands VF rows and claims to
 * the sink, VFs first. Blocking; start-up only.
 */
int vhca_journal_load(struct vhca_store *store, struct vhca_model *m,
		      const struct vhca_journal_sink *sink, void *ctx, struct vhca_error *err);

/*
 * Columns as they are written here, 0 or -EBADMSG. Another spelling would be another key to the
 * database, and the same to the model.
 */
int vhca_journal_uuid(const struct vhca_row *row, int col, struct vhca_uuid *ret);

/* Rows of a transaction. */
void vhca_journal_forget_vf(struct vhca_txn *txn, struct vhca_bdf bdf);
void vhca_journal_vf(struct vhca_txn *txn, const struct vhca_vf *vf, enum vhca_vf_state state,
		     const char *boot_id);
void vhca_journal_claim(struct vhca_txn *txn, const struct vhca_claim *claim);
/* Of a vGUID; a claim's row brings its own. One that changes strands no longer. */
void vhca_journal_epoch(struct vhca_txn *txn, uint64_t guid, uint64_t epoch);
void vhca_journal_strand_epoch(struct vhca_txn *txn, uint64_t guid,
			       const struct vhca_uuid *migration);
void vhca_journal_forget_epoch(struct vhca_txn *txn, uint64_t guid);
/* Its port_guid alone; no row yet: that comes with the claim's. */
void vhca_journal_claim_port(struct vhca_txn *txn, const struct vhca_claim *claim);
void vhca_journal_claim_end(struct vhca_txn *txn, const struct vhca_claim *claim);
void vhca_journal_suppress(struct vhca_txn *txn, const struct vhca_uuid *domain, const char *name);
void vhca_journal_unsuppress(struct vhca_txn *txn, const struct vhca_uuid *domain,
			     const char *name); /* NULL: all */

#endif
