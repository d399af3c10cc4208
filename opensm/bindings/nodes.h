/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_NODES_H
#define VHCA_OPENSM_BINDINGS_NODES_H
/*
 * Whose word counts for a port: its node's. That is the one in whose line of [agents] it stands; of
 * a port in no line, the one that was the first to speak for it (table.h: pins). Who is bound to no
 * node, `by` NULL, may speak for all.
 */
#include "opensm/bindings/agents.h"
#include "opensm/bindings/table.h"

struct vhca_osm_node {
	const char *name;		   /* "hv1", "token:hv1" */
	const struct vhca_osm_agent *line; /* in [agents]; NULL = a token's */
};

/* Whose the port is; NULL = nobody's yet. Borrowed. */
const char *vhca_osm_node_of(const struct vhca_osm_agents *agents, const struct vhca_osm_table *t,
			     uint64_t port_guid);
/*
 * May it speak for the port? For nobody's only if its own line names none, and not for a virtual
 * GUID, unless the fabric shows that the port is physical. Error: not_your_port.
 */
int vhca_osm_node_check(const struct vhca_osm_agents *agents, const struct vhca_osm_table *t,
			const struct vhca_osm_node *by, uint64_t port_guid, bool physical,
			struct vhca_error *err);
/*
 * May it withdraw the vGUID? port_guid: as whom, for which it may speak; 0 = not said. Of an older
 * epoch, or a tie, the table says what is wrong. A higher epoch that was never bound (a host that
 * took a guest over, and was not heard) does not end what another port has at a lower one, whoever
 * asks. Error: not_the_owner.
 */
int vhca_osm_node_check_withdrawal(const struct vhca_osm_agents *agents,
				   const struct vhca_osm_table *t, const struct vhca_osm_node *by,
				   uint64_t vguid, uint64_t epoch, uint64_t port_guid,
				   struct vhca_error *err);
/*
 * Is what the vGUID has left (a dynamic LID) another one's to end than the one's that withdraws it
 * so? It waits for a migration's destination, and the source may say that none has come.
 */
bool vhca_osm_node_leaves_rest(const struct vhca_osm_agents *agents, const struct vhca_osm_table *t,
			       const struct vhca_osm_node *by, uint64_t vguid, uint64_t epoch,
			       uint64_t port_guid);

#endif
