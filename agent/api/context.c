/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/api/views.h"
#include "common/base/codes.h"
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

	vhca_json_cut_list(list, vhca_http_query(req, "fields"));
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

int api_no_partition(const char *text, struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_NOT_FOUND, "partition_not_here", 0, "partition %.40s",
			     text);
	vhca_error_hint(err, "GET /v1/partitions lists those that have a name, a guest or a place "
			     "in a port's table here");
	return -ENOENT;
}

int api_find_pkey(const void *ctx, const char *text, uint16_t *ret, struct vhca_error *err)
{
	const struct vhca_conf *conf = api_args(ctx)->conf;

	*ret = 0;
	if (vhca_pkey_parse(text, ret) < 0)
		for (unsigned int i = 0; i < conf->n_partitions; i++)
			if (strcmp(conf->partitions[i].name, text) == 0)
				*ret = conf->partitions[i].pkey;
	return vhca_pkey_base(*ret) ? 0 : api_no_partition(text, err);
}

/* ---- which of a list ---- */

static int read_place(const struct vhca_http_request *req, struct api_filter *ret,
		      struct vhca_error *err)
{
	const char *numa = vhca_http_query(req, "numa");
	uint32_t n = 0;

	ret->fabric = vhca_http_query(req, "fabric");
	ret->numa = -1;
	if (ret->fabric && !vhca_name_is_valid(ret->fabric))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: fabric: \"%.40s\" is no valid name", ret->fabric);
	if (!numa)
		return 0;
	if (vhca_parse_u32(numa, 10, VHCA_NUMA_NODE_MAX, &n) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: numa must be 0..%d", VHCA_NUMA_NODE_MAX);
	ret->numa = (int)n;
	return 0;
}

int api_read_filter(const void *ctx, const struct vhca_http_request *req, struct api_filter *ret,
		    struct vhca_error *err)
{
	const char *domain = vhca_http_query(req, "domain"), *pf = vhca_http_query(req, "pf"),
		   *partition = vhca_http_query(req, "partition");
	struct vhca_claim_request found = {0};
	int r = domain ? api_find_domain(ctx, domain, &found, err) : 0;

	*ret = (struct api_filter){.is_of_domain = domain != NULL, .domain = found.domain};
	if (r == 0)
		r = read_place(req, ret, err);
	if (r == 0 && partition)
		r = api_find_pkey(ctx, partition, &ret->pkey, err);
	if (r < 0)
		return r;
	ret->hca = pf ? api_find_hca(ctx, pf, err) : NULL;
	return pf && !ret->hca ? -ENOENT : 0;
}

bool api_filter_takes(const struct api_filter *f, const char *fabric, const struct vhca_vf *vf,
		      const struct vhca_claim *claim)
{
	if (f->is_of_domain && !(claim && vhca_uuid_equal(&claim->domain, &f->domain)))
		return false;
	if (f->pkey && !(claim && api_claim_key(claim, f->pkey)))
		return false;
	return (!f->hca || f->hca == vf->hca) && (!f->fabric || strcmp(f->fabric, fabric) == 0) &&
	       (f->numa < 0 || f->numa == vf->hca->facts.numa_node);
}

int api_read_page(const struct vhca_http_request *req, uint32_t usual, struct api_page *ret,
		  struct vhca_error *err)
{
	const char *limit = vhca_http_query(req, "limit");

	*ret = (struct api_page){.limit = usual, .after = vhca_http_query(req, "after")};
	if (limit && (vhca_parse_u32(limit, 10, API_PAGE_MAX, &ret->limit) < 0 || ret->limit == 0))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: limit must be 1..%d", API_PAGE_MAX);
	return 0;
}

bool api_page_takes(struct api_page *page, const char *key, bool wanted)
{
	if (page->after) {
		if (strcmp(page->after, key) == 0)
			page->after = NULL;
		return false;
	}
	page->is_cut = page->is_cut || (wanted && page->n == page->limit);
	if (!wanted || page->is_cut)
		return false;
	page->n++;
	(void)vhca_strcpy(page->last, sizeof(page->last), key); /* a UUID is the longest */
	return true;
}

void api_reply_page(struct vhca_http_request *req, const char *key, struct json_object *list,
		    const struct api_page *page)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *doc;

	if (page->after) {
		json_object_put(list);
		(void)vhca_error_set(&err, VHCA_ERR_NOT_FOUND, VHCA_CODE_CURSOR_GONE, 0,
				     "query: after: %.40s is not in the list any more",
				     page->after);
		vhca_error_hint(&err, "read the list from its begin, without after");
		vhca_http_reply_error(req, &err);
		return;
	}
	doc = json_object_new_object();
	vhca_json_cut_list(list, vhca_http_query(req, "fields"));
	vhca_json_add(doc, key, list);
	vhca_json_add_string(doc, "next", page->is_cut ? page->last : NULL);
	vhca_http_reply(req, 200, doc);
}
