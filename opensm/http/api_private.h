/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_API_PRIVATE_H
#define VHCA_OPENSM_HTTP_API_PRIVATE_H
/* What the handlers of one API share: api.c, lists.c. */
#include "opensm/http/api.h"
#include "opensm/http/backlog.h"
#include "opensm/http/door.h"
#include "opensm/http/page/recent.h"
#include "opensm/tickets/owners.h"

/* A report in memory, whose sender waits until it is on disk. */
struct waiting {
	struct vhca_http_request *req;
	struct json_object *(*answer)(const struct vhca_osm_service *s, uint64_t guid);
	uint64_t guid;
	struct json_object *body; /* the answer, if answer() is NULL */
	bool moves;		  /* and then a LID, before the answer */
	struct vhca_osm_lid_want want;
};

struct vhca_osm_api {
	struct vhca_osm_service *service;
	struct vhca_osm_reports *reports; /* the service's */
	struct vhca_osm_mover *mover;
	struct vhca_osm_door door;
	struct vhca_osm_owners owners;
	struct vhca_http_server *server;
	size_t n_waiting;
	struct waiting waiting[VHCA_OSM_CONNECTIONS_MAX];
	/* Requests that would wait for OpenSM's lock, and all others with them. */
	struct vhca_osm_backlog deferred;
	bool receiving; /* the server runs, and calls handlers */
	/* Lists: one page is made at a time, between reports, which wait for none. */
	struct vhca_osm_backlog lists;
	struct vhca_osm_recent recent;
};

/*
 * Handlers of routes. A list waits until reports have been served; when too many wait, it is 503
 * too_many_lists.
 */
void vhca_osm_list_bindings(void *ctx, struct vhca_http_request *req);
void vhca_osm_list_members(void *ctx, struct vhca_http_request *req);
void vhca_osm_list_lids(void *ctx, struct vhca_http_request *req);

#endif
