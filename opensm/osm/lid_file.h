/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_LID_FILE_H
#define VHCA_OPENSM_OSM_LID_FILE_H
/*
 * OpenSM's file of LIDs (`guid2lid`), written so that a full disk cannot empty it: OpenSM renames
 * what it could not write over it. Each file that was written here, or found to be right, has a
 * second name, `guid2lid.vhcasm`, which OpenSM does not touch. By the plugin's thread only, which
 * does not hold OpenSM's lock: it is taken here. Blocking.
 */
#include <sys/stat.h>

#include "opensm/lids/lid_ops.h"

struct osm_opensm;
struct vhca_osm_gate;

struct vhca_osm_lid_file {
	struct stat seen; /* of the last file that was right */
};

/*
 * Before the first of these: removes what a killed process was writing. What is younger than ten
 * minutes may be another master's that writes it now: a pair may have one directory.
 */
void vhca_osm_lid_file_begin(void);
/* 0 or a negative errno: the file is as it was. */
int vhca_osm_lid_file_save(struct osm_opensm *osm);
/*
 * After a sweep, in which OpenSM may have written it: if it is not what OpenSM has in memory it is
 * written again, or, where that is impossible and the second name has more of it, becomes that. Not
 * while a sweep goes on, which is followed by a look of its own, and may have written it by then.
 */
void vhca_osm_lid_file_check(struct vhca_osm_lid_file *f, struct osm_opensm *osm,
			     struct vhca_osm_gate *gate);
/*
 * remember() of lid_ops.h, with dynamic LIDs in a file of our own; ctx: struct vhca_osm_lids. What
 * is taken out of guid2lid is free when that is on disk: until then a sweep that has not waited for
 * it gives it to no port.
 */
int vhca_osm_lid_file_remember(void *ctx, const struct vhca_osm_lid_pair *pairs, size_t n,
			       bool undo);

#endif
