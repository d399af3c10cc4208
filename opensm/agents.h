/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_AGENTS_H
#define VHCA_OPENSM_AGENTS_H
/*
 * Who is an agent: the section [agents] of vhcasm.conf, a line for each hypervisor, "NODE =
 * CERTIFICATE". What else the word of a node is good for belongs behind the certificate in its
 * line.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/base/caller.h"
#include "common/base/text.h"

/* All of the largest subnet. */
#define VHCA_OSM_AGENTS_MAX 4096

struct vhca_osm_agent {
	char node[VHCA_NAME_MAX];
	char certificate[VHCA_CALLER_NAME_MAX]; /* the caller's name: "cert:hv1.example.org" */
};

struct vhca_osm_agents {
	bool listed; /* there is a section, even an empty one; else whoever is let in is an agent */
	size_t n;
	struct vhca_osm_agent *list; /* by certificate, once they are sorted */
};

/* One line. Errors have the code "bad_config". */
int vhca_osm_agents_add(struct vhca_osm_agents *agents, const char *node, const char *value,
			struct vhca_error *err);
/* After the last line; a certificate that stands in two is an error. */
int vhca_osm_agents_sort(struct vhca_osm_agents *agents, struct vhca_error *err);
/* The one with this certificate, or NULL. */
const struct vhca_osm_agent *vhca_osm_agents_find(const struct vhca_osm_agents *agents,
						  const char *certificate);
void vhca_osm_agents_done(struct vhca_osm_agents *agents);

#endif
