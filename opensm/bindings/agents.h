/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_AGENTS_H
#define VHCA_OPENSM_BINDINGS_AGENTS_H
/*
 * Who is an agent: the section [agents] of vhcasm.conf, a line for each hypervisor, "NODE =
 * CERTIFICATE [PORT_GUID...]". A node speaks for its ports; one without any in its line for those
 * that it was the first to speak for (table.h: pins).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/caller.h"
#include "common/base/text.h"

/* All of the largest subnet. */
#define VHCA_OSM_AGENTS_MAX	4096
#define VHCA_OSM_NODE_PORTS_MAX 16

struct vhca_osm_agent {
	char node[VHCA_NAME_MAX];
	char certificate[VHCA_CALLER_NAME_MAX]; /* the caller's name: "cert:hv1.example.org" */
	size_t n_ports;
	uint64_t ports[VHCA_OSM_NODE_PORTS_MAX];
};

struct vhca_osm_agent_port {
	uint64_t guid;
	const struct vhca_osm_agent *agent;
};

struct vhca_osm_agents {
	bool listed; /* there is a section, even an empty one; else whoever is let in is an agent */
	size_t n;
	struct vhca_osm_agent *list; /* by certificate, once they are sorted */
	size_t n_ports;		     /* of all, once they are sorted */
	struct vhca_osm_agent_port *ports;
};

/* One line. Errors have the code "bad_config". */
int vhca_osm_agents_add(struct vhca_osm_agents *agents, const char *node, const char *value,
			struct vhca_error *err);
/* After the last line; a certificate or a port that stands in two is an error. */
int vhca_osm_agents_sort(struct vhca_osm_agents *agents, struct vhca_error *err);
/* The node's line, or NULL. */
const struct vhca_osm_agent *vhca_osm_agents_of(const struct vhca_osm_agents *agents,
						const char *node);
/* The one with this certificate, or NULL. */
const struct vhca_osm_agent *vhca_osm_agents_find(const struct vhca_osm_agents *agents,
						  const char *certificate);
/* The one in whose line the port stands, or NULL. */
const struct vhca_osm_agent *vhca_osm_agents_at(const struct vhca_osm_agents *agents,
						uint64_t port_guid);
void vhca_osm_agents_done(struct vhca_osm_agents *agents);

#endif
