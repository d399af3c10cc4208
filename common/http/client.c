// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/client.h"

#include <stdlib.h>

#include "common/base/role.h"
#include "common/http/transfer.h"

void vhca_http_result_done(struct vhca_http_result *res)
{
	(void)json_object_put(res->body);
	free(res->text);
	*res = (struct vhca_http_result){.status = 0};
}

int vhca_http_call(const struct vhca_http_call_args *args, struct vhca_http_result *res,
		   struct vhca_error *err)
{
	struct vhca_http_transfer t;
	int r;

	vhca_may_block("http call");
	*res = (struct vhca_http_result){.status = 0};
	r = vhca_http_transfer_init(&t, args);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "internal", -r, "%s %s", args->method,
				      args->url);
	r = vhca_http_transfer_result(&t, curl_easy_perform(t.easy), res, err);
	vhca_http_transfer_done(&t);
	return r;
}
