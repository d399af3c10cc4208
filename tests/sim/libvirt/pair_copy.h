/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_LIBVIRT_PAIR_COPY_H
#define VHCA_TESTS_SIM_LIBVIRT_PAIR_COPY_H
/*
 * libvirt's part of a migration of domain 0 between the hosts of a pair: for the agents that call
 * it, and for an orchestrator.
 */
#include "tests/sim/hosts/pair.h"

/* Why libvirt does not begin with copy_refused: qemuMigrationSrcIsAllowed() counts snapshots. */
int pair_copy_refused(struct vhca_error *err);
/*
 * As libvirt lets it: never with a VF; the destination's hook is asked. 0, or a negative errno with
 * err.
 */
int pair_copy_begin(struct pair *p, unsigned int from, struct vhca_error *err);
/* libvirtd has made the domain that the copy goes into. */
void pair_copy_comes(struct pair *p, unsigned int to);
/*
 * The guest runs at the other host alone, or, if p->copy_fails or p->copy_cancelled, here: then an
 * error.
 */
int pair_copy_end(struct pair *p, unsigned int from, struct vhca_error *err);

#endif
