/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/http/server.h"
#include "opensm/http/api_private.h"
#include "opensm/http/fields.h"
#include "opensm/http/json.h"
#include "opensm/http/lids.h"

#define LISTS_MAX 64 /* that wait; then one more is refused */

/* How a page is asked for, and made. */
struct listing {
	int (*read)(struct vhca_http_request *req, struct vhca_osm_page *ret,
		    struct vhca_error *err);
	struct json_object *(*make)(const struct vhca_osm_api *api,
				    const struct vhca_osm_page *page);
};

static void answer_list(struct vhca_osm_api *api, struct vhca_http_request *req,
			vhca_osm_handler_fn handler, const struct listing *listing)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_page page;
	int r = listing->read(req, &page, &err);

	if (r == 0 && api->receiving && api->lists.n >= LISTS_MAX)
		r = vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "too_many_lists", 0, "%u lists wait",
				   api->lists.n);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else if (api->receiving)
		vhca_osm_backlog_add(&api->lists, req, handler, api);
	else
		vhca_http_reply(req, 200, listing->make(api, &page));
}

static struct json_object *make_bindings(const struct vhca_osm_api *api,
					 const struct vhca_osm_page *page)
{
	return vhca_osm_json_bindings(api->service, page);
}

void vhca_osm_list_bindings(void *ctx, struct vhca_http_request *req)
{
	static const struct listing bindings = {vhca_osm_read_page, make_bindings};

	answer_list(ctx, req, vhca_osm_list_bindings, &bindings);
}

static struct json_object *make_members(const struct vhca_osm_api *api,
					const struct vhca_osm_page *page)
{
	return vhca_osm_json_members(api->service, page);
}

void vhca_osm_list_members(void *ctx, struct vhca_http_request *req)
{
	static const struct listing members = {vhca_osm_read_page, make_members};

	answer_list(ctx, req, vhca_osm_list_members, &members);
}

static struct json_object *make_lids(const struct vhca_osm_api *api,
				     const struct vhca_osm_page *page)
{
	return vhca_osm_json_lids(api->mover, page);
}

void vhca_osm_list_lids(void *ctx, struct vhca_http_request *req)
{
	static const struct listing lids = {vhca_osm_read_lid_page, make_lids};

	answer_list(ctx, req, vhca_osm_list_lids, &lids);
}
