/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/opensm_smps.h"

#include <string.h>

#include <opensm/osm_config.h> /* before its siblings: the layout of their structures depends on it */

#include <complib/cl_qmap.h>
#include <opensm/osm_msgdef.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_sm.h>
#include <opensm/osm_switch.h>

_Static_assert(VHCA_OSM_LFT_BLOCK == IB_SMP_DATA_SIZE, "one LID a byte");

static bool send_block(osm_opensm_t *osm, osm_switch_t *sw, unsigned int block)
{
	osm_physp_t *physp = osm_node_get_physp_ptr(sw->p_node, 0);
	uint8_t payload[IB_SMP_DATA_SIZE];
	osm_madw_context_t context = {0};

	if (!physp)
		return false;
	context.lft_context.node_guid = osm_node_get_node_guid(sw->p_node);
	context.lft_context.set_method = TRUE;
	(void)memcpy(payload, sw->new_lft + (size_t)block * IB_SMP_DATA_SIZE, sizeof(payload));
	/* As OpenSM itself: the answer brings the content back; without one the next sweep sees that it differs. */
	(void)memset(sw->lft + (size_t)block * IB_SMP_DATA_SIZE, 0, IB_SMP_DATA_SIZE);
	return osm_req_set(&osm->sm, osm_physp_get_dr_path_ptr(physp), payload, sizeof(payload),
			   IB_MAD_ATTR_LIN_FWD_TBL, cl_hton32(block), FALSE,
			   ib_port_info_get_m_key(&physp->port_info), 0, CL_DISP_MSGID_NONE,
			   &context) == IB_SUCCESS;
}

/* The client of a moved LID has to register anew with the SA: multicast groups, notices. */
static bool reregister(const osm_opensm_t *osm, const osm_physp_t *physp)
{
	return !osm->subn.opt.no_clients_rereg &&
	       (physp->port_info.capability_mask & IB_PORT_CAP_HAS_CLIENT_REREG);
}

static bool send_lid(osm_opensm_t *osm, const osm_port_t *port)
{
	osm_physp_t *physp = port->p_physp;
	uint8_t payload[IB_SMP_DATA_SIZE] = {0};
	ib_port_info_t info = physp->port_info;
	osm_madw_context_t context = {0};

	info.state_info2 = 0x02; /* physical state: no change; after link down: polling */
	ib_port_info_set_port_state(&info, IB_LINK_NO_CHANGE);
	info.m_key = osm->subn.opt.m_key;
	info.base_lid = port->lid;
	info.master_sm_base_lid = osm->subn.sm_base_lid;
	ib_port_info_set_client_rereg(&info, reregister(osm, physp));
	(void)memcpy(payload, &info, sizeof(info));
	context.pi_context.node_guid = osm_node_get_node_guid(port->p_node);
	context.pi_context.port_guid = osm_physp_get_port_guid(physp);
	context.pi_context.set_method = TRUE;
	context.pi_context.client_rereg = reregister(osm, physp);
	return osm_req_set(&osm->sm, osm_physp_get_dr_path_ptr(physp), payload, sizeof(payload),
			   IB_MAD_ATTR_PORT_INFO, cl_hton32(osm_physp_get_port_num(physp)), FALSE,
			   ib_port_info_get_m_key(&physp->port_info), 0, CL_DISP_MSGID_NONE,
			   &context) == IB_SUCCESS;
}

static bool block_differs(const osm_switch_t *sw, unsigned int block)
{
	size_t at = (size_t)block * IB_SMP_DATA_SIZE;

	return sw->new_lft && at + IB_SMP_DATA_SIZE <= sw->lft_size &&
	       memcmp(sw->lft + at, sw->new_lft + at, IB_SMP_DATA_SIZE) != 0;
}

/* Blocks of the pair's LIDs that a switch does not have as it should. */
static size_t switch_difference(osm_opensm_t *osm, const struct vhca_osm_lid_pair *pair,
				osm_switch_t *sw, bool send)
{
	unsigned int block[2] = {pair->lid[0] / VHCA_OSM_LFT_BLOCK,
				 pair->lid[1] / VHCA_OSM_LFT_BLOCK};
	int blocks = block[0] == block[1] ? 1 : 2;
	size_t n = 0;

	for (int b = 0; b < blocks; b++) {
		if (!block_differs(sw, block[b]))
			continue;
		n++;
		if (send)
			(void)send_block(osm, sw, block[b]);
	}
	return n;
}

size_t vhca_osm_smps_blocks(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			    const struct vhca_osm_switch_set *at, bool send)
{
	const cl_qmap_t *map = &osm->subn.sw_guid_tbl;
	size_t n = 0;

	if (!at)
		for (cl_map_item_t *i = cl_qmap_head(map); i != cl_qmap_end(map);
		     i = cl_qmap_next(i))
			n += switch_difference(osm, pair, (osm_switch_t *)i, send);
	for (size_t s = 0; at && s < at->n; s++) {
		osm_switch_t *sw = osm_get_switch_by_guid(&osm->subn, cl_hton64(at->guids[s]));

		if (sw)
			n += switch_difference(osm, pair, sw, send);
	}
	return n;
}

static uint16_t lid_after(const struct vhca_osm_lid_pair *pair, int i)
{
	return pair->lid[pair->vports ? i : 1 - i];
}

size_t vhca_osm_smps_ports(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair, bool send)
{
	size_t n = 0;

	for (int i = 0; i < 2; i++) {
		const osm_port_t *port = osm_get_port_by_guid(&osm->subn, cl_hton64(pair->guid[i]));

		if (!port || !port->p_physp || cl_ntoh16(port->lid) != lid_after(pair, i) ||
		    port->p_physp->port_info.base_lid == port->lid)
			continue;
		n++;
		if (send)
			(void)send_lid(osm, port);
	}
	return n;
}
