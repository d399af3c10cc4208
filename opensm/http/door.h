/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_DOOR_H
#define VHCA_OPENSM_HTTP_DOOR_H
/* Who is let in to the API, and what for. */
#include "common/base/caller.h"
#include "common/http/auth.h"
#include "opensm/bindings/conf.h"
#include "opensm/http/file_stamp.h"

#define VHCA_OSM_DOOR_FILES 5

struct vhca_osm_door {
	const struct vhca_osm_conf *conf;
	struct vhca_http_auth *auth; /* NULL: whoever reaches it is let in */
	struct vhca_caller_rules rules;
	struct vhca_osm_file_stamp read[VHCA_OSM_DOOR_FILES], seen[VHCA_OSM_DOOR_FILES];
	char problem[sizeof(
		((struct vhca_error *)0)->msg)]; /* why they were not taken last; "" = they were */
};

/* Reads conf's files; conf is borrowed. Says in the log what is open. Blocking. */
int vhca_osm_door_open(const struct vhca_osm_conf *conf, struct vhca_osm_door *ret,
		       struct vhca_error *err);
/* To be called now and then: takes files that have changed, and not any more since the call
 * before, all of them or none, and says so; connections stay. What is wrong may be right later
 * without a change (not valid yet, too many open files): it is tried again. Blocking. */
void vhca_osm_door_look(struct vhca_osm_door *door);
void vhca_osm_door_done(struct vhca_osm_door *door);

#endif
