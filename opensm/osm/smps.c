/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/smps.h"

#include "opensm/osm/fabric.h"

#include <string.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_qmap.h>
#include <opensm/osm_msgdef.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_sm.h>
#include <opensm/osm_switch.h>

_Static_assert(VHCA_OSM_LFT_BLOCK == IB_SMP_DATA_SIZE, "one LID a byte");

/* Which entries a switch is to have. */
enum content {
	WANTED,	 /* as in OpenSM's own tables */
	DRAINED, /* the same, but the LIDs of the pair are dropped */
};

/* False beyond the switch's table. */
static bool block_of(const osm_switch_t *sw, unsigned int block,
		     const struct vhca_osm_lid_pair *pair, enum content content,
		     uint8_t ret[static IB_SMP_DATA_SIZE])
{
	size_t at = (size_t)block * IB_SMP_DATA_SIZE;

	if (!sw->new_lft || at + IB_SMP_DATA_SIZE > sw->lft_size)
		return false;
	(void)memcpy(ret, sw->new_lft + at, IB_SMP_DATA_SIZE);
	for (int i = 0; i < 2 && content == DRAINED; i++)
		if (pair->lid[i] / VHCA_OSM_LFT_BLOCK == block)
			ret[pair->lid[i] % VHCA_OSM_LFT_BLOCK] = VHCA_OSM_NO_PATH;
	return true;
}

static void send_block(osm_opensm_t *osm, osm_switch_t *sw, unsigned int block,
		       const uint8_t payload[static IB_SMP_DATA_SIZE])
{
	osm_physp_t *physp = osm_node_get_physp_ptr(sw->p_node, 0);
	osm_madw_context_t context = {0};

	if (!physp)
		return;
	context.lft_context.node_guid = osm_node_get_node_guid(sw->p_node);
	context.lft_context.set_method = TRUE;
	/*
	 * As OpenSM itself: the answer brings the content back; without one the next sweep sees
	 * that it differs.
	 */
	(void)memset(sw->lft + (size_t)block * IB_SMP_DATA_SIZE, 0, IB_SMP_DATA_SIZE);
	(void)osm_req_set(&osm->sm, osm_physp_get_dr_path_ptr(physp), payload, IB_SMP_DATA_SIZE,
			  IB_MAD_ATTR_LIN_FWD_TBL, cl_hton32(block), FALSE,
			  ib_port_info_get_m_key(&physp->port_info), 0, CL_DISP_MSGID_NONE,
			  &context);
}

void vhca_osm_smps_expect(struct osm_port *port)
{
	ib_port_info_t *info = &port->p_physp->port_info;

	info->base_lid = port->lid;
	info->local_port_num = 0;
}

/* The client of a moved LID has to register anew with the SA: multicast groups, notices. */
static bool reregister(const osm_opensm_t *osm, const osm_physp_t *physp)
{
	return !osm->subn.opt.no_clients_rereg &&
	       (physp->port_info.capability_mask & IB_PORT_CAP_HAS_CLIENT_REREG);
}

static void send_lid(osm_opensm_t *osm, const osm_port_t *port)
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
	(void)osm_req_set(&osm->sm, osm_physp_get_dr_path_ptr(physp), payload, sizeof(payload),
			  IB_MAD_ATTR_PORT_INFO, cl_hton32(osm_physp_get_port_num(physp)), FALSE,
			  ib_port_info_get_m_key(&physp->port_info), 0, CL_DISP_MSGID_NONE,
			  &context);
}

/* Blocks of the pair's LIDs that a switch does not have as it should. */
static size_t switch_difference(osm_opensm_t *osm, const struct vhca_osm_lid_pair *pair,
				osm_switch_t *sw, enum content content, bool send)
{
	unsigned int block[2] = {pair->lid[0] / VHCA_OSM_LFT_BLOCK,
				 pair->lid[1] / VHCA_OSM_LFT_BLOCK};
	int blocks = block[0] == block[1] ? 1 : 2;
	size_t n = 0;

	for (int b = 0; b < blocks; b++) {
		const uint8_t *has = sw->lft + (size_t)block[b] * IB_SMP_DATA_SIZE;
		uint8_t shall[IB_SMP_DATA_SIZE];

		if (!block_of(sw, block[b], pair, content, shall) ||
		    memcmp(has, shall, sizeof(shall)) == 0)
			continue;
		n++;
		if (send)
			send_block(osm, sw, block[b], shall);
	}
	return n;
}

/* One that has gone has nothing to acknowledge. */
static size_t set_difference(osm_opensm_t *osm, const struct vhca_osm_lid_pair *pair,
			     const struct vhca_osm_switch_set *at, enum content content, bool send)
{
	size_t n = 0;

	for (size_t s = 0; s < at->n; s++) {
		osm_switch_t *sw = osm_get_switch_by_guid(&osm->subn, cl_hton64(at->guids[s]));

		if (sw)
			n += switch_difference(osm, pair, sw, content, send);
	}
	return n;
}

size_t vhca_osm_smps_blocks(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			    const struct vhca_osm_switch_set *at, bool send)
{
	size_t n = 0;

	if (at)
		return set_difference(osm, pair, at, WANTED, send);
	VHCA_OSM_FOREACH_SWITCH (sw, &osm->subn)
		n += switch_difference(osm, pair, sw, WANTED, send);
	return n;
}

size_t vhca_osm_smps_undrained(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			       const struct vhca_osm_switch_set *at, bool send)
{
	return set_difference(osm, pair, at, DRAINED, send);
}

static size_t port_difference(osm_opensm_t *osm, const struct vhca_osm_lid_pair *pair, int i,
			      bool send)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, cl_hton64(pair->guid[i]));
	uint16_t lid_after = pair->lid[pair->vports || pair->dynamic ? i : 1 - i];

	if (!port || !port->p_physp || cl_ntoh16(port->lid) != lid_after ||
	    (port->p_physp->port_info.base_lid == port->lid &&
	     port->p_physp->port_info.local_port_num != 0))
		return 0;
	if (send)
		send_lid(osm, port);
	return 1;
}

size_t vhca_osm_smps_ports(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair, bool send)
{
	return port_difference(osm, pair, 0, send) + port_difference(osm, pair, 1, send);
}

/* ---- dynamic LIDs that go together ---- */

static unsigned int block_number(const struct vhca_osm_lid_part *part)
{
	return part->pair->lid[0] / VHCA_OSM_LFT_BLOCK;
}

/* The first one with its block, at the same switches: of both the same is missing. */
static size_t first_like(const struct vhca_osm_lid_part *parts, size_t i)
{
	const struct vhca_osm_switch_set *at = &parts[i].plan->switches;

	for (size_t j = 0; j < i; j++) {
		const struct vhca_osm_switch_set *other = &parts[j].plan->switches;

		if (!parts[j].refused && block_number(&parts[j]) == block_number(&parts[i]) &&
		    other->n == at->n &&
		    (at->n == 0 ||
		     memcmp(other->guids, at->guids, at->n * sizeof(*at->guids)) == 0))
			return j;
	}
	return i;
}

/* Has an earlier one the same block there? If it sends: one that does that, too. */
static bool counted(const struct vhca_osm_lid_part *parts, size_t i, uint64_t guid, bool sends)
{
	for (size_t j = 0; j < i; j++)
		if (!parts[j].refused && (!sends || parts[j].resend) &&
		    block_number(&parts[j]) == block_number(&parts[i]) &&
		    vhca_osm_switch_set_has(&parts[j].plan->switches, guid))
			return true;
	return false;
}

/* Of one that is the first of its like; returns those that no earlier one has. */
static size_t part_difference(osm_opensm_t *osm, struct vhca_osm_lid_part *parts, size_t i)
{
	const struct vhca_osm_switch_set *at = &parts[i].plan->switches;
	const uint16_t lid = parts[i].pair->lid[0];
	const struct vhca_osm_lid_pair own = {.lid = {lid, lid}};
	size_t n = 0;

	parts[i].blocks = 0;
	for (size_t s = 0; s < at->n; s++) {
		osm_switch_t *sw = osm_get_switch_by_guid(&osm->subn, cl_hton64(at->guids[s]));

		if (!sw || switch_difference(osm, &own, sw, WANTED, false) == 0)
			continue;
		parts[i].blocks++;
		n += !counted(parts, i, at->guids[s], false);
		if (parts[i].resend && !counted(parts, i, at->guids[s], true))
			(void)switch_difference(osm, &own, sw, WANTED, true);
	}
	return n;
}

/* Many have the same PF: the first of those that send sends it. */
static void look_at_ports(osm_opensm_t *osm, struct vhca_osm_lid_part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct vhca_osm_lid_pair *pair = parts[i].pair;
		bool send_pf = parts[i].resend;

		if (parts[i].refused)
			continue;
		for (size_t j = 0; j < i && send_pf; j++)
			send_pf = parts[j].refused || !parts[j].resend ||
				  parts[j].pair->guid[1] != pair->guid[1];
		parts[i].ports = port_difference(osm, pair, 0, parts[i].resend) +
				 port_difference(osm, pair, 1, send_pf);
	}
}

size_t vhca_osm_smps_together(struct osm_opensm *osm, struct vhca_osm_lid_part *parts, size_t n,
			      bool all)
{
	size_t blocks = 0;

	for (size_t i = 0; i < n; i++)
		parts[i].resend |= all;
	look_at_ports(osm, parts, n);
	/* Of those with the same block only the first sends it: also if another one is late. */
	for (size_t i = 0; i < n; i++)
		if (!parts[i].refused && parts[i].resend)
			parts[first_like(parts, i)].resend = true;
	for (size_t i = 0; i < n; i++) {
		size_t first = first_like(parts, i);

		if (parts[i].refused)
			continue;
		if (first == i)
			blocks += part_difference(osm, parts, i);
		else
			parts[i].blocks = parts[first].blocks;
	}
	return blocks;
}
