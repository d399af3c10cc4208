/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/opensm_vports.h"

#include <stddef.h>
#include <string.h>

#include "opensm/opensm_guid_tables.h"
#include "opensm/opensm_key_tables.h"

#include <opensm/osm_config.h> /* before its siblings: the layout of their structures depends on it */

#include <opensm/osm_db_pack.h>
#include <opensm/osm_mcm_port.h>
#include <opensm/osm_multicast.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>
#include <opensm/osm_sm.h>

#define TABLES_UNKNOWN 2 /* osm_physp_t.need_update, as of a port that OpenSM has just found */

/* The switch's port that an HCA's is plugged into; NULL if it is at no switch. */
static const osm_physp_t *plugged_into(const struct osm_subn *subn, uint64_t port_guid)
{
	const osm_port_t *port = osm_get_port_by_guid(subn, cl_hton64(port_guid));
	const osm_physp_t *there = port && port->p_physp ? port->p_physp->p_remote_physp : NULL;

	return there && there->p_node->sw ? there : NULL;
}

bool vhca_osm_vport_is_of(const struct osm_subn *subn, uint64_t port_guid, uint64_t hca_port_guid)
{
	const osm_physp_t *at = plugged_into(subn, port_guid),
			  *hca = plugged_into(subn, hca_port_guid);

	return at && hca && at->p_node == hca->p_node && at->port_num > hca->port_num;
}

struct osm_port *vhca_osm_vport_at(const struct osm_subn *subn, uint64_t hca_port_guid,
				   uint16_t vport)
{
	const osm_physp_t *there = plugged_into(subn, hca_port_guid);
	const osm_physp_t *at;

	if (!there ||
	    (unsigned int)there->port_num + vport >= osm_node_get_num_physp(there->p_node))
		return NULL;
	at = osm_node_get_physp_ptr(there->p_node, (uint8_t)(there->port_num + vport));
	if (!at || !at->p_remote_physp)
		return NULL;
	return osm_get_port_by_guid(subn, osm_physp_get_port_guid(at->p_remote_physp));
}

/* OpenSM's file of who is next to whom. */
static void note_neighbours(osm_opensm_t *osm, const osm_physp_t *a, const osm_physp_t *b)
{
	uint64_t guid[2] = {cl_ntoh64(osm_physp_get_port_guid(a)),
			    cl_ntoh64(osm_physp_get_port_guid(b))};

	(void)osm_db_neighbor_set(osm->subn.p_neighbor, guid[0], a->port_num, guid[1], b->port_num);
	(void)osm_db_neighbor_set(osm->subn.p_neighbor, guid[1], b->port_num, guid[0], a->port_num);
}

static void plug_in(osm_opensm_t *osm, osm_physp_t *physp, osm_physp_t *there)
{
	osm_physp_link(physp, there);
	physp->need_update =
		TABLES_UNKNOWN; /* of a switch's port it would also mean a new routing */
	note_neighbours(osm, physp, there);
	osm_physp_set_base_lid(physp, 0); /* until the port says so itself */
}

/* cl_item_obj() without its typeof. */
static const osm_mcm_port_t *member_of(const cl_list_item_t *item)
{
	return (const void *)((const char *)item - offsetof(osm_mcm_port_t, list_item));
}

/* The switches send to where the members were. */
static void reroute_groups(osm_opensm_t *osm, const osm_port_t *port)
{
	const cl_list_item_t *item = cl_qlist_head(&port->mcm_list);

	for (; item != cl_qlist_end(&port->mcm_list); item = cl_qlist_next(item))
		osm_sm_reroute_mlid(&osm->sm, member_of(item)->mgrp->mlid);
}

void vhca_osm_vports_exchange(struct osm_opensm *osm, struct osm_port *const port[2])
{
	osm_physp_t *a = port[0]->p_physp, *b = port[1]->p_physp;
	osm_physp_t *at_a = a->p_remote_physp, *at_b = b->p_remote_physp;
	ib_port_info_t info = a->port_info;
	ib_mlnx_ext_port_info_t ext_info = a->ext_port_info;
	osm_dr_path_t path = a->dr_path;

	a->port_info = b->port_info;
	b->port_info = info;
	a->ext_port_info = b->ext_port_info;
	b->ext_port_info = ext_info;
	a->dr_path = b->dr_path;
	b->dr_path = path;
	vhca_osm_key_tables_exchange(&osm->subn, a, b);
	plug_in(osm, a, at_b);
	plug_in(osm, b, at_a);
	for (int i = 0; i < 2; i++) {
		vhca_osm_guid_table_fit(port[i]->p_physp);
		reroute_groups(osm, port[i]);
	}
}
