/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_MIGRATION_INT_H
#define VHCA_AGENT_MIGRATION_MIGRATION_INT_H
/* Shared by the machine's own files. */
#include "agent/migration/table.h"

#define MIG_RETRY_FIRST_MS 200
#define MIG_RETRY_CAP_MS   5000
#define MIG_JOB_POLL_MS	   500 /* after a restart: is libvirt still copying? */
#define MIG_STATUS_POLL_MS 200 /* is it attached there? */
/* a destination that cannot be reached so long is given up: nothing was touched yet */
#define MIG_CLAIM_TRIES_MS 15000
#define MIG_ABORT_TRIES_MS 15000 /* the guest is without its VF meanwhile */
/* ready and copying: the lease there is renewed, and it is asked whether libvirt came */
#define MIG_RENEW_MS 2000
/* destination: the guest is here, and so long nobody has handed over what was promised for it */
#define MIG_ALONE_MS 15000
/* destination: the incoming domain vanished; the source's abort should come, or the copy again */
#define MIG_INCOMING_GONE_MS 30000

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

/* ---- migration.c ---- */
/* Does what the rule for it says, if there is one now. */
void mig_event(struct vhca_mig *m, enum mig_event event);
/* Journals the state; it holds, and the migration is looked at, when durable. */
void mig_move(struct vhca_mig *m, enum vhca_mig_state to);
/* Remembers the first reason of failure. */
void mig_fail(struct vhca_mig *m, const struct vhca_error *err);
/* The same with an error made of these. */
void mig_fail_with(struct vhca_mig *m, enum vhca_err kind, const char *code, const char *text);
/* Looks again after ms at the latest. */
void mig_again(struct vhca_mig *m, uint64_t ms);
/* Delays the next effect by the back-off and says why. */
void mig_retry(struct vhca_mig *m, const struct vhca_error *err);
void mig_reason(struct vhca_mig *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct vhca_mig *mig_new(struct vhca_migrations *ms, const struct vhca_uuid *id);
void mig_drop(struct vhca_mig *m);
struct vhca_mig *mig_find(const struct vhca_migrations *ms, const struct vhca_uuid *id);
/* Tells the SM side that the keys which claims on the move need may have changed. */
void mig_members(struct vhca_mig *m);
struct vhca_domain *mig_domain(const struct vhca_mig *m);

/* ---- wait.c ---- */
int mig_await(struct vhca_mig *m, enum vhca_mig_state until, vhca_mig_waiter_fn fn, void *arg);
/* Answers those whose waiting has come to an end. */
void mig_tell(struct vhca_mig *m);
/* Answers from the loop, of no migration. */
void mig_answer_later(struct vhca_migrations *ms, vhca_mig_waiter_fn fn, void *arg,
		      const struct vhca_error *err);
extern const struct vhca_error mig_too_late;

/* ---- claims.c: guards and actions of more than one part ---- */
bool mig_any(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c));
bool mig_all(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c));
/* A VF that the guest has given up, scrubbed. */
bool mig_claim_is_away(const struct vhca_claim *c);
/* At the destination: it may take an epoch, or has taken it, and nothing of it is under way. */
bool mig_claim_can_take(const struct vhca_claim *c);
/* A VF that the guest did not let go is attached again and no longer leaving. */
bool mig_claim_stayed(const struct vhca_claim *c);
/* Its scrub failed, and is tried again and again. */
bool mig_claim_is_stuck(const struct vhca_claim *c);
/* Remembers which VFs are, and why. */
void mig_fail_stuck(struct vhca_mig *m);
bool mig_is_parking(const struct vhca_mig *m);
bool mig_succeeded(const struct vhca_mig *m);
bool mig_cannot_tell(const struct vhca_mig *m);
bool mig_domain_is_elsewhere(const struct vhca_mig *m);
bool mig_is_cancelled(const struct vhca_mig *m);
bool mig_guest_is_gone(const struct vhca_mig *m);
void mig_fail_cancelled(struct vhca_mig *m);
void mig_look_at_the_job_later(struct vhca_mig *m);
/* The time from which on the guest has waited long enough. */
void mig_start_lease(struct vhca_mig *m);
void mig_fail_as_told(struct vhca_mig *m);
void mig_ask_again_later(struct vhca_mig *m);
void mig_note_marked(struct vhca_mig *m);
bool mig_cannot_unmark(const struct vhca_mig *m);
void mig_note_unmarked(struct vhca_mig *m);
void mig_settle_claims(struct vhca_mig *m);
void mig_let_go(struct vhca_mig *m);
/* Claims of a destination, loaded from the journal: who lends them waits for the proof. */
void mig_owe_what_was_lent(struct vhca_mig *m);
/*
 * The end of a migration and the end of its hold on the claims are transactions of their own: an
 * agent that was killed between them does the second one when it starts.
 */
void mig_end_leftovers(struct vhca_migrations *ms);
/*
 * The SM may have given its claims back their identities in an earlier life of the agent: whoever
 * ends them withdraws those. That is now, if it was an earlier boot.
 */
void mig_own_what_was_asked_for(struct vhca_mig *m);

/* ---- handover.c ---- */
void mig_spend_an_epoch(struct vhca_mig *m);
bool mig_hand_over_is_due(const struct vhca_mig *m);
void mig_hand_over(struct vhca_mig *m);
void mig_note_delivered(struct vhca_mig *m);
bool mig_renewal_is_due(const struct vhca_mig *m);
void mig_hand_over_later(struct vhca_mig *m);

/* ---- times.c ---- */
/* At the source: since the last VF left its guest, until then. */
void mig_note_left(struct vhca_mig *m, enum vhca_mig_time time, uint64_t at_us);
/* At the destination: what can be told since the last look. */
void mig_look_at_times(struct vhca_mig *m);
/* From the journal; an unknown name is ignored. */
void mig_load_time(struct vhca_mig *m, const char *name, uint64_t us);

/* ---- journal.c ---- */
/* Writes down the times of one that goes on no more. */
void mig_journal_times(const struct vhca_mig *m);
/* The migration's row, in this state. */
void mig_journal(struct vhca_txn *txn, const struct vhca_mig *m, enum vhca_mig_state state);
/* Blocking. */
int mig_load(struct vhca_migrations *ms, struct vhca_error *err);

#endif
