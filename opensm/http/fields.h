/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_FIELDS_H
#define VHCA_OPENSM_HTTP_FIELDS_H
/* The parts of a request, read and checked. 0, or < 0 with err bad_request. */
#include "common/http/server.h"
#include "opensm/http/json.h"

/* A unicast GUID; what: where it stands, for the message. */
int vhca_osm_read_guid(const char *text, const char *what, uint64_t *ret, struct vhca_error *err);
/*
 * All but the vguid. b->pkeys points to room for VHCA_OSM_PORT_PKEYS_MAX keys. ret_dynamic: it is
 * to have a LID of its own.
 */
int vhca_osm_read_binding(struct json_object *body, struct vhca_osm_binding *b, bool *ret_dynamic,
			  struct vhca_osm_proof *ret_proof, struct vhca_error *err);
/* A relocation and the binding that it makes; b as above. */
int vhca_osm_read_relocation(struct json_object *body, struct vhca_osm_binding *b,
			     struct vhca_osm_relocation *ret, struct vhca_error *err);

/* ---- of the query ---- */
int vhca_osm_read_epoch(struct vhca_http_request *req, uint64_t *ret, struct vhca_error *err);
/* Who withdraws; one that does not say it, as an admin by hand, is believed. */
int vhca_osm_read_withdrawer(struct vhca_http_request *req, uint64_t *ret, struct vhca_error *err);
/* Whether a withdrawn vGUID keeps its dynamic LID for its next owner. */
int vhca_osm_read_keep(struct vhca_http_request *req, bool *ret, struct vhca_error *err);
int vhca_osm_read_page(struct vhca_http_request *req, struct vhca_osm_page *ret,
		       struct vhca_error *err);
/* The same of a list by LIDs. */
int vhca_osm_read_lid_page(struct vhca_http_request *req, struct vhca_osm_page *ret,
			   struct vhca_error *err);

#endif
