/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/agent/domain.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
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

int vhca_ctl_add_wish(const struct vhca_ctl *ctl, struct json_object *body, struct vhca_error *err)
{
	static const struct {
		enum vhca_agent_opt opt;
		const char *key;
	} members[] = {
		{VHCA_OPT_PARTITION, "partition"},
		{VHCA_OPT_GUID, "guid"},
		{VHCA_OPT_FABRIC, "fabric"},
		{VHCA_OPT_PF, "pf"},
	};
	const char *numa = ctl->opts[VHCA_OPT_NUMA];
	uint32_t node;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(members); i++)
		if (ctl->opts[members[i].opt])
			(void)json_object_object_add(
				body, members[i].key,
				json_object_new_string(ctl->opts[members[i].opt]));
	if (!numa)
		return 0;
	if (vhca_parse_u32(numa, 10, INT32_MAX, &node) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				      "--numa %s: not the number of a NUMA node", numa);
	(void)json_object_object_add(body, "numa", json_object_new_int((int)node));
	return 0;
}
