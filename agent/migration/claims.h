/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_CLAIMS_H
#define VHCA_AGENT_MIGRATION_CLAIMS_H
/* Guards and actions of more than one table. */
#include "agent/migration/migration.h"

/* Whether one of its claims is so, or every one; of no claims every one is. */
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
/*
 * Is the guest here, and nowhere else? Only libvirt can tell; who has its identity, only the
 * destination and the SM.
 */
bool mig_guest_runs_here(const struct vhca_mig *m);
void mig_fail_cancelled(struct vhca_mig *m);
void mig_check_job_later(struct vhca_mig *m);
/* The time from which on the guest has waited long enough. */
void mig_start_lease(struct vhca_mig *m);
void mig_fail_as_told(struct vhca_mig *m);
void mig_ask_again_later(struct vhca_mig *m);
void mig_note_marked(struct vhca_mig *m);
bool mig_cannot_unmark(const struct vhca_mig *m);
void mig_note_unmarked(struct vhca_mig *m);
/* Tells the SM side that the keys which claims on the move need may have changed. */
void mig_members(struct vhca_mig *m);
void mig_settle_claims(struct vhca_mig *m);
void mig_let_go(struct vhca_mig *m);
/* Claims of a destination, loaded from the journal: who lends them waits for the proof. */
void mig_mark_loaned_claims(struct vhca_mig *m);
/* Destination: what was promised is taken, and the source has the tickets for it. */
void mig_await_tickets(const struct vhca_mig *m, struct vhca_claim *c);

/* ---- rollback.c ---- */
/*
 * The SM may have given its claims back their identities in an earlier life of the agent: whoever
 * ends them withdraws those. That is now, if it was an earlier boot. Of what is promised nobody
 * withdraws anything.
 */
void mig_recover_claims(struct vhca_mig *m);

#endif
