/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/explain/readiness.h"
#include "common/base/file.h"
#include "common/http/json.h"

/* Under way: what was found so far, and the worst of it. */
struct verdict {
	struct vhca_finding worst; /* status OK: nothing yet */
	char subject[192];	   /* of what */
};

static struct json_object *view_finding(const struct vhca_finding *f)
{
	struct json_object *o = json_object_new_object();

	vhca_json_add_string(o, "step", f->step);
	vhca_json_add_string(o, "status", vhca_finding_status_to_string(f->status));
	vhca_json_add_string(o, "text", f->text);
	vhca_json_add_string(o, "fix", f->fix[0] ? f->fix : NULL);
	return o;
}

static struct json_object *view_findings(const struct vhca_finding *findings, unsigned int n)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = 0; i < n; i++)
		json_object_array_add(list, view_finding(&findings[i]));
	return list;
}

static struct json_object *view_verdict(const struct verdict *v)
{
	struct json_object *o;

	if (v->worst.status != VHCA_FINDING_OK) {
		o = view_finding(&v->worst);
	} else {
		o = json_object_new_object();
		vhca_json_add_string(o, "step", NULL);
		vhca_json_add_string(o, "status", "ok");
		vhca_json_add_string(o, "text", "nothing is wrong");
		vhca_json_add_string(o, "fix", NULL);
	}
	vhca_json_add_string(o, "subject", v->subject);
	return o;
}

/* Keeps what is worse; what came first stays among equals. */
static void worsen(struct verdict *v, const struct vhca_finding *found, const char *subject)
{
	if (!found || found->status <= v->worst.status)
		return;
	v->worst = *found;
	(void)vhca_strcpy(v->subject, sizeof(v->subject), subject); /* all are shorter */
}

/* "vm1/ib0 (0000:01:00.1)" */
static void name_vf(const struct vhca_vf *vf, char *buf, size_t size)
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, size);
	if (vf->claim)
		vhca_strbuf_add(&sb, "%s/%s (%s)", vf->claim->domain_name, vf->claim->name,
				VHCA_BDF_STR(vf->bdf));
	else
		vhca_strbuf_add(&sb, "%s", VHCA_BDF_STR(vf->bdf));
}

/* Adds to *all, which may be NULL. */
static struct json_object *view_vf(const struct vhca_api_args *a, const struct vhca_vf *vf,
				   struct verdict *all)
{
	struct vhca_finding findings[VHCA_EXPLAIN_STEPS];
	struct vhca_explain ex = api_look_from(a, vf->hca);
	struct json_object *o = json_object_new_object();
	const struct vhca_finding *worst;
	struct verdict own = {0};

	vhca_explain_vf(&ex, vf, findings);
	worst = vhca_explain_verdict(findings, VHCA_EXPLAIN_STEPS);
	name_vf(vf, own.subject, sizeof(own.subject));
	worsen(&own, worst, own.subject);
	if (all)
		worsen(all, worst, own.subject);
	vhca_json_add_string(o, "bdf", VHCA_BDF_STR(vf->bdf));
	vhca_json_add_string(o, "pf", VHCA_BDF_STR(vf->hca->facts.bdf));
	vhca_json_add_string(o, "state", vhca_vf_state_to_string(vf->state));
	vhca_json_add_string(o, "domain", vf->claim ? vf->claim->domain_name : NULL);
	vhca_json_add_string(o, "name", vf->claim ? vf->claim->name : NULL);
	vhca_json_add(o, "verdict", view_verdict(&own));
	vhca_json_add(o, "findings", view_findings(findings, VHCA_EXPLAIN_STEPS));
	return o;
}

void api_explain_vf(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_vf *vf = api_find_vf(ctx, vhca_http_param(req, 0), &err);

	if (vf)
		vhca_http_reply(req, 200, view_vf(api_args(ctx), vf, NULL));
	else
		vhca_http_reply_error(req, &err);
}

/* Promised to the domain, or in its live XML without a promise. */
static bool concerns(struct vhca_model *m, const struct vhca_vf *vf, const struct vhca_uuid *uuid)
{
	const struct vhca_domain *user = vhca_model_user(m, vf->bdf, NULL);

	return (vf->claim && vhca_uuid_equal(&vf->claim->domain, uuid)) ||
	       (user && vhca_uuid_equal(&user->info->uuid, uuid));
}

static struct json_object *view_vfs(const struct vhca_api_args *a, const struct vhca_uuid *uuid,
				    struct verdict *all)
{
	struct vhca_model *m = vhca_engine_model(a->engine);
	struct json_object *list = json_object_new_array();
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &m->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (concerns(m, vf, uuid))
				json_object_array_add(list, view_vf(a, vf, all));
	return list;
}

static void say_nothing_wanted(struct vhca_finding *f, const struct vhca_dom_info *info)
{
	*f = (struct vhca_finding){.step = "request", .status = VHCA_FINDING_WARNING};
	(void)snprintf(f->text, sizeof(f->text),
		       "the domain neither asks for InfiniBand nor has any");
	(void)snprintf(f->fix, sizeof(f->fix), "vhcactl attach %s ib0 --partition P_KEY",
		       VHCA_DOMAIN_WORD(info->name, &info->uuid));
}

void api_explain_domain(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api_args *a = api_args(ctx);
	struct vhca_finding findings[VHCA_EXPLAIN_REQUESTS];
	struct vhca_explain ex = api_look_from(a, NULL);
	struct vhca_claim_request found = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *o, *vfs;
	const struct vhca_domain *dom;
	struct verdict all = {0};
	unsigned int n;

	if (api_find_domain(ctx, vhca_http_param(req, 0), &found, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	dom = vhca_model_domain(ex.model, &found.domain);
	n = vhca_explain_requests(&ex, dom, findings);
	(void)vhca_strcpy(all.subject, sizeof(all.subject), found.domain_name); /* is shorter */
	worsen(&all, vhca_explain_verdict(findings, n), found.domain_name);
	vfs = view_vfs(a, &found.domain, &all);
	if (dom && n == 0 && json_object_array_length(vfs) == 0) {
		say_nothing_wanted(&findings[n++], dom->info);
		worsen(&all, &findings[0], found.domain_name);
	}
	o = json_object_new_object();
	vhca_json_add_string(o, "uuid", VHCA_UUID_STR(&found.domain));
	vhca_json_add_string(o, "name", found.domain_name);
	vhca_json_add(o, "verdict", view_verdict(&all));
	vhca_json_add(o, "findings", view_findings(findings, n));
	vhca_json_add(o, "vfs", vfs);
	vhca_http_reply(req, 200, o);
}

void api_get_readyz(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_api_args *a = api_args(ctx);
	struct json_object *o = json_object_new_object(), *reasons = json_object_new_array(),
			   *reason;
	struct vhca_finding found[VHCA_READINESS_COUNT];
	struct vhca_explain ex = api_look_from(a, NULL);
	bool ready = true;

	vhca_explain_readiness(&ex, found);
	for (unsigned int i = 0; i < VHCA_READINESS_COUNT; i++) {
		if (found[i].status == VHCA_FINDING_OK)
			continue;
		ready = ready && !vhca_readiness_blocks(i);
		reason = json_object_new_object();
		vhca_json_add_string(reason, "code", found[i].step);
		vhca_json_add_string(reason, "status",
				     vhca_finding_status_to_string(found[i].status));
		vhca_json_add_bool(reason, "blocks", vhca_readiness_blocks(i));
		vhca_json_add_string(reason, "reason", found[i].text);
		vhca_json_add_string(reason, "hint", found[i].fix[0] ? found[i].fix : NULL);
		json_object_array_add(reasons, reason);
	}
	vhca_json_add_string(o, "status", ready ? "ready" : "not_ready");
	vhca_json_add_string(o, "node_name", a->conf->node_name);
	vhca_json_add(o, "reasons", reasons);
	vhca_http_reply(req, ready ? 200 : 503, o);
}
