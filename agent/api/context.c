/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/context.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/file.h"
#include "common/http/json.h"

const struct vhca_api_args *api_args(const void *ctx)
{
	return &((const struct api_context *)ctx)->args;
}

struct vhca_model *api_model(const void *ctx)
{
	return vhca_engine_model(api_args(ctx)->engine);
}

struct vhca_explain api_look_from(const struct vhca_api_args *a, const struct vhca_hca *hca)
{
	uint64_t since = hca ? vhca_host_busy_since(a->host, hca->facts.bdf) : 0;
	struct vhca_explain ex = {
		.model = vhca_engine_model(a->engine),
		.conf = a->conf,
		.sm = a->sm,
		.sm_reachable = vhca_outbox_reachable(a->outbox),
		.virt_connected = a->virt && vhca_virt_connected(a->virt),
		.virt_synced = vhca_engine_virt_synced(a->engine),
		.drained = vhca_drain_is_on(a->drain),
		.busy_ms = since ? vhca_now_ms() - since : 0,
	};

	(void)vhca_engine_check_disk(a->engine, &ex.disk);
	(void)vhca_engine_check_ready(a->engine, &ex.beginning);
	(void)vhca_engine_check_ports(a->engine, &ex.ports);
	return ex;
}

/* ---- replies ---- */

struct api_pending *api_pend(void *ctx, struct vhca_http_request *req)
{
	return api_pending_new(ctx, req, ((struct api_context *)ctx)->adapter);
}

void api_reply_list(struct vhca_http_request *req, const char *key, struct json_object *list)
{
	struct json_object *doc = json_object_new_object();

	vhca_json_add(doc, key, list);
	vhca_http_reply(req, 200, doc);
}

/* ---- what a path or a query names ---- */

struct vhca_hca *api_find_hca(const void *ctx, const char *text, struct vhca_error *err)
{
	struct vhca_hca *hca = NULL;
	struct vhca_bdf bdf;

	if (!vhca_bdf_parse(text, &bdf))
		hca = vhca_model_hca(api_model(ctx), bdf);
	if (hca)
		return hca;
	(void)vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_hca", 0, "adapter %.40s", text);
	vhca_error_hint(err, "addresses look like 0000:03:00.0; vhcactl hcas lists them");
	return NULL;
}

const struct vhca_vf *api_find_vf(const void *ctx, const char *text, struct vhca_error *err)
{
	const struct vhca_vf *vf = NULL;
	struct vhca_bdf bdf;

	if (!vhca_bdf_parse(text, &bdf))
		vf = vhca_model_vf(api_model(ctx), bdf);
	if (vf)
		return vf;
	vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_vf", 0, "VF %.40s", text);
	vhca_error_hint(err, "addresses look like 0000:03:00.1; vhcactl vfs lists them");
	return NULL;
}

int api_find_domain(const void *ctx, const char *text, struct vhca_claim_request *ret,
		    struct vhca_error *err)
{
	struct vhca_model *m = api_model(ctx);
	const struct vhca_domain *dom;

	if (!vhca_uuid_parse(text, &ret->domain)) {
		dom = vhca_model_domain(m, &ret->domain);
		(void)snprintf(ret->domain_name, sizeof(ret->domain_name), "%s",
			       dom ? dom->info->name : text);
		return 0;
	}
	dom = vhca_model_domain_by_name(m, text);
	if (!dom) {
		int r = vhca_engine_no_such_domain(api_args(ctx)->engine, text, err);

		vhca_error_hint(err, "give its UUID, or the name of an active domain (virsh list)");
		return r;
	}
	ret->domain = dom->info->uuid;
	(void)vhca_strcpy(ret->domain_name, sizeof(ret->domain_name),
			  dom->info->name); /* same size */
	return 0;
}

int api_read_domain_filter(const void *ctx, const struct vhca_http_request *req,
			   struct api_domain_filter *ret, struct vhca_error *err)
{
	const char *text = vhca_http_query(req, "domain");
	struct vhca_claim_request found = {0};
	int r = text ? api_find_domain(ctx, text, &found, err) : 0;

	*ret = (struct api_domain_filter){.is_set = text != NULL, .domain = found.domain};
	return r;
}
