/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api_migrations.h"

#include <string.h>

#include "agent/api.h"
#include "common/base/file.h"
#include "common/http/json.h"

static struct json_object *view_vf(const struct vhca_claim *c)
{
	struct vhca_mig_vf vf = vhca_mig_vf_of(c);
	struct json_object *o = vhca_mig_vf_to_json(&vf);

	vhca_json_add_string(o, "state", vhca_vf_state_to_string(c->vf->state));
	vhca_json_add_bool(o, "away", c->away);
	return o;
}

/* Times of the steps that were taken; the one under way counts up. */
static struct json_object *view_steps(const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object();
	bool final = vhca_mig_state_is_final(m->state);

	for (unsigned int i = 0; i < VHCA_MIG_STATE_COUNT; i++) {
		uint64_t ms = m->step_ms[i];

		if (i == m->state && !final)
			ms += vhca_now_ms() - m->entered_ms;
		if (ms || (i == m->state && !final))
			vhca_json_add_u64(o, vhca_mig_state_to_string((enum vhca_mig_state)i), ms);
	}
	return o;
}

static struct json_object *view(const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object(), *vfs = json_object_new_array();
	bool final = vhca_mig_state_is_final(m->state);
	struct vhca_claim *c = NULL;

	vhca_json_add_string(o, "id", VHCA_UUID_STR(&m->id));
	vhca_json_add_string(o, "role", m->source ? "source" : "destination");
	vhca_json_add_string(o, "mode", "managed");
	vhca_json_add_string(o, "domain", VHCA_UUID_STR(&m->domain));
	vhca_json_add_string(o, "domain_name", m->domain_name);
	vhca_json_add_string(o, "peer", m->peer);
	vhca_json_add_string(o, "state", vhca_mig_state_to_string(m->state));
	vhca_json_add_bool(o, "final", final);
	vhca_json_add_bool(o, "degraded", m->degraded);
	vhca_json_add_string(o, "reason", m->reason[0] ? m->reason : NULL);
	vhca_json_add_string(o, "code", m->failure.kind ? m->failure.code : NULL);
	vhca_json_add_u64(o, "started_ms", m->started_ms);
	vhca_json_add(o, "ended_ms", final ? json_object_new_int64((int64_t)m->updated_ms) : NULL);
	vhca_json_add(o, "step_ms", view_steps(m));
	/* A claim that ends is no longer one of the guest's: what it lacks is nobody's trouble. */
	while ((c = vhca_migration_claim(m, c)))
		if (!c->ending)
			json_object_array_add(vfs, view_vf(c));
	for (unsigned int i = 0; m->state == VHCA_MIG_DONE && i < m->n_vfs; i++)
		json_object_array_add(vfs, vhca_mig_vf_to_json(&m->vfs[i]));
	vhca_json_add(o, "vfs", vfs);
	return o;
}

void vhca_api_get_migrations(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_mig *m = vhca_migrations_first(vhca_api_args_of(ctx)->migrations);
	struct json_object *doc = json_object_new_object(), *list = json_object_new_array();

	for (; m; m = TAILQ_NEXT(m, link))
		json_object_array_add(list, view(m));
	vhca_json_add(doc, "migrations", list);
	vhca_http_reply(req, 200, doc);
}

static int find(void *ctx, const struct vhca_http_request *req, const struct vhca_mig **ret,
		struct vhca_error *err)
{
	struct vhca_uuid id;

	*ret = NULL;
	if (!vhca_uuid_parse(vhca_http_param(req, 0), &id))
		*ret = vhca_migrations_find(vhca_api_args_of(ctx)->migrations, &id);
	if (*ret)
		return 0;
	return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0, "migration %.40s",
			      vhca_http_param(req, 0));
}

void vhca_api_get_migration(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m;

	if (find(ctx, req, &m, &err) < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, view(m));
}

static int parse(void *ctx, struct json_object *body, struct vhca_claim_request *ret_domain,
		 const char **ret_peer, struct vhca_error *err)
{
	static const char *const members[] = {"domain", "peer", "mode", NULL};
	const char *domain = NULL, *mode = "managed";
	int r;

	if (!body)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "a JSON body with domain and peer is needed");
	r = vhca_json_check_members(body, members, err);
	if (!r)
		r = vhca_json_get_string(body, "domain", &domain, err);
	if (!r)
		r = vhca_json_get_string(body, "peer", ret_peer, err);
	if (!r)
		r = vhca_json_opt_string(body, "mode", &mode, err);
	if (r < 0)
		return r;
	if (strcmp(mode, "managed"))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_request", 0,
				      "body: mode: only \"managed\" is known");
	return vhca_api_find_domain(ctx, domain, ret_domain, err);
}

void vhca_api_post_migrations(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim_request domain = {0};
	const struct vhca_mig *m = NULL;
	const char *peer = NULL;
	int r = parse(ctx, vhca_http_body(req), &domain, &peer, &err);

	if (!r)
		r = vhca_migrations_start(vhca_api_args_of(ctx)->migrations, &domain.domain, peer,
					  &m, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 202, view(m));
}

void vhca_api_abort_migration(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m;
	int r = find(ctx, req, &m, &err);

	if (!r)
		r = vhca_migrations_cancel(vhca_api_args_of(ctx)->migrations, &m->id, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 202, view(m));
}
