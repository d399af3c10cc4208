/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "common/base/codes.h"
#include "common/http/json.h"

static int parse_peers(struct json_object *list, const char *ret[static VHCA_CONF_PEERS_MAX],
		       unsigned int *ret_n, struct vhca_error *err)
{
	size_t n = json_object_array_length(list);

	if (n > VHCA_CONF_PEERS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: peers: %d at most", VHCA_CONF_PEERS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct json_object *peer = json_object_array_get_idx(list, i);

		if (!json_object_is_type(peer, json_type_string))
			return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
					      "body: peers: names are wanted");
		ret[i] = json_object_get_string(peer);
	}
	*ret_n = (unsigned int)n;
	return 0;
}

/* That guests lose their VFs has to be said: a list of peers that somebody's script left empty
 * does not. */
static int parse(struct json_object *body, const char *ret[static VHCA_CONF_PEERS_MAX],
		 unsigned int *ret_n, struct vhca_error *err)
{
	static const char *const members[] = {"peers", "park", NULL};
	struct json_object *list = NULL;
	bool park = false, given;
	int r = body ? vhca_json_check_members(body, members, err) : 0;

	if (!r && body)
		r = vhca_json_opt_bool(body, "park", &park, err);
	if (r < 0)
		return r;
	given = body && json_object_object_get_ex(body, "peers", &list);
	if (given && !json_object_is_type(list, json_type_array))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: peers: a list of names is wanted");
	if (park != (given && json_object_array_length(list) > 0))
		return park ? 0 : parse_peers(list, ret, ret_n, err);
	(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			     "a JSON body with either peers or park is needed");
	vhca_error_hint(err,
			"{\"peers\": [\"hvb\"]} moves the guests there, {\"park\": true} takes "
			"their VFs out");
	return -EINVAL;
}

void api_get_drain(void *ctx, struct vhca_http_request *req)
{
	vhca_http_reply(req, 200, vhca_drain_view(api_args(ctx)->drain));
}

void api_post_drain(void *ctx, struct vhca_http_request *req)
{
	struct vhca_drain *drain = api_args(ctx)->drain;
	const char *peers[VHCA_CONF_PEERS_MAX];
	struct vhca_error err = VHCA_ERROR_INIT;
	unsigned int n = 0;
	int r = parse(vhca_http_body(req), peers, &n, &err);

	if (!r)
		r = vhca_drain_begin(drain, peers, n, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		vhca_http_reply(req, 202, vhca_drain_view(drain));
}

void api_delete_drain(void *ctx, struct vhca_http_request *req)
{
	struct vhca_drain *drain = api_args(ctx)->drain;

	vhca_drain_end(drain);
	vhca_http_reply(req, 200, vhca_drain_view(drain));
}
