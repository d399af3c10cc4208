/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "agent/api/body.h"
#include "agent/api/context.h"
#include "agent/api/handlers.h"
#include "agent/api/views.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"

/* So many names, and a blank behind each. */
#define TEXT_MAX (VHCA_VF_PKEYS_MAX * VHCA_NAME_MAX)

/* In the form that metadata has, which the configuration knows how to read. */
static int parse_partitions(struct json_object *body, char ret[static TEXT_MAX],
			    struct vhca_error *err)
{
	static const char *const members[] = {"partitions", NULL};
	struct json_object *list = NULL;
	struct vhca_strbuf text;
	int r = api_check_body(body, members, "partitions", err);

	vhca_strbuf_init(&text, ret, TEXT_MAX);
	if (r < 0)
		return r;
	list = json_object_object_get(body, "partitions");
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > VHCA_VF_PKEYS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: partitions: want a list of %d at most",
				      VHCA_VF_PKEYS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *element = json_object_array_get_idx(list, i);
		const char *word = json_object_get_string(element);

		if (!json_object_is_type(element, json_type_string) || !vhca_name_is_valid(word))
			return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
					      "body: partitions: want P_Keys such as \"0x8001\", "
					      "or names");
		vhca_strbuf_add(&text, "%s%s", text.len > 0 ? " " : "", word);
	}
	return 0;
}

void api_put_partitions(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_claim *claim = api_find_port(ctx, req, &err);
	char text[TEXT_MAX];
	struct api_pending *p;

	if (!claim || parse_partitions(vhca_http_body(req), text, &err) < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	p = api_pend(ctx, req);
	if (!p)
		return;
	p->guid = claim->identity.guid;
	vhca_engine_set_partitions(api_args(ctx)->engine, claim, text, api_on_port, p);
}
