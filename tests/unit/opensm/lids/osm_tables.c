/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/opensm/lids/osm_tables.h"

#include <string.h>

#include <complib/cl_ptr_vector.h>
#include <complib/cl_qmap.h>
#include <opensm/osm_db_pack.h>
#include <opensm/osm_sm.h>

#include "opensm/osm/fabric.h"
#include "opensm/osm/lock.h"
#include "opensm/osm/vports.h"
#include "tests/unit/unit.h"

struct tables tables;

uint64_t tables_switch_guid(size_t i)
{
	return 0x5000 + i;
}

static void make_switch(size_t i)
{
	osm_switch_t *sw = &tables.switches[i].sw;
	osm_node_t *node = &tables.switches[i].node;
	ib_net64_t guid = cl_hton64(tables_switch_guid(i));

	node->physp_tbl_size = 1;
	node->physp_table[0].port_guid = node->node_info.node_guid = guid;
	sw->p_node = node;
	sw->lft = tables.switches[i].lft;
	sw->new_lft = tables.switches[i].new_lft;
	sw->lft_size = TABLES_LFT;
	sw->max_lid_ho = TABLES_LFT - 1;
	(void)cl_qmap_insert(&tables.osm.subn.sw_guid_tbl, guid, &sw->map_item);
}

int tables_setup(void **state)
{
	(void)state;
	(void)memset(&tables, 0, sizeof(tables));
	cl_qmap_init(&tables.osm.subn.port_guid_tbl);
	cl_qmap_init(&tables.osm.subn.sw_guid_tbl);
	tables.osm.subn.max_ucast_lid_ho = 0xbfff;
	for (size_t i = 0; i < TABLES_SWITCHES; i++)
		make_switch(i);
	return 0;
}

osm_port_t *tables_add_port(uint64_t guid, uint16_t lid)
{
	size_t i = tables.n_ports++;
	osm_port_t *port = &tables.ports[i].port;
	osm_physp_t *physp = &tables.ports[i].physp;

	assert_true(i < TABLES_PORTS);
	tables.ports[i].node.node_info.node_type = IB_NODE_TYPE_CA;
	port->guid = physp->port_guid = cl_hton64(guid);
	port->lid = physp->port_info.base_lid = cl_hton16(lid);
	port->p_node = physp->p_node = &tables.ports[i].node;
	physp->port_info.local_port_num = 1;
	port->p_physp = physp;
	(void)cl_qmap_insert(&tables.osm.subn.port_guid_tbl, port->guid, &port->map_item);
	tables.osm.sm.lid_mgr.used_lids[lid] = 1;
	return port;
}

void tables_add_line(uint64_t guid, uint16_t lid)
{
	assert_int_equal(osm_db_guid2lid_set(NULL, guid, lid, lid), 0);
	tables.osm.sm.lid_mgr.used_lids[lid] = 1;
}

uint16_t tables_line(uint64_t guid)
{
	uint16_t lid = 0;

	(void)osm_db_guid2lid_get(NULL, guid, &lid, &lid);
	return lid;
}

/* ---- what OpenSM's process has ---- */

/* guid 0: a row that is free. */
static size_t row_of(uint64_t guid)
{
	size_t i = 0;

	while (i < TABLES_LINES && tables.lines[i].guid != guid)
		i++;
	return i;
}

int osm_db_guid2lid_get(osm_db_domain_t *lines, uint64_t guid, uint16_t *ret_low,
			uint16_t *ret_high)
{
	size_t i = row_of(guid);

	(void)lines;
	if (i == TABLES_LINES)
		return 1;
	*ret_low = *ret_high = tables.lines[i].lid;
	return 0;
}

int osm_db_guid2lid_set(osm_db_domain_t *lines, uint64_t guid, uint16_t low, uint16_t high)
{
	size_t i = row_of(guid);

	(void)lines;
	assert_int_equal(low, high);
	i = i < TABLES_LINES ? i : row_of(0);
	assert_true(i < TABLES_LINES);
	tables.lines[i].guid = guid;
	tables.lines[i].lid = low;
	return 0;
}

int osm_db_guid2lid_delete(osm_db_domain_t *lines, uint64_t guid)
{
	size_t i = row_of(guid);

	(void)lines;
	if (i == TABLES_LINES)
		return 1;
	tables.lines[i].guid = 0;
	return 0;
}

int osm_db_guid2lid_guids(osm_db_domain_t *lines, cl_qlist_t *ret)
{
	(void)lines;
	(void)ret;
	return 1;
}

osm_port_t *osm_get_port_by_guid(const osm_subn_t *subn, ib_net64_t guid)
{
	cl_map_item_t *found = cl_qmap_get(&subn->port_guid_tbl, guid);

	return found == cl_qmap_end(&subn->port_guid_tbl) ? NULL : (osm_port_t *)found;
}

osm_port_t *osm_get_port_by_lid_ho(const osm_subn_t *subn, uint16_t lid)
{
	VHCA_OSM_FOREACH_PORT (port, subn)
		if (cl_ntoh16(port->lid) == lid)
			return port;
	return NULL;
}

osm_switch_t *osm_get_switch_by_guid(const osm_subn_t *subn, ib_net64_t guid)
{
	VHCA_OSM_FOREACH_SWITCH (sw, subn)
		if (osm_node_get_node_guid(sw->p_node) == guid)
			return sw;
	return NULL;
}

int osm_switch_prepare_path_rebuild(osm_switch_t *sw, uint16_t max_lids)
{
	(void)sw;
	(void)max_lids;
	return 0;
}

ib_api_status_t osm_req_set(osm_sm_t *sm, const osm_dr_path_t *path, const uint8_t *payload,
			    size_t size, ib_net16_t attribute, ib_net32_t modifier,
			    boolean_t find_mkey, ib_net64_t m_key, uint32_t timeout,
			    cl_disp_msgid_t err_msg, const osm_madw_context_t *context)
{
	(void)sm;
	(void)path;
	(void)payload;
	(void)size;
	(void)modifier;
	(void)find_mkey;
	(void)m_key;
	(void)timeout;
	(void)err_msg;
	(void)context;
	if (attribute == IB_MAD_ATTR_PORT_INFO)
		tables.port_smps++;
	else
		tables.lft_smps++;
	return IB_SUCCESS;
}

/* ---- and what is next to it ---- */

void vhca_osm_lock_exclusive(struct osm_opensm *osm)
{
	(void)osm;
}

void vhca_osm_lock_shared(struct osm_opensm *osm)
{
	(void)osm;
}

void vhca_osm_unlock(struct osm_opensm *osm)
{
	void (*fn)(void) = tables.unlocked;

	(void)osm;
	tables.unlocked = NULL;
	if (fn)
		fn();
}

osm_physp_t *vhca_osm_switch_port(const osm_port_t *port)
{
	return port ? port->p_physp : NULL;
}

unsigned int vhca_osm_switch_leaves(const osm_node_t *node)
{
	(void)node;
	return 1;
}

bool vhca_osm_snapshot_place(const struct vhca_osm_snapshot *s, const osm_port_t *port,
			     struct vhca_osm_place *ret)
{
	(void)s;
	(void)port;
	(void)ret;
	return false;
}
