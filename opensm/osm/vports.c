/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/vports.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "opensm/osm/fabric.h"
#include "opensm/osm/guid_tables.h"
#include "opensm/osm/key_tables.h"
#include "opensm/osm/smps.h"

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

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
	return vhca_osm_switch_port(osm_get_port_by_guid(subn, cl_hton64(port_guid)));
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

static const osm_physp_t *cabled_to(const osm_node_t *node, uint8_t port)
{
	const osm_physp_t *here = osm_node_get_physp_ptr((osm_node_t *)node, port);

	return here ? here->p_remote_physp : NULL;
}

unsigned int vhca_osm_switch_leaves(const struct osm_node *node)
{
	const osm_node_t *leaf = NULL;

	for (uint8_t p = 1; p < node->sw->num_ports; p++) {
		const osm_physp_t *at = cabled_to(node, p);
		const osm_node_t *there = at ? at->p_node : NULL;

		if (!there || !there->sw || there == leaf)
			continue;
		if (leaf)
			return 2;
		leaf = there;
	}
	return leaf != NULL;
}

/* The port of the first HCA at the switch, if that is before this one; else NULL. */
static const osm_physp_t *hca_before(const osm_physp_t *at)
{
	for (uint8_t p = 1; p < at->port_num; p++) {
		const osm_physp_t *there = cabled_to(at->p_node, p);

		if (there && osm_node_get_type(there->p_node) == IB_NODE_TYPE_CA)
			return there;
	}
	return NULL;
}

static bool shows_physical(const osm_port_t *port)
{
	const osm_physp_t *there = vhca_osm_switch_port(port);

	if (osm_node_get_type(port->p_node) != IB_NODE_TYPE_CA)
		return true;
	return there && (vhca_osm_switch_leaves(there->p_node) != 1 || !hca_before(there));
}

uint64_t vhca_osm_vport_pf(const struct osm_port *port)
{
	const osm_physp_t *at = vhca_osm_switch_port(port);
	const osm_physp_t *pf = at && !shows_physical(port) ? hca_before(at) : NULL;

	return pf ? cl_ntoh64(osm_physp_get_port_guid(pf)) : 0;
}

void vhca_osm_physical_note(const struct osm_subn *subn, struct vhca_osm_physical *p)
{
	uint64_t *list = calloc(cl_qmap_count(&subn->port_guid_tbl) + 1, sizeof(*list));
	size_t n = 0;

	if (!list) /* what was seen before goes on to hold */
		return;
	VHCA_OSM_FOREACH_PORT (port, subn)
		if (shows_physical(port))
			list[n++] = port->guid;
	free(p->guids);
	p->guids = list;
	p->n = n;
}

static int by_guid(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

bool vhca_osm_physical_has(const struct osm_subn *subn, const struct vhca_osm_physical *p,
			   uint64_t port_guid)
{
	uint64_t key = cl_hton64(port_guid);
	const osm_port_t *port;

	if (p->guids && bsearch(&key, p->guids, p->n, sizeof(key), by_guid))
		return true;
	port = osm_get_port_by_guid(subn, key); /* a sweep that goes on may have found it since */
	return port && shows_physical(port);
}

void vhca_osm_physical_done(struct vhca_osm_physical *p)
{
	free(p->guids);
	*p = (struct vhca_osm_physical){.n = 0};
}

static void plug_in(osm_opensm_t *osm, osm_physp_t *physp, osm_physp_t *there)
{
	uint64_t here_guid = cl_ntoh64(osm_physp_get_port_guid(physp));
	uint64_t there_guid = cl_ntoh64(osm_physp_get_port_guid(there));
	osm_db_domain_t *neighbours = osm->subn.p_neighbor; /* OpenSM's file of them */

	osm_physp_link(physp, there);
	physp->need_update =
		TABLES_UNKNOWN; /* of a switch's port it would also mean a new routing */
	(void)osm_db_neighbor_set(neighbours, here_guid, physp->port_num, there_guid,
				  there->port_num);
	(void)osm_db_neighbor_set(neighbours, there_guid, there->port_num, here_guid,
				  physp->port_num);
}

const osm_mcm_port_t *vhca_osm_member_of(const cl_list_item_t *item)
{
	return (const void *)((const char *)item - offsetof(osm_mcm_port_t, list_item));
}

/* A bit for each multicast LID. */
struct mlids {
	uint64_t bits[(IB_LID_MCAST_END_HO - IB_LID_MCAST_START_HO) / 64 + 1];
};

static uint64_t *mlid_word(struct mlids *m, const cl_list_item_t *member, uint64_t *ret_bit)
{
	unsigned int i = cl_ntoh16(vhca_osm_member_of(member)->mgrp->mlid) - IB_LID_MCAST_START_HO;

	*ret_bit = UINT64_C(1) << i % 64;
	return &m->bits[i / 64];
}

typedef void (*group_fn)(osm_opensm_t *osm, ib_net16_t mlid);

/*
 * Calls fn of each group whose switches send to where the port was: that is right where the other
 * one is a member, too.
 */
static size_t each_changed_group(const osm_port_t *port, const osm_port_t *other, group_fn fn,
				 osm_opensm_t *osm)
{
	struct mlids stay = {.bits = {0}};
	size_t n = 0;
	uint64_t bit;

	for (const cl_list_item_t *i = cl_qlist_head(&other->mcm_list);
	     i != cl_qlist_end(&other->mcm_list); i = cl_qlist_next(i))
		*mlid_word(&stay, i, &bit) |= bit;
	for (const cl_list_item_t *i = cl_qlist_head(&port->mcm_list);
	     i != cl_qlist_end(&port->mcm_list); i = cl_qlist_next(i)) {
		if (*mlid_word(&stay, i, &bit) & bit)
			continue;
		if (fn)
			fn(osm, vhca_osm_member_of(i)->mgrp->mlid);
		n++;
	}
	return n;
}

size_t vhca_osm_vports_groups(struct osm_port *const port[2])
{
	return each_changed_group(port[0], port[1], NULL, NULL) +
	       each_changed_group(port[1], port[0], NULL, NULL);
}

static void reroute(osm_opensm_t *osm, ib_net16_t mlid)
{
	osm_sm_reroute_mlid(&osm->sm, mlid);
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
		vhca_osm_smps_expect(port[i]);
		vhca_osm_guid_table_fit(port[i]->p_physp);
		(void)each_changed_group(port[i], port[1 - i], reroute, osm);
	}
}
