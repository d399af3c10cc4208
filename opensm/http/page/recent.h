/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_PAGE_RECENT_H
#define VHCA_OPENSM_HTTP_PAGE_RECENT_H
/* What has moved since OpenSM was started, the latest of it: GET /v1/moves. */
#include <json-c/json_object.h>

#include "opensm/bindings/reports.h"
#include "opensm/lids/mover.h"

#define VHCA_OSM_RECENT_MAX 256

struct vhca_osm_recent_move {
	uint64_t wall_ms;		/* when it ended, since 1970 */
	uint64_t vguid;			/* 0 = a LID without one */
	uint64_t from_port, port;	/* 0 = not known, or nowhere */
	uint16_t lid;			/* 0 = a binding, whose LID is its port's */
	const char *state;		/* static */
	const char *mode;		/* static; NULL = no LID has moved */
	char code[VHCA_ERROR_CODE_MAX]; /* why it was refused; "" = it was not */
	size_t switches, lft, port_info, drain, guid_info, missing;
	uint64_t duration_us;
};

/* All zero: nothing has moved. */
struct vhca_osm_recent {
	uint64_t n; /* since the start; the last VHCA_OSM_RECENT_MAX are kept */
	struct vhca_osm_recent_move rows[VHCA_OSM_RECENT_MAX];
};

/* A vGUID that was bound to old_port is bound to another one. In memory: it may be ahead of the
 * disk. */
void vhca_osm_recent_add_binding(struct vhca_osm_recent *r, const struct vhca_osm_binding *now,
				 uint64_t old_port, const struct vhca_osm_eviction *ev);
/*
 * As the mover has answered (vhca_osm_move_fn). What was so already is no move, nor is what has
 * only waited: agents ask for that again and again.
 */
void vhca_osm_recent_add_lid(struct vhca_osm_recent *r, const struct vhca_osm_lid_move *move,
			     const struct vhca_error *err);
/* {moves: [...], total}, the latest first */
struct json_object *vhca_osm_json_recent(const struct vhca_osm_recent *r);

#endif
