/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_LIBVIRT_SIM_COPY_H
#define VHCA_TESTS_SIM_LIBVIRT_SIM_COPY_H
/*
 * libvirt's part of a migration of domain i between two hosts in memory: what it lets nobody begin,
 * and how the domain goes over. When each step comes is the world's own.
 */
#include "agent/migration/migration.h"
#include "tests/sim/host/world.h"

/* The marker of migration id in the live metadata; NULL: it is taken out. */
void sim_copy_mark(struct world *w, unsigned int i, const struct vhca_uuid *id);
/*
 * The question of the destination's hook about a guest with a marker; ms: NULL = its agent is down.
 */
int sim_copy_ask(struct vhca_migrations *ms, const struct vhca_dom_info *info,
		 struct vhca_error *err);
#define SIM_PAGES_MAX 2048

/* A guest as QEMU copies it, page by page, in virtual time. */
struct sim_guest {
	unsigned int pages;	   /* of its memory, SIM_PAGES_MAX at most */
	unsigned int written_in_s; /* writes in a second, each to a page by chance */
	unsigned int sent_in_s;	   /* pages */
	uint64_t seed;
};
/* Passes over what was written meanwhile, until the rest can be sent in 300 ms; the whole in ms. */
uint64_t sim_copy_ms(const struct sim_guest *guest);
/* What a dirty rate says of it: the pages that it has written to in a second. */
unsigned int sim_dirty_rate(const struct sim_guest *guest);

/* The destination's libvirtd has made the domain that the copy goes into. */
void sim_copy_comes(const struct world *from, struct world *to, unsigned int i);

#endif
