/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_JOURNAL_H
#define VHCA_AGENT_MIGRATION_JOURNAL_H
/* What is written down of a migration. */
#include "agent/migration/migration.h"

/* The migration's row, in this state. */
void mig_journal(struct vhca_txn *txn, const struct vhca_mig *m, enum vhca_mig_state state);
/*
 * The oldest migrations that have ended make room for a new one, whose role and peer are set by
 * now: those of the new one's origin, and where others have offered too many in all, those of
 * whoever has offered most.
 */
void mig_displace(struct vhca_mig *by);
/* Writes down the times of one that goes on no more. */
void mig_journal_times(const struct vhca_mig *m);
/* Adds what is written; those have no timers yet. Blocking. */
int mig_load(struct vhca_migrations *ms, struct vhca_error *err);

/* ---- times.c: how long a guest was without its VFs on the agents' account ---- */
/* At the source: since the last VF left its guest, until then. */
void mig_note_left(struct vhca_mig *m, enum vhca_mig_time time, uint64_t at_us);
/* At the destination: what can be told since the last look. */
void mig_look_at_times(struct vhca_mig *m);

#endif
