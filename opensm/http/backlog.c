/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/backlog.h"

#include <stdlib.h>

/* As web servers log it: the client has closed the connection, and nothing was done. */
#define SENDER_GAVE_UP 499

struct vhca_osm_put_off {
	TAILQ_ENTRY(vhca_osm_put_off) link;
	struct vhca_osm_backlog *backlog;
	struct vhca_http_request *req;
	vhca_osm_handler_fn handler;
	void *ctx;
};

void vhca_osm_backlog_init(struct vhca_osm_backlog *b)
{
	*b = (struct vhca_osm_backlog){.n = 0};
	TAILQ_INIT(&b->queue);
}

static struct vhca_http_request *take(struct vhca_osm_put_off *p)
{
	struct vhca_http_request *req = p->req;

	TAILQ_REMOVE(&p->backlog->queue, p, link);
	p->backlog->n--;
	vhca_http_on_cancel(req, NULL, NULL); /* the handler may set its own */
	free(p);
	return req;
}

/* What is replied is dropped; the audit has it. */
static void on_gone(void *arg)
{
	vhca_http_reply(take(arg), SENDER_GAVE_UP, NULL);
}

void vhca_osm_backlog_add(struct vhca_osm_backlog *b, struct vhca_http_request *req,
			  vhca_osm_handler_fn handler, void *ctx)
{
	struct vhca_osm_put_off *p = calloc(1, sizeof(*p));
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!p) {
		(void)vhca_error_no_memory(&err, "request");
		vhca_http_reply_error(req, &err);
		return;
	}
	*p = (struct vhca_osm_put_off){.backlog = b, .req = req, .handler = handler, .ctx = ctx};
	TAILQ_INSERT_TAIL(&b->queue, p, link);
	b->n++;
	vhca_http_on_cancel(req, on_gone, p);
}

void vhca_osm_backlog_resume(struct vhca_osm_backlog *b)
{
	struct vhca_osm_put_off *first = TAILQ_FIRST(&b->queue);
	vhca_osm_handler_fn handler;
	void *ctx;

	if (!first)
		return;
	handler = first->handler;
	ctx = first->ctx;
	handler(ctx, take(first));
}

void vhca_osm_backlog_refuse(struct vhca_osm_backlog *b, const struct vhca_error *err)
{
	while (b->n > 0)
		vhca_http_reply_error(take(TAILQ_FIRST(&b->queue)), err);
}
