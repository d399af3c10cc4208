/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/places.h"

#include "common/base/text.h"
#include "opensm/osm/lids.h"
#include "opensm/osm/lock.h"

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_ptr_vector.h>
#include <complib/cl_qmap.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>

struct osm_port *vhca_osm_port_by_lid(const struct osm_subn *subn, uint16_t lid)
{
	osm_port_t *listed = osm_get_port_by_lid_ho(subn, lid);

	if (listed || !lid)
		return listed;
	VHCA_OSM_FOREACH_PORT (port, subn)
		if (port->lid == cl_hton16(lid))
			return port;
	return NULL;
}

/* A port has several LIDs only under LMC, where none of them moves. */
void vhca_osm_places_unlist(struct osm_opensm *osm)
{
	cl_ptr_vector_t *by_lid = &osm->subn.port_lid_tbl;

	vhca_osm_lock_exclusive(osm);
	for (size_t lid = 1; !osm->subn.opt.lmc && lid < cl_ptr_vector_get_size(by_lid); lid++) {
		const osm_port_t *port = cl_ptr_vector_get(by_lid, lid);

		if (port && cl_ntoh16(osm_port_get_base_lid(port)) != lid)
			(void)cl_ptr_vector_set(by_lid, lid, NULL);
	}
	vhca_osm_unlock(osm);
}

/* Behind a port of a switch; NULL where no switch is. */
static const osm_node_t *switch_behind(const osm_node_t *node, uint8_t port)
{
	const osm_physp_t *here = osm_node_get_physp_ptr((osm_node_t *)node, port);
	const osm_physp_t *there = here ? here->p_remote_physp : NULL;

	return there && there->p_node->sw ? there->p_node : NULL;
}

/* A switch that this one has a cable to, other than `but`; NULL if there is none. */
static const osm_node_t *neighbour(const osm_node_t *node, const osm_node_t *but)
{
	for (uint8_t p = 1; p < node->sw->num_ports; p++) {
		const osm_node_t *there = switch_behind(node, p);

		if (there && there != but && there != node)
			return there;
	}
	return NULL;
}

/*
 * A hypervisor that is a switch has cables to its leaf alone, and a leaf to its only spine. But
 * around that spine are leaves alone, and around a hypervisor's leaf are spines, too.
 */
static const osm_node_t *leaf_of(const osm_node_t *node)
{
	const osm_node_t *above = neighbour(node, NULL);

	if (!above || neighbour(node, above))
		return node;
	for (uint8_t p = 1; p < above->sw->num_ports; p++) {
		const osm_node_t *there = switch_behind(above, p);

		if (there && there != above && neighbour(there, above))
			return above;
	}
	return node;
}

static void describe(const osm_port_t *port, struct vhca_osm_lid_place *ret)
{
	const osm_physp_t *there = vhca_osm_switch_port(port);

	ret->port_guid = cl_ntoh64(port->guid);
	ret->node_guid = cl_ntoh64(osm_node_get_node_guid(port->p_node));
	ret->is_switch = osm_node_get_type(port->p_node) == IB_NODE_TYPE_SWITCH;
	(void)vhca_strcpy(ret->node, sizeof(ret->node), port->p_node->print_desc);
	if (ret->is_switch) {
		ret->leaf_guid = cl_ntoh64(osm_node_get_node_guid(leaf_of(port->p_node)));
	} else if (there) {
		ret->switch_guid = cl_ntoh64(osm_node_get_node_guid(there->p_node));
		ret->switch_port = there->port_num;
		ret->leaf_guid = cl_ntoh64(osm_node_get_node_guid(leaf_of(there->p_node)));
	}
}

bool vhca_osm_place_find(void *ctx, uint16_t lid, struct vhca_osm_lid_place *ret)
{
	const struct vhca_osm_lids *lids = ctx;
	const struct vhca_osm_dynamic_lid *row = vhca_osm_dynamic_lids_find_lid(lids->dynamic, lid);
	osm_opensm_t *osm = lids->osm;
	const osm_port_t *port;

	*ret = (struct vhca_osm_lid_place){0};
	vhca_osm_lock_shared(osm);
	port = vhca_osm_port_by_lid(&osm->subn, lid);
	if (row && (!port || cl_ntoh64(port->guid) == row->vguid))
		ret->vguid = row->vguid; /* OpenSM has not given it to somebody else */
	if (!port && row)
		port = osm_get_port_by_guid(&osm->subn, cl_hton64(row->pf_guid));
	if (port)
		describe(port, ret);
	vhca_osm_unlock(osm);
	return port != NULL;
}

/* One walk, because to look for each LID in turn is one for each that nobody has. */
void vhca_osm_place_list(void *ctx, struct vhca_osm_lid_set *ret)
{
	const struct vhca_osm_lids *lids = ctx;
	osm_opensm_t *osm = lids->osm;

	*ret = (struct vhca_osm_lid_set){0};
	for (size_t i = 0; i < lids->dynamic->n; i++)
		vhca_osm_lid_set_add(ret, lids->dynamic->rows[i].lid);
	vhca_osm_lock_shared(osm);
	VHCA_OSM_FOREACH_PORT (port, &osm->subn)
		if (port->lid)
			vhca_osm_lid_set_add(ret, cl_ntoh16(port->lid));
	vhca_osm_unlock(osm);
}

void vhca_osm_place_info(void *ctx, struct vhca_osm_fabric_info *ret)
{
	const struct vhca_osm_lids *lids = ctx;
	osm_opensm_t *osm = lids->osm;
	uint16_t max_lid = 0;

	vhca_osm_lock_shared(osm);
	VHCA_OSM_FOREACH_PORT (port, &osm->subn)
		if (cl_ntoh16(port->lid) > max_lid)
			max_lid = cl_ntoh16(port->lid);
	*ret = (struct vhca_osm_fabric_info){
		.switches = cl_qmap_count(&osm->subn.sw_guid_tbl),
		.ports = cl_qmap_count(&osm->subn.port_guid_tbl),
		.max_lid = max_lid,
		.dynamic_lids = lids->dynamic->n,
		.dynamic_max = lids->dynamic->max,
		.sm_lid = cl_ntoh16(osm->subn.sm_base_lid),
		.sm_port_guid = cl_ntoh64(osm->subn.sm_port_guid),
		.engine = vhca_osm_routing_name(lids->routing),
	};
	vhca_osm_unlock(osm);
}
