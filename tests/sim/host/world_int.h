/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_WORLD_INT_H
#define VHCA_TESTS_SIM_HOST_WORLD_INT_H
/* Between the files of a host in memory. */
#include "tests/sim/host/world.h"

/* Aborts the test with the reason. */
void world_must(bool ok, const char *what);
/* fn(arg) some time later in this life of the agent; free(arg), if it ends before. */
void world_later(struct world *w, void (*fn)(void *arg), void *arg);

/* ---- world_vfs.c ---- */
struct world_vf *world_truth(struct world *w, struct vhca_bdf bdf);
/*
 * What the mlx4 driver leaves behind when it loads: virtual 0 -> physical 0, a random GUID; no
 * guest has it.
 */
void world_vf_reset(struct world_vf *vf);
void world_vf_scrub(const struct world *w, struct world_vf *t);
/* The keys that the port lacks. */
unsigned int world_vf_program(const struct world *w, struct world_vf *t,
			      const struct vhca_identity *want);
void world_vf_unmap(const struct world *w, struct world_vf *t, const struct vhca_identity *want);
/* As seen by who takes this for the port of the VF's identity. */
int world_vf_read(const struct world *w, const struct world_vf *t, uint8_t port,
		  struct vhca_effect_result *res);
void world_vf_unplug(struct world_vf *t);
/* Domain i has VF v. */
bool world_domain_has(const struct world *w, unsigned int i, unsigned int v);

/* ---- world_effect.c: for the engine ---- */
void world_start_effect(void *ctx, struct vhca_vf *vf, enum vhca_effect effect);

/* ---- ../libvirt/world_domains.c ---- */
const struct world_domain *world_domain_of(const struct world *w, const struct vhca_uuid *uuid);
/* libvirt's event of a device that has left its guest. */
void world_tell_removed(const struct world *w, const struct world_vf *t);
/* For the engine: it wants to see this domain again. */
void world_refresh(void *ctx, const struct vhca_uuid *uuid);

#endif
