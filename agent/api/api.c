/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/api.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/api/adopt.h"
#include "agent/api/claims.h"
#include "agent/api/drain.h"
#include "agent/api/events.h"
#include "agent/api/explain.h"
#include "agent/api/json.h"
#include "agent/api/migrations.h"
#include "agent/api/reload.h"
#include "agent/api/takeover.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/role.h"
#include "common/http/json.h"
#include "config.h"

struct vhca_api {
	struct vhca_api_args args;
	uint64_t started_ms;
	struct vhca_http_server *server;
	struct vhca_http_loop_server *adapter;
	struct vhca_api_polls *polls;
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
	struct vhca_error disk = VHCA_ERROR_INIT;

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
	vhca_json_add_bool(o, "drained", vhca_drain_is_on(a->drain));
	(void)vhca_engine_check_disk(a->engine, &disk);
	vhca_json_add_string(o, "store_problem", disk.kind ? disk.msg : NULL);
	vhca_json_add(o, "counts", count_states(vhca_engine_model(a->engine)));
	vhca_http_reply(req, 200, o);
}

static struct json_object *view_hca(const struct vhca_api *api, const struct vhca_hca *hca)
{
	return vhca_view_hca(hca, vhca_host_busy_since(api->args.host, hca->facts.bdf));
}

/* An adapter by its address. NULL with err set if there is none. */
static struct vhca_hca *find_hca(const struct vhca_api *api, const char *text,
				 struct vhca_error *err)
{
	struct vhca_hca *hca = NULL;
	struct vhca_bdf bdf;

	if (!vhca_bdf_parse(text, &bdf))
		hca = vhca_model_hca(vhca_engine_model(api->args.engine), bdf);
	if (hca)
		return hca;
	(void)vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_hca", 0, "adapter %.40s", text);
	vhca_error_hint(err, "addresses look like 0000:03:00.0; vhcactl hcas lists them");
	return NULL;
}

static void get_hca(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_hca *hca = find_hca(ctx, vhca_http_param(req, 0), &err);

	if (hca)
		vhca_http_reply(req, 200, view_hca(ctx, hca));
	else
		vhca_http_reply_error(req, &err);
}

static void on_forgotten(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct json_object *body;
	struct vhca_pending *p = arg;

	(void)claim;
	if (err) {
		vhca_pending_refuse(p, err);
		return;
	}
	body = json_object_new_object();
	vhca_json_add_string(body, "bdf", vhca_http_param(p->req, 0));
	vhca_pending_reply(p, body);
}

static void delete_hca(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_hca *hca = find_hca(ctx, vhca_http_param(req, 0), &err);
	struct vhca_pending *p;

	if (!hca) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = vhca_api_pend(ctx, req);
	if (p)
		vhca_engine_forget(api->args.engine, hca, on_forgotten, p);
}

static void get_hcas(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	struct json_object *list = json_object_new_array();
	struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &vhca_engine_model(api->args.engine)->hcas, link)
		json_object_array_add(list, view_hca(api, hca));
	reply_list(req, "hcas", list);
}

/*
 * The state that the query asks for, VHCA_VF_STATE_COUNT without one. An empty list would hide a
 * word that is misspelt.
 */
static int wanted_state(struct vhca_http_request *req, enum vhca_vf_state *ret,
			struct vhca_error *err)
{
	const char *word = vhca_http_query(req, "state");
	struct vhca_strbuf sb;
	char known[128];

	*ret = VHCA_VF_STATE_COUNT;
	if (!word || !vhca_vf_state_parse(word, ret))
		return 0;
	vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
		       "query: %.40s is no state of a VF", word);
	vhca_strbuf_init(&sb, known, sizeof(known));
	for (unsigned int s = 0; s < VHCA_VF_STATE_COUNT; s++)
		vhca_strbuf_add(&sb, "%s%s", s ? ", " : "",
				vhca_vf_state_to_string((enum vhca_vf_state)s));
	vhca_error_hint(err, "state is one of %s", known);
	return -EINVAL;
}

struct filter {
	enum vhca_vf_state state;   /* VHCA_VF_STATE_COUNT: any */
	const struct vhca_hca *hca; /* NULL: any */
	bool of_domain;		    /* only what this one has */
	struct vhca_uuid domain;
};

static int wanted_domain(void *ctx, struct vhca_http_request *req, struct filter *ret,
			 struct vhca_error *err)
{
	const char *text = vhca_http_query(req, "domain");
	struct vhca_claim_request found = {0};
	int r = text ? vhca_api_find_domain(ctx, text, &found, err) : 0;

	ret->of_domain = text != NULL;
	ret->domain = found.domain;
	return r;
}

static int wanted_vfs(void *ctx, struct vhca_http_request *req, struct filter *ret,
		      struct vhca_error *err)
{
	const char *pf = vhca_http_query(req, "pf");
	int r = wanted_state(req, &ret->state, err);

	if (!r)
		r = wanted_domain(ctx, req, ret, err);
	if (r < 0)
		return r;
	ret->hca = pf ? find_hca(ctx, pf, err) : NULL;
	return pf && !ret->hca ? -ENOENT : 0;
}

static bool is_wanted_claim(const struct filter *f, const struct vhca_claim *c)
{
	return !f->of_domain || (c && vhca_uuid_equal(&c->domain, &f->domain));
}

static bool is_wanted_vf(const struct filter *f, const struct vhca_vf *vf)
{
	return (f->state == VHCA_VF_STATE_COUNT || f->state == vf->state) &&
	       (!f->hca || f->hca == vf->hca) && is_wanted_claim(f, vf->claim);
}

static void get_vfs(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	struct json_object *list;
	struct filter filter;
	struct vhca_error err;
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	if (wanted_vfs(ctx, req, &filter, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	list = json_object_new_array();
	TAILQ_FOREACH (hca, &vhca_engine_model(api->args.engine)->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (is_wanted_vf(&filter, vf))
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

static void get_domain(void *ctx, struct vhca_http_request *req)
{
	struct vhca_model *m = vhca_engine_model(((const struct vhca_api *)ctx)->args.engine);
	struct vhca_claim_request found = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_domain *dom = NULL;
	int r = vhca_api_find_domain(ctx, vhca_http_param(req, 0), &found, &err);

	if (!r)
		dom = vhca_model_domain(m, &found.domain);
	if (!r && !dom)
		(void)vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_domain", 0,
				     "domain %s does not run here", found.domain_name);
	if (dom)
		vhca_http_reply(req, 200, vhca_view_domain(m, dom));
	else
		vhca_http_reply_error(req, &err);
}

static void get_claims(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;
	struct json_object *list;
	struct filter filter;
	struct vhca_error err;
	struct vhca_claim *c;

	if (wanted_domain(ctx, req, &filter, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	list = json_object_new_array();
	TAILQ_FOREACH (c, &vhca_engine_model(api->args.engine)->claims, link)
		if (is_wanted_claim(&filter, c))
			json_object_array_add(list, vhca_view_claim(c));
	reply_list(req, "claims", list);
}

static void get_outbox(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api *api = ctx;

	reply_list(req, "outbox", vhca_outbox_to_json(api->args.outbox));
}

static void get_events(void *ctx, struct vhca_http_request *req)
{
	vhca_api_polls_answer(((struct vhca_api *)ctx)->polls, req);
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

/* ---- for the handlers in other files ---- */

struct vhca_pending *vhca_api_pend(void *ctx, struct vhca_http_request *req)
{
	return vhca_pending_new(ctx, req, ((struct vhca_api *)ctx)->adapter);
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

static const struct vhca_http_route routes[] = {
	{"GET", "/v1/node", VHCA_CALLER_READ, get_node},
	{"GET", "/v1/hcas", VHCA_CALLER_READ, get_hcas},
	{"GET", "/v1/hcas/{}", VHCA_CALLER_READ, get_hca},
	{"DELETE", "/v1/hcas/{}", VHCA_CALLER_ADMIN, delete_hca},
	{"GET", "/v1/vfs", VHCA_CALLER_READ, get_vfs, "state pf domain"},
	{"GET", "/v1/vfs/{}", VHCA_CALLER_READ, get_vf},
	{"GET", "/v1/vfs/{}/explain", VHCA_CALLER_READ, vhca_api_explain_vf},
	{"GET", "/v1/domains", VHCA_CALLER_READ, get_domains},
	{"GET", "/v1/domains/{}", VHCA_CALLER_READ, get_domain},
	{"GET", "/v1/domains/{}/explain", VHCA_CALLER_READ, vhca_api_explain_domain},
	{"POST", "/v1/domains/{}/adopt", VHCA_CALLER_OPERATE, vhca_api_adopt},
	{"POST", "/v1/domains/{}/takeover", VHCA_CALLER_ADMIN, vhca_api_takeover},
	{"POST", "/v1/domains/{}/vfs/{}", VHCA_CALLER_OPERATE, vhca_api_post_attach},
	{"DELETE", "/v1/domains/{}/vfs/{}", VHCA_CALLER_OPERATE, vhca_api_delete_attach},
	{"GET", "/v1/claims", VHCA_CALLER_READ, get_claims, "domain"},
	{"GET", "/v1/claims/{}", VHCA_CALLER_READ, vhca_api_get_claim},
	{"POST", "/v1/claims", VHCA_CALLER_OPERATE, vhca_api_post_claims},
	{"DELETE", "/v1/claims/{}", VHCA_CALLER_OPERATE, vhca_api_delete_claim},
	{"GET", "/v1/migrations", VHCA_CALLER_READ, vhca_api_get_migrations},
	{"POST", "/v1/migrations", VHCA_CALLER_OPERATE, vhca_api_post_migrations},
	{"GET", "/v1/migrations/{}", VHCA_CALLER_READ, vhca_api_get_migration},
	{"POST", "/v1/migrations/{}/abort", VHCA_CALLER_OPERATE, vhca_api_abort_migration},
	{"POST", "/v1/migrations/{}/lease", VHCA_CALLER_OPERATE, vhca_api_extend_migration},
	{"GET", "/v1/drain", VHCA_CALLER_READ, vhca_api_get_drain},
	{"POST", "/v1/drain", VHCA_CALLER_ADMIN, vhca_api_post_drain},
	{"DELETE", "/v1/drain", VHCA_CALLER_ADMIN, vhca_api_delete_drain},
	{"POST", "/v1/reload", VHCA_CALLER_ADMIN, vhca_api_reload},
	{"GET", "/v1/outbox", VHCA_CALLER_READ, get_outbox},
	{"GET", "/v1/events", VHCA_CALLER_READ, get_events, "since wait"},
	{"GET", "/healthz", VHCA_CALLER_METRICS, get_healthz},
	{"GET", "/readyz", VHCA_CALLER_METRICS, get_readyz},
	{.method = NULL},
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
	const struct vhca_http_limits limits = {.rules = &args->conf->api_roles};
	struct vhca_api *api = calloc(1, sizeof(*api));
	char url[128], path[108];
	int r;

	if (!api)
		return vhca_error_no_memory(err, "API");
	api->args = *args;
	api->started_ms = vhca_wall_ms();
	(void)snprintf(path, sizeof(path), "%s/vhcad.sock", args->conf->run_dir);
	(void)snprintf(url, sizeof(url), "unix:%s", path);
	r = vhca_http_server_new(url, 0600, &limits, routes, api, &api->server, err);
	if (!r)
		r = give_to_group(path, args->conf->api_group, err);
	if (!r && (vhca_http_loop_attach(args->loop, api->server, &api->adapter) < 0 ||
		   vhca_api_polls_new(args->loop, args->events, api->adapter, &api->polls) < 0))
		r = vhca_error_no_memory(err, "API");
	if (r < 0) {
		vhca_api_free(api);
		return r;
	}
	*ret = api;
	return 0;
}

struct vhca_api *vhca_api_free(struct vhca_api *api)
{
	if (!api)
		return NULL;
	vhca_api_polls_free(api->polls);
	vhca_http_loop_detach(api->adapter);
	vhca_http_server_free(api->server);
	free(api);
	return NULL;
}
