/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_DYNAMIC_H
#define VHCA_OPENSM_LIDS_DYNAMIC_H
/*
 * Which vGUID has which dynamic LID, and at which PF: the way to the LID is the way to the PF. In
 * memory, and as a text, sorted by vGUID:
 *
 *    vhcasm-dynamic-lids 1
 *    d VGUID LID PF_PORT_GUID
 *    end RECORDS
 *
 * The last line proves that nothing is missing. A file with anything else in it is refused as a
 * whole.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct vhca_osm_dynamic_lid {
	uint64_t vguid, pf_guid;
	uint16_t lid;
};

struct vhca_osm_dynamic_lids {
	struct vhca_osm_dynamic_lid *rows; /* by vGUID */
	size_t n, room;
	size_t max; /* no more are given; those that are there stay */
	/* Freed, while a port had them: theirs until that goes. Not in the file. NULL = none. */
	struct vhca_osm_dynamic_lids *leaving;
};

/* Empty again, and max 0. */
void vhca_osm_dynamic_lids_done(struct vhca_osm_dynamic_lids *t);
/* Empty again, also of freed ones; max stays. */
void vhca_osm_dynamic_lids_clear(struct vhca_osm_dynamic_lids *t);

/* Valid until the table changes; NULL if there is none. */
const struct vhca_osm_dynamic_lid *vhca_osm_dynamic_lids_find(const struct vhca_osm_dynamic_lids *t,
							      uint64_t vguid);
const struct vhca_osm_dynamic_lid *
vhca_osm_dynamic_lids_find_lid(const struct vhca_osm_dynamic_lids *t, uint16_t lid);
/* Adds a row, or replaces that of the vGUID. 0 or -ENOMEM. */
int vhca_osm_dynamic_lids_set(struct vhca_osm_dynamic_lids *t,
			      const struct vhca_osm_dynamic_lid *row);
/* Nothing happens if there is none. */
void vhca_osm_dynamic_lids_remove(struct vhca_osm_dynamic_lids *t, uint64_t vguid);
/* Remembers a freed one, or forgets it again. 0 or -ENOMEM. */
int vhca_osm_dynamic_lids_leave(struct vhca_osm_dynamic_lids *t,
				const struct vhca_osm_dynamic_lid *row);
void vhca_osm_dynamic_lids_return(struct vhca_osm_dynamic_lids *t, uint64_t vguid);

/* Writes the text into a malloc'ed buffer that the caller frees. */
int vhca_osm_dynamic_lids_format(const struct vhca_osm_dynamic_lids *t, char **ret_text,
				 size_t *ret_len);
/*
 * Fills an empty table from a text (changed while parsing). Errors "state_damaged" name the line.
 */
int vhca_osm_dynamic_lids_parse(char *text, struct vhca_osm_dynamic_lids *t,
				struct vhca_error *err);

/* The same with a file, which need not exist to be loaded. Saving is blocking (fsync); -errno. */
int vhca_osm_dynamic_lids_load(const char *path, struct vhca_osm_dynamic_lids *t,
			       struct vhca_error *err);
int vhca_osm_dynamic_lids_save(const char *path, const struct vhca_osm_dynamic_lids *t);

#endif
