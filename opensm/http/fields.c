/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/fields.h"

#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"

int vhca_osm_read_guid(const char *text, const char *what, uint64_t *ret, struct vhca_error *err)
{
	uint64_t guid;

	if (vhca_guid_parse(text, &guid) < 0 || !vhca_guid_is_valid(guid))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "%s: \"%.40s\" is no unicast GUID", what, text);
	*ret = guid;
	return 0;
}

static int get_body_guid(struct json_object *body, const char *key, uint64_t *ret,
			 struct vhca_error *err)
{
	const char *text = NULL;
	int r = vhca_json_get_string(body, key, &text, err);

	return r < 0 ? r : vhca_osm_read_guid(text, key, ret, err);
}

static int read_place(struct json_object *body, struct vhca_osm_binding *b, struct vhca_error *err)
{
	uint64_t gid_index = 0, lid = 0;
	int r = vhca_json_get_u64(body, "gid_index", UINT16_MAX, &gid_index, err);

	if (r == 0)
		r = vhca_json_opt_u64(body, "lid", UINT16_MAX, &lid,
				      err); /* unknown yet: 0, null */
	b->gid_index = (uint16_t)gid_index;
	b->lid = (uint16_t)lid;
	return r;
}

static int read_policy(const char *text, enum vhca_osm_lid_policy *ret, struct vhca_error *err)
{
	static const char *const names[] = {[VHCA_OSM_LID_HOST] = "host",
					    [VHCA_OSM_LID_FOLLOWS] = "follow",
					    [VHCA_OSM_LID_OF_VPORT] = "vport",
					    [VHCA_OSM_LID_DYNAMIC] = "dynamic"};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum vhca_osm_lid_policy)i;
			return 0;
		}
	return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			      "lid_policy must be host, follow, vport or dynamic");
}

static int read_dynamic(struct json_object *body, bool *ret, struct vhca_error *err)
{
	enum vhca_osm_lid_policy policy = VHCA_OSM_LID_HOST;
	const char *text = "host";
	int r = vhca_json_opt_string(body, "lid_policy", &text, err);

	if (r == 0)
		r = read_policy(text, &policy, err);
	*ret = policy == VHCA_OSM_LID_DYNAMIC;
	if (r == 0 && policy != VHCA_OSM_LID_HOST && !*ret)
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				   "lid_policy of a binding must be host or dynamic");
	return r;
}

/* What they say is read by whoever believes them. */
static int read_tickets(struct json_object *body, struct vhca_osm_proof *ret,
			struct vhca_error *err)
{
	struct json_object *array = json_object_object_get(body, "tickets");
	size_t n = 0;

	if (!array)
		return 0;
	if (!json_object_is_type(array, json_type_array) ||
	    (n = json_object_array_length(array)) > VHCA_TICKETS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "tickets: at most %d texts are expected", VHCA_TICKETS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct json_object *text = json_object_array_get_idx(array, i);

		if (!json_object_is_type(text, json_type_string) ||
		    (size_t)json_object_get_string_len(text) >= VHCA_TICKET_MAX)
			return vhca_error_set(
				err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				"tickets[%zu]: a text of less than %d bytes is expected", i,
				VHCA_TICKET_MAX);
		ret->tickets[ret->n_tickets++] = json_object_get_string(text);
	}
	return 0;
}

/* b->pkeys points to room for VHCA_OSM_PORT_PKEYS_MAX keys. */
int vhca_osm_read_binding(struct json_object *body, struct vhca_osm_binding *b, bool *ret_dynamic,
			  struct vhca_osm_proof *ret_proof, struct vhca_error *err)
{
	static const char *const members[] = {"epoch",	 "port_guid", "gid_index",
					      "lid",	 "pkeys",     "lid_policy",
					      "tickets", "settled",   NULL};
	size_t n = 0;
	int r = vhca_json_check_members(body, members, err);

	if (r == 0)
		r = vhca_json_get_u64(body, "epoch", INT64_MAX, &b->epoch, err);
	if (r == 0)
		r = get_body_guid(body, "port_guid", &b->port_guid, err);
	if (r == 0)
		r = read_place(body, b, err);
	if (r == 0)
		r = vhca_json_get_pkeys(body, "pkeys", b->pkeys, VHCA_OSM_PORT_PKEYS_MAX, &n, err);
	if (r == 0)
		r = read_dynamic(body, ret_dynamic, err);
	if (r == 0)
		r = read_tickets(body, ret_proof, err);
	if (r == 0)
		r = vhca_json_opt_bool(body, "settled", &ret_proof->settled, err);
	b->n_pkeys = (uint16_t)n;
	return r;
}

int vhca_osm_read_epoch(struct vhca_http_request *req, uint64_t *ret, struct vhca_error *err)
{
	const char *text = vhca_http_query(req, "epoch");

	if (!text || vhca_parse_u64(text, 10, INT64_MAX, ret) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: epoch=NUMBER is required");
	return 0;
}

/* Who withdraws; one that does not say it is believed. */
int vhca_osm_read_withdrawer(struct vhca_http_request *req, uint64_t *ret, struct vhca_error *err)
{
	const char *text = vhca_http_query(req, "port_guid");

	if (text && vhca_guid_parse(text, ret) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: port_guid is no GUID");
	return 0;
}

int vhca_osm_read_keep(struct vhca_http_request *req, bool *ret, struct vhca_error *err)
{
	const char *text = vhca_http_query(req, "keep_lid");

	*ret = false;
	if (text && vhca_parse_bool(text, ret) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: keep_lid must be yes or no");
	return 0;
}

static int read_limit(struct vhca_http_request *req, struct vhca_osm_page *ret,
		      struct vhca_error *err)
{
	const char *limit = vhca_http_query(req, "limit");
	uint32_t n = VHCA_OSM_PAGE_MAX;

	if (limit && (vhca_parse_u32(limit, 10, VHCA_OSM_PAGE_MAX, &n) < 0 || n == 0))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: limit must be 1..%d", VHCA_OSM_PAGE_MAX);
	*ret = (struct vhca_osm_page){.limit = n, .fields = vhca_http_query(req, "fields")};
	return 0;
}

int vhca_osm_read_page(struct vhca_http_request *req, struct vhca_osm_page *ret,
		       struct vhca_error *err)
{
	const char *after = vhca_http_query(req, "after"),
		   *port = vhca_http_query(req, "port_guid");

	if (read_limit(req, ret, err) < 0)
		return -EINVAL;
	if (after && vhca_osm_read_guid(after, "query: after", &ret->after, err) < 0)
		return -EINVAL;
	if (port && vhca_osm_read_guid(port, "query: port_guid", &ret->port_guid, err) < 0)
		return -EINVAL;
	return 0;
}

int vhca_osm_read_lid_page(struct vhca_http_request *req, struct vhca_osm_page *ret,
			   struct vhca_error *err)
{
	const char *after = vhca_http_query(req, "after");
	uint32_t lid = 0;

	if (read_limit(req, ret, err) < 0)
		return -EINVAL;
	if (after && vhca_parse_u32(after, 10, UINT16_MAX, &lid) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: after: \"%.40s\" is no LID", after);
	ret->after = lid;
	return 0;
}

/* A place of a relocation: {port_guid, gid_index, lid, vport}. */
static int read_relocation_place(struct json_object *body, const char *key,
				 struct vhca_osm_binding *ret, uint64_t *ret_vport,
				 struct vhca_error *err)
{
	static const char *const members[] = {"port_guid", "gid_index", "lid", "vport", NULL};
	struct json_object *place = json_object_object_get(body, key);
	int r = vhca_json_check_members(place, members, err);

	if (r == 0)
		r = get_body_guid(place, "port_guid", &ret->port_guid, err);
	if (r == 0)
		r = read_place(place, ret, err);
	if (r == 0)
		r = vhca_json_opt_u64(place, "vport", VHCA_OSM_VPORT_MAX, ret_vport, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", key);
	return r;
}

static int read_relocation_head(struct json_object *body, struct vhca_osm_binding *b,
				struct vhca_osm_relocation *ret, struct vhca_error *err)
{
	static const char *const members[] = {"id", "epoch", "vguid",	   "phase",   "from",
					      "to", "pkeys", "lid_policy", "tickets", NULL};
	const char *phase = NULL, *policy = "host";
	int r = vhca_json_check_members(body, members, err);

	if (r == 0)
		r = vhca_json_get_string(body, "id", &ret->id, err);
	if (r == 0)
		r = vhca_json_get_u64(body, "epoch", INT64_MAX, &b->epoch, err);
	if (r == 0)
		r = get_body_guid(body, "vguid", &b->vguid, err);
	if (r == 0)
		r = vhca_json_get_string(body, "phase", &phase, err);
	if (r == 0)
		r = vhca_json_opt_string(body, "lid_policy", &policy, err);
	if (r < 0)
		return r;
	r = read_policy(policy, &ret->lid_policy, err);
	if (r < 0)
		return r;
	ret->commit = strcmp(phase, "commit") == 0;
	if (strlen(ret->id) > VHCA_OSM_RELOCATION_ID_MAX ||
	    (!ret->commit && strcmp(phase, "prepare")))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "phase must be prepare or commit, id at most %d bytes",
				      VHCA_OSM_RELOCATION_ID_MAX);
	return 0;
}

/* b as in vhca_osm_read_binding(). */
int vhca_osm_read_relocation(struct json_object *body, struct vhca_osm_binding *b,
			     struct vhca_osm_relocation *ret, struct vhca_error *err)
{
	struct vhca_osm_binding from = {0};
	uint64_t left = 0, vport = 0;
	size_t n = 0;
	int r = read_relocation_head(body, b, ret, err);

	if (r == 0)
		r = read_relocation_place(body, "from", &from, &left, err);
	if (r == 0)
		r = read_relocation_place(body, "to", b, &vport, err);
	if (r == 0)
		r = vhca_json_get_pkeys(body, "pkeys", b->pkeys, VHCA_OSM_PORT_PKEYS_MAX, &n, err);
	if (r == 0)
		r = read_tickets(body, &ret->proof, err);
	b->n_pkeys = (uint16_t)n;
	ret->from_port = from.port_guid;
	ret->from_lid = from.lid;
	ret->vport = (uint16_t)vport;
	if (r == 0 && ret->lid_policy == VHCA_OSM_LID_FOLLOWS && !from.lid)
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				   "from: lid: needed with the lid_policy \"follow\"");
	if (r == 0 && ret->lid_policy == VHCA_OSM_LID_OF_VPORT && !vport)
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				   "to: vport: needed with the lid_policy \"vport\"");
	return r;
}
