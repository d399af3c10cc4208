/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "common/base/role.h"
#include "common/http/json.h"
#include "conf/settings.h"
#include "config.h"

static struct json_object *count_states(struct vhca_model *m)
{
	struct json_object *o = json_object_new_object();
	unsigned int n[VHCA_VF_STATE_COUNT] = {0};
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	TAILQ_FOREACH (hca, &m->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			n[vf->state]++;
	for (unsigned int s = 0; s < VHCA_VF_STATE_COUNT; s++)
		vhca_json_add_u64(o, vhca_vf_state_to_string((enum vhca_vf_state)s), n[s]);
	return o;
}

void api_get_node(void *ctx, struct vhca_http_request *req)
{
	const struct api_context *api = ctx;
	const struct vhca_api_args *a = &api->args;
	struct json_object *o = json_object_new_object(), *virt = json_object_new_object(),
			   *sm = json_object_new_object(), *loop = json_object_new_object();
	struct vhca_error disk = VHCA_ERROR_INIT;

	vhca_json_add_string(o, "node_name", a->conf->node_name);
	vhca_json_add_string(o, "version", VHCA_VERSION);
	vhca_json_add_u64(o, "api", 1);
	vhca_json_add_string(o, "boot_id", a->boot_id);
	vhca_json_add_u64(o, "started_ms", api->started_ms);
	vhca_json_add_string(virt, "uri", a->conf->libvirt_uri);
	vhca_json_add_bool(virt, "connected", a->virt && vhca_virt_connected(a->virt));
	vhca_json_add_bool(virt, "synced", vhca_engine_virt_synced(a->engine));
	vhca_json_add(o, "libvirt", virt);
	vhca_json_add_string(sm, "backend", a->sm->name);
	vhca_json_add_bool(sm, "fenced", a->sm->fenced);
	vhca_json_add_bool(sm, "reachable", vhca_outbox_reachable(a->outbox));
	vhca_json_add_u64(sm, "pending", vhca_outbox_pending(a->outbox));
	vhca_json_add(o, "sm", sm);
	vhca_json_add_u64(loop, "max_callback_us", vhca_loop_max_callback_us(a->loop));
	vhca_json_add_u64(loop, "blocking_calls", vhca_role_violations());
	vhca_json_add(o, "loop", loop);
	vhca_json_add_bool(o, "drained", vhca_drain_is_on(a->drain));
	(void)vhca_engine_check_disk(a->engine, &disk);
	vhca_json_add_string(o, "store_problem", disk.kind ? disk.msg : NULL);
	vhca_json_add(o, "counts", count_states(vhca_engine_model(a->engine)));
	vhca_http_reply(req, 200, o);
}

void api_get_outbox(void *ctx, struct vhca_http_request *req)
{
	api_reply_list(req, "outbox", vhca_outbox_to_json(api_args(ctx)->outbox));
}

void api_get_events(void *ctx, struct vhca_http_request *req)
{
	const struct api_context *api = ctx;

	vhca_http_do_not_time(req);
	api_polls_answer(api->polls, req, api->adapter);
}

void api_get_openapi(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply_document(req, api_openapi);
}

void api_get_healthz(void *ctx, struct vhca_http_request *req)
{
	struct json_object *o = json_object_new_object();

	(void)ctx;
	vhca_json_add_string(o, "status", "ok");
	vhca_http_reply(req, 200, o);
}

static void add_setting(void *list, const struct vhca_conf_setting *s)
{
	struct json_object *o = json_object_new_object();
	bool has_usual = s->usual && s->usual[0];

	vhca_json_add_string(o, "section", s->section);
	vhca_json_add_string(o, "key", s->key);
	vhca_json_add_string(o, "value", s->value[0] ? s->value : NULL);
	vhca_json_add_string(o, "default", has_usual ? s->usual : NULL);
	json_object_array_add(list, o);
}

void api_get_config(void *ctx, struct vhca_http_request *req)
{
	struct json_object *list = json_object_new_array();
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_conf_each_setting(api_args(ctx)->conf, add_setting, list, &err) == 0) {
		api_reply_list(req, "settings", list);
		return;
	}
	json_object_put(list);
	vhca_http_reply_error(req, &err);
}

static void on_reloaded(void *arg, const struct vhca_error *err)
{
	struct json_object *body;

	if (err) {
		api_pending_refuse(arg, err);
		return;
	}
	body = json_object_new_object();
	vhca_json_add_string(body, "status", "reloaded");
	api_pending_reply(arg, body);
}

void api_post_reload(void *ctx, struct vhca_http_request *req)
{
	struct api_pending *p = api_pend(ctx, req);
	struct vhca_error err = VHCA_ERROR_INIT;

	if (p && vhca_reload_begin(api_args(ctx)->reload, on_reloaded, p, &err) < 0)
		api_pending_refuse(p, &err);
}
