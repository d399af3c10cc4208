/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_REQUEST_H
#define VHCA_AGENT_VF_REQUEST_H
/* What domains and people ask for: request.c, adopt.c, forget.c, takeover.c. */
#include "agent/vf/engine.h"

/* ---- request.c ---- */
/* Looks at what live domains ask for and claims VFs. */
void engine_requests(struct vhca_engine *e);
/* What was refused to the domain is tried again now, not after its back-off. */
void engine_ask_again(struct vhca_engine *e, struct vhca_domain *dom);
/* A callback of the transition (agent/vf/transition.h). */
void engine_request_failed(struct vhca_engine *e, const struct vhca_claim *claim);
/* The guest has let go of the VF unasked: its claim is over, and its domain gets one again after
 * the request's back-off. */
void engine_request_ejected(struct vhca_engine *e, const struct vhca_vf *vf);

/* ---- adopt.c ---- */
/* A step of an unmanaged VF that is being adopted; false if it is not. */
bool engine_adopt_step(struct vhca_engine *e, struct vhca_vf *vf);
/* The VF's hardware was read (or not). */
void engine_adopt_read(struct vhca_vf *vf, const struct vhca_effect_result *res);
/* At the end: whoever waits hears err. */
void engine_drop_adopts(struct vhca_engine *e, const struct vhca_error *err);

/* ---- forget.c ---- */
void engine_drop_forgets(struct vhca_engine *e, const struct vhca_error *err); /* as above */

/* ---- takeover.c ---- */
/* Somebody vouches that the claim's domain runs nowhere else, and means this claim. */
bool engine_takes_over(struct vhca_engine *e, const struct vhca_claim *c);
void engine_drop_takeovers(struct vhca_engine *e);

#endif
