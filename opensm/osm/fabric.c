/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/fabric.h"

#include "common/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_qmap.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_switch.h>

/*
 * Device ID of SHARP's aggregation node, in a switch. To the subnet it is an HCA; it sends to other
 * such nodes only, each at the next switch of their tree, and so closes no loop. Firmware answers
 * that; the NodeDescription is what root of a host writes there.
 */
#define AGGREGATION_NODE 53001

static int by_address(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t) * (osm_switch_t *const *)a;
	const uintptr_t y = (uintptr_t) * (osm_switch_t *const *)b;

	return (x > y) - (x < y);
}

static uint32_t index_of(const struct vhca_osm_snapshot *s, size_t n, osm_switch_t *sw)
{
	osm_switch_t **found = bsearch(&sw, s->switches, n, sizeof(sw), by_address);

	return found ? (uint32_t)(found - s->switches) : VHCA_OSM_NO_SWITCH;
}

static void add_switch(struct vhca_osm_snapshot *s, size_t n, osm_switch_t *sw)
{
	struct vhca_osm_switch *ret =
		vhca_osm_fabric_add(&s->fabric, cl_ntoh64(osm_node_get_node_guid(sw->p_node)),
				    (uint8_t)(sw->num_ports - 1));

	for (uint8_t p = 1; p < sw->num_ports; p++) {
		osm_physp_t *here = osm_node_get_physp_ptr(sw->p_node, p);
		const osm_physp_t *there = here ? here->p_remote_physp : NULL;

		ret->has_hosts |= there && !there->p_node->sw &&
				  cl_ntoh16(there->p_node->node_info.device_id) != AGGREGATION_NODE;
		if (there && there->p_node->sw && osm_link_is_healthy(here))
			ret->peers[p] = index_of(s, n, there->p_node->sw);
	}
}

/* Others change the tables, and a computation of ways may replace them. */
static int look_at_tables(struct vhca_osm_snapshot *s)
{
	for (size_t i = 0; i < s->fabric.n; i++) {
		const osm_switch_t *sw = s->switches[i];

		if (!sw->new_lft || !sw->lft)
			return -EAGAIN;
		s->fabric.switches[i].lft = sw->new_lft;
		s->fabric.switches[i].lft_size = sw->lft_size;
	}
	return 0;
}

int vhca_osm_snapshot_take(struct osm_opensm *osm, struct vhca_osm_snapshot *ret)
{
	size_t n = 0, ports = 0;

	*ret = (struct vhca_osm_snapshot){0};
	ret->switches = calloc(cl_qmap_count(&osm->subn.sw_guid_tbl) + 1, sizeof(*ret->switches));
	if (!ret->switches)
		return -ENOMEM;
	VHCA_OSM_FOREACH_SWITCH (sw, &osm->subn) {
		ret->switches[n++] = sw;
		ports += sw->num_ports;
	}
	qsort(ret->switches, n, sizeof(*ret->switches), by_address);
	if (vhca_osm_fabric_init(&ret->fabric, n, ports) < 0) {
		vhca_osm_snapshot_done(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		add_switch(ret, n, ret->switches[i]);
	if (look_at_tables(ret) < 0) {
		vhca_osm_snapshot_done(ret);
		return -EAGAIN;
	}
	return 0;
}

void vhca_osm_snapshot_done(struct vhca_osm_snapshot *s)
{
	vhca_osm_fabric_done(&s->fabric);
	free(s->switches);
	*s = (struct vhca_osm_snapshot){0};
}

/* Counted at the end, too: what was taken in the middle shows switches that may be gone. */
void vhca_osm_kept_snapshot_swept(struct vhca_osm_kept_snapshot *k, bool begins)
{
	atomic_fetch_add(&k->sweeps, 1);
	atomic_store(&k->sweeping, begins);
}

int vhca_osm_kept_snapshot_get(struct vhca_osm_kept_snapshot *k, struct osm_opensm *osm,
			       const struct vhca_osm_snapshot **ret)
{
	uint64_t at = atomic_load(&k->sweeps);

	*ret = &k->s;
	if (vhca_osm_kept_snapshot_holds(k, at))
		return look_at_tables(&k->s);
	vhca_osm_kept_snapshot_done(k);
	k->at = at;
	return vhca_osm_snapshot_take(osm, &k->s);
}

bool vhca_osm_kept_snapshot_holds(const struct vhca_osm_kept_snapshot *k, uint64_t at)
{
	return k->s.switches && k->at == at && atomic_load(&k->sweeps) == at &&
	       !atomic_load(&k->sweeping);
}

void vhca_osm_kept_snapshot_done(struct vhca_osm_kept_snapshot *k)
{
	vhca_osm_snapshot_done(&k->s);
	vhca_osm_channels_done(&k->channels);
}

struct osm_physp *vhca_osm_switch_port(const struct osm_port *port)
{
	osm_physp_t *there = port && port->p_physp ? port->p_physp->p_remote_physp : NULL;

	return there && there->p_node->sw ? there : NULL;
}

bool vhca_osm_snapshot_place(const struct vhca_osm_snapshot *s, const struct osm_port *port,
			     struct vhca_osm_place *ret)
{
	const osm_physp_t *there = vhca_osm_switch_port(port);

	if (!there)
		return false;
	ret->sw = index_of(s, s->fabric.n, there->p_node->sw);
	ret->port = there->port_num;
	return ret->sw != VHCA_OSM_NO_SWITCH;
}
