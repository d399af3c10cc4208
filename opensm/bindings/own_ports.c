/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/own_ports.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"

struct vhca_osm_binding vhca_osm_own_port_of(const struct vhca_osm_subnet_ops *ops, void *ctx,
					     const struct vhca_osm_table *t,
					     const struct vhca_osm_binding *want)
{
	const struct vhca_osm_binding *old = vhca_osm_table_find(t, want->vguid);
	struct vhca_osm_binding b = *want;
	struct vhca_osm_port_info info;

	b.own_port = b.vguid != b.port_guid &&
		     ((old && old->own_port && old->port_guid == b.port_guid) ||
		      ops->find_port(ctx, b.vguid, &info));
	return b;
}

struct search {
	const struct vhca_osm_table *t;
	uint64_t *found;
	size_t n, room;
};

/* With OpenSM's lock held: memory only. */
static void look_at_port(void *arg, uint64_t port_guid, const uint16_t *pkeys, size_t n)
{
	struct search *s = arg;
	const struct vhca_osm_binding *b = vhca_osm_table_find(s->t, port_guid);

	(void)pkeys;
	(void)n;
	if (b && !b->withdrawn && !b->own_port && b->port_guid != port_guid && s->n < s->room)
		s->found[s->n++] = port_guid;
}

void vhca_osm_own_ports_found(const struct vhca_osm_subnet_ops *ops, void *ctx,
			      struct vhca_osm_table *t)
{
	size_t room = vhca_osm_table_bindings(t);
	VHCA_AUTO_FREE uint64_t *found = calloc(room + 1, sizeof(*found));
	struct search s = {.t = t, .found = found, .room = room};

	if (room == 0 || !found) /* the next sweep tries again */
		return;
	ops->each_port(ctx, look_at_port, &s);
	for (size_t i = 0; i < s.n; i++) {
		struct vhca_osm_binding b = *vhca_osm_table_find(t, found[i]);
		struct vhca_error err = VHCA_ERROR_INIT;

		if (ops->is_physical(ctx, b.vguid)) {
			vhca_log_warning("%s is a port of the subnet, and bound to port %s: its "
					 "keys stay there",
					 VHCA_GUID_STR(b.vguid), VHCA_GUID_STR(b.port_guid));
			continue;
		}
		b.own_port = true;
		if (vhca_osm_table_put(t, &b, VHCA_OSM_PORT_PKEYS_MAX, &err) < 0)
			vhca_log_error("%s; its keys stay at port %s", err.msg,
				       VHCA_GUID_STR(b.port_guid));
	}
}
