/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/peer_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/api/body.h"
#include "agent/api/pending.h"
#include "agent/api/views.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/log.h"
#include "common/http/json.h"
#include "common/ticket/ticket.h"
#include "sm/proof.h"

/* An offer is below 64 KiB, a hand-over without its tickets as well. */
#define BODY_MAX (65536 + VHCA_MIGRATION_VFS_MAX * VHCA_TICKETS_MAX * VHCA_TICKET_MAX)

struct vhca_peer_api {
	const struct vhca_conf *conf;
	struct vhca_caller_rules rules;
	struct vhca_migrations *ms;
	struct vhca_host_memory *memory;
	struct vhca_http_server *server;
	struct vhca_http_loop_server *adapter;
};

/* ---- views ---- */

static struct json_object *view(const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object(), *vfs = json_object_new_array();
	struct vhca_claim *c = NULL;

	vhca_json_add_string(o, "id", VHCA_UUID_STR(&m->id));
	vhca_json_add_string(o, "state", vhca_mig_state_to_string(m->state));
	vhca_json_add_bool(o, "attached", vhca_migration_attached(m));
	vhca_json_add_bool(o, "begun", vhca_migration_begun(m));
	while ((c = vhca_migration_claim(m, c))) {
		struct json_object *vf = api_view_moving_vf(c);

		vhca_json_add_string(vf, "reason", c->vf->reason[0] ? c->vf->reason : NULL);
		json_object_array_add(vfs, vf);
	}
	vhca_json_add(o, "vfs", vfs);
	return o;
}

static void on_done(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	if (err)
		api_pending_refuse(arg, err);
	else
		api_pending_reply(arg, view(m));
}

static struct api_pending *pend(struct vhca_peer_api *api, struct vhca_http_request *req)
{
	return api_pending_new(api, req, api->adapter);
}

/* ---- who asks ---- */

static bool is_peer(const void *conf, const char *name)
{
	const struct vhca_conf *c = conf;

	for (unsigned int i = 0; i < c->n_peers; i++)
		if (strcmp(c->peers[i].certificate, name) == 0)
			return true;
	return false;
}

static bool speaks_for(const struct vhca_conf *conf, const char *who, const char *node)
{
	for (unsigned int i = 0; i < conf->n_peers; i++)
		if (strcmp(conf->peers[i].certificate, who) == 0 &&
		    vhca_conf_peer_is(&conf->peers[i], node))
			return true;
	return false;
}

/* Nobody has a name without certificates: then everybody's word counts. */
static int check_node(const struct vhca_peer_api *api, const struct vhca_http_request *req,
		      const char *node, struct vhca_error *err)
{
	const char *who = vhca_http_caller(req);

	if (!api->rules.is_agent || speaks_for(api->conf, who, node))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_DENIED, "not_your_node", 0,
			     "%s does not speak for the node %.64s", who, node);
	vhca_error_hint(err,
			"here, [peer NAME] with \"certificate = %s\" has to have the other's "
			"node_name, or what stands before its first dot, for its NAME",
			who);
	return -EACCES;
}

/* What a peer has offered is no other's to hand over, to end or to look at. One that was given up
 * before it was offered is nobody's. */
static int check_offerer(const struct vhca_peer_api *api, const struct vhca_http_request *req,
			 const struct vhca_uuid *id, struct vhca_error *err)
{
	const struct vhca_mig *m = vhca_migrations_find(api->ms, id);

	return m && !m->source && m->peer[0] ? check_node(api, req, m->peer, err) : 0;
}

/* ---- parsing ---- */

static int parse_id(const struct vhca_http_request *req, struct vhca_uuid *ret,
		    struct vhca_error *err)
{
	if (vhca_uuid_parse(vhca_http_param(req, 0), ret))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "%.40s is no UUID", vhca_http_param(req, 0));
	return 0;
}

static int parse_guest(struct json_object *o, struct vhca_reservation *ret, struct vhca_error *err)
{
	const char *guest = NULL;
	int r = vhca_json_opt_string(o, "guest_address", &guest, err);

	if (r < 0 || !guest)
		return r;
	ret->has_guest = true;
	if (vhca_bdf_parse(guest, &ret->guest))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "guest_address %.20s", guest);
	return 0;
}

/* Where the identity is now; unknown is no error. */
static int parse_from(struct json_object *o, struct vhca_reservation *ret, struct vhca_error *err)
{
	const char *port = NULL;
	uint64_t index = 0, lid = 0;
	int r = vhca_json_opt_string(o, "port_guid", &port, err);

	if (!r)
		r = vhca_json_opt_u64(o, "gid_index", UINT16_MAX, &index, err);
	if (!r)
		r = vhca_json_opt_u64(o, "lid", UINT16_MAX, &lid, err);
	if (r < 0 || !port)
		return r;
	if (vhca_guid_parse(port, &ret->from_port_guid))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", 0, "vfs: port_guid");
	ret->from_gid_index = (uint16_t)index;
	ret->from_lid = (uint16_t)lid;
	return 0;
}

/* Does the LID of its host come with it? Who says nothing of that, does not ask. */
static int parse_lid(struct json_object *o, struct vhca_reservation *ret, struct vhca_error *err)
{
	const char *policy = NULL, *stays = NULL;
	int r = vhca_json_opt_string(o, "lid_policy", &policy, err);

	if (r == 0)
		r = vhca_json_opt_string(o, "lid_stays", &stays, err);
	if (r < 0)
		return r;
	ret->lid_follows = policy && strcmp(policy, "follow") == 0;
	(void)snprintf(ret->lid_stays, sizeof(ret->lid_stays), "%s", stays ? stays : "");
	return 0;
}

static int parse_words(struct json_object *o, struct vhca_claim_request *ret,
		       struct vhca_error *err)
{
	const char *name = NULL, *origin = NULL, *fabric = NULL;
	int r = vhca_json_get_string(o, "name", &name, err);

	if (!r)
		r = vhca_json_get_string(o, "way", &origin, err);
	if (!r)
		r = vhca_json_get_string(o, "fabric", &fabric, err);
	if (r < 0)
		return r;
	if (!vhca_name_is_valid(name) || !vhca_name_is_valid(fabric) ||
	    vhca_origin_parse(origin, &ret->origin))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "vfs: name, fabric or way is not valid");
	(void)vhca_strcpy(ret->vf.name, sizeof(ret->vf.name), name);	   /* valid names */
	(void)vhca_strcpy(ret->vf.fabric, sizeof(ret->vf.fabric), fabric); /* fit */
	ret->lenient = true;
	return api_parse_place(o, &ret->vf, err);
}

static int parse_vf(struct json_object *o, const struct vhca_mig_offer *offer,
		    struct vhca_reservation *ret, struct vhca_error *err)
{
	size_t n = 0;
	int r = parse_words(o, &ret->req, err);

	if (!r)
		r = vhca_json_get_guid(o, "guid", &ret->identity.guid, err);
	if (!r)
		r = vhca_json_get_u64(o, "epoch", UINT64_MAX - 1, &ret->epoch, err);
	if (!r)
		r = vhca_json_get_pkeys(o, "pkeys", ret->identity.pkeys, VHCA_VF_PKEYS_MAX, &n,
					err);
	if (!r)
		r = parse_guest(o, ret, err);
	if (!r)
		r = parse_from(o, ret, err);
	if (r == 0)
		r = parse_lid(o, ret, err);
	if (r < 0)
		return r;
	if (!vhca_guid_is_valid(ret->identity.guid))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", 0, "vfs: guid");
	ret->identity.n_pkeys = (uint8_t)n;
	ret->migration = offer->id;
	ret->req.domain = offer->domain;
	(void)vhca_strcpy(ret->req.domain_name, sizeof(ret->req.domain_name),
			  offer->domain_name); /* same size */
	return 0;
}

static int get_vfs(struct json_object *body, struct json_object **ret, size_t *ret_n,
		   struct vhca_error *err)
{
	if (!body || !json_object_object_get_ex(body, "vfs", ret) ||
	    !json_object_is_type(*ret, json_type_array) || json_object_array_length(*ret) < 1 ||
	    json_object_array_length(*ret) > VHCA_MIGRATION_VFS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: vfs: 1 to %d entries are wanted",
				      VHCA_MIGRATION_VFS_MAX);
	*ret_n = json_object_array_length(*ret);
	return 0;
}

static int parse_offer(struct json_object *body, struct vhca_mig_offer *ret, struct vhca_error *err)
{
	const char *domain = NULL, *name = NULL, *node = NULL, *mode = "external";
	struct json_object *vfs = NULL;
	size_t n = 0;
	int r = get_vfs(body, &vfs, &n, err);

	if (!r)
		r = vhca_json_get_string(body, "domain", &domain, err);
	if (!r)
		r = vhca_json_get_string(body, "name", &name, err);
	if (!r)
		r = vhca_json_get_string(body, "node", &node, err);
	if (!r)
		r = vhca_json_opt_string(body, "mode", &mode, err);
	if (r < 0)
		return r;
	if (vhca_uuid_parse(domain, &ret->domain) ||
	    vhca_strcpy(ret->domain_name, sizeof(ret->domain_name), name))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: domain or name");
	if (!mode || vhca_mig_mode_parse(mode, &ret->mode) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: mode: managed or external");
	(void)snprintf(ret->node, sizeof(ret->node), "%s", node);
	r = vhca_guest_memory_parse(json_object_object_get(body, "memory"), &ret->memory, err);
	for (size_t i = 0; i < n && !r; i++)
		r = parse_vf(json_object_array_get_idx(vfs, i), ret, &ret->vfs[i], err);
	ret->n_vfs = (unsigned int)n;
	return r;
}

/* ---- room for the guest ---- */

/* An offer that waits for what the host says of its memory. */
struct look {
	struct vhca_peer_api *api;
	struct api_pending *p;
	struct vhca_mig_offer offer;
};

static int check_room(const struct look *look, const struct vhca_memory_room *room,
		      const struct vhca_error *unread, struct vhca_error *err)
{
	const struct vhca_mig_offer *offer = &look->offer;
	uint64_t coming = vhca_migrations_memory_coming(look->api->ms, &offer->memory);

	if (!unread)
		return vhca_guest_memory_check_room(&offer->memory, offer->domain_name, room,
						    coming, err);
	*err = *unread;
	if (err->kind == VHCA_ERR_UNAVAILABLE)
		return -EAGAIN;
	/* What cannot be read refuses nobody. */
	vhca_log_warning("%s: its memory is not checked: %s", offer->domain_name, err->msg);
	return 0;
}

static void on_room(void *arg, const struct vhca_memory_room *room, const struct vhca_error *unread)
{
	VHCA_AUTO_FREE struct look *look = arg;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (check_room(look, room, unread, &err) < 0)
		api_pending_refuse(look->p, &err);
	else
		vhca_migrations_offer(look->api->ms, &look->offer, on_done, look->p);
}

static void take_offer(struct vhca_peer_api *api, struct api_pending *p,
		       const struct vhca_mig_offer *offer)
{
	/* One that is known already was checked, and its guest may be here by now. */
	bool unchecked = api->memory && offer->memory.kib &&
			 offer->memory.pages != VHCA_PAGES_MIXED &&
			 !vhca_migrations_find(api->ms, &offer->id);
	struct look *look = unchecked ? calloc(1, sizeof(*look)) : NULL;

	if (look) {
		*look = (struct look){.api = api, .p = p, .offer = *offer};
		if (vhca_host_memory_ask(api->memory, &offer->memory, on_room, look) == 0)
			return;
		free(look);
	}
	vhca_migrations_offer(api->ms, offer, on_done, p);
}

/* ---- handlers ---- */

static void put_claims(void *ctx, struct vhca_http_request *req)
{
	VHCA_AUTO_FREE struct vhca_mig_offer *offer = calloc(1, sizeof(*offer));
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_peer_api *api = ctx;
	struct api_pending *p;
	int r = offer ? parse_id(req, &offer->id, &err) : vhca_error_no_memory(&err, "request");

	if (!r)
		r = parse_offer(vhca_http_body(req), offer, &err);
	if (!r)
		r = check_node(api, req, offer->node, &err);
	if (!r)
		r = check_offerer(api, req, &offer->id, &err);
	if (r < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = pend(api, req);
	if (p)
		take_offer(api, p, offer);
}

static void get_claims(void *ctx, struct vhca_http_request *req)
{
	struct vhca_peer_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;
	struct vhca_uuid id;

	if (parse_id(req, &id, &err) == 0 && check_offerer(api, req, &id, &err) == 0)
		m = vhca_migrations_find(api->ms, &id);
	if (m && !m->source) {
		vhca_http_reply(req, 200, view(m));
		return;
	}
	if (!err.kind)
		vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0, "migration %s",
			       VHCA_UUID_STR(&id));
	vhca_http_reply_error(req, &err);
}

static int parse_handed(struct json_object *body, struct vhca_mig_handed *ret, unsigned int *ret_n,
			struct vhca_error *err)
{
	struct json_object *vfs = NULL;
	size_t n = 0;
	int r = get_vfs(body, &vfs, &n, err);

	for (size_t i = 0; i < n && !r; i++) {
		struct json_object *o = json_object_array_get_idx(vfs, i);

		r = vhca_json_get_guid(o, "guid", &ret[i].guid, err);
		if (!r)
			r = vhca_json_get_u64(o, "epoch", UINT64_MAX - 1, &ret[i].epoch, err);
		ret[i].proof = json_object_object_get(o, "tickets");
		if (r == 0 && ret[i].proof)
			r = vhca_sm_proof_check(ret[i].proof, ret[i].guid, ret[i].epoch, err);
	}
	*ret_n = (unsigned int)n;
	return r;
}

static void post_handover(void *ctx, struct vhca_http_request *req)
{
	struct vhca_mig_handed handed[VHCA_MIGRATION_VFS_MAX];
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_peer_api *api = ctx;
	struct vhca_uuid id;
	struct api_pending *p;
	unsigned int n = 0;
	int r = parse_id(req, &id, &err);

	if (!r)
		r = check_offerer(api, req, &id, &err);
	if (!r)
		r = parse_handed(vhca_http_body(req), handed, &n, &err);
	if (r < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = pend(api, req);
	if (p)
		vhca_migrations_handover(api->ms, &id, handed, n, on_done, p);
}

static void post_abort(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_peer_api *api = ctx;
	struct vhca_uuid id;
	struct api_pending *p;

	if (parse_id(req, &id, &err) < 0 || check_offerer(api, req, &id, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = pend(api, req);
	if (p)
		vhca_migrations_end(api->ms, &id, on_done, p);
}

static const struct vhca_http_route routes[] = {
	{"PUT", "/v1/peer/claims/{}", VHCA_CALLER_AGENT, put_claims},
	{"GET", "/v1/peer/claims/{}", VHCA_CALLER_AGENT, get_claims},
	{"POST", "/v1/peer/claims/{}/handover", VHCA_CALLER_AGENT, post_handover},
	{"POST", "/v1/peer/claims/{}/abort", VHCA_CALLER_AGENT, post_abort},
	{.method = NULL},
};

/* ---- life ---- */

int vhca_peer_api_new(struct vhca_loop *loop, const struct vhca_conf *conf,
		      const struct vhca_peer_api_parts *parts, struct vhca_peer_api **ret,
		      struct vhca_error *err)
{
	struct vhca_http_limits limits = {
		.auth = parts->auth,
		.body_max = BODY_MAX,
		.answering_max = VHCA_HTTP_ANSWERING_MAX,
	};
	struct vhca_peer_api *api = calloc(1, sizeof(*api));
	int r;

	if (!api)
		return vhca_error_no_memory(err, "peer API");
	api->conf = conf;
	api->rules = (struct vhca_caller_rules){
		.may = "whose certificate is that of a [peer] in vhcad.conf",
		.others = parts->auth ? VHCA_CALLER_NOBODY : VHCA_CALLER_AGENT,
		.is_agent = parts->auth ? is_peer : NULL,
		.agents = conf,
	};
	limits.rules = &api->rules;
	api->ms = parts->migrations;
	api->memory = parts->memory;
	r = vhca_http_server_new(conf->peer_listen, 0600, &limits, routes, api, &api->server, err);
	if (!r && vhca_http_loop_attach(loop, api->server, &api->adapter) < 0)
		r = vhca_error_no_memory(err, "peer API");
	if (r < 0) {
		vhca_peer_api_free(api);
		return r;
	}
	*ret = api;
	return 0;
}

struct vhca_peer_api *vhca_peer_api_free(struct vhca_peer_api *api)
{
	if (!api)
		return NULL;
	if (api->adapter)
		vhca_http_loop_detach(api->adapter);
	if (api->server)
		vhca_http_server_free(api->server);
	free(api);
	return NULL;
}
