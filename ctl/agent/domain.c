/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/agent/domain.h"

#include <errno.h>

#include "ctl/cli/api.h"

/* "/v1/domains/DOMAIN/KIND" and, unless NULL, "/NAME". */
static int make_path(struct vhca_strbuf *sb, const char *domain, const char *kind, const char *name,
		     struct vhca_error *err)
{
	vhca_strbuf_add(sb, "/v1/domains/");
	vhca_ctl_encode(sb, domain);
	vhca_strbuf_add(sb, "/%s", kind);
	if (name) {
		vhca_strbuf_add(sb, "/");
		vhca_ctl_encode(sb, name);
	}
	return sb->truncated ? vhca_error_set(err, VHCA_ERR_INVALID, "usage", ENAMETOOLONG,
					      "domain or VF name")
			     : 0;
}

static int call(const struct vhca_ctl *ctl, const char *method, const char *path,
		struct json_object *body, struct json_object **ret, struct vhca_error *err)
{
	int r = vhca_ctl_call(ctl, method, path, body, VHCA_CTL_CHANGE_MS, ret, err);

	if (r < 0 || !ctl->opts[VHCA_OPT_JSON])
		return r;
	vhca_ctl_print_json(*ret);
	(void)json_object_put(*ret);
	*ret = NULL;
	return 0;
}

int vhca_ctl_domain(const struct vhca_ctl *ctl, const char *verb, struct json_object *body,
		    struct json_object **ret, struct vhca_error *err)
{
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	r = make_path(&sb, ctl->args[0], verb, NULL, err);
	if (r < 0)
		return r;
	r = call(ctl, "POST", path, body, ret, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", ctl->args[0]);
	return r;
}

int vhca_ctl_domain_vf(const struct vhca_ctl *ctl, const char *method, struct json_object *body,
		       struct json_object **ret, struct vhca_error *err)
{
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	r = make_path(&sb, ctl->args[0], "vfs", ctl->args[1], err);
	if (r < 0)
		return r;
	r = call(ctl, method, path, body, ret, err);
	if (r < 0)
		vhca_error_prefix(err, "%s/%s", ctl->args[0], ctl->args[1]);
	return r;
}
