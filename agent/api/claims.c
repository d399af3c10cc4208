/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/api/body.h"
#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "agent/libvirt/domxml.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/http/json.h"

static void on_done(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	const struct api_pending *p = arg;
	struct json_object *body;
	bool reserved;

	if (err) {
		api_pending_refuse(arg, err);
		return;
	}
	body = claim ? api_view_claim(claim) : json_object_new_object();
	if (claim) {
		reserved = vhca_engine_reserves(api_args(p->ctx)->engine, claim->vf);
		vhca_json_add(body, "vf", api_view_vf(claim->vf, reserved));
	} else { /* free, unless it has gone */
		api_add_vf_state(body, p->vf);
	}
	api_pending_reply(arg, body);
}

static int parse_names(const char *name, const char *fabric, struct vhca_vf_request *ret,
		       struct vhca_error *err)
{
	if (!vhca_name_is_valid(name))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "name \"%.40s\": want 1 to 31 of A-Z a-z 0-9 _ -", name);
	if (!vhca_name_is_valid(fabric))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "fabric \"%.40s\": no valid name", fabric);
	(void)vhca_strcpy(ret->name, sizeof(ret->name), name);	     /* valid names */
	(void)vhca_strcpy(ret->fabric, sizeof(ret->fabric), fabric); /* fit */
	return 0;
}

/* What the bodies of attach and claim share: partition, guid, fabric, pf, numa. */
static int parse_vf(struct json_object *body, const char *name, bool may_lack_partition,
		    struct vhca_vf_request *ret, struct vhca_error *err)
{
	const char *partition = NULL, *guid = NULL, *fabric = "default";
	int r;

	if (!body)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "a JSON body with partition is needed");
	r = may_lack_partition ? vhca_json_opt_string(body, "partition", &partition, err)
			       : vhca_json_get_string(body, "partition", &partition, err);
	if (r == 0)
		r = vhca_json_opt_string(body, "guid", &guid, err);
	if (r == 0)
		r = vhca_json_opt_string(body, "fabric", &fabric, err);
	if (r == 0)
		r = parse_names(name, fabric, ret, err);
	if (r == 0 && partition &&
	    vhca_strcpy(ret->partition, sizeof(ret->partition), partition) < 0)
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, ENAMETOOLONG,
				   "body: partition");
	if (r == 0)
		r = api_parse_place(body, ret, err);
	if (r == 0 && guid && vhca_guid_wish_parse(guid, &ret->guid) < 0)
		r = vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", 0,
				   "body: guid: \"%.40s\" is neither auto, sm, a unicast GUID "
				   "nor mac: and a unicast MAC address",
				   guid);
	return r;
}

static void submit_claim(void *ctx, struct vhca_http_request *req, struct vhca_claim_request *want,
			 unsigned int status)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *made;
	struct api_pending *p;

	want->id = api_object_id(req);
	made = want->id ? vhca_model_claim_or_next(api_model(ctx), want->id) : NULL;
	if (api_check_repeat(req, made != NULL, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = api_pend(ctx, req);
	if (!p)
		return;
	p->status = status;
	if (made)
		vhca_engine_await(api_args(ctx)->engine, made, on_done, p);
	else
		vhca_engine_claim(api_args(ctx)->engine, want, on_done, p);
}

void api_post_attach(void *ctx, struct vhca_http_request *req)
{
	static const char *const members[] = {"partition", "guid", "fabric", "pf", "numa", NULL};
	struct vhca_claim_request want = {.origin = VHCA_ORIGIN_ATTACH};
	struct json_object *body = vhca_http_body(req);
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = body ? vhca_json_check_members(body, members, &err) : 0;

	if (r == 0)
		r = api_find_domain(ctx, vhca_http_param(req, 0), &want, &err);
	if (r == 0)
		r = parse_vf(body, vhca_http_param(req, 1), false, &want.vf, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		submit_claim(ctx, req, &want, 200);
}

static int parse_bdf(const char *text, struct vhca_bdf *ret, struct vhca_error *err)
{
	if (vhca_bdf_parse(text, ret) == 0)
		return 0;
	return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			      "body: bdf: \"%.40s\" is no PCI address", text);
}

static int parse_claim(void *ctx, struct json_object *body, struct vhca_claim_request *ret,
		       struct vhca_error *err)
{
	static const char *const members[] = {"domain", "name", "partition", "guid",  "fabric",
					      "pf",	"numa", "bdf",	     "lease", NULL};
	const char *domain = NULL, *name = NULL, *bdf = NULL;
	const struct vhca_vf *vf;
	int r = api_check_body(body, members, "domain, name and partition (or bdf)", err);

	if (r == 0)
		r = vhca_json_get_string(body, "domain", &domain, err);
	if (r == 0)
		r = vhca_json_get_string(body, "name", &name, err);
	if (r == 0)
		r = vhca_json_opt_string(body, "bdf", &bdf, err);
	if (r == 0)
		r = api_find_domain(ctx, domain, ret, err);
	if (r == 0)
		r = parse_vf(body, name, bdf != NULL, &ret->vf, err);
	if (r == 0)
		r = api_parse_lease(body, &ret->lease_s, err);
	if (r < 0 || !bdf)
		return r;
	ret->has_bdf = true;
	ret->no_partition = !json_object_object_get(body, "partition");
	r = parse_bdf(bdf, &ret->bdf, err);
	vf = r == 0 ? vhca_model_vf(api_model(ctx), ret->bdf) : NULL;
	/* An adapter that only the journal knows has none; its VFs are refused. */
	if (vf && vf->hca->present && !json_object_object_get(body, "fabric"))
		(void)vhca_strcpy(ret->vf.fabric, VHCA_NAME_MAX, vf->hca->fabric); /* fits */
	return r;
}

void api_post_claims(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim_request want = {.origin = VHCA_ORIGIN_CLAIM};
	struct vhca_error err = VHCA_ERROR_INIT;

	if (parse_claim(ctx, vhca_http_body(req), &want, &err) < 0)
		vhca_http_reply_error(req, &err);
	else
		submit_claim(ctx, req, &want, 201);
}

/* ---- plans ---- */

static int add_wanted(struct json_object *item, struct vhca_dom_info *ret, struct vhca_error *err)
{
	static const char *const members[] = {"name", "partition", "guid", "fabric",
					      "pf",   "numa",	   NULL};
	struct vhca_vf_request vf = {.numa = -1};
	const char *name = NULL;
	int r = vhca_json_check_members(item, members, err);

	if (r == 0)
		r = vhca_json_get_string(item, "name", &name, err);
	if (r == 0)
		r = parse_vf(item, name, false, &vf, err);
	if (r < 0)
		return r;
	if (vhca_dom_request(ret, name))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: vfs: name \"%s\" is used twice", name);
	ret->requests[ret->n_requests++] = vf;
	return 0;
}

static int read_wanted(const void *ctx, struct json_object *body, struct vhca_dom_info **ret,
		       struct vhca_error *err)
{
	struct json_object *list = json_object_object_get(body, "vfs");
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	VHCA_AUTO_FREE struct vhca_dom_info *info = vhca_dom_info_new(0);
	struct vhca_claim_request found = {0};
	const char *domain = NULL;
	int r = info ? vhca_json_get_string(body, "domain", &domain, err)
		     : vhca_error_no_memory(err, "plan");

	if (r == 0 && (n < 1 || n > VHCA_DOM_VFS_MAX))
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				   "body: vfs: 1 to %d entries are wanted", VHCA_DOM_VFS_MAX);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_wanted(json_object_array_get_idx(list, i), info, err);
	if (r == 0)
		r = api_find_domain(ctx, domain, &found, err);
	if (r < 0)
		return r;
	info->uuid = found.domain;
	(void)vhca_strcpy(info->name, sizeof(info->name), found.domain_name); /* same size */
	*ret = vhca_steal_ptr(&info);
	return 0;
}

static const struct vhca_uuid no_uuid;

/* Before libvirt has given a domain its UUID it is known by its name, if it was here before. */
static int read_xml(const void *ctx, const char *xml, struct vhca_dom_info **ret,
		    struct vhca_error *err)
{
	int r = vhca_domxml_parse(xml, strlen(xml), ret, NULL, err);
	struct vhca_model *m = api_model(ctx);
	const struct vhca_domain *dom;
	const struct vhca_claim *c;

	if (r < 0 || !vhca_uuid_equal(&(*ret)->uuid, &no_uuid))
		return r;
	TAILQ_FOREACH (c, &m->claims, link)
		if (strcmp(c->domain_name, (*ret)->name) == 0)
			(*ret)->uuid = c->domain;
	dom = vhca_model_domain_by_name(m, (*ret)->name);
	if (dom)
		(*ret)->uuid = dom->info->uuid;
	return 0;
}

static int parse_plan(const void *ctx, struct json_object *body, struct vhca_dom_info **ret,
		      struct vhca_error *err)
{
	static const char *const members[] = {"domain", "vfs", "xml", NULL};
	const char *xml = NULL;
	int r = api_check_body(body, members, "either domain and vfs or xml", err);

	if (r == 0)
		r = vhca_json_opt_string(body, "xml", &xml, err);
	if (r < 0)
		return r;
	if (!xml)
		return read_wanted(ctx, body, ret, err);
	if (json_object_object_get(body, "domain") || json_object_object_get(body, "vfs"))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: xml says the domain, and its VFs, too");
	return read_xml(ctx, xml, ret, err);
}

static struct json_object *view_plan(const struct vhca_dom_info *wanted,
				     const struct vhca_vf *const *places)
{
	struct json_object *doc = json_object_new_object(), *list = json_object_new_array();
	bool is_known = !vhca_uuid_equal(&wanted->uuid, &no_uuid);

	vhca_json_add_string(doc, "domain", is_known ? VHCA_UUID_STR(&wanted->uuid) : NULL);
	for (unsigned int i = 0; i < wanted->n_requests; i++) {
		const struct vhca_pf_facts *pf = &places[i]->hca->facts;
		const struct vhca_claim *c = places[i]->claim;
		struct json_object *o = json_object_new_object();

		vhca_json_add_string(o, "name", wanted->requests[i].name);
		vhca_json_add_string(o, "bdf", VHCA_BDF_STR(places[i]->bdf));
		vhca_json_add_string(o, "pf", VHCA_BDF_STR(pf->bdf));
		vhca_json_add_string(o, "fabric", places[i]->hca->fabric);
		vhca_json_add(o, "numa",
			      pf->numa_node < 0 ? NULL : json_object_new_int(pf->numa_node));
		vhca_json_add_string(o, "claim", c ? VHCA_UUID_STR(&c->id) : NULL);
		json_object_array_add(list, o);
	}
	vhca_json_add(doc, "vfs", list);
	return doc;
}

void api_post_plan(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_vf *places[VHCA_DOM_VFS_MAX];
	VHCA_AUTO_FREE struct vhca_dom_info *wanted = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = parse_plan(ctx, vhca_http_body(req), &wanted, &err);

	if (r == 0)
		r = vhca_engine_plan(api_args(ctx)->engine, wanted, places, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, view_plan(wanted, places));
}

/* ---- ports of a cloud ---- */

/* The path's: GUID and name are made of the MAC address, however that is written. */
static int parse_port(const struct vhca_http_request *req, struct vhca_vf_request *ret,
		      struct vhca_error *err)
{
	const char *fabric = vhca_http_param(req, 0), *mac = vhca_http_param(req, 1);
	char wish[32], name[VHCA_NAME_MAX];
	int r = snprintf(wish, sizeof(wish), "mac:%s", mac);

	if (r >= (int)sizeof(wish) || vhca_guid_wish_parse(wish, &ret->guid) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_guid", 0,
				      "\"%.40s\" is no unicast MAC address", mac);
	vhca_port_name(ret->guid, name);
	return parse_names(name, fabric, ret, err);
}

static int parse_port_body(void *ctx, struct json_object *body, struct vhca_claim_request *ret,
			   struct vhca_error *err)
{
	static const char *const members[] = {"domain", "bdf", NULL};
	const char *domain = NULL, *bdf = NULL;
	int r = api_check_body(body, members, "domain and bdf", err);

	if (r == 0)
		r = vhca_json_get_string(body, "domain", &domain, err);
	if (r == 0)
		r = vhca_json_get_string(body, "bdf", &bdf, err);
	if (r == 0)
		r = api_find_domain(ctx, domain, ret, err);
	return r < 0 ? r : parse_bdf(bdf, &ret->bdf, err);
}

/* The adapter's IPoIB interface, as eswitchd names it. "": not seen yet, behind a start. */
static const char *device_of(const struct vhca_vf *vf)
{
	const struct vhca_pf_facts *pf = &vf->hca->facts;

	return pf->netdev[0] ? pf->netdev : pf->ibdev;
}

void api_on_port(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct api_pending *p = arg;
	struct vhca_error wait;
	struct json_object *body;

	if (!claim && !err)
		claim = vhca_model_claim_by_guid(api_model(p->ctx), p->guid);
	if (claim && *device_of(claim->vf)) {
		body = api_view_claim(claim);
		vhca_json_add_string(body, "device", device_of(claim->vf));
		api_pending_reply(p, body);
		return;
	}
	if (claim)
		(void)vhca_error_set(&wait, VHCA_ERR_UNAVAILABLE, "no_rdma_device", 0,
				     "the adapter of the port's VF has no RDMA device yet");
	else
		(void)vhca_error_set(&wait, VHCA_ERR_UNAVAILABLE, "vf_busy", 0,
				     "the port's claim has just ended");
	api_pending_refuse(p, err ? err : &wait);
}

/* What answers a change of its partitions counts no refused claims. */
static void on_port_claimed(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	const struct api_pending *p = arg;
	struct vhca_model *m = api_model(p->ctx);

	if (!claim && err && err->kind != VHCA_ERR_UNAVAILABLE) /* that is asked for again */
		m->counters.ports_refused++;
	api_on_port(arg, claim, err);
}

void api_put_port(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim_request want = {.origin = VHCA_ORIGIN_CLAIM,
					  .vf = {.numa = -1},
					  .has_bdf = true,
					  .no_partition = true};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct api_pending *p;
	int r = parse_port(req, &want.vf, &err);

	if (r == 0)
		r = parse_port_body(ctx, vhca_http_body(req), &want, &err);
	if (r < 0) {
		api_model(ctx)->counters.ports_refused++;
		vhca_http_reply_error(req, &err);
		return;
	}
	want.lease_s = vhca_conf_port_lease_s(api_args(ctx)->conf);
	p = api_pend(ctx, req);
	if (!p)
		return;
	p->guid = want.vf.guid;
	vhca_engine_claim_port(api_args(ctx)->engine, &want, on_port_claimed, p);
}

/* ---- the end of claims ---- */

static void release(void *ctx, struct vhca_http_request *req, struct vhca_claim *claim,
		    bool forbid_attached)
{
	struct api_pending *p = api_pend(ctx, req);

	if (!p)
		return;
	p->vf = claim->vf;
	vhca_engine_release(api_args(ctx)->engine, claim, forbid_attached, on_done, p);
}

void api_delete_attach(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim_request want = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *claim = NULL;

	if (api_find_domain(ctx, vhca_http_param(req, 0), &want, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	claim = vhca_model_claim_of(api_model(ctx), &want.domain, vhca_http_param(req, 1));
	if (claim) {
		release(ctx, req, claim, false);
		return;
	}
	vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_claim", 0,
		       "domain %s has no VF named %.40s", want.domain_name,
		       vhca_http_param(req, 1));
	vhca_error_hint(&err, "vhcactl domains lists them");
	vhca_http_reply_error(req, &err);
}

/* The claim that the path names; NULL with err set. */
static struct vhca_claim *named_claim(const void *ctx, const struct vhca_http_request *req,
				      struct vhca_error *err)
{
	struct vhca_claim *claim = NULL;
	struct vhca_uuid id;

	if (vhca_uuid_parse(vhca_http_param(req, 0), &id) == 0)
		claim = vhca_model_claim(api_model(ctx), &id);
	if (!claim)
		vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_claim", 0, "claim %.40s",
			       vhca_http_param(req, 0));
	return claim;
}

/* The same; NULL: req has been answered. */
static struct vhca_claim *find_claim(const void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *claim = named_claim(ctx, req, &err);

	if (!claim)
		vhca_http_reply_error(req, &err);
	return claim;
}

void api_get_claims(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_claim *c;
	struct json_object *list;
	struct api_filter filter;
	struct api_page page;
	struct vhca_error err;

	if (api_read_filter(ctx, req, &filter, &err) < 0 ||
	    api_read_page(req, UINT32_MAX, &page, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	list = json_object_new_array();
	TAILQ_FOREACH (c, &api_model(ctx)->claims, link)
		if (api_page_takes(&page, VHCA_UUID_STR(&c->id),
				   api_filter_takes(&filter, c->fabric, c->vf, c)))
			json_object_array_add(list, api_view_claim(c));
	api_reply_page(req, "claims", list, &page);
}

struct json_object *api_claim_state(void *ctx, const struct vhca_http_request *req,
				    struct vhca_error *err)
{
	const struct vhca_claim *claim = named_claim(ctx, req, err);

	return claim ? api_view_claim(claim) : NULL;
}

void api_get_claim(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_claim *claim = find_claim(ctx, req);

	if (claim)
		vhca_http_reply(req, 200, api_view_claim(claim));
}

void api_renew_claim(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim *claim = find_claim(ctx, req);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct api_pending *p;
	uint32_t lease_s = 0;

	if (!claim)
		return;
	if (api_parse_renewal(vhca_http_body(req), &lease_s, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = api_pend(ctx, req);
	if (p)
		vhca_engine_renew(api_args(ctx)->engine, claim, lease_s, on_done, p);
}

void api_delete_claim(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim *claim = find_claim(ctx, req);

	if (claim)
		release(ctx, req, claim, true);
}

struct vhca_claim *api_find_port(const void *ctx, const struct vhca_http_request *req,
				 struct vhca_error *err)
{
	struct vhca_vf_request port = {.numa = -1};
	struct vhca_claim *c = NULL;

	if (parse_port(req, &port, err) < 0)
		return NULL;
	c = vhca_model_claim_by_guid(api_model(ctx), port.guid);
	if (c && (c->origin != VHCA_ORIGIN_CLAIM || strcmp(c->name, port.name) != 0))
		c = NULL;
	if (c && strcmp(c->fabric, port.fabric) == 0)
		return c;
	if (c)
		vhca_error_set(err, VHCA_ERR_CONFLICT, "wrong_fabric", 0,
			       "port %s is on fabric %s, not on %s", vhca_http_param(req, 1),
			       c->fabric, port.fabric);
	else
		vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_claim", 0, "port %s of fabric %s",
			       vhca_http_param(req, 1), port.fabric);
	return NULL;
}

struct json_object *api_port_state(void *ctx, const struct vhca_http_request *req,
				   struct vhca_error *err)
{
	const struct vhca_claim *claim = api_find_port(ctx, req, err);

	return claim ? api_view_claim(claim) : NULL;
}

static void on_port_released(void *arg, const struct vhca_claim *claim,
			     const struct vhca_error *err)
{
	const struct api_pending *p = arg;
	struct json_object *body;

	(void)claim;
	if (err) {
		api_pending_refuse(arg, err);
		return;
	}
	body = json_object_new_object();
	api_add_vf_state(body, p->vf);
	api_pending_reply(arg, body);
}

/* Claimed again meanwhile, it stays: that word is the newer one. */
static void on_port_looked(void *arg, bool known)
{
	struct api_pending *p = arg;
	struct vhca_engine *engine = api_args(p->ctx)->engine;
	struct vhca_claim *claim = vhca_model_claim(api_model(p->ctx), &p->claim);
	bool ends = claim && claim->end != VHCA_END_NONE;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (ends && known && vhca_engine_has_left(engine, claim->vf)) {
		vhca_engine_release_port(engine, claim, on_port_released, p);
		return;
	}
	if (ends && !known)
		vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
			       "the port ends when its VF has left domain %s; whether it has, "
			       "libvirt does not say",
			       claim->domain_name);
	on_port_released(p, claim, err.kind ? &err : NULL);
}

/*
 * A cloud ends the port of a domain that has just ended, and begins it elsewhere as soon as this is
 * answered: libvirt's event of that end may be on its way still.
 */
static void on_port_ending(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct api_pending *p = arg;
	const struct vhca_api_args *a = api_args(p->ctx);

	if (err || !claim || !a->look) {
		on_port_released(p, claim, err);
		return;
	}
	p->claim = claim->id;
	a->look(a->look_ctx, &claim->domain, on_port_looked, p);
}

void api_delete_port(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *claim = api_find_port(ctx, req, &err);
	struct api_pending *p;

	if (!claim) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = api_pend(ctx, req);
	if (p) {
		p->vf = claim->vf;
		vhca_engine_release_port(api_args(ctx)->engine, claim, on_port_ending, p);
	}
}
