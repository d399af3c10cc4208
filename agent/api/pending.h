/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_PENDING_H
#define VHCA_AGENT_API_PENDING_H
/* A request that is answered later than in its handler; one that may come again: context.h. */
#include "agent/state/model.h"
#include "common/http/http_loop.h"

struct api_pending {
	void *ctx; /* the handler's */
	struct vhca_http_request *req;
	struct vhca_http_loop_server *adapter; /* borrowed */
	unsigned int status;		       /* of the good answer; 200 */
	struct vhca_uuid domain, claim;	       /* for who needs them */
	const struct vhca_vf *vf;	       /* of a claim that ends, which it outlives */
	uint64_t guid;			       /* of a cloud's port */
};

/* NULL: there is no memory, and req has been answered. */
struct api_pending *api_pending_new(void *ctx, struct vhca_http_request *req,
				    struct vhca_http_loop_server *adapter);
/* Either answers, sends the answer off at once, and frees p. body is consumed. */
void api_pending_reply(struct api_pending *p, struct json_object *body);
void api_pending_refuse(struct api_pending *p, const struct vhca_error *err);

#endif
