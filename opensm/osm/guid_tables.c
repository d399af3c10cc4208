/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/guid_tables.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "opensm/osm/fabric.h"
#include "opensm/osm/lock.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_qmap.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>

static size_t whole_blocks(size_t guids)
{
	return guids / VHCA_OSM_GUIDS_IN_BLOCK * VHCA_OSM_GUIDS_IN_BLOCK;
}

static size_t entries_wanted(const osm_physp_t *physp)
{
	return whole_blocks(physp->port_info.guid_cap + VHCA_OSM_GUIDS_IN_BLOCK - 1U);
}

void vhca_osm_guid_table_fit(struct osm_physp *physp)
{
	/* OpenSM writes down nowhere how large it is; 0 of none. */
	size_t has = whole_blocks(malloc_usable_size(physp->p_guids) / sizeof(ib_net64_t));
	size_t wanted = entries_wanted(physp);
	ib_net64_t(*larger)[];

	if (!physp->p_guids || wanted <= has)
		return;
	larger = calloc(wanted, sizeof(ib_net64_t));
	if (!larger) {
		physp->port_info.guid_cap = (uint8_t)has;
		vhca_log_error("out of memory: port %s holds no more than %zu GUIDs",
			       VHCA_GUID_STR(cl_ntoh64(physp->port_guid)), has);
		return;
	}
	memcpy(larger, physp->p_guids, has * sizeof(ib_net64_t));
	free(physp->p_guids);
	physp->p_guids = larger;
}

void vhca_osm_open_guid_tables(struct osm_opensm *osm)
{
	vhca_osm_lock_exclusive(osm);
	VHCA_OSM_FOREACH_PORT (port, &osm->subn) {
		osm_physp_t *physp = port->p_physp;

		if (physp && physp->p_guids) {
			vhca_osm_guid_table_fit(physp);
		} else if (physp && physp->port_info.guid_cap >= 2) {
			/* As OpenSM's own SubnAdmSet(GUIDInfoRecord) makes it; freed with physp. */
			physp->p_guids = calloc(entries_wanted(physp), sizeof(ib_net64_t));
			if (physp->p_guids)
				(*physp->p_guids)[0] = physp->port_guid;
		}
	}
	vhca_osm_unlock(osm);
}
