/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/plugin/list.h"

#include <errno.h>

#include "common/base/text.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

int vhca_plugin_list(const struct vhca_ctl *ctl, const struct vhca_ctl_list *list,
		     struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *row = NULL, *rows = json_object_new_array();
	struct vhca_ctl_list part = *list;
	const char *one = ctl->args[0], *port = ctl->opts[VHCA_OPT_PORT];
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	if (one && port) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				     "%s and --port: one of them", one);
		return -EINVAL;
	}
	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "%s%s", list->path, one ? "/" : port ? "?port_guid=" : "");
	vhca_ctl_encode(&sb, one ? one : port ? port : "");
	part.path = path;
	if (!one)
		return vhca_ctl_list(ctl, &part, err);
	r = vhca_ctl_ask(ctl, "GET", path, NULL, VHCA_CTL_READ_MS, &row, err);
	if (r < 0 || ctl->opts[VHCA_OPT_JSON])
		return r;
	(void)json_object_array_add(rows, json_object_get(row));
	return vhca_ctl_print_rows(ctl, list->columns, list->n_columns, rows, rows, err);
}
