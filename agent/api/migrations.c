/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "agent/api/body.h"
#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "agent/state/guest_copy.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/http/json.h"

/* So many without a limit: there may be 2,000, each with all that is known of it. */
#define PAGE 100

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

static struct json_object *view_times(const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object();

	for (unsigned int i = 0; i < VHCA_MIG_TIME_COUNT; i++)
		if (m->time_us[i])
			vhca_json_add_u64(o, vhca_mig_time_to_string((enum vhca_mig_time)i),
					  m->time_us[i]);
	return o;
}

/*
 * What an orchestrator, or who types its command, needs of the peer; null where that is nobody's
 * business any more.
 */
static void view_waiting(struct json_object *o, const struct vhca_conf *conf,
			 const struct vhca_mig *m)
{
	bool waits = m->state == VHCA_MIG_READY || m->state == VHCA_MIG_PARKED;
	const struct vhca_conf_peer *peer =
		m->state == VHCA_MIG_READY ? vhca_conf_peer(conf, m->peer) : NULL;
	uint64_t now = vhca_now_ms(), left = m->lease_until > now ? m->lease_until - now : 0;

	vhca_json_add(o, "lease_left_ms",
		      waits && m->lease_until ? json_object_new_int64((int64_t)left) : NULL);
	vhca_json_add_string(o, "peer_libvirt", peer ? peer->libvirt : NULL);
	vhca_json_add_string(o, "peer_migration",
			     peer && peer->migration[0] ? peer->migration : NULL);
}

/*
 * A guest that is asked through its agent, too, is what a migration waits for: said before it is
 * over.
 */
static const char *reason_of(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (m->reason[0])
		return m->reason;
	while ((c = vhca_migration_claim(m, c)))
		if (c->vf->escalation.begun)
			return c->vf->reason;
	return NULL;
}

/* NULL for a copy that would not end. */
static struct json_object *view_expected(const struct vhca_mig_expected *e)
{
	struct json_object *o = json_object_new_object();
	const char *reason = NULL;

	vhca_json_add(o, "seconds",
		      e->ms == VHCA_COPY_NEVER
			      ? NULL
			      : json_object_new_int64((int64_t)((e->ms + 999) / 1000)));
	vhca_json_add(o, "dirty_rate",
		      e->dirty_is_known ? json_object_new_int64((int64_t)e->dirty_mib) : NULL);
	if (e->is_slowed)
		reason = "the guest writes too fast, and auto_converge slows it down: from memory "
			 "and bandwidth alone";
	else if (!e->dirty_is_known)
		reason = "the dirty rate is not known after 10 s: from memory and bandwidth alone";
	vhca_json_add_string(o, "reason", reason);
	return o;
}

static struct json_object *view(void *ctx, const struct vhca_mig *m)
{
	struct json_object *o = json_object_new_object(), *vfs = json_object_new_array();
	bool final = vhca_mig_state_is_final(m->state);
	struct vhca_claim *c = NULL;

	vhca_json_add_string(o, "id", VHCA_UUID_STR(&m->id));
	vhca_json_add_string(o, "role", m->source ? "source" : "destination");
	vhca_json_add_string(o, "mode", vhca_mig_mode_to_string(m->mode));
	vhca_json_add_string(o, "domain", VHCA_UUID_STR(&m->domain));
	vhca_json_add_string(o, "domain_name", m->domain_name);
	vhca_json_add_string(o, "peer", m->peer[0] ? m->peer : NULL);
	vhca_json_add_string(o, "state", vhca_mig_state_to_string(m->state));
	vhca_json_add_bool(o, "final", final);
	vhca_json_add_bool(o, "degraded", m->degraded);
	vhca_json_add_string(o, "reason", reason_of(m));
	vhca_json_add_string(o, "code", m->failure.kind ? m->failure.code : NULL);
	vhca_json_add_u64(o, "started_ms", m->started_ms);
	vhca_json_add(o, "ended_ms", final ? json_object_new_int64((int64_t)m->updated_ms) : NULL);
	vhca_json_add(o, "step_ms", view_steps(m));
	vhca_json_add(o, "blackout_us", view_times(m));
	view_waiting(o, api_args(ctx)->conf, m);
	/* A claim that ends is no longer one of the guest's: what it lacks is nobody's trouble. */
	while ((c = vhca_migration_claim(m, c))) {
		struct json_object *vf = vhca_claim_is_ending(c) ? NULL : api_view_moving_vf(c);

		if (!vf)
			continue;
		vhca_json_add_bool(vf, "away", vhca_claim_is_withheld(c));
		json_object_array_add(vfs, vf);
	}
	for (unsigned int i = 0; m->state == VHCA_MIG_DONE && i < m->n_vfs; i++)
		json_object_array_add(vfs, vhca_mig_vf_to_json(&m->vfs[i]));
	vhca_json_add(o, "copy",
		      m->source && m->mode == VHCA_MIG_MODE_MANAGED
			      ? vhca_mig_copy_to_json(&m->copy)
			      : NULL);
	vhca_json_add(o, "expected", m->expected.is_known ? view_expected(&m->expected) : NULL);
	vhca_json_add(o, "vfs", vfs);
	return o;
}

struct filter {
	const char *domain, *peer, *final; /* NULL: any */
	enum vhca_mig_state state;	   /* VHCA_MIG_STATE_COUNT: any */
};

static int read_filter(const struct vhca_http_request *req, struct filter *ret,
		       struct vhca_error *err)
{
	const char *state = vhca_http_query(req, "state");

	*ret = (struct filter){.domain = vhca_http_query(req, "domain"),
			       .peer = vhca_http_query(req, "peer"),
			       .final = vhca_http_query(req, "final"),
			       .state = VHCA_MIG_STATE_COUNT};
	if (ret->final && strcmp(ret->final, "true") != 0 && strcmp(ret->final, "false") != 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: final is true or false");
	if (!state || vhca_mig_state_parse(state, &ret->state) == 0)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			     "query: %.40s is no state of a migration", state);
	vhca_error_hint(err, "MigrationState in GET /openapi.json lists them");
	return -EINVAL;
}

/* A domain by its name, too, wherever it runs by now. */
static bool filter_takes(const struct filter *f, const struct vhca_mig *m)
{
	bool final = vhca_mig_state_is_final(m->state);

	if (f->domain && strcmp(f->domain, m->domain_name) != 0 &&
	    strcasecmp(f->domain, VHCA_UUID_STR(&m->domain)) != 0)
		return false;
	return (!f->peer || strcmp(f->peer, m->peer) == 0) &&
	       (!f->final || final == (f->final[0] == 't')) &&
	       (f->state == VHCA_MIG_STATE_COUNT || f->state == m->state);
}

void api_get_migrations(void *ctx, struct vhca_http_request *req)
{
	const struct vhca_mig *m = vhca_migrations_first(api_args(ctx)->migrations);
	struct json_object *list;
	struct filter filter;
	struct api_page page;
	struct vhca_error err;

	if (read_filter(req, &filter, &err) < 0 || api_read_page(req, PAGE, &page, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	list = json_object_new_array();
	for (; m; m = TAILQ_NEXT(m, link))
		if (api_page_takes(&page, VHCA_UUID_STR(&m->id), filter_takes(&filter, m)))
			json_object_array_add(list, view(ctx, m));
	api_reply_page(req, "migrations", list, &page);
}

static int find(void *ctx, const struct vhca_http_request *req, const struct vhca_mig **ret,
		struct vhca_error *err)
{
	struct vhca_uuid id;

	*ret = NULL;
	if (!vhca_uuid_parse(vhca_http_param(req, 0), &id))
		*ret = vhca_migrations_find(api_args(ctx)->migrations, &id);
	if (*ret)
		return 0;
	return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0, "migration %.40s",
			      vhca_http_param(req, 0));
}

void api_get_migration(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m;

	if (find(ctx, req, &m, &err) < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 200, view(ctx, m));
}

/* Members that do not go with the mode. */
static int check_mode(const struct vhca_mig_request *req, struct vhca_error *err)
{
	if (req->mode == VHCA_MIG_MODE_PARK && req->peer)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: peer: a domain is parked where it is");
	if (req->mode != VHCA_MIG_MODE_PARK && !req->peer)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: peer is needed");
	if (req->lease_ms && req->mode == VHCA_MIG_MODE_MANAGED)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: lease: nobody waits in a managed migration");
	return 0;
}

static int parse_copy(struct json_object *body, enum vhca_mig_mode mode,
		      struct vhca_conf_copy *copy, struct vhca_error *err)
{
	struct json_object *o = NULL;

	if (!json_object_object_get_ex(body, "copy", &o) || !o)
		return 0;
	if (mode != VHCA_MIG_MODE_MANAGED)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: copy: vhcad copies in mode managed only");
	return vhca_mig_copy_parse(o, copy, err);
}

static int parse(void *ctx, struct json_object *body, struct vhca_mig_request *ret,
		 struct vhca_conf_copy *copy, struct vhca_error *err)
{
	static const char *const members[] = {"domain", "peer", "mode", "lease", "copy", NULL};
	struct vhca_claim_request found = {0};
	const char *domain = NULL, *mode = "managed";
	uint32_t lease_s = 0;
	int r = api_check_body(body, members, "domain and peer", err);

	if (!r)
		r = vhca_json_get_string(body, "domain", &domain, err);
	if (!r)
		r = vhca_json_opt_string(body, "peer", &ret->peer, err);
	if (!r)
		r = vhca_json_opt_string(body, "mode", &mode, err);
	if (!r)
		r = api_parse_lease(body, &lease_s, err);
	if (!r && vhca_mig_mode_parse(mode, &ret->mode) < 0)
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				   "body: mode: managed, external or park");
	ret->lease_ms = UINT64_C(1000) * lease_s;
	if (!r)
		r = check_mode(ret, err);
	if (!r)
		r = parse_copy(body, ret->mode, copy, err);
	if (!r)
		r = api_find_domain(ctx, domain, &found, err);
	ret->domain = found.domain;
	return r;
}

void api_post_migrations(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_conf_copy how = api_args(ctx)->conf->copy;
	struct vhca_mig_request want = {.copy = &how};
	const struct vhca_mig *m = NULL;
	int r;

	want.id = api_object_id(req);
	if (want.id)
		m = vhca_migrations_find(api_args(ctx)->migrations, want.id);
	r = api_check_repeat(req, m != NULL, &err);
	if (r == 0 && !m)
		r = parse(ctx, vhca_http_body(req), &want, &how, &err);
	if (r == 0 && !m)
		r = vhca_migrations_request(api_args(ctx)->migrations, &want, &m, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 202, view(ctx, m));
}

void api_extend_migration(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;
	uint32_t lease_s = 0;
	int r = api_parse_renewal(vhca_http_body(req), &lease_s, &err);

	if (!r)
		r = find(ctx, req, &m, &err);
	if (!r)
		r = vhca_migrations_extend(api_args(ctx)->migrations, &m->id,
					   UINT64_C(1000) * lease_s, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 202, view(ctx, m));
}

void api_abort_migration(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m;
	int r = find(ctx, req, &m, &err);

	if (!r)
		r = vhca_migrations_cancel(api_args(ctx)->migrations, &m->id, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 202, view(ctx, m));
}
