/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_BACKLOG_H
#define VHCA_OPENSM_HTTP_BACKLOG_H
/*
 * Requests that are put off, in the order in which they came. Each is given to its handler again
 * when the owner says so; one whose client has gone is dropped.
 */
#include <sys/queue.h>

#include "common/http/server.h"

typedef void (*vhca_osm_handler_fn)(void *ctx, struct vhca_http_request *req);

struct vhca_osm_put_off;
struct vhca_osm_backlog {
	TAILQ_HEAD(, vhca_osm_put_off) queue;
	unsigned int n;
};

/* Nothing waits. */
void vhca_osm_backlog_init(struct vhca_osm_backlog *b);
/* Out of memory, the request is refused. */
void vhca_osm_backlog_add(struct vhca_osm_backlog *b, struct vhca_http_request *req,
			  vhca_osm_handler_fn handler, void *ctx);
/* Takes the first one, if there is any, and calls its handler. */
void vhca_osm_backlog_resume(struct vhca_osm_backlog *b);
/* None is handled any more. */
void vhca_osm_backlog_refuse(struct vhca_osm_backlog *b, const struct vhca_error *err);

#endif
