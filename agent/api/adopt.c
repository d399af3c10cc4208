/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/adopt.h"

#include "agent/api/api.h"
#include "agent/api/json.h"
#include "common/http/json.h"

static struct json_object *view_claims(struct vhca_model *m, const struct vhca_uuid *domain)
{
	struct json_object *doc = json_object_new_object(), *list = json_object_new_array();
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &m->claims, link)
		if (vhca_uuid_equal(&c->domain, domain))
			json_object_array_add(list, vhca_view_claim(c));
	vhca_json_add(doc, "claims", list);
	return doc;
}

static void on_done(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct vhca_pending *p = arg;

	(void)claim;
	if (err)
		vhca_pending_refuse(p, err);
	else
		vhca_pending_reply(p,
				   view_claims(vhca_engine_model(vhca_api_args_of(p->ctx)->engine),
					       &p->domain));
}

void vhca_api_adopt(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim_request found = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_pending *p;

	if (vhca_api_find_domain(ctx, vhca_http_param(req, 0), &found, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = vhca_api_pend(ctx, req);
	if (!p)
		return;
	p->domain = found.domain;
	vhca_engine_adopt(vhca_api_args_of(ctx)->engine, &p->domain, on_done, p);
}
