/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_PAST_MASTER_H
#define VHCA_OPENSM_OSM_PAST_MASTER_H
/*
 * Who was master last, by what the ports show (PortInfo, MasterSMLID): an OpenSM that starts alone
 * may have been away since it was.
 */

#include <stdbool.h>

struct osm_opensm;

/*
 * To be called at the end of discovery, by the sweeper. True if this OpenSM is about to become
 * master, and another one was since. Where LIDs move, it is made to come out of standby then: so it
 * does not take the LIDs from a file that is older than the other one's moves. Takes OpenSM's lock.
 */
bool vhca_osm_past_master_heed(struct osm_opensm *osm, bool lids_move);

#endif
