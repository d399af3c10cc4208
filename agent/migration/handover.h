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
/*
 * Signs by which tickets the destination has each claim after so many of its epochs; what was
 * signed so already stays. Before the guest lets go of its VFs, for a key may take milliseconds,
 * and once more with the promise.
 */
void mig_sign_tickets(struct vhca_mig *m, unsigned int ahead);
/*
 * What the destination shows the SM (sm/proof.h): the tickets by which this host has the claim, and
 * no SM has said yes to, and its own. NULL = none was signed. Caller puts it.
 */
struct json_object *mig_proof_of(const struct vhca_mig *m, const struct vhca_claim *c);
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
