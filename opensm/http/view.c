/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/view.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

__attribute__((format(printf, 2, 3))) static void add_finding(struct vhca_osm_view *v,
							      const char *fmt, ...)
{
	va_list ap;

	if (v->n_findings == VHCA_OSM_FINDINGS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(v->findings[v->n_findings++], VHCA_OSM_FINDING_LEN, fmt, ap);
	va_end(ap);
}

static void look_at_port(const struct vhca_osm_subnet *subnet, const struct vhca_osm_binding *b,
			 uint64_t guid, struct vhca_osm_view *v)
{
	static const char *const states[] = {"in an unknown state", "Down", "Initialize", "Armed",
					     "Active"};
	struct vhca_osm_port_info info;

	if (!subnet->ops->find_port(subnet->ctx, guid, &info)) {
		add_finding(v, "Port %s is not in the subnet now.", VHCA_GUID_STR(guid));
		return;
	}
	v->lid = info.lid;
	if (b->lid && b->lid != info.lid && guid == b->port_guid)
		add_finding(
			v, "The agent reported LID %u, but the subnet manager gave port %s LID %u.",
			b->lid, VHCA_GUID_STR(guid), info.lid);
	if (info.state != VHCA_OSM_PORT_ACTIVE)
		add_finding(v, "Port %s is %s, not Active.", VHCA_GUID_STR(guid),
			    states[info.state < VHCA_ARRAY_SIZE(states) ? info.state : 0]);
}

static void look_for_keys(const struct vhca_osm_subnet *subnet, const struct vhca_osm_binding *b,
			  struct vhca_osm_view *v)
{
	uint64_t port = vhca_osm_binding_keys_at(b);
	char text[VHCA_OSM_FINDING_LEN - 64];
	struct vhca_strbuf missing;

	vhca_strbuf_init(&missing, text, sizeof(text));
	for (size_t i = 0; i < b->n_pkeys; i++)
		if (!subnet->ops->has_pkey(subnet->ctx, port, b->pkeys[i]))
			vhca_strbuf_add(&missing, " %s", VHCA_PKEY_STR(b->pkeys[i]));
	if (missing.len)
		add_finding(v, "Not yet in the P_Key table of port %s:%s%s.", VHCA_GUID_STR(port),
			    text, missing.truncated ? " and more" : "");
}

/* Returns the port whose LID is the vGUID's: its own if there is one, else the reported one. */
static uint64_t look_for_alias(const struct vhca_osm_subnet *subnet,
			       const struct vhca_osm_binding *b, struct vhca_osm_view *v)
{
	struct vhca_osm_alias alias;

	if (!subnet->ops->find_alias(subnet->ctx, b->vguid, &alias))
		return b->port_guid;
	if (alias.port_guid == b->port_guid && alias.gid_index == b->gid_index) {
		v->state = VHCA_OSM_GRANTED;
		return b->port_guid;
	}
	/* The vGUID is a port of its own, which has a place, but no index in another's table. */
	if (alias.port_guid == b->vguid && b->vguid != b->port_guid) {
		v->state = VHCA_OSM_GRANTED;
		if (subnet->ops->is_vport_of(subnet->ctx, b->vguid, b->port_guid))
			return b->vguid;
		v->state = VHCA_OSM_ELSEWHERE;
		add_finding(v,
			    "GUID %s is a port of its own, but no virtual port of the HCA with "
			    "port %s.",
			    VHCA_GUID_STR(b->vguid), VHCA_GUID_STR(b->port_guid));
		return b->vguid;
	}
	if (alias.port_guid != b->port_guid)
		v->state = VHCA_OSM_ELSEWHERE;
	if (alias.gid_index < 0)
		add_finding(v, "GUID %s is held by port %s, at no index of its GUID table.",
			    VHCA_GUID_STR(b->vguid), VHCA_GUID_STR(alias.port_guid));
	else
		add_finding(v, "GUID %s is held by port %s at index %d.", VHCA_GUID_STR(b->vguid),
			    VHCA_GUID_STR(alias.port_guid), alias.gid_index);
	return b->port_guid;
}

void vhca_osm_view_get(const struct vhca_osm_subnet *subnet, const struct vhca_osm_binding *b,
		       struct vhca_osm_view *ret)
{
	ret->state = b->withdrawn ? VHCA_OSM_WITHDRAWN : VHCA_OSM_PENDING;
	ret->lid = 0;
	ret->n_findings = 0;
	if (b->withdrawn)
		return;
	look_at_port(subnet, b, look_for_alias(subnet, b, ret), ret);
	if (ret->lid)
		look_for_keys(subnet, b, ret);
}

const char *vhca_osm_state_to_string(enum vhca_osm_state state)
{
	static const char *const names[] = {[VHCA_OSM_PENDING] = "pending",
					    [VHCA_OSM_GRANTED] = "granted",
					    [VHCA_OSM_ELSEWHERE] = "elsewhere",
					    [VHCA_OSM_WITHDRAWN] = "withdrawn"};

	return names[state];
}
