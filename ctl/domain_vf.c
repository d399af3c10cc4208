/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/domain_vf.h"

#include <errno.h>

#include "ctl/api.h"

int vhca_ctl_domain_vf(const struct vhca_ctl *ctl, const char *method, struct json_object *body,
		       struct json_object **ret, struct vhca_error *err)
{
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/domains/");
	vhca_ctl_encode(&sb, ctl->args[0]);
	vhca_strbuf_add(&sb, "/vfs/");
	vhca_ctl_encode(&sb, ctl->args[1]);
	if (sb.truncated)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", ENAMETOOLONG,
				      "domain or VF name");
	r = vhca_ctl_call(ctl, method, path, body, VHCA_CTL_CHANGE_MS, ret, err);
	if (r < 0) {
		vhca_error_prefix(err, "%s/%s", ctl->args[0], ctl->args[1]);
		return r;
	}
	if (!ctl->opts[VHCA_OPT_JSON])
		return 0;
	vhca_ctl_print_json(*ret);
	return 1;
}
