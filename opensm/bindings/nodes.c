/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/nodes.h"

#include <string.h>

#include "common/base/codes.h"
#include "common/base/text.h"

const char *vhca_osm_node_of(const struct vhca_osm_agents *agents, const struct vhca_osm_table *t,
			     uint64_t port_guid)
{
	const struct vhca_osm_agent *line = vhca_osm_agents_at(agents, port_guid);

	return line ? line->node : vhca_osm_table_pinned(t, port_guid);
}

static int not_your_port(const struct vhca_osm_node *by, uint64_t port_guid, const char *why,
			 struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_NOT_YOUR_PORT, 0,
			       "%s is not heard for port %s: %s", by->name,
			       VHCA_GUID_STR(port_guid), why);

	vhca_error_hint(err,
			"ports in a line of [agents] in vhcasm.conf are that node's; a pinned "
			"one is released by the role admin, DELETE /v1/pins/%s, or by writing "
			"it into a line, and a restart of OpenSM",
			VHCA_GUID_STR(port_guid));
	return r;
}

int vhca_osm_node_check(const struct vhca_osm_agents *agents, const struct vhca_osm_table *t,
			const struct vhca_osm_node *by, uint64_t port_guid, bool physical,
			struct vhca_error *err)
{
	const char *node = vhca_osm_node_of(agents, t, port_guid);
	const struct vhca_osm_binding *b = vhca_osm_table_find(t, port_guid);

	if (!by || (node && strcmp(node, by->name) == 0))
		return 0;
	if (node)
		return not_your_port(by, port_guid, "it is another node's", err);
	if (by->line && by->line->n_ports > 0)
		return not_your_port(by, port_guid, "its line in [agents] has others", err);
	/* The tombstone of what was never bound is anybody's word: no port is lost by it. */
	if (!physical && b && !b->never_bound)
		return not_your_port(by, port_guid, "it is a virtual GUID", err);
	return 0;
}

/* Of nobody's port, the one who says that it is his; so too if nodes are not told apart. */
static bool has_port(const struct vhca_osm_agents *agents, const struct vhca_osm_table *t,
		     const struct vhca_osm_node *by, uint64_t port_guid, uint64_t says)
{
	const char *node = by ? vhca_osm_node_of(agents, t, port_guid) : NULL;

	return node ? strcmp(node, by->name) == 0 : port_guid == says;
}

static int not_the_owner(const struct vhca_osm_node *by, const struct vhca_osm_binding *b,
			 uint64_t says, struct vhca_error *err)
{
	int r;

	if (!by) {
		r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_NOT_THE_OWNER, 0,
				   "%s is bound to port %s, not to %s", VHCA_GUID_STR(b->vguid),
				   VHCA_GUID_STR(b->port_guid), VHCA_GUID_STR(says));
		vhca_error_hint(err, "withdraw it as that port, or without port_guid");
		return r;
	}
	r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_NOT_THE_OWNER, 0,
			   "%s is bound to port %s, for which %s is not heard",
			   VHCA_GUID_STR(b->vguid), VHCA_GUID_STR(b->port_guid), by->name);
	vhca_error_hint(err, "the node with that port may withdraw it, and who has the role admin");
	return r;
}

int vhca_osm_node_check_withdrawal(const struct vhca_osm_agents *agents,
				   const struct vhca_osm_table *t, const struct vhca_osm_node *by,
				   uint64_t vguid, uint64_t epoch, uint64_t port_guid,
				   struct vhca_error *err)
{
	const struct vhca_osm_binding *b = vhca_osm_table_find(t, vguid);
	bool anybody = !by && port_guid == 0;

	if (anybody || !b || b->withdrawn ||
	    vhca_osm_table_has_other_owner(t, vguid, epoch, port_guid) ||
	    has_port(agents, t, by, b->port_guid, port_guid))
		return 0;
	return not_the_owner(by, b, port_guid, err);
}

bool vhca_osm_node_leaves_rest(const struct vhca_osm_agents *agents, const struct vhca_osm_table *t,
			       const struct vhca_osm_node *by, uint64_t vguid, uint64_t epoch,
			       uint64_t port_guid)
{
	const struct vhca_osm_binding *b = vhca_osm_table_find(t, vguid);

	if (vhca_osm_table_has_other_owner(t, vguid, epoch, port_guid))
		return true;
	return by && b && b->withdrawn && !has_port(agents, t, by, b->port_guid, port_guid);
}
