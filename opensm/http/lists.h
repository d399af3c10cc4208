/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_LISTS_H
#define VHCA_OPENSM_HTTP_LISTS_H
/*
 * Lists that were asked for wait, so that reports do not: one page is made at a time, between
 * reports.
 */
#include <sys/queue.h>

#include "common/http/server.h"
#include "opensm/http/json.h"

#define VHCA_OSM_LISTS_MAX 64 /* wait; one more is refused: too_many_lists */
#define VHCA_OSM_LISTS_BYTES_MAX \
	(16 * 1024 * 1024) /* so is one while clients have so much to take */

struct vhca_osm_list;
struct vhca_osm_lists {
	TAILQ_HEAD(, vhca_osm_list) queue;
	unsigned int n;
};

typedef struct json_object *(*vhca_osm_list_fn)(const struct vhca_osm_service *s,
						const struct vhca_osm_page *page);

/* Nothing waits. */
void vhca_osm_lists_init(struct vhca_osm_lists *lists);
/* Reads the page from the query and answers later, or refuses; under_way: bytes of answers. */
void vhca_osm_lists_ask(struct vhca_osm_lists *lists, struct vhca_http_request *req,
			vhca_osm_list_fn make, uint64_t under_way);
/* Answers the first that waits. */
void vhca_osm_lists_answer_one(struct vhca_osm_lists *lists, const struct vhca_osm_service *s);

#endif
