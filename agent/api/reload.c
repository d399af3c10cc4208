/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/reload.h"

#include "agent/api/api.h"
#include "common/http/json.h"

static void on_reloaded(void *arg, const struct vhca_error *err)
{
	struct json_object *body;

	if (err) {
		vhca_pending_refuse(arg, err);
		return;
	}
	body = json_object_new_object();
	vhca_json_add_string(body, "status", "reloaded");
	vhca_pending_reply(arg, body);
}

void vhca_api_reload(void *ctx, struct vhca_http_request *req)
{
	struct vhca_pending *p = vhca_api_pend(ctx, req);
	struct vhca_error err = VHCA_ERROR_INIT;

	if (p && vhca_reload_begin(vhca_api_args_of(ctx)->reload, on_reloaded, p, &err) < 0)
		vhca_pending_refuse(p, &err);
}
