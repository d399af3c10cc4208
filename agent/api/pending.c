/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/pending.h"

#include <errno.h>
#include <stdlib.h>

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
