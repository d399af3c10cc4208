/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/eviction.h"

#include "common/base/log.h"
#include "common/base/text.h"

void vhca_osm_eviction_plan(const struct vhca_osm_subnet_ops *ops, void *ctx,
			    const struct vhca_osm_table *t, const struct vhca_osm_binding *want,
			    uint64_t from_port, struct vhca_osm_eviction *ret)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(t, want->vguid);
	struct vhca_osm_alias at;

	*ret = (struct vhca_osm_eviction){.evicts = false};
	if (!ops->find_alias(ctx, want->vguid, &at))
		return;
	if (at.gid_index == 0) /* a port's own GUID is no alias */
		return;
	if (at.port_guid == want->port_guid && at.gid_index == want->gid_index)
		return;
	ret->evicts = (known && want->epoch > known->epoch) || at.port_guid == from_port;
	ret->at = at;
	ret->smps = ret->evicts && at.gid_index > 0;
}

void vhca_osm_eviction_run(const struct vhca_osm_subnet_ops *ops, void *ctx, uint64_t vguid,
			   struct vhca_osm_eviction *ev)
{
	int n;

	if (!ev->evicts)
		return;
	n = ops->evict(ctx, vguid, &ev->at);
	ev->evicts = n >= 0;
	ev->smps = n >= 0 ? (unsigned int)n : 0;
	if (!ev->evicts) /* gone meanwhile; the binding's findings say where to */
		return;
	if (ev->at.gid_index < 0)
		vhca_log_notice("%s: evicted from port %s, where it had no index",
				VHCA_GUID_STR(vguid), VHCA_GUID_STR(ev->at.port_guid));
	else
		vhca_log_notice("%s: evicted from port %s index %d", VHCA_GUID_STR(vguid),
				VHCA_GUID_STR(ev->at.port_guid), ev->at.gid_index);
}
