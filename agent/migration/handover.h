/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_HANDOVER_H
#define VHCA_AGENT_MIGRATION_HANDOVER_H
/* The hand-over of a managed migration, and its repetition. */
#include "agent/migration/migration.h"

void mig_spend_an_epoch(struct vhca_mig *m);
bool mig_hand_over_is_due(const struct vhca_mig *m);
void mig_hand_over(struct vhca_mig *m);
void mig_note_delivered(struct vhca_mig *m);
bool mig_renewal_is_due(const struct vhca_mig *m);
void mig_hand_over_later(struct vhca_mig *m);

#endif
