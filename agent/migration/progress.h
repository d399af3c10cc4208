/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_PROGRESS_H
#define VHCA_AGENT_MIGRATION_PROGRESS_H
/* When a migration is looked at again, what it waits for, and why it fails. */
#include "agent/migration/migration.h"

#define MIG_RETRY_FIRST_MS 200
#define MIG_RETRY_CAP_MS   5000

/* Looks again after ms at the latest. */
void mig_again(struct vhca_mig *m, uint64_t ms);
/* Delays the next effect by the back-off and says why. */
void mig_retry(struct vhca_mig *m, const struct vhca_error *err);
void mig_reason(struct vhca_mig *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Somebody wants it to stop. */
void mig_cancel(struct vhca_mig *m);
/* Remembers the first reason of failure. */
void mig_fail(struct vhca_mig *m, const struct vhca_error *err);
/* The same with an error made of these. */
void mig_fail_with(struct vhca_mig *m, enum vhca_err kind, const char *code, const char *text);

#endif
