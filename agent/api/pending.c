/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/pending.h"

#include <errno.h>
#include <stdlib.h>

struct vhca_pending *vhca_pending_new(void *ctx, struct vhca_http_request *req,
				      struct vhca_http_loop_server *adapter)
{
	struct vhca_pending *p = calloc(1, sizeof(*p));
	struct vhca_error err;

	if (p) {
		*p = (struct vhca_pending){
			.ctx = ctx, .req = req, .adapter = adapter, .status = 200};
		return p;
	}
	vhca_error_no_memory(&err, "request");
	vhca_http_reply_error(req, &err);
	return NULL;
}

static void replied(struct vhca_pending *p)
{
	vhca_http_loop_kick(p->adapter);
	free(p);
}

void vhca_pending_reply(struct vhca_pending *p, struct json_object *body)
{
	vhca_http_reply(p->req, p->status, body);
	replied(p);
}

void vhca_pending_refuse(struct vhca_pending *p, const struct vhca_error *err)
{
	vhca_http_reply_error(p->req, err);
	replied(p);
}
