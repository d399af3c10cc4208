/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sm/prepare.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/json.h"

struct prepare {
	LIST_ENTRY(prepare) link;
	struct vhca_sm_prepares *all;
	struct vhca_sm_binding binding;
};

struct vhca_sm_prepares {
	const struct vhca_sm_line *line;
	const struct vhca_sm_ops *ops;
	vhca_outbox_fn fn;
	void *arg;
	LIST_HEAD(, prepare) under_way;
	unsigned int n, max;
};

static void drop(struct prepare *p)
{
	LIST_REMOVE(p, link);
	p->all->n--;
	free(p);
}

static void on_answer(void *arg, int rc, const struct vhca_http_result *res,
		      const struct vhca_error *err)
{
	struct prepare *p = arg;
	struct vhca_sm_prepares *all = p->all;
	const struct vhca_sm_binding binding = p->binding;
	const char *said =
		rc < 0	    ? err->msg
		: res->body ? json_object_to_json_string_ext(res->body, JSON_C_TO_STRING_PLAIN)
			    : "";

	vhca_log_debug("%s: prepare: the SM says %.400s", VHCA_GUID_STR(binding.vguid), said);
	drop(p);
	if (all->fn)
		all->fn(all->arg, &binding, all->ops->prepare_answer(res->status, res->body),
			rc < 0 ? err->msg : "", res->body);
}

struct vhca_sm_prepares *vhca_sm_prepares_new(const struct vhca_sm_line *line,
					      const struct vhca_sm_ops *ops, unsigned int max,
					      vhca_outbox_fn fn, void *arg)
{
	struct vhca_sm_prepares *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	*all = (struct vhca_sm_prepares){
		.line = line, .ops = ops, .fn = fn, .arg = arg, .max = max};
	LIST_INIT(&all->under_way);
	return all;
}

struct vhca_sm_prepares *vhca_sm_prepares_free(struct vhca_sm_prepares *all)
{
	struct prepare *p;

	if (!all)
		return NULL;
	while ((p = LIST_FIRST(&all->under_way)) != NULL) {
		vhca_http_multi_cancel(all->line->http, p);
		drop(p);
	}
	free(all);
	return NULL;
}

int vhca_sm_prepares_send(struct vhca_sm_prepares *all, const struct vhca_sm_binding *binding,
			  struct json_object *proof)
{
	struct vhca_sm_request req;
	struct prepare *p;
	int r;

	if (all->n >= all->max)
		return -EBUSY;
	r = all->ops->prepare_request(binding, &req);
	if (r < 0)
		return r;
	if (proof)
		vhca_json_add(req.body, "tickets", json_object_get(proof));
	p = calloc(1, sizeof(*p));
	r = p ? 0 : -ENOMEM;
	if (r == 0) {
		*p = (struct prepare){.all = all, .binding = *binding};
		LIST_INSERT_HEAD(&all->under_way, p, link);
		all->n++;
		r = vhca_sm_line_start(all->line, &req, on_answer, p);
		if (r < 0)
			drop(p);
	}
	(void)json_object_put(req.body);
	return r;
}
