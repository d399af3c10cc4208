/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "common/base/codes.h"
#include "common/base/file.h"

/*
 * The state that the query asks for, VHCA_VF_STATE_COUNT without one. An empty list would hide a
 * word that is misspelt.
 */
static int parse_state(struct vhca_http_request *req, enum vhca_vf_state *ret,
		       struct vhca_error *err)
{
	const char *word = vhca_http_query(req, "state");
	struct vhca_strbuf sb;
	char known[128];

	*ret = VHCA_VF_STATE_COUNT;
	if (!word || !vhca_vf_state_parse(word, ret))
		return 0;
	vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
		       "query: %.40s is no state of a VF", word);
	vhca_strbuf_init(&sb, known, sizeof(known));
	for (unsigned int s = 0; s < VHCA_VF_STATE_COUNT; s++)
		vhca_strbuf_add(&sb, "%s%s", s ? ", " : "",
				vhca_vf_state_to_string((enum vhca_vf_state)s));
	vhca_error_hint(err, "state is one of %s", known);
	return -EINVAL;
}

static struct json_object *view_vf(const void *ctx, const struct vhca_vf *vf)
{
	return api_view_vf(vf, vhca_engine_reserves(api_args(ctx)->engine, vf));
}

void api_get_vfs(void *ctx, struct vhca_http_request *req)
{
	struct json_object *list;
	enum vhca_vf_state state;
	struct api_filter filter;
	struct api_page page;
	struct vhca_error err;
	struct vhca_hca *hca;
	struct vhca_vf *vf;

	if (parse_state(req, &state, &err) < 0 || api_read_filter(ctx, req, &filter, &err) < 0 ||
	    api_read_page(req, UINT32_MAX, &page, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	list = json_object_new_array();
	TAILQ_FOREACH (hca, &api_model(ctx)->hcas, link)
		TAILQ_FOREACH (vf, &hca->vfs, link)
			if (api_page_takes(
				    &page, VHCA_BDF_STR(vf->bdf),
				    (state == VHCA_VF_STATE_COUNT || state == vf->state) &&
					    api_filter_takes(&filter, hca->fabric, vf, vf->claim)))
				json_object_array_add(list, view_vf(ctx, vf));
	api_reply_page(req, "vfs", list, &page);
}

void api_get_vf(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_vf *vf = api_find_vf(ctx, vhca_http_param(req, 0), &err);

	if (vf)
		vhca_http_reply(req, 200, view_vf(ctx, vf));
	else
		vhca_http_reply_error(req, &err);
}
