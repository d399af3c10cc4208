/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_ENGINE_INT_H
#define VHCA_AGENT_VF_ENGINE_INT_H
/* Shared by the engine's own files: engine.c (inputs, work list), step.c (the table of
 * steps), detach.c (the longest of them), effect.c (what outcomes mean),
 * transition.c (journaled transitions), claim.c (from requests to claims, waiters),
 * choose.c (which VF), request.c (what live domains ask for), event.c
 * (libvirt's events), hook.c (what the hook is told), adopt.c (claims of what runs
 * already), sm.c (the SM's answers), takeover.c (who may overrule them),
 * migrate.c (claims on the move), memory.c (what a guest's memory means for its
 * VFs), port.c (which port they are on), absent.c (VFs that have gone),
 * place.c (VFs that are elsewhere on their card), disk.c (a state disk that is
 * full), unread.c (domains that cannot be read), forget.c (adapters that were pulled
 * out). */
#include "agent/vf/engine.h"
#include "agent/state/journal.h"

#include "agent/vf/report.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"

/* ---- step.c ---- */
void engine_step(struct vhca_engine *e, struct vhca_vf *vf);
/* The P_Key table has changed under a VF in a guest: reads it, or programs it anew; false if it
 * has not. */
bool engine_follow_table(struct vhca_engine *e, struct vhca_vf *vf);
/* The map of a VF in a guest led to a foreign key: alarm, and by policy the VF goes. */
void engine_force_off(struct vhca_engine *e, struct vhca_vf *vf, const char *why);

/* ---- absent.c ---- */
/* The step of a VF that the kernel does not show. */
void engine_step_absent(struct vhca_engine *e, struct vhca_vf *vf);
/* ---- disk.c ---- */
/* What the store says of its disk: a negative errno, or 0. */
void engine_disk_changed(void *engine, int rc);
/* A VF in a guest whose transaction waits for the disk: all that may be done meanwhile is to
 * withdraw what became foreign. */
void engine_guard(struct vhca_engine *e, struct vhca_vf *vf);

/* ---- detach.c ---- */
/* The step of a VF that its guest is to let go. */
void engine_detach(struct vhca_engine *e, struct vhca_vf *vf);
/* The VF has left its guest for an unplug that was given up, and nobody wants it out any more. A
 * <hostdev> of the domain's own is not ours to plug in. */
bool engine_gets_it_back(struct vhca_engine *e, const struct vhca_claim *claim);
/* What the guest's agent has said, or why nothing. */
void engine_done_ask(struct vhca_engine *e, struct vhca_vf *vf,
		     const struct vhca_effect_result *res);

/* ---- request.c ---- */
/* Looks at what live domains ask for and claims VFs. */
void engine_requests(struct vhca_engine *e);
/* What was refused to the domain is tried again now, not after its back-off. */
void engine_ask_again(struct vhca_engine *e, struct vhca_domain *dom);
/* Remembers with the domain why its request failed. */
void engine_request_failed(struct vhca_engine *e, const struct vhca_claim *claim);
/* The guest has let go of the VF unasked: its claim is over, and its domain gets one again after
 * the request's back-off. */
void engine_request_ejected(struct vhca_engine *e, const struct vhca_vf *vf);

/* ---- claim.c ---- */
/*
 * The domain may have the VF of this name again (NULL: all of them) that was detached by request.
 */
void engine_unsuppress(struct vhca_engine *e, const struct vhca_uuid *domain, const char *name);
/* Claims a VF that fits, with the identity that is asked for, at its next epoch. */
int engine_claim_as_asked(struct vhca_engine *e, const struct vhca_claim_request *req,
			  struct vhca_claim **ret, struct vhca_error *err);
/* Claims a VF that fits for the identity, owned at this epoch. */
int engine_make_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
		      const struct vhca_identity *id, uint64_t epoch, struct vhca_claim **ret,
		      struct vhca_error *err);
/* The claim ends as soon as its VF has left its guest, and is scrubbed. */
void engine_let_go(struct vhca_engine *e, struct vhca_claim *claim);
/* This host is being drained: says so in err, -EBUSY; else 0. */
int engine_check_drained(const struct vhca_engine *e, struct vhca_error *err);
/* P_Keys and GUID of a request. */
int engine_resolve_identity(struct vhca_engine *e, const struct vhca_claim_request *req,
			    struct vhca_identity *ret, struct vhca_error *err);
/* No claim and no port here has the GUID. */
int engine_check_free(struct vhca_engine *e, uint64_t guid, struct vhca_error *err);
/* ...and none is the domain's VF of this name. */
int engine_check_unique(struct vhca_engine *e, const struct vhca_claim_request *req, uint64_t guid,
			struct vhca_error *err);
/* The claim has ended because its VF failed: a new one with the same identity, and its waiters, is
 * made for another VF; false if there is none, or it must not be. */
bool engine_serve_elsewhere(struct vhca_engine *e, struct vhca_claim *ended);

/* ---- choose.c ---- */
struct engine_want {
	const struct vhca_vf_request *vf;
	bool has_bdf;
	struct vhca_bdf bdf;
	bool as_it_is, unfailed, lenient; /* as in struct vhca_claim_request */
	int near;			  /* the NUMA node that the guest is on; -1 = not known */
};
/* The best VF that fits; NULL = none. */
struct vhca_vf *engine_choose(struct vhca_engine *e, const struct engine_want *w);
/* Says in err why none fits. */
int engine_no_vf(struct vhca_engine *e, const struct engine_want *w, struct vhca_error *err);

/* ---- sm.c ---- */
/*
 * Epochs of vGUIDs that nobody has had for long. One that is wanted again all the same begins at 1;
 * if the SM knows better, it says so.
 */
void engine_forget_epochs(struct vhca_engine *e);

/* ---- place.c ---- */
/* The kernel shows it there: what runs for it still goes to where it was. */
void engine_see_place(struct vhca_vf *vf, struct vhca_hca *hca, uint16_t index);
/* False: it is not to be stepped now. */
bool engine_settle_place(struct vhca_engine *e, struct vhca_vf *vf);
/* Another VF, which the kernel shows, is where this one was. */
bool engine_place_taken(const struct vhca_vf *vf);

/* ---- takeover.c ---- */
/* Somebody vouches that the domain runs nowhere else. */
bool engine_takes_over(const struct vhca_engine *e, const struct vhca_uuid *domain);
void engine_drop_takeovers(struct vhca_engine *e);

/* ---- adopt.c ---- */
/* A step of an unmanaged VF that is being adopted; false if it is not. */
bool engine_adopt_step(struct vhca_engine *e, struct vhca_vf *vf);
/* The VF's hardware was read (or not). */
void engine_adopt_read(struct vhca_vf *vf, const struct vhca_effect_result *res);
/* At the end: whoever waits hears err. */
void engine_drop_adopts(struct vhca_engine *e, const struct vhca_error *err);

/* ---- forget.c ---- */
void engine_drop_forgets(struct vhca_engine *e, const struct vhca_error *err); /* as above */

#endif
