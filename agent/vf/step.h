/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_STEP_H
#define VHCA_AGENT_VF_STEP_H
/* The step of a VF, and its parts: step.c, absent.c, grant.c. */
#include "agent/vf/engine.h"

/* ---- step.c ---- */
void engine_step(struct vhca_engine *e, struct vhca_vf *vf);

/* ---- absent.c ---- */
/* The step of a VF that the kernel does not show. */
void engine_step_absent(struct vhca_engine *e, struct vhca_vf *vf);
/* The kernel shows it there: what runs for it still goes to where it was. */
void engine_see_place(struct vhca_vf *vf, struct vhca_hca *hca, uint16_t index);
/* False: it is not to be stepped now. */
bool engine_settle_place(struct vhca_engine *e, struct vhca_vf *vf);

/* ---- grant.c ---- */
/* The VF's hardware was read: is its GUID granted, or not any more? */
void engine_update_grant(struct vhca_engine *e, struct vhca_vf *vf);
/* Reads the hardware when that is due. */
void engine_look_again(struct vhca_engine *e, struct vhca_vf *vf);
/* How long what was read is good for. */
uint64_t engine_look_period(struct vhca_engine *e, struct vhca_vf *vf);
/* The rest of the step of an attached VF. */
void engine_await_grant(struct vhca_engine *e, struct vhca_vf *vf);
/* The step of a free VF that nobody wants; the SM is asked to take its GUID back. */
void engine_rest_free(struct vhca_engine *e, struct vhca_vf *vf);

#endif
