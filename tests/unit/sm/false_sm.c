/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/sm/false_sm.h"

#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "tests/unit/unit.h"

static unsigned int *effects_on(struct false_sm *sm, uint64_t vguid)
{
	unsigned int i = 0;

	while (i < sm->n_guids && sm->guids[i].vguid != vguid)
		i++;
	if (i == sm->n_guids) {
		assert_true(sm->n_guids < FALSE_SM_GUIDS_MAX);
		sm->guids[sm->n_guids++].vguid = vguid;
	}
	return &sm->guids[i].effects;
}

bool false_sm_take_effect(struct false_sm *sm, const struct false_sm_seen *s)
{
	const struct vhca_sm_binding b = {.vguid = s->vguid,
					  .epoch = s->epoch,
					  .port_guid = FALSE_SM_PORT,
					  .bound = strcmp(s->method, "DELETE") != 0};
	uint64_t before = vhca_osm_table_revision(sm->bindings.table);

	if (sim_sm_take(&sm->bindings, &b, NULL) < 0)
		return false;
	*effects_on(sm, s->vguid) += vhca_osm_table_revision(sm->bindings.table) != before;
	return true;
}

static void reply_problem(struct vhca_http_request *req, enum vhca_err kind, const char *code)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)vhca_error_set(&err, kind, code, 0, "the SM says %s", code);
	vhca_http_reply_error(req, &err);
}

static void reply_binding(struct vhca_http_request *req, const struct false_sm_seen *s)
{
	struct json_object *body = json_object_new_object();

	vhca_json_add_guid(body, "vguid", s->vguid);
	vhca_json_add_u64(body, "epoch", s->epoch);
	vhca_json_add_string(body, "state", "pending");
	vhca_http_reply(req, 200, body);
}

static void reply_move(struct vhca_http_request *req, const struct false_sm_seen *s)
{
	struct json_object *body = json_object_new_object();
	bool is_commit = strcmp(s->phase, "commit") == 0;

	vhca_json_add_string(body, "id", "6b3e1c3a-0000-4000-8000-00000000000a");
	vhca_json_add_string(body, "state", is_commit ? "committed" : "prepared");
	vhca_json_add_u64(body, "smps", 2);
	vhca_json_add_bool(body, "evicted", is_commit);
	vhca_json_add(body, "findings", json_object_new_array());
	vhca_http_reply(req, 200, body);
}

static void reply_members(struct vhca_http_request *req, const struct false_sm_seen *s)
{
	struct json_object *body = json_object_new_object();

	vhca_json_add_guid(body, "port_guid", s->vguid);
	vhca_http_reply(req, 200, body);
}

static bool is_members(const struct false_sm_seen *s)
{
	return strstr(s->path, "/members/") != NULL;
}

static void reply(struct false_sm *sm, struct vhca_http_request *req, const struct false_sm_seen *s)
{
	if (*s->phase && sm->moves_status) {
		vhca_http_reply(req, sm->moves_status, NULL);
		return;
	}
	if (*s->phase && sm->moves_code) {
		reply_problem(req, sm->moves_kind, sm->moves_code);
		return;
	}
	if (sm->follow_code && strstr(s->body, "\"lid_policy\":\"follow\"")) {
		reply_problem(req,
			      strcmp(sm->follow_code, "changed_meanwhile") ? VHCA_ERR_CONFLICT
									   : VHCA_ERR_UNAVAILABLE,
			      sm->follow_code);
		return;
	}
	if (sm->refuse_code && (sm->refuse_only == 0 || sm->refuse_only == s->vguid)) {
		reply_problem(req, sm->refuse_kind, sm->refuse_code);
		return;
	}
	if (sm->knows_no_proof &&
	    (strstr(s->body, "\"tickets\"") || strstr(s->body, "\"settled\""))) {
		reply_problem(req, VHCA_ERR_INVALID, "bad_request");
		return;
	}
	if (sm->wants_proof && s->body[0] && !strstr(s->body, "\"tickets\"")) {
		reply_problem(req, VHCA_ERR_DENIED, "not_the_owner");
		return;
	}
	if (!is_members(s) && strcmp(s->phase, "prepare") != 0 && !false_sm_take_effect(sm, s)) {
		reply_problem(req, VHCA_ERR_CONFLICT, "superseded");
		return;
	}
	if (is_members(s))
		reply_members(req, s);
	else if (*s->phase)
		reply_move(req, s);
	else
		reply_binding(req, s);
}

static void take(struct false_sm *sm, struct vhca_http_request *req, struct false_sm_seen *s)
{
	struct json_object *body = vhca_http_body(req);

	(void)snprintf(s->method, sizeof(s->method), "%s", vhca_http_method(req));
	(void)snprintf(s->path, sizeof(s->path), "%s", vhca_http_path(req));
	if (body)
		(void)snprintf(s->body, sizeof(s->body), "%s",
			       json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN));
	assert_true(sm->n_seen < FALSE_SM_SEEN_MAX);
	sm->seen[sm->n_seen++] = *s;
	if (!sm->hold) {
		reply(sm, req, s);
		return;
	}
	assert_true(sm->n_held < VHCA_ARRAY_SIZE(sm->held));
	sm->held[sm->n_held] = req;
	sm->held_seen[sm->n_held++] = *s;
	if (sm->n_held > sm->most_held)
		sm->most_held = sm->n_held;
}

static void on_binding(void *ctx, struct vhca_http_request *req)
{
	struct false_sm_seen s = {.epoch = 0};

	assert_int_equal(vhca_guid_parse(vhca_http_param(req, 0), &s.vguid), 0);
	s.keep_lid = vhca_http_query(req, "keep_lid") != NULL;
	if (vhca_http_query(req, "epoch"))
		assert_int_equal(
			vhca_parse_u64(vhca_http_query(req, "epoch"), 10, UINT64_MAX, &s.epoch), 0);
	else
		assert_int_equal(
			vhca_json_get_u64(vhca_http_body(req), "epoch", UINT64_MAX, &s.epoch, NULL),
			0);
	take(ctx, req, &s);
}

static void on_members(void *ctx, struct vhca_http_request *req)
{
	struct false_sm_seen s = {.epoch = 0};

	assert_int_equal(vhca_guid_parse(vhca_http_param(req, 0), &s.vguid), 0);
	take(ctx, req, &s);
}

static void on_move(void *ctx, struct vhca_http_request *req)
{
	struct json_object *body = vhca_http_body(req);
	struct false_sm_seen s = {.epoch = 0};
	const char *phase = NULL;

	assert_int_equal(vhca_json_get_guid(body, "vguid", &s.vguid, NULL), 0);
	assert_int_equal(vhca_json_get_u64(body, "epoch", UINT64_MAX, &s.epoch, NULL), 0);
	assert_int_equal(vhca_json_get_string(body, "phase", &phase, NULL), 0);
	(void)snprintf(s.phase, sizeof(s.phase), "%s", phase);
	take(ctx, req, &s);
}

static const struct vhca_http_route routes[] = {
	{"PUT", "/v1/bindings/{}", VHCA_CALLER_NOBODY, on_binding},
	{"DELETE", "/v1/bindings/{}", VHCA_CALLER_NOBODY, on_binding, "epoch port_guid keep_lid"},
	{"PUT", "/v1/members/{}", VHCA_CALLER_NOBODY, on_members},
	{"POST", "/v1/moves", VHCA_CALLER_NOBODY, on_move},
	{.method = NULL},
};

void false_sm_answer_held(struct false_sm *sm)
{
	for (unsigned int i = 0; i < sm->n_held; i++)
		reply(sm, sm->held[i], &sm->held_seen[i]);
	sm->n_held = 0;
	vhca_http_loop_kick(sm->attached);
}

void false_sm_up(struct false_sm *sm)
{
	struct vhca_error err;

	if (!sm->bindings.table)
		sim_sm_init(&sm->bindings, false);
	if (!*sm->listen)
		(void)snprintf(sm->listen, sizeof(sm->listen), "127.0.0.1:0");
	assert_int_equal(vhca_http_server_new(sm->listen, 0, NULL, routes, sm, &sm->srv, &err), 0);
	(void)snprintf(sm->listen, sizeof(sm->listen), "127.0.0.1:%u",
		       vhca_http_server_port(sm->srv));
	(void)snprintf(sm->url, sizeof(sm->url), "http://%s/", sm->listen);
	assert_int_equal(vhca_http_loop_attach(sm->loop, sm->srv, &sm->attached), 0);
}

void false_sm_down(struct false_sm *sm)
{
	if (!sm->srv)
		return;
	sm->attached = vhca_http_loop_detach(sm->attached);
	sm->srv = vhca_http_server_free(sm->srv);
	sm->n_held = 0;
}

void false_sm_done(struct false_sm *sm)
{
	false_sm_down(sm);
	if (sm->bindings.table)
		sim_sm_done(&sm->bindings);
}

unsigned int false_sm_effects(const struct false_sm *sm, uint64_t vguid)
{
	for (unsigned int i = 0; i < sm->n_guids; i++)
		if (sm->guids[i].vguid == vguid)
			return sm->guids[i].effects;
	return 0;
}
