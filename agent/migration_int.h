/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_INT_H
#define VHCA_AGENT_MIGRATION_INT_H
/* Shared by migration.c (machine), migration_journal.c, migration_src.c and migration_dst.c (the steps of each side). */
#include "agent/migration.h"

#define MIG_RETRY_FIRST_MS 200
#define MIG_RETRY_CAP_MS   5000
#define MIG_JOB_POLL_MS	   500 /* after a restart: is libvirt still copying? */
#define MIG_STATUS_POLL_MS 200 /* is it attached there? */
#define MIG_CLAIM_TRIES_MS \
	15000 /* a destination that cannot be reached so long is given up: nothing was touched yet */
#define MIG_ABORT_TRIES_MS 15000 /* the guest is without its VF meanwhile */
#define MIG_INCOMING_GONE_MS \
	30000 /* destination: the incoming domain vanished; the source's abort should come, or the copy again */

struct vhca_mig_waiter {
	STAILQ_ENTRY(vhca_mig_waiter) link;
	enum vhca_mig_state until;
	vhca_mig_waiter_fn fn;
	void *arg;
};

struct vhca_migrations {
	struct vhca_migrations_args args;
	struct vhca_model *model;
	TAILQ_HEAD(, vhca_mig) list;
	unsigned int n;
};

/* ---- migration.c ---- */
/* Journals the state; it holds, and the migration is stepped, when durable. */
void mig_move(struct vhca_mig *m, enum vhca_mig_state to);
/* Remembers the first reason of failure. */
void mig_fail(struct vhca_mig *m, const struct vhca_error *err);
/* The same with an error made of these, and moves on. */
void mig_fail_to(struct vhca_mig *m, enum vhca_mig_state to, enum vhca_err kind, const char *code,
		 const char *text);
void mig_start(struct vhca_mig *m, enum vhca_mig_effect effect);
/* Steps again after ms at the latest. */
void mig_again(struct vhca_mig *m, uint64_t ms);
/* Delays the next effect by the back-off and says why. */
void mig_retry(struct vhca_mig *m, const struct vhca_error *err);
void mig_reason(struct vhca_mig *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct vhca_mig *mig_new(struct vhca_migrations *ms, const struct vhca_uuid *id);
void mig_drop(struct vhca_mig *m);
/* Tells the SM side that the keys which claims on the move need may have changed. */
void mig_members(struct vhca_mig *m);
struct vhca_domain *mig_domain(const struct vhca_mig *m);

/* ---- migration_journal.c ---- */
/* The migration's row, in this state. */
void mig_journal(struct vhca_txn *txn, const struct vhca_mig *m, enum vhca_mig_state state);
/* Blocking. */
int mig_load(struct vhca_migrations *ms, struct vhca_error *err);

/* ---- the steps ---- */
extern void (*const mig_source_steps[VHCA_MIG_STATE_COUNT])(struct vhca_mig *m);
extern void (*const mig_destination_steps[VHCA_MIG_STATE_COUNT])(struct vhca_mig *m);
/* What an effect's outcome means. */
void mig_source_done(struct vhca_mig *m, enum vhca_mig_effect effect,
		     const struct vhca_mig_result *res);

#endif
