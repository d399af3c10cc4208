/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_REPORT_H
#define VHCA_AGENT_VF_REPORT_H
/* Facts, and what the SM is told of them: guest.c. */
#include "agent/vf/engine.h"

/* ---- guest.c ---- */
/* The live domain that the claim is for; NULL = it does not run here. */
struct vhca_domain *engine_claim_domain(struct vhca_engine *e, const struct vhca_claim *claim);
/* Why the domain's XML cannot be read; kind NONE: it can. */
void engine_note_unreadable(struct vhca_engine *e, struct vhca_domain *dom,
			    const struct vhca_error *why);
/* The domain that the VF is claimed for, if that runs and cannot be read; NULL = it is not so. */
const struct vhca_domain *engine_unreadable(struct vhca_engine *e, const struct vhca_vf *vf);
/* The same; true sets the VF's reason, and whoever needs a proof waits. */
bool engine_awaits_xml(struct vhca_engine *e, struct vhca_vf *vf);
/* Hot-plug needs a spare pcie-root-port for each VF that is on its way. */
int engine_check_root_ports(struct vhca_engine *e, const struct vhca_domain *dom,
			    struct vhca_error *err);
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
