/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_REPORT_H
#define VHCA_AGENT_VF_REPORT_H
/* Facts, and what the SM is told of them: report.c, membership.c, guest.c. */
#include "agent/vf/engine.h"

/* ---- report.c ---- */
/*
 * Queues the claim's binding, or its withdrawal, with what is in the transaction. The state is the
 * VF's when that is durable; without it, the one it is in. Returns the outbox's ticket; 0 = none.
 */
uint64_t engine_put_report_in(struct vhca_engine *e, struct vhca_txn *txn, struct vhca_claim *c,
			      bool bound, enum vhca_vf_state state);
uint64_t engine_put_report(struct vhca_engine *e, struct vhca_txn *txn, struct vhca_claim *c,
			   bool bound);
/* The same of a claim that ends with the transaction. */
uint64_t engine_put_last_word(struct vhca_engine *e, struct vhca_txn *txn, struct vhca_claim *c);
/* The transaction is durable, or has failed. */
void engine_release_ticket(struct vhca_engine *e, uint64_t ticket, bool durable);
/* With the VF's move to this state the SM is to hear of its vport, or of the LID that follows. */
bool engine_lid_is_due(const struct vhca_engine *e, const struct vhca_claim *c,
		       enum vhca_vf_state to);
/*
 * An earlier life of the agent was handed it for a guest that has not come: who did so may have
 * taken it back, and an SM that knows nothing would evict him. The SM is asked whether it would
 * have it here, and told of it when the guest is here (agent/migration/destination.c).
 */
bool engine_is_kept_for_guest(struct vhca_engine *e, const struct vhca_claim *c);
/* The SM has said nothing of the claim's binding as it is now, and is waited for from now on. */
void engine_forget_answer(struct vhca_claim *c);
/* Sends the claim's binding (again), e.g. with a new LID. */
void engine_report(struct vhca_engine *e, struct vhca_claim *claim);
/* All that the SM has to know of the HCA's port. It may have lost some, or kept what was lost
 * here: what it knows already changes nothing there. */
void engine_report_hca(struct vhca_engine *e, struct vhca_hca *hca);
/*
 * Declares to the SM the keys that the HCA's port needs for guests that are to come, whatever was
 * declared before.
 */
void engine_declare_again(struct vhca_engine *e, struct vhca_hca *hca);

/* Whether the LID of its last host is to come with a claim that is made for a migration. */
void engine_plan_lid(struct vhca_engine *e, struct vhca_claim *c,
		     const struct vhca_reservation *res);
/* What was planned is given up if the VF goes to its guest and something is against it by now. */
void engine_look_at_lid(struct vhca_engine *e, struct vhca_claim *c, enum vhca_vf_state to);
/* The LID has come (why NULL), or stays where it is. The caller has the claim written. */
void engine_end_lid(struct vhca_engine *e, struct vhca_claim *c, const char *why);

/* ---- membership.c ---- */
enum engine_membership { ENGINE_MEMBER, ENGINE_WAIT, ENGINE_REFUSED };
/* May the VF be programmed for its claim? WAIT sets the reason, REFUSED the claim's failure. */
enum engine_membership engine_membership(struct vhca_engine *e, struct vhca_vf *vf);
/* Somebody waits for the SM's word on the claim's partitions: WORD_MS at most. */
int engine_await_word(struct vhca_engine *e, struct vhca_claim *c, vhca_waiter_fn fn, void *arg);
/* Who waits for it hears what the SM has said of what the claim has now, or that it is silent. */
void engine_tell_word(struct vhca_engine *e, struct vhca_vf *vf);
/* How much longer it is waited for; UINT64_MAX: nobody waits. */
uint64_t engine_word_ms(const struct vhca_claim *c);
/* Where keys are static the VF's port has all of them. */
int engine_check_static_keys(const struct vhca_engine *e, const struct vhca_vf *vf,
			     const struct vhca_identity *want, struct vhca_error *err);
/* How much longer an SM that has not answered is waited for: twice the request's own time-out. Then
 * something is wrong with the SM, not with us. */
uint64_t engine_patience_ms(const struct vhca_engine *e, const struct vhca_claim *c);

/* ---- guest.c ---- */
/* The live domain that the claim is for; NULL = it does not run here. */
struct vhca_domain *engine_claim_domain(struct vhca_engine *e, const struct vhca_claim *claim);
/* It runs here, and is not one that is still on its way. */
bool engine_runs_here(struct vhca_engine *e, const struct vhca_claim *claim);
/* A migration has a claim of the domain's. */
bool engine_is_migrating(const struct vhca_engine *e, const struct vhca_uuid *domain);
/* Why the domain's XML cannot be read; kind NONE: it can. */
void engine_note_unreadable(struct vhca_engine *e, struct vhca_domain *dom,
			    const struct vhca_error *why);
/* The domain that the VF is claimed for, if that runs and cannot be read; NULL = it is not so. */
const struct vhca_domain *engine_unreadable(struct vhca_engine *e, const struct vhca_vf *vf);
/* As engine_unreadable(); true sets the VF's reason, and whoever needs a proof waits. */
bool engine_awaits_xml(struct vhca_engine *e, struct vhca_vf *vf);
/* Hot-plug needs a spare pcie-root-port for each VF that is on its way, and for so many more. */
int engine_check_root_ports(struct vhca_engine *e, const struct vhca_domain *dom, unsigned int more,
			    struct vhca_error *err);
/* With a host device in the guest its memory is pinned already, whatever the limit says now. */
bool engine_is_pinned(const struct vhca_domain *dom);
/*
 * No VF can be plugged into the domain as it is, because of its memory: says so in err, -ENOMEM;
 * else 0.
 */
int engine_check_plug(struct vhca_engine *e, const struct vhca_domain *dom, struct vhca_error *err);
/* Remembers how much memory stands behind the domain's claims. */
void engine_note_memory(struct vhca_engine *e, const struct vhca_dom_info *info);
/* The time that this may take on top, where QEMU lets go of a VF. */
uint64_t engine_memory_ms(const struct vhca_vf *vf);
/* How long the VF's guest may take to let go of it. */
uint64_t engine_detach_ms(const struct vhca_engine *e, const struct vhca_vf *vf);

#endif
