/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_HANDOVER_H
#define VHCA_AGENT_MIGRATION_HANDOVER_H
/* The hand-over of a managed migration, and its repetition. */
#include "agent/migration/migration.h"

/*
 * The claims that are so (NULL: all) go on at the next epoch; so do the GUIDs of those that ended
 * meanwhile.
 */
void mig_leave_epoch(struct vhca_mig *m, bool (*is)(const struct vhca_claim *c));
/* Raises each claim's epoch and promises that to the destination: durable with the next state. */
void mig_spend_an_epoch(struct vhca_mig *m);
/* The transaction with which it was to become durable was refused: nobody has heard of it. */
void mig_take_promise_back(struct vhca_mig *m);
/* Each claim goes on above all that the destination may have: durable with the next state. */
void mig_begin_generation(struct vhca_mig *m);
/* Beside libvirt's copy: the destination may not have what is promised, or its lease runs out. */
bool mig_hand_over_is_due(const struct vhca_mig *m);
/* Begins it. */
void mig_hand_over(struct vhca_mig *m);
/* The destination has said that it has what is promised. */
void mig_note_delivered(struct vhca_mig *m);
/* The one beside the copy, whatever the answer was. */
void mig_end_hand_over(struct vhca_mig *m);
/* What was promised is the destination's no more. */
void mig_recall_epoch(struct vhca_mig *m);
/* Of the destination's lease. */
bool mig_renewal_is_due(const struct vhca_mig *m);
/* The one beside the copy, after its back-off. */
void mig_hand_over_later(struct vhca_mig *m);

#endif
