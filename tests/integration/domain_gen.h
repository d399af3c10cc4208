/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_DOMAIN_GEN_H
#define VHCA_TESTS_DOMAIN_GEN_H
/*
 * Domains as users write them, all of which libvirt accepts: each follows from its seed, together
 * with what a reader has to find in it. Beside what counts stands what only looks like it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/text.h"

#define DOMAIN_GEN_HOSTDEVS_MAX 80

struct domain_doc {
	char xml[96 * 1024];
	/* ---- what is true of it ---- */
	struct vhca_uuid uuid;
	bool has_request; /* the metadata has an element in our namespace */
	bool has_away;
	struct vhca_uuid away; /* zero if the marker names no migration */
	unsigned int n_hostdevs;
	struct vhca_bdf hostdevs[DOMAIN_GEN_HOSTDEVS_MAX];
};

void domain_gen(struct domain_doc *doc, uint64_t seed);

#endif
