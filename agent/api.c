/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "agent/api_adopt.h"
#include "agent/api_explain.h"
#include "agent/api_json.h"
#include "agent/api_migrations.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/role.h"
#include "common/http/json.h"
#include "config.h"

#define POLLS_MAX	 64 /* long polls waiting at once; more are answered at once */
#define POLL_SECONDS_MAX 60

/* A GET /v1/events that waits for something to tell. */
struct poll {
	TAILQ_ENTRY(poll) link;
	struct vhca_api *api;
	struct vhca_http_request *req;
	struct vhca_timer *timer;
	uint64_t since;
};

struct vhca_api {
	struct vhca_api_args args;
	uint64_t started_ms;
	struct vhca_http_server *server;
	struct vhca_http_loop_server *adapter;
	TAILQ_HEAD(, poll) polls;
	unsigned int n_polls;
	struct vhca_timer
		*wake; /* answers polls from the loop, not from where the event happened */
};

static void reply_list(struct vhca_http_request *req, const char *key, struct json_object *list)
{
	struct json_object *doc = json_object_new_object();

	vhca_json_add(doc, key, list);
	vhca_http_reply(req, 200, doc);
}

/* ---- reads ---- */

static struct json_object *count_states(struct vhca_model *m)
{
	struct json_object *o = json_object_new_object();
	unsigned int n[VHCA_VF_STATE_COUNT] = {0};
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &m->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			n[vf->state]++;
	for (unsigned int s = 0; s < VHCA_VF_STATE_COUNT; s++)
		vhca_json_add_u64(o, vhca_vf_state_to_string((enum vhca_vf_state)s), n[s]);
	return o;
}

static struct json_object *view_sm(const struct vhca_api_args *a)
{
	struct json_object *o = json_object_new_object();

	vhca_json_add_string(o, "backend", a->sm->name);
	vhca_json_add_bool(o, "fenced", a->sm->fenced);
	vhca_json_add_bool(o, "reachable", vhca_outbox_reachable(a->outbox));
	vhca_json_add_u64(o, "pending", vhca_outbox_pending(a->outbox));
	return o;
}

static void get_node(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	const struct vhca_api_args *a = &api->args;
	struct json_object *o = json_object_new_object(), *virt = json_object_new_object(),
			   *loop = json_object_new_object();

	vhca_json_add_string(o, "node_name", a->conf->node_name);
	vhca_json_add_string(o, "version", VHCA_VERSION);
	vhca_json_add_u64(o, "api", 1);
	vhca_json_add_string(o, "boot_id", a->boot_id);
	vhca_json_add_u64(o, "started_ms", api->started_ms);
	vhca_json_add_string(virt, "uri", a->conf->libvirt_uri);
	vhca_json_add_bool(virt, "connected", a->virt && vhca_virt_connected(a->virt));
	vhca_json_add_bool(virt, "synced", vhca_engine_virt_synced(a->engine));
	vhca_json_add(o, "libvirt", virt);
	vhca_json_add(o, "sm", view_sm(a));
	vhca_json_add_u64(loop, "max_callback_us", vhca_loop_max_callback_us(a->loop));
	vhca_json_add_u64(loop, "blocking_calls", vhca_role_violations());
	vhca_json_add(o, "loop", loop);
	vhca_json_add(o, "counts", count_states(vhca_engine_model(a->engine)));
	vhca_http_reply(req, 200, o);
}

static void get_hcas(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	struct json_object *list = json_object_new_array();
	struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &vhca_engine_model(api->args.engine)->hcas, link)
		json_object_array_add(
			list,
			vhca_view_hca(hca, vhca_host_busy_since(api->args.host, hca->facts.bdf)));
	reply_list(req, "hcas", list);
}

static void get_vfs(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	const char *state = vhca_http_query(req, "state");
	struct json_object *list = json_object_new_array();
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &vhca_engine_model(api->args.engine)->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (!state || !strcmp(state, vhca_vf_state_to_string(vf->state)))
				json_object_array_add(list, vhca_view_vf(vf));
	reply_list(req, "vfs", list);
}

const struct vhca_vf *vhca_api_find_vf(const void *ctx, const char *text, struct vhca_error *err)
{
	const struct vhca_api *api = ctx;
	const struct vhca_vf *vf = NULL;
	struct vhca_bdf bdf;

	if (!vhca_bdf_parse(text, &bdf))
		vf = vhca_model_vf(vhca_engine_model(api->args.engine), bdf);
	if (vf)
		return vf;
	vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_vf", 0, "VF %.40s", text);
	vhca_error_hint(err, "addresses look like 0000:03:00.1; vhcactl vfs lists them");
	return NULL;
}

static void get_vf(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_vf *vf = vhca_api_find_vf(ctx, vhca_http_param(req, 0), &err);

	if (vf)
		vhca_http_reply(req, 200, vhca_view_vf(vf));
	else
		vhca_http_reply_error(req, &err);
}

static void get_domains(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	struct vhca_model *m = vhca_engine_model(api->args.engine);
	struct json_object *list = json_object_new_array();
	struct vhca_domain *dom;

	TAILQ_FOREACH (dom, &m->domains, link)
		json_object_array_add(list, vhca_view_domain(m, dom));
	reply_list(req, "domains", list);
}

static void get_claims(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	struct json_object *list = json_object_new_array();
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &vhca_engine_model(api->args.engine)->claims, link)
		json_object_array_add(list, vhca_view_claim(c));
	reply_list(req, "claims", list);
}

static void get_outbox(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;

	reply_list(req, "outbox", vhca_outbox_to_json(api->args.outbox));
}

static void get_healthz(void *ctx, struct vhca_http_request *req)
{
	struct json_object *o = json_object_new_object();

	(void)ctx;
	vhca_json_add_string(o, "status", "ok");
	vhca_http_reply(req, 200, o);
}

static void get_readyz(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	const char *why = vhca_engine_not_ready(api->args.engine);
	struct json_object *o = json_object_new_object(), *reasons = json_object_new_array();

	if (why)
		json_object_array_add(reasons, json_object_new_string(why));
	vhca_json_add_string(o, "status", why ? "not_ready" : "ready");
	vhca_json_add(o, "reasons", reasons);
	vhca_http_reply(req, why ? 503 : 200, o);
}

/* ---- events ---- */

static void free_poll(struct poll *p)
{
	TAILQ_REMOVE(&p->api->polls, p, link);
	p->api->n_polls--;
	vhca_timer_free(p->timer);
	free(p);
}

static void answer_poll(struct poll *p)
{
	vhca_http_reply(p->req, 200, vhca_events_to_json(p->api->args.events, p->since));
	vhca_http_loop_kick(p->api->adapter);
	free_poll(p);
}

static void on_poll_timer(void *arg)
{
	answer_poll(arg);
}

static void on_poll_cancel(void *arg)
{
	answer_poll(arg); /* nobody reads it; the handle is owed a reply all the same */
}

static void on_wake(void *arg)
{
	struct vhca_api *api = arg;
	struct poll *p, *next;

	for (p = TAILQ_FIRST(&api->polls); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->since < vhca_events_cursor(api->args.events))
			answer_poll(p);
	}
}

static void on_event(void *arg)
{
	struct vhca_api *api = arg;

	if (api->n_polls)
		vhca_timer_arm_ms(api->wake, 0);
}

static int start_poll(struct vhca_api *api, struct vhca_http_request *req, uint64_t since,
		      uint64_t seconds)
{
	struct poll *p = calloc(1, sizeof(*p));

	if (!p || vhca_timer_new(api->args.loop, "poll", on_poll_timer, p, &p->timer) < 0) {
		free(p);
		return -ENOMEM;
	}
	p->api = api;
	p->req = req;
	p->since = since;
	TAILQ_INSERT_TAIL(&api->polls, p, link);
	api->n_polls++;
	vhca_timer_arm_ms(p->timer, seconds * 1000);
	vhca_http_on_cancel(req, on_poll_cancel, p);
	return 0;
}

static void get_events(void *ctx, struct vhca_http_request *req)
{
	struct vhca_api *api = ctx;
	const char *since_text = vhca_http_query(req, "since"),
		   *wait_text = vhca_http_query(req, "wait");
	uint64_t since = 0, wait = 0;
	struct vhca_error err;

	if ((since_text && vhca_parse_u64(since_text, 10, UINT64_MAX, &since)) ||
	    (wait_text && vhca_parse_u64(wait_text, 10, POLL_SECONDS_MAX, &wait))) {
		vhca_error_set(&err, VHCA_ERR_INVALID, "bad_request", 0,
			       "since is a cursor, wait is 0..%d seconds", POLL_SECONDS_MAX);
		vhca_http_reply_error(req, &err);
		return;
	}
	if (since == vhca_events_cursor(api->args.events) && wait && api->n_polls < POLLS_MAX &&
	    start_poll(api, req, since, wait) == 0)
		return;
	vhca_http_reply(req, 200, vhca_events_to_json(api->args.events, since));
}

/* ---- mutations ---- */

struct pending {
	struct vhca_api *api;
	struct vhca_http_request *req;
	unsigned int status;
};

static void on_done(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	VHCA_AUTO_FREE struct pending *p = arg;
	struct json_object *body;

	if (err) {
		vhca_http_reply_error(p->req, err);
	} else {
		body = claim ? vhca_view_claim(claim) : json_object_new_object();
		if (claim)
			vhca_json_add(body, "vf", vhca_view_vf(claim->vf));
		else
			vhca_json_add_string(body, "state", "free");
		vhca_http_reply(p->req, p->status, body);
	}
	vhca_http_loop_kick(p->api->adapter);
}

static struct pending *new_pending(struct vhca_api *api, struct vhca_http_request *req,
				   unsigned int status)
{
	struct pending *p = calloc(1, sizeof(*p));
	struct vhca_error err;

	if (p) {
		*p = (struct pending){.api = api, .req = req, .status = status};
		return p;
	}
	vhca_error_set(&err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "request");
	vhca_http_reply_error(req, &err);
	return NULL;
}

void vhca_api_kick(void *ctx)
{
	vhca_http_loop_kick(((struct vhca_api *)ctx)->adapter);
}

const struct vhca_api_args *vhca_api_args_of(const void *ctx)
{
	return &((const struct vhca_api *)ctx)->args;
}

int vhca_api_find_domain(void *ctx, const char *text, struct vhca_claim_request *ret,
			 struct vhca_error *err)
{
	const struct vhca_api *api = ctx;
	struct vhca_model *m = vhca_engine_model(api->args.engine);
	const struct vhca_domain *dom;

	if (!vhca_uuid_parse(text, &ret->domain)) {
		dom = vhca_model_domain(m, &ret->domain);
		(void)snprintf(ret->domain_name, sizeof(ret->domain_name), "%s",
			       dom ? dom->info->name : text);
		return 0;
	}
	dom = vhca_model_domain_by_name(m, text);
	if (!dom) {
		vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_domain", 0,
			       "domain %s does not run here", text);
		vhca_error_hint(err, "give its UUID, or the name of an active domain (virsh list)");
		return -ENOENT;
	}
	ret->domain = dom->info->uuid;
	(void)vhca_strcpy(ret->domain_name, sizeof(ret->domain_name),
			  dom->info->name); /* same size */
	return 0;
}

static int set_text(char *dst, size_t size, const char *key, const char *value,
		    struct vhca_error *err)
{
	if (vhca_strcpy(dst, size, value) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", ENAMETOOLONG,
				      "body: %s", key);
	return 0;
}

static int parse_names(const char *name, const char *fabric, struct vhca_vf_request *ret,
		       struct vhca_error *err)
{
	if (!vhca_name_is_valid(name))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "name \"%.40s\": want 1 to 31 of A-Z a-z 0-9 _ -", name);
	if (!vhca_name_is_valid(fabric))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "fabric \"%.40s\": no valid name", fabric);
	(void)vhca_strcpy(ret->name, sizeof(ret->name), name);	     /* valid names */
	(void)vhca_strcpy(ret->fabric, sizeof(ret->fabric), fabric); /* fit */
	return 0;
}

static int parse_guid(const char *guid, uint64_t *ret, struct vhca_error *err)
{
	if (guid && vhca_guid_wish_parse(guid, ret) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", 0,
				      "body: guid: \"%.40s\" is neither auto nor a unicast GUID "
				      "nor mac: and a unicast MAC address",
				      guid);
	return 0;
}

/* What the bodies of attach and claim share: partition, guid, fabric. */
static int parse_vf(struct json_object *body, const char *name, struct vhca_vf_request *ret,
		    struct vhca_error *err)
{
	const char *partition = NULL, *guid = NULL, *fabric = "default";
	int r;

	if (!body)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "a JSON body with partition is needed");
	ret->numa = -1;
	r = vhca_json_get_string(body, "partition", &partition, err);
	if (!r)
		r = vhca_json_opt_string(body, "guid", &guid, err);
	if (!r)
		r = vhca_json_opt_string(body, "fabric", &fabric, err);
	if (!r)
		r = parse_names(name, fabric, ret, err);
	if (!r)
		r = set_text(ret->partition, sizeof(ret->partition), "partition", partition, err);
	return r < 0 ? r : parse_guid(guid, &ret->guid, err);
}

static void submit_claim(struct vhca_api *api, struct vhca_http_request *req,
			 const struct vhca_claim_request *want, unsigned int status)
{
	struct pending *p = new_pending(api, req, status);

	if (p)
		vhca_engine_claim(api->args.engine, want, on_done, p);
}

static void post_attach(void *ctx, struct vhca_http_request *req)
{
	static const char *const members[] = {"partition", "guid", "fabric", NULL};
	struct vhca_claim_request want = {.way = VHCA_WAY_ATTACH};
	struct json_object *body = vhca_http_body(req);
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = body ? vhca_json_check_members(body, members, &err) : 0;

	if (!r)
		r = vhca_api_find_domain(ctx, vhca_http_param(req, 0), &want, &err);
	if (!r)
		r = parse_vf(body, vhca_http_param(req, 1), &want.vf, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		submit_claim(ctx, req, &want, 200);
}

static int parse_claim(struct vhca_api *api, struct json_object *body,
		       struct vhca_claim_request *ret, struct vhca_error *err)
{
	static const char *const members[] = {"domain", "name", "partition", "guid",
					      "fabric", "bdf",	NULL};
	const char *domain = NULL, *name = NULL, *bdf = NULL;
	int r;

	if (!body)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "a JSON body with domain, name and partition is needed");
	r = vhca_json_check_members(body, members, err);
	if (!r)
		r = vhca_json_get_string(body, "domain", &domain, err);
	if (!r)
		r = vhca_json_get_string(body, "name", &name, err);
	if (!r)
		r = vhca_json_opt_string(body, "bdf", &bdf, err);
	if (!r)
		r = vhca_api_find_domain(api, domain, ret, err);
	if (!r)
		r = parse_vf(body, name, &ret->vf, err);
	if (r < 0 || !bdf)
		return r;
	ret->has_bdf = true;
	if (vhca_bdf_parse(bdf, &ret->bdf))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "body: bdf: \"%.40s\" is no PCI address", bdf);
	return 0;
}

static void post_claims(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim_request want = {.way = VHCA_WAY_CLAIM};
	struct vhca_error err = VHCA_ERROR_INIT;

	if (parse_claim(ctx, vhca_http_body(req), &want, &err) < 0)
		vhca_http_reply_error(req, &err);
	else
		submit_claim(ctx, req, &want, 201);
}

static void release(struct vhca_api *api, struct vhca_http_request *req, struct vhca_claim *claim,
		    bool forbid_attached)
{
	struct pending *p = new_pending(api, req, 200);

	if (p)
		vhca_engine_release(api->args.engine, claim, forbid_attached, on_done, p);
}

static void delete_attach(void *ctx, struct vhca_http_request *req)
{
	struct vhca_api *api = ctx;
	struct vhca_claim_request want = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *claim = NULL;

	if (vhca_api_find_domain(api, vhca_http_param(req, 0), &want, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	claim = vhca_model_claim_of(vhca_engine_model(api->args.engine), &want.domain,
				    vhca_http_param(req, 1));
	if (claim) {
		release(api, req, claim, false);
		return;
	}
	vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_claim", 0,
		       "domain %s has no VF named %.40s", want.domain_name,
		       vhca_http_param(req, 1));
	vhca_error_hint(&err, "vhcactl domains lists them");
	vhca_http_reply_error(req, &err);
}

static void delete_claim(void *ctx, struct vhca_http_request *req)
{
	struct vhca_api *api = ctx;
	struct vhca_claim *claim = NULL;
	struct vhca_error err;
	struct vhca_uuid id;

	if (!vhca_uuid_parse(vhca_http_param(req, 0), &id))
		claim = vhca_model_claim(vhca_engine_model(api->args.engine), &id);
	if (claim) {
		release(api, req, claim, true);
		return;
	}
	vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_claim", 0, "claim %.40s",
		       vhca_http_param(req, 0));
	vhca_http_reply_error(req, &err);
}

static const struct vhca_http_route routes[] = {
	{"GET", "/v1/node", get_node},
	{"GET", "/v1/hcas", get_hcas},
	{"GET", "/v1/vfs", get_vfs},
	{"GET", "/v1/vfs/{}", get_vf},
	{"GET", "/v1/vfs/{}/explain", vhca_api_explain_vf},
	{"GET", "/v1/domains", get_domains},
	{"GET", "/v1/domains/{}/explain", vhca_api_explain_domain},
	{"POST", "/v1/domains/{}/adopt", vhca_api_adopt},
	{"POST", "/v1/domains/{}/vfs/{}", post_attach},
	{"DELETE", "/v1/domains/{}/vfs/{}", delete_attach},
	{"GET", "/v1/claims", get_claims},
	{"POST", "/v1/claims", post_claims},
	{"DELETE", "/v1/claims/{}", delete_claim},
	{"GET", "/v1/migrations", vhca_api_get_migrations},
	{"POST", "/v1/migrations", vhca_api_post_migrations},
	{"GET", "/v1/migrations/{}", vhca_api_get_migration},
	{"POST", "/v1/migrations/{}/abort", vhca_api_abort_migration},
	{"GET", "/v1/outbox", get_outbox},
	{"GET", "/v1/events", get_events},
	{"GET", "/healthz", get_healthz},
	{"GET", "/readyz", get_readyz},
	{NULL, NULL, NULL},
};

/* ---- life ---- */

static int give_to_group(const char *path, const char *group, struct vhca_error *err)
{
	const struct group *g;

	if (!group[0])
		return 0;
	g = getgrnam(group); /* start-up: the loop does not run yet */
	if (!g)
		return vhca_error_set(err, VHCA_ERR_INVALID, "no_such_group", 0,
				      "api.group: group %s does not exist", group);
	if (chown(path, (uid_t)-1, g->gr_gid) < 0 || chmod(path, 0660) < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "api_socket", errno,
				      "%s: cannot give to group %s", path, group);
	return 0;
}

int vhca_api_new(const struct vhca_api_args *args, struct vhca_api **ret, struct vhca_error *err)
{
	struct vhca_api *api = calloc(1, sizeof(*api));
	char url[128], path[108];
	int r;

	if (!api)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "API");
	api->args = *args;
	api->started_ms = vhca_wall_ms();
	TAILQ_INIT(&api->polls);
	(void)snprintf(path, sizeof(path), "%s/vhcad.sock", args->conf->run_dir);
	(void)snprintf(url, sizeof(url), "unix:%s", path);
	r = vhca_http_server_new(url, 0600, NULL, routes, api, &api->server, err);
	if (!r)
		r = give_to_group(path, args->conf->api_group, err);
	if (!r && (vhca_http_loop_attach(args->loop, api->server, &api->adapter) < 0 ||
		   vhca_timer_new(args->loop, "events", on_wake, api, &api->wake) < 0))
		r = vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "API");
	if (r < 0) {
		vhca_api_free(api);
		return r;
	}
	vhca_events_listen(args->events, on_event, api);
	*ret = api;
	return 0;
}

struct vhca_api *vhca_api_free(struct vhca_api *api)
{
	if (!api)
		return NULL;
	vhca_events_listen(api->args.events, NULL, NULL);
	while (TAILQ_FIRST(&api->polls))
		answer_poll(TAILQ_FIRST(&api->polls));
	vhca_http_loop_detach(api->adapter);
	vhca_http_server_free(api->server);
	vhca_timer_free(api->wake);
	free(api);
	return NULL;
}
