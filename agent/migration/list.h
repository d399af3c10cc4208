/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_LIST_H
#define VHCA_AGENT_MIGRATION_LIST_H
/* The migrations that an agent knows, and who waits for them. */
#include "agent/migration/migration.h"

struct vhca_mig_waiter {
	STAILQ_ENTRY(vhca_mig_waiter) link;
	enum vhca_mig_state until;
	vhca_mig_waiter_fn fn;
	void *arg;
};

struct vhca_migrations {
	struct vhca_migrations_args args;
	struct vhca_model *model;
	struct vhca_engine_listener listener;
	TAILQ_HEAD(, vhca_mig) list;
	unsigned int n;
};

/* One without timers. NULL: no memory. */
struct vhca_mig *mig_add(struct vhca_migrations *ms, const struct vhca_uuid *id);
/* Its waiters get "shutting_down". */
void mig_drop(struct vhca_mig *m);
struct vhca_mig *mig_find(const struct vhca_migrations *ms, const struct vhca_uuid *id);
/* Its next state is being written: no rule applies. */
bool mig_is_committing(const struct vhca_mig *m);
/* Loaded by a restart of the agent, so libvirt and the peer may know more. */
bool mig_is_revived(const struct vhca_mig *m);
/* A hand-over is under way beside the effect. */
bool mig_is_handing_over(const struct vhca_mig *m);
/* An effect, a hand-over or a cancellation is under way, whose end will be called back. */
bool mig_is_awaited(const struct vhca_mig *m);
/* What it moves; NULL: it does not run here. The claims are in migration.h. */
struct vhca_domain *mig_domain(const struct vhca_mig *m);

/* ---- wait.c ---- */
int mig_await(struct vhca_mig *m, enum vhca_mig_state until, vhca_mig_waiter_fn fn, void *arg);
/* Somebody's waiting has come to an end, and is not answered yet. */
bool mig_owes_answer(const struct vhca_mig *m);
/* Answers those whose waiting has come to an end. */
void mig_tell(struct vhca_mig *m);
/* Answers from the loop, of no migration. */
void mig_answer_later(struct vhca_migrations *ms, vhca_mig_waiter_fn fn, void *arg,
		      const struct vhca_error *err);
extern const struct vhca_error mig_too_late;

#endif
