/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/past_master.h"

#include "common/base/log.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/lock.h"

#include <stdbool.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_qmap.h>
#include <opensm/osm_db_pack.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>

static uint16_t own_lid(const osm_opensm_t *osm)
{
	const osm_port_t *port = osm_get_port_by_guid(&osm->subn, osm->subn.sm_port_guid);
	uint16_t lid = port ? cl_ntoh16(osm_port_get_base_lid(port)) : 0, in_file, max;

	/* A host that has been without power shows none at its port, and had this one. */
	if (!lid && osm_db_guid2lid_get(osm->sm.lid_mgr.p_g2l, cl_ntoh64(osm->subn.sm_port_guid),
					&in_file, &max) == 0)
		lid = in_file;
	return lid;
}

/*
 * Most ports, not any: one that was cut off meanwhile, or comes from another subnet, names somebody
 * else.
 */
static bool had_other_master(const osm_opensm_t *osm)
{
	uint16_t own = own_lid(osm);
	size_t us = 0, others = 0;

	VHCA_OSM_FOREACH_PORT (port, &osm->subn) {
		uint16_t master;

		if (!port->p_physp || port->guid == osm->subn.sm_port_guid)
			continue;
		master = cl_ntoh16(port->p_physp->port_info.master_sm_base_lid);
		if (master == 0)
			continue;
		if (master == own)
			us++;
		else
			others++;
	}
	return others > us;
}

bool vhca_osm_past_master_heed(struct osm_opensm *osm, bool lids_move)
{
	osm_subn_t *subn = &osm->subn;
	bool another;

	if (subn->sm_state != IB_SMINFO_STATE_DISCOVERING || subn->coming_out_of_standby)
		return false;
	vhca_osm_lock_exclusive(osm);
	another = had_other_master(osm);
	if (another && lids_move)
		subn->coming_out_of_standby = TRUE;
	vhca_osm_unlock(osm);
	if (another)
		vhca_log_notice(
			"another OpenSM was master since this one was: LIDs are taken from %s",
			!lids_move || subn->opt.honor_guid2lid_file ? "guid2lid" : "the ports");
	return another;
}
