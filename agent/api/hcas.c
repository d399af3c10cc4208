/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "common/http/json.h"

static struct json_object *view_hca(const void *ctx, const struct vhca_hca *hca)
{
	return api_view_hca(hca, vhca_host_busy_since(api_args(ctx)->host, hca->facts.bdf));
}

void api_get_hcas(void *ctx, struct vhca_http_request *req)
{
	struct json_object *list = json_object_new_array();
	struct vhca_hca *hca;

	TAILQ_FOREACH (hca, &api_model(ctx)->hcas, link)
		json_object_array_add(list, view_hca(ctx, hca));
	api_reply_list(req, "hcas", list);
}

void api_get_hca(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_hca *hca = api_find_hca(ctx, vhca_http_param(req, 0), &err);

	if (hca)
		vhca_http_reply(req, 200, view_hca(ctx, hca));
	else
		vhca_http_reply_error(req, &err);
}

static void on_forgotten(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct json_object *body;
	struct api_pending *p = arg;

	(void)claim;
	if (err) {
		api_pending_refuse(p, err);
		return;
	}
	body = json_object_new_object();
	vhca_json_add_string(body, "bdf", vhca_http_param(p->req, 0));
	api_pending_reply(p, body);
}

void api_delete_hca(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_hca *hca = api_find_hca(ctx, vhca_http_param(req, 0), &err);
	struct api_pending *p;

	if (!hca) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = api_pend(ctx, req);
	if (p)
		vhca_engine_forget(api_args(ctx)->engine, hca, on_forgotten, p);
}
