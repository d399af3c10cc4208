/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_SWITCH_SET_H
#define VHCA_OPENSM_LIDS_SWITCH_SET_H
/*
 * The switches that a move changes. By GUID and not by index, because a move waits longer than
 * OpenSM's tables keep still.
 *
 * Switches and not table blocks: what is sent is a block of 64 LIDs, so two moves meet in a block
 * even where they change different entries of it; and in two blocks of one switch they would share
 * nothing worth having.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vhca_osm_switch_set {
	size_t n;
	uint64_t *guids; /* ascending */
};

/* Room for n switches; the set is empty. 0 or -ENOMEM. */
int vhca_osm_switch_set_init(struct vhca_osm_switch_set *set, size_t n);
/* Also of one that is all zero. It is all zero after it. */
void vhca_osm_switch_set_done(struct vhca_osm_switch_set *set);

/*
 * One more that is not in it; not more than there is room for. Before any other use they have to be
 * sorted.
 */
void vhca_osm_switch_set_add(struct vhca_osm_switch_set *set, uint64_t guid);
void vhca_osm_switch_set_sort(struct vhca_osm_switch_set *set);

/* Sorted ones only. */
bool vhca_osm_switch_set_has(const struct vhca_osm_switch_set *set, uint64_t guid);
/* Is a switch in both? */
bool vhca_osm_switch_set_meets(const struct vhca_osm_switch_set *a,
			       const struct vhca_osm_switch_set *b);

#endif
