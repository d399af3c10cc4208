/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "common/http/server.h"
#include "opensm/api_json.h"

/* A report in memory, whose sender waits until it is on disk. */
struct waiting {
	struct vhca_http_request *req;
	struct json_object *(*answer)(const struct vhca_osm_service *s, uint64_t guid);
	uint64_t guid;
	struct json_object *body; /* the answer, if answer() is NULL */
};

struct vhca_osm_api {
	struct vhca_osm_service *service;
	struct vhca_http_server *server;
	size_t n_waiting;
	struct waiting waiting[VHCA_OSM_CONNECTIONS_MAX];
};

/* Makes everything durable and lets the waiting senders know. */
static void flush(struct vhca_osm_api *api)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r;

	if (api->n_waiting == 0)
		return;
	r = vhca_osm_service_commit(api->service, &err);
	for (size_t i = 0; i < api->n_waiting; i++) {
		struct waiting *w = &api->waiting[i];

		if (r == 0) {
			vhca_http_reply(w->req, 200,
					w->answer ? w->answer(api->service, w->guid) : w->body);
			continue;
		}
		(void)json_object_put(w->body);
		vhca_http_reply_error(w->req, &err);
	}
	api->n_waiting = 0;
}

static void reply_when_durable(struct vhca_osm_api *api, const struct waiting *w)
{
	if (api->n_waiting == VHCA_OSM_CONNECTIONS_MAX)
		flush(api);
	api->waiting[api->n_waiting++] = *w;
}

/* A refusal because of the epoch says what is known, so that the sender can go on from there. */
static void refuse(const struct vhca_osm_api *api, struct vhca_http_request *req, uint64_t vguid,
		   const struct vhca_error *err)
{
	const struct vhca_osm_binding *known =
		vhca_osm_table_find(vhca_osm_service_table(api->service), vguid);
	struct json_object *doc = vhca_json_problem(err);

	if (known && (strcmp(err->code, "superseded") == 0 || strcmp(err->code, "epoch_tie") == 0))
		vhca_osm_json_add_known(doc, known);
	vhca_http_reply_error_doc(req, err, doc);
}

/* ---- reading requests ---- */

static int get_guid(const char *text, const char *what, uint64_t *ret, struct vhca_error *err)
{
	uint64_t guid;

	if (vhca_guid_parse(text, &guid) < 0 || !vhca_guid_is_valid(guid))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "%s: \"%.40s\" is no unicast GUID", what, text);
	*ret = guid;
	return 0;
}

static int get_body_guid(struct json_object *body, const char *key, uint64_t *ret,
			 struct vhca_error *err)
{
	const char *text = NULL;
	int r = vhca_json_get_string(body, key, &text, err);

	return r < 0 ? r : get_guid(text, key, ret, err);
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

/* b->pkeys points to room for VHCA_OSM_PORT_PKEYS_MAX keys. */
static int read_binding(struct json_object *body, struct vhca_osm_binding *b,
			struct vhca_error *err)
{
	static const char *const members[] = {"epoch", "port_guid", "gid_index",
					      "lid",   "pkeys",	    NULL};
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
	b->n_pkeys = (uint16_t)n;
	return r;
}

static int read_epoch(struct vhca_http_request *req, uint64_t *ret, struct vhca_error *err)
{
	const char *text = vhca_http_query(req, "epoch");

	if (!text || vhca_parse_u64(text, 10, INT64_MAX, ret) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "query: epoch=NUMBER is required");
	return 0;
}

static int read_page(struct vhca_http_request *req, struct vhca_osm_page *ret,
		     struct vhca_error *err)
{
	const char *limit = vhca_http_query(req, "limit"), *after = vhca_http_query(req, "after"),
		   *port = vhca_http_query(req, "port_guid");
	uint32_t n = VHCA_OSM_PAGE_MAX;

	*ret = (struct vhca_osm_page){.limit = VHCA_OSM_PAGE_MAX};
	if (limit && (vhca_parse_u32(limit, 10, VHCA_OSM_PAGE_MAX, &n) < 0 || n == 0))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "query: limit must be 1..%d", VHCA_OSM_PAGE_MAX);
	ret->limit = n;
	if (after && get_guid(after, "query: after", &ret->after, err) < 0)
		return -EINVAL;
	if (port && get_guid(port, "query: port_guid", &ret->port_guid, err) < 0)
		return -EINVAL;
	return 0;
}

/* A place of a move: {port_guid, gid_index, lid}. */
static int read_move_place(struct json_object *body, const char *key, struct vhca_osm_binding *ret,
			   struct vhca_error *err)
{
	static const char *const members[] = {"port_guid", "gid_index", "lid", NULL};
	struct json_object *place = json_object_object_get(body, key);
	int r = vhca_json_check_members(place, members, err);

	if (r == 0)
		r = get_body_guid(place, "port_guid", &ret->port_guid, err);
	if (r == 0)
		r = read_place(place, ret, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", key);
	return r;
}

static int read_move_head(struct json_object *body, struct vhca_osm_binding *b,
			  struct vhca_osm_move *ret, struct vhca_error *err)
{
	static const char *const members[] = {"id",   "epoch", "vguid", "phase",
					      "from", "to",    "pkeys", NULL};
	const char *phase = NULL;
	int r = vhca_json_check_members(body, members, err);

	if (r == 0)
		r = vhca_json_get_string(body, "id", &ret->id, err);
	if (r == 0)
		r = vhca_json_get_u64(body, "epoch", INT64_MAX, &b->epoch, err);
	if (r == 0)
		r = get_body_guid(body, "vguid", &b->vguid, err);
	if (r == 0)
		r = vhca_json_get_string(body, "phase", &phase, err);
	if (r < 0)
		return r;
	ret->commit = strcmp(phase, "commit") == 0;
	if (strlen(ret->id) > VHCA_OSM_MOVE_ID_MAX || (!ret->commit && strcmp(phase, "prepare")))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "phase must be prepare or commit, id at most %d bytes",
				      VHCA_OSM_MOVE_ID_MAX);
	return 0;
}

/* b as in read_binding(). */
static int read_move(struct json_object *body, struct vhca_osm_binding *b,
		     struct vhca_osm_move *ret, struct vhca_error *err)
{
	struct vhca_osm_binding from = {0};
	size_t n = 0;
	int r = read_move_head(body, b, ret, err);

	if (r == 0)
		r = read_move_place(body, "from", &from, err);
	if (r == 0)
		r = read_move_place(body, "to", b, err);
	if (r == 0)
		r = vhca_json_get_pkeys(body, "pkeys", b->pkeys, VHCA_OSM_PORT_PKEYS_MAX, &n, err);
	b->n_pkeys = (uint16_t)n;
	ret->from_port = from.port_guid;
	return r;
}

/* ---- handlers ---- */

static void put_binding(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_eviction ev;
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	struct vhca_osm_binding b = {.pkeys = pkeys};
	int r = get_guid(vhca_http_param(req, 0), "path", &b.vguid, &err);

	if (r == 0)
		r = read_binding(vhca_http_body(req), &b, &err);
	if (r == 0)
		r = vhca_osm_service_put(api->service, &b, 0, &ev, &err);
	if (r < 0)
		refuse(api, req, b.vguid, &err);
	else
		reply_when_durable(api, &(struct waiting){.req = req,
							  .answer = vhca_osm_json_binding_now,
							  .guid = b.vguid});
}

static void delete_binding(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t vguid = 0, epoch = 0;
	int r = get_guid(vhca_http_param(req, 0), "path", &vguid, &err);

	if (r == 0)
		r = read_epoch(req, &epoch, &err);
	if (r == 0)
		r = vhca_osm_service_withdraw(api->service, vguid, epoch, &err);
	if (r < 0)
		refuse(api, req, vguid, &err);
	else
		reply_when_durable(api, &(struct waiting){.req = req,
							  .answer = vhca_osm_json_binding_now,
							  .guid = vguid});
}

static void post_move(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_osm_service *s = api->service;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	struct vhca_osm_binding b = {.pkeys = pkeys};
	struct vhca_osm_move move = {.commit = false};
	int r = read_move(vhca_http_body(req), &b, &move, &err);

	if (r == 0 && move.commit)
		r = vhca_osm_service_put(s, &b, move.from_port, &move.eviction, &err);
	else if (r == 0)
		r = vhca_osm_service_prepare(s, &b, move.from_port, &move.eviction, &err);
	if (r < 0)
		refuse(api, req, b.vguid, &err);
	else if (move.commit)
		reply_when_durable(
			api,
			&(struct waiting){.req = req, .body = vhca_osm_json_move(s, &b, &move)});
	else
		vhca_http_reply(req, 200, vhca_osm_json_move(s, &b, &move));
}

static void get_binding(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t vguid = 0;
	int r = get_guid(vhca_http_param(req, 0), "path", &vguid, &err);

	if (r == 0 && !vhca_osm_table_find(vhca_osm_service_table(api->service), vguid))
		r = vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "unknown_binding", 0,
				   "%s: never reported", VHCA_GUID_STR(vguid));
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, vhca_osm_json_binding_now(api->service, vguid));
}

static void list_bindings(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_page page;

	if (read_page(req, &page, &err) < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, vhca_osm_json_bindings(api->service, &page));
}

static void put_member(void *ctx, struct vhca_http_request *req)
{
	static const char *const members[] = {"pkeys", NULL};
	struct vhca_osm_api *api = ctx;
	struct json_object *body = vhca_http_body(req);
	struct vhca_error err = VHCA_ERROR_INIT;
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	uint64_t guid = 0;
	size_t n = 0;
	int r = get_guid(vhca_http_param(req, 0), "path", &guid, &err);

	if (r == 0)
		r = vhca_json_check_members(body, members, &err);
	if (r == 0)
		r = vhca_json_get_pkeys(body, "pkeys", pkeys, VHCA_OSM_PORT_PKEYS_MAX, &n, &err);
	if (r == 0)
		r = vhca_osm_service_declare(api->service, guid, pkeys, n, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		reply_when_durable(api, &(struct waiting){.req = req,
							  .answer = vhca_osm_json_member_now,
							  .guid = guid});
}

static void list_members(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_page page;

	if (read_page(req, &page, &err) < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, vhca_osm_json_members(api->service, &page));
}

static void get_health(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;

	vhca_http_reply(req, 200, vhca_osm_json_health(api->service, "ok"));
}

static void get_ready(void *ctx, struct vhca_http_request *req)
{
	struct vhca_osm_api *api = ctx;
	struct vhca_osm_status status;

	vhca_osm_service_status(api->service, &status);
	vhca_http_reply(req, status.ready ? 200 : 503,
			vhca_osm_json_health(api->service, status.ready ? "ready" : "not-ready"));
}

static const struct vhca_http_route routes[] = {
	{"PUT", "/v1/bindings/{}", put_binding}, {"DELETE", "/v1/bindings/{}", delete_binding},
	{"GET", "/v1/bindings/{}", get_binding}, {"GET", "/v1/bindings", list_bindings},
	{"POST", "/v1/moves", post_move},	 {"PUT", "/v1/members/{}", put_member},
	{"GET", "/v1/members", list_members},	 {"GET", "/healthz", get_health},
	{"GET", "/readyz", get_ready},		 {NULL, NULL, NULL},
};

/* ---- life ---- */

int vhca_osm_api_new(const struct vhca_osm_conf *conf, struct vhca_osm_service *service,
		     struct vhca_osm_api **ret, struct vhca_error *err)
{
	static const struct vhca_http_limits limits = {
		.body_max = VHCA_OSM_BODY_MAX,
		.connections_max = VHCA_OSM_CONNECTIONS_MAX,
	};
	VHCA_AUTO_FREE struct vhca_osm_api *api = calloc(1, sizeof(*api));
	int r;

	if (!api)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "out_of_memory", ENOMEM, "vhcasm");
	api->service = service;
	r = vhca_http_server_new(conf->listen, conf->socket_mode, &limits, routes, api,
				 &api->server, err);
	if (r == 0)
		*ret = vhca_steal_ptr(&api);
	return r;
}

struct vhca_osm_api *vhca_osm_api_free(struct vhca_osm_api *api)
{
	if (!api)
		return NULL;
	(void)vhca_http_server_free(api->server);
	free(api);
	return NULL;
}

int vhca_osm_api_fd(const struct vhca_osm_api *api)
{
	return vhca_http_server_fd(api->server);
}

int vhca_osm_api_timeout_ms(const struct vhca_osm_api *api)
{
	return vhca_http_server_timeout_ms(api->server);
}

void vhca_osm_api_run(struct vhca_osm_api *api)
{
	vhca_http_server_run(api->server);
	if (api->n_waiting == 0)
		return;
	flush(api);
	/* Lets the answers leave; what arrives meanwhile waits for the next write. */
	vhca_http_server_run(api->server);
	flush(api);
}
