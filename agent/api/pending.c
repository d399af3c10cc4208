/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/pending.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/api/context.h"
#include "common/base/log.h"

struct api_pending *api_pending_new(void *ctx, struct vhca_http_request *req,
				    struct vhca_http_loop_server *adapter)
{
	struct api_pending *p = calloc(1, sizeof(*p));
	struct vhca_error err;

	if (p) {
		*p = (struct api_pending){
			.ctx = ctx, .req = req, .adapter = adapter, .status = 200};
		return p;
	}
	vhca_error_no_memory(&err, "request");
	vhca_http_reply_error(req, &err);
	return NULL;
}

static void replied(struct api_pending *p)
{
	vhca_http_loop_kick(p->adapter);
	free(p);
}

void api_pending_reply(struct api_pending *p, struct json_object *body)
{
	vhca_http_reply(p->req, p->status, body);
	replied(p);
}

void api_pending_refuse(struct api_pending *p, const struct vhca_error *err)
{
	vhca_http_reply_error(p->req, err);
	replied(p);
}

/* ---- requests that may come again ---- */

struct keeper {
	struct api_context *api;
	struct vhca_http_request *req;
	struct vhca_repeat *repeat;
};

static void on_durable(void *arg, int rc)
{
	const struct keeper *k = arg;
	struct vhca_http_loop_server *adapter = k->api->adapter;

	if (rc < 0) /* what was done is done */
		vhca_log_error("how a request with an Idempotency-Key has ended is known to this "
			       "agent only: error %d",
			       -rc);
	vhca_http_send(k->req); /* k may go with it */
	vhca_http_loop_kick(adapter);
}

static void on_answer(void *arg, unsigned int status, const char *text)
{
	struct keeper *k = arg;

	if (text)
		vhca_repeat_keep(k->repeat, status, text, on_durable, k);
	else
		vhca_repeat_forget(k->repeat, on_durable, k);
}

static int find_repeat(struct api_context *api, const struct vhca_http_request *req,
		       const char *key, struct vhca_repeat **ret, struct vhca_error *err)
{
	char fingerprint[VHCA_HTTP_FINGERPRINT_STRLEN];
	const struct vhca_repeat_request want = {
		.caller = vhca_http_caller(req), .key = key, .fingerprint = fingerprint};
	int r = vhca_engine_check_disk(api->args.engine, err);

	if (r < 0)
		return r;
	if (vhca_http_fingerprint(req, fingerprint) < 0)
		return vhca_error_no_memory(err, "request");
	return vhca_repeats_admit(api->args.repeats, &want, ret, err);
}

bool api_admit(void *ctx, struct vhca_http_request *req)
{
	const char *key = vhca_http_header(req, "Idempotency-Key");
	struct vhca_error err = VHCA_ERROR_INIT;
	struct keeper *k = NULL;
	int r;

	if (!key)
		return true;
	k = calloc(1, sizeof(*k));
	if (!k) {
		(void)vhca_error_no_memory(&err, "request");
		vhca_http_reply_error(req, &err);
		return false;
	}
	*k = (struct keeper){.api = ctx, .req = req};
	r = find_repeat(ctx, req, key, &k->repeat, &err);
	if (r == 0 && !vhca_repeat_status(k->repeat)) {
		vhca_http_keep(req, on_answer, k);
		return true;
	}
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply_kept(req, vhca_repeat_status(k->repeat),
				     vhca_repeat_answer(k->repeat));
	free(k);
	return false;
}

const struct vhca_uuid *api_object_id(const struct vhca_http_request *req)
{
	const struct keeper *k = vhca_http_keeper(req);

	return k ? vhca_repeat_object(k->repeat) : NULL;
}

int api_check_repeat(const struct vhca_http_request *req, bool exists, struct vhca_error *err)
{
	const struct keeper *k = vhca_http_keeper(req);

	if (exists || !k || !vhca_repeat_has_begun(k->repeat))
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "key_spent", 0,
			     "what was begun with this Idempotency-Key has ended; the agent was "
			     "restarted before it answered");
	vhca_error_hint(err, "look at what there is; to have it done again, use another key");
	return -ECONNRESET;
}
