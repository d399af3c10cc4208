/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_CLAIM_H
#define VHCA_AGENT_VF_CLAIM_H
/* Claims: how one is made, and how its VF is taken from a guest: claim.c, detach.c, isolation.c. */
#include "agent/vf/engine.h"

/* ---- claim.c ---- */
/* This host is being drained: says so in err, -EBUSY; else 0. */
int engine_check_drained(const struct vhca_engine *e, struct vhca_error *err);
/* P_Keys and GUID of a request. */
int engine_resolve_identity(struct vhca_engine *e, const struct vhca_claim_request *req,
			    struct vhca_identity *ret, struct vhca_error *err);
/* The default partition is among the keys of an identity from elsewhere by policy only. */
int engine_check_partitions(const struct vhca_engine *e, const struct vhca_identity *id,
			    struct vhca_error *err);
/* No claim and no port here has the GUID. */
int engine_check_free(struct vhca_engine *e, uint64_t guid, struct vhca_error *err);
/* The same, and no claim is the domain's VF of this name. */
int engine_check_unique(struct vhca_engine *e, const struct vhca_claim_request *req, uint64_t guid,
			struct vhca_error *err);
/* The port's P_Key table has room for the claim with this identity in place of its own. */
int engine_check_room(struct vhca_engine *e, const struct vhca_claim *c,
		      const struct vhca_identity *want, struct vhca_error *err);
/*
 * The VF that the request names suits it and could be had now or soon, if nobody else had it. True
 * also before the first inventory.
 */
bool engine_may_serve(struct vhca_engine *e, const struct vhca_claim_request *req);
/* The claim is to end, has failed, or is of an earlier boot: its VF will be free by itself. */
bool engine_will_end(const struct vhca_claim *c);
/* The VF that a claim of this identity would get; changes nothing. */
int engine_find_place(struct vhca_engine *e, const struct vhca_claim_request *req,
		      const struct vhca_identity *id, struct vhca_vf **ret, struct vhca_error *err);
/* Claims a VF that fits for the identity, owned at this epoch. */
int engine_make_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
		      const struct vhca_identity *id, uint64_t epoch, struct vhca_claim **ret,
		      struct vhca_error *err);
/* Claims a VF that fits, with the identity that is asked for, at its next epoch. */
int engine_claim_as_asked(struct vhca_engine *e, const struct vhca_claim_request *req,
			  struct vhca_claim **ret, struct vhca_error *err);
/*
 * The port's domain begins here: its VF is to be programmed, and the SM hears of it. Nothing while
 * the claim is being written: ask again.
 */
void engine_use_reserved(struct vhca_engine *e, struct vhca_claim *claim);
/* A callback of the transition (agent/vf/transition.h). */
bool engine_serve_elsewhere(struct vhca_engine *e, struct vhca_claim *ended);
/*
 * The domain may have the VF of this name again (NULL: all of them) that was detached by request.
 */
void engine_unsuppress(struct vhca_engine *e, const struct vhca_uuid *domain, const char *name);

/* ---- lease.c ---- */
/* Whether the claim's domain is here is asked of libvirt, if a lease hangs on that: the answer is
 * vhca_engine_domain() or vhca_engine_no_domain(). */
void engine_ask_for_domain(struct vhca_engine *e, const struct vhca_claim *claim);
void engine_ask_for_domains(struct vhca_engine *e); /* those of all claims */
/* The domain (NULL: each) is here, or nobody says that it is not: the leases of its claims do not
 * count. */
void engine_hold_leases(struct vhca_engine *e, const struct vhca_uuid *domain);
/* The domain is not here: the leases of its claims begin, and claims whose lease is over end. */
void engine_count_leases(struct vhca_engine *e, const struct vhca_uuid *domain);
/* Part of the step of a VF that its domain has not yet. */
void engine_tend_lease(struct vhca_engine *e, struct vhca_vf *vf);
/* Somebody has asked for the claim once more: if its lease counts, that begins anew. */
void engine_go_on_with_lease(struct vhca_engine *e, struct vhca_claim *claim);

/* ---- detach.c ---- */
/* The step of a VF that its guest is to let go. */
void engine_detach(struct vhca_engine *e, struct vhca_vf *vf);
/* The VF has left its guest for an unplug that was given up, and nobody wants it out any more. A
 * <hostdev> of the domain's own is not ours to plug in. */
bool engine_returns_to_guest(struct vhca_engine *e, const struct vhca_claim *claim);
/* What the guest's agent has said, or why nothing. */
void engine_done_ask(struct vhca_engine *e, struct vhca_vf *vf,
		     const struct vhca_effect_result *res);

/* ---- isolation.c ---- */
/*
 * Somebody plugged the VF into a domain that its claim is not for. The identity goes at once, under
 * that guest; the claim is over. False: nobody did.
 */
bool engine_seized(struct vhca_engine *e, struct vhca_vf *vf);
/* The P_Key table has changed under a VF in a guest: reads it, or programs it anew; false if it
 * has not. */
bool engine_follow_table(struct vhca_engine *e, struct vhca_vf *vf);
/* The map of a VF in a guest led to a foreign key: alarm, and by policy the VF goes. */
void engine_force_off(struct vhca_engine *e, struct vhca_vf *vf, const char *why);
/* A VF in a guest whose transaction waits for the disk: all that may be done meanwhile is to
 * withdraw what became foreign. */
void engine_guard(struct vhca_engine *e, struct vhca_vf *vf);

#endif
