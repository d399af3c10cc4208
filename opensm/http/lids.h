/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_LIDS_H
#define VHCA_OPENSM_HTTP_LIDS_H
/*
 * The HTTP requests about LIDs: reading, the mover's work, the answers. Each replies once, put
 * later.
 */
#include "common/http/server.h"
#include "opensm/bindings/service.h"
#include "opensm/http/fields.h"
#include "opensm/http/json.h"
#include "opensm/http/page/recent.h"
#include "opensm/lids/mover.h"

/*
 * What a move would do now, without doing it: what the move is answered, and switch_guids. What
 * would be refused is.
 */
int vhca_osm_json_lid_plan(struct vhca_osm_mover *m, struct vhca_osm_lid_move *move,
			   struct json_object **ret, struct vhca_error *err);

/* {lids: [...], next}: rows as of GET /v1/lids/{lid}; next as of the other lists, but a LID. */
struct json_object *vhca_osm_json_lids(const struct vhca_osm_mover *m,
				       const struct vhca_osm_page *page);

/* PUT /v1/lids/{lid}[?plan=1]; recent is borrowed until the mover has answered, as below. */
void vhca_osm_api_put_lid(struct vhca_osm_mover *m, struct vhca_osm_recent *recent,
			  struct vhca_http_request *req);
/* GET /v1/lids/{lid} */
void vhca_osm_api_get_lid(struct vhca_osm_mover *m, struct vhca_http_request *req);
/* POST /v1/lids/rebalance, pause and resume */
void vhca_osm_api_steer(struct vhca_osm_mover *m, struct vhca_http_request *req);
/* GET /v1/fabric */
void vhca_osm_api_get_fabric(struct vhca_osm_mover *m, struct vhca_http_request *req);

/* What the vGUID of a binding wants that is to have a LID of its own. */
struct vhca_osm_lid_want vhca_osm_wanted_dynamic(const struct vhca_osm_binding *b);
/* The same of one that moves, by its policy. */
struct vhca_osm_lid_want vhca_osm_wanted_lid(const struct vhca_osm_binding *b,
					     const struct vhca_osm_relocation *relocation);

/*
 * Replies when the LID of a binding has moved, which was checked; "lid_move" is added to the body.
 * The binding is on disk already: who repeats a move of which only that was done gets the rest
 * done. Takes the body, whatever comes of it.
 */
void vhca_osm_api_move_lid(struct vhca_osm_mover *m, struct vhca_osm_recent *recent,
			   struct vhca_http_request *req, const struct vhca_osm_lid_want *want,
			   struct json_object *body);

#endif
