/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_GONE_H
#define VHCA_OPENSM_HTTP_GONE_H
/* DELETE /v1/ports/{port_guid}: of a node that does not come back. */
#include "common/http/server.h"
#include "opensm/bindings/service.h"
#include "opensm/http/page/recent.h"
#include "opensm/lids/mover.h"

struct json_object;

/* Replies with this when it is on disk; takes the body. Nothing is written before it returns. */
typedef void (*vhca_osm_later_fn)(void *arg, struct vhca_http_request *req,
				  struct json_object *body);

/* Refuses, or calls later(arg) when the dynamic LIDs of its guests are free. */
void vhca_osm_api_forget_port(struct vhca_osm_service *service, struct vhca_osm_mover *m,
			      struct vhca_osm_recent *recent, struct vhca_http_request *req,
			      vhca_osm_later_fn later, void *arg);

#endif
