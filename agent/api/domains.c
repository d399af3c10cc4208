/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"

void api_get_domains(void *ctx, struct vhca_http_request *req)
{
	struct vhca_model *m = api_model(ctx);
	struct json_object *list;
	struct vhca_domain *dom;
	struct api_page page;
	struct vhca_error err;

	if (api_read_page(req, UINT32_MAX, &page, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	list = json_object_new_array();
	TAILQ_FOREACH (dom, &m->domains, link)
		if (api_page_takes(&page, VHCA_UUID_STR(&dom->info->uuid), true))
			json_object_array_add(list, api_view_domain(m, dom));
	api_reply_page(req, "domains", list, &page);
}

void api_get_domain(void *ctx, struct vhca_http_request *req)
{
	struct vhca_model *m = api_model(ctx);
	struct vhca_claim_request found = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_domain *dom = NULL;
	int r = api_find_domain(ctx, vhca_http_param(req, 0), &found, &err);

	if (!r)
		dom = vhca_model_domain(m, &found.domain);
	if (!r && !dom)
		(void)vhca_engine_no_such_domain(api_args(ctx)->engine, found.domain_name, &err);
	if (dom)
		vhca_http_reply(req, 200, api_view_domain(m, dom));
	else
		vhca_http_reply_error(req, &err);
}

/* ---- adopt ---- */

static void on_adopted(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	struct api_pending *p = arg;
	struct json_object *body;

	(void)claim;
	if (err) {
		api_pending_refuse(p, err);
		return;
	}
	body = json_object_new_object();
	vhca_json_add(body, "claims", api_view_claims(api_model(p->ctx), &p->domain));
	api_pending_reply(p, body);
}

void api_post_adopt(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim_request found = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct api_pending *p;

	if (api_find_domain(ctx, vhca_http_param(req, 0), &found, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = api_pend(ctx, req);
	if (!p)
		return;
	p->domain = found.domain;
	vhca_engine_adopt(api_args(ctx)->engine, &p->domain, on_adopted, p);
}

/* ---- takeover ---- */

/* It goes into the log as it is. */
static bool is_a_line(const char *text)
{
	size_t len = strlen(text);

	for (const char *p = text; *p; p++)
		if (vhca_control_len(p) > 0)
			return false;
	return len > 0 && len <= VHCA_EVIDENCE_MAX;
}

static int parse_evidence(struct json_object *body, const char **ret, struct vhca_error *err)
{
	static const char *const members[] = {"evidence", NULL};
	int r = body ? vhca_json_check_members(body, members, err) : 0;

	if (!r && body)
		r = vhca_json_get_string(body, "evidence", ret, err);
	if (r < 0)
		return r;
	if (!body || !is_a_line(*ret))
		return vhca_error_set(
			err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			"body: evidence: a line of 1 to %d bytes that says why the domain "
			"runs nowhere else",
			VHCA_EVIDENCE_MAX);
	return 0;
}

void api_post_takeover(void *ctx, struct vhca_http_request *req)
{
	struct vhca_claim_request found = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *body;
	const char *evidence = NULL;
	int r = parse_evidence(vhca_http_body(req), &evidence, &err);

	if (!r)
		r = api_find_domain(ctx, vhca_http_param(req, 0), &found, &err);
	if (!r)
		r = vhca_engine_takeover(api_args(ctx)->engine, &found.domain, evidence, &err);
	if (r < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	body = json_object_new_object();
	vhca_json_add_string(body, "domain", VHCA_UUID_STR(&found.domain));
	vhca_json_add_string(body, "evidence", evidence);
	vhca_json_add_u64(body, "seconds", VHCA_TAKEOVER_MS / 1000);
	vhca_http_reply(req, 200, body);
}
