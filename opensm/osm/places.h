/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_PLACES_H
#define VHCA_OPENSM_OSM_PLACES_H
/* Who has a LID, and where: read from OpenSM's tables. */
#include "opensm/lids/lid_ops.h"

struct osm_opensm;
struct osm_port;
struct osm_subn;

/*
 * A sweep empties OpenSM's table by LID and fills it again step by step; the ports know theirs all
 * the time. NULL if nobody has it. The caller holds OpenSM's lock.
 */
struct osm_port *vhca_osm_port_by_lid(const struct osm_subn *subn, uint16_t lid);

/*
 * OpenSM takes a port that has gone out of that table by the LID that it has shown last. One that
 * has not acknowledged a new LID would stay there, freed, until the sweep fills the table again. So
 * such entries go before ports can: to be called when a sweep begins, and when it has discovered.
 * Takes OpenSM's lock.
 */
void vhca_osm_places_unlist(struct osm_opensm *osm);

/* Three of the operations of lid_ops.h; ctx is a struct vhca_osm_lids. */
bool vhca_osm_place_find(void *ctx, uint16_t lid, struct vhca_osm_lid_place *ret);
void vhca_osm_place_list(void *ctx, struct vhca_osm_lid_set *ret);
void vhca_osm_place_info(void *ctx, struct vhca_osm_fabric_info *ret);

#endif
