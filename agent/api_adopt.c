/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api_adopt.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/api.h"
#include "agent/api_json.h"
#include "common/base/cleanup.h"
#include "common/http/json.h"

struct pending {
	void *ctx;
	struct vhca_http_request *req;
	struct vhca_uuid domain;
};

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
	VHCA_AUTO_FREE struct pending *p = arg;

	(void)claim;
	if (err)
		vhca_http_reply_error(p->req, err);
	else
		vhca_http_reply(p->req, 200,
				view_claims(vhca_engine_model(vhca_api_args_of(p->ctx)->engine),
					    &p->domain));
	vhca_api_kick(p->ctx);
}

void vhca_api_adopt(void *ctx, struct vhca_http_request *req)
{
	struct pending *p = calloc(1, sizeof(*p));
	struct vhca_claim_request found = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = 0;

	if (!p)
		r = vhca_error_set(&err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "request");
	if (!r)
		r = vhca_api_find_domain(ctx, vhca_http_param(req, 0), &found, &err);
	if (r < 0) {
		free(p);
		vhca_http_reply_error(req, &err);
		return;
	}
	*p = (struct pending){.ctx = ctx, .req = req, .domain = found.domain};
	vhca_engine_adopt(vhca_api_args_of(ctx)->engine, &p->domain, on_done, p);
}
