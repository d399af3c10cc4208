/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_TRANSITION_H
#define VHCA_AGENT_VF_TRANSITION_H
/* Journaled transitions, and the port that VFs are on: transition.c. */
#include "agent/vf/engine.h"

/* ---- transition.c ---- */
/* Journals the transition; the state changes, and the VF is stepped, when it is durable. */
void engine_move(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_vf_state to);
/* Journals changes of the claim, the attachment or the binding without a change of state. */
void engine_save(struct vhca_engine *e, struct vhca_vf *vf);
/*
 * The claim's identity is this one from now on: saved and reported in one transaction, and the VF
 * programmed behind it. If that fails the claim has its old one, and who waits hears why.
 */
void engine_save_identity(struct vhca_engine *e, struct vhca_vf *vf,
			  const struct vhca_identity *want);
/* The same, and queues the claim's binding in the same transaction. */
void engine_save_and_report(struct vhca_engine *e, struct vhca_vf *vf);
/* Makes changed flags of a claim durable, after a transaction that may be under way, and has its VF
 * stepped. */
void engine_save_soon(struct vhca_engine *e, struct vhca_claim *claim);
/* A save that had to wait for another transaction, or that failed; false if there is none. */
bool engine_save_pending(struct vhca_engine *e, struct vhca_vf *vf);
/* The VF's claim was never durable, and is not going to be: it never was. Its waiters hear why. */
void engine_undo_claim(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_error *why);
/* Sends the claim's binding (again), and the claim is saved with it, if no transaction of its VF is
 * under way. */
void engine_tell_sm(struct vhca_engine *e, struct vhca_claim *claim);
/* Ends the claim of a quarantined VF that has gone. */
void engine_end_absent(struct vhca_engine *e, struct vhca_vf *vf);
/*
 * Ends the VF's claim, which was loaded from an earlier boot; dropped, and the VF stepped, when
 * that is durable.
 */
void engine_end_orphan(struct vhca_engine *e, struct vhca_vf *vf);
/* The time in which its guest is to let go of the VF begins. */
void engine_begin_detach(struct vhca_engine *e, struct vhca_vf *vf);
/* The time in which QEMU is to let go of the VF's group begins. */
void engine_begin_scrub(struct vhca_vf *vf);

/* What a transition asks of the layers above it; engine.c fills it in. */
struct engine_callbacks {
	/*
	 * The claim has ended because its VF failed: a new one with the same identity, and its
	 * waiters, is made for another VF; false if there is none, or it must not be.
	 */
	bool (*serve_elsewhere)(struct vhca_engine *e, struct vhca_claim *ended);
	/* Remembers with the domain why its request failed. */
	void (*request_failed)(struct vhca_engine *e, const struct vhca_claim *claim);
};

/* ---- the port ---- */
/*
 * The configuration says which port carries the identities of the HCA's VFs; taken at once, unless
 * there are claims on another.
 */
void engine_set_port(struct vhca_engine *e, struct vhca_hca *hca, uint8_t want);
/* A claim has ended: the configured port may be free to be taken. */
void engine_settle_port(struct vhca_engine *e, struct vhca_hca *hca);

#endif
