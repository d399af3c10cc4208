/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_CHANNELS_H
#define VHCA_OPENSM_LIDS_CHANNELS_H
/*
 * Credit loops. A channel is a cable in one direction. A packet that holds the buffer behind one
 * waits for room behind the next one of its way: that channel depends on this one. Where such
 * dependencies close a loop, all buffers of it can be full for ever. They close none if and only if
 * the channels can be numbered so that every way climbs (Dally and Seitz, 1987).
 *
 * So the numbers are taken from the ways that a routing engine has made, whatever its own rules and
 * ranks are, and what a move mixes of two LIDs' ways is used where it climbs, too: then no loop is
 * there that was not there before. An exchange of all entries of two LIDs needs no numbers: the
 * same ways lead to the same places.
 *
 * Looked at are ways from switches with end ports; what a switch sends itself are management
 * packets, which have buffers of their own or are few.
 */
#include "opensm/lids/fabric.h"

/* All zero: not numbered yet. */
struct vhca_osm_channels {
	bool known;	  /* whether there are numbers */
	uint32_t *number; /* as vhca_osm_fabric.links; NULL where ways do close a loop */
};

/* Numbers them by all LIDs' ways in the switches' tables, if they are not yet. 0 or -ENOMEM. */
int vhca_osm_channels_number(struct vhca_osm_channels *c, const struct vhca_osm_fabric *f);
/* They are to be numbered anew. */
void vhca_osm_channels_done(struct vhca_osm_channels *c);
/*
 * Do these exit ports (one a switch) lead along rising numbers only? Numbers the channels first if
 * they are not yet, which takes longer than all else of a plan. 1; 0, also where there are no
 * numbers; -ENOMEM.
 */
int vhca_osm_channels_climb(struct vhca_osm_channels *c, const struct vhca_osm_fabric *f,
			    const uint8_t *ports);

#endif
