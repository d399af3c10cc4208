/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_EFFECTS_H
#define VHCA_AGENT_STATE_EFFECTS_H
/*
 * Everything that the engine does to the world outside of its memory and store, in one table.
 * Production: agent/host/host.c (hardware) and agent/libvirt/virt.h (libvirt); tests: a simulated
 * world.
 *
 * start(): begins `effect` for the VF with what the engine holds now (copies are taken before it
 * returns) and later, from the loop, never from inside start(), calls vhca_engine_effect_done()
 * exactly once. All effects are idempotent.
 */
#include "agent/state/guest_answer.h"
#include "agent/state/model.h"

/* Outcome of an effect. Which members count depends on the effect. */
struct vhca_effect_result {
	int rc; /* 0 or negative errno with err set */
	struct vhca_error err;
	bool in_use; /* PROBE; PREPARE, PROGRAM and SCRUB when rc is -EBUSY */
	bool has_hw; /* hw below was read */
	struct vhca_identity_state hw;
	unsigned int missing; /* PROGRAM */
	uint64_t called_us;   /* ATTACH: when libvirt was told to (vhca_now_us()); 0 = it was not */
	struct vhca_qga_answer guest; /* ASK */
};

struct vhca_effects {
	void (*start)(void *ctx, struct vhca_vf *vf, enum vhca_effect effect);
	/* Read one domain's live XML again; answered by vhca_engine_domain(). */
	void (*refresh)(void *ctx, const struct vhca_uuid *uuid);
	/* The set of VFs that the hook must know changed: write /run/vhcad/vfs. */
	void (*vfs_changed)(void *ctx);
	void *ctx;
};

#endif
