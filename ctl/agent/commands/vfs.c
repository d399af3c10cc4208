/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

/* The guest's table in its order; a key that was asked for but is not mapped is marked. */
static void format_pkeys(struct vhca_strbuf *sb, struct json_object *vf)
{
	struct json_object *map = vhca_view_array(vf, "pkeys"),
			   *missing = vhca_view_array(vf, "missing");

	for (size_t i = 0; i < vhca_view_count(map); i++) {
		const char *pkey = vhca_view_text(json_object_array_get_idx(map, i), "pkey");

		if (!vhca_view_has(missing, NULL, pkey))
			vhca_strbuf_add(sb, "%s%.8s", sb->len ? " " : "", *pkey ? pkey : "?");
	}
	for (size_t i = 0; i < vhca_view_count(missing); i++)
		vhca_strbuf_add(sb, "%s%.8s(missing)", sb->len ? " " : "",
				vhca_view_item_text(missing, i));
}

/* Without an owner nothing is to be granted. */
static void format_granted(struct vhca_strbuf *sb, struct json_object *vf)
{
	if (*vhca_view_text(vf, "guid"))
		vhca_strbuf_add(sb, "%s", vhca_view_text(vf, "granted"));
}

static const struct vhca_column columns[] = {
	{"BDF", "bdf", NULL},
	{"STATE", "state", NULL},
	{"DRIVER", "driver", NULL, .wide = 2},
	{"DOMAIN/NAME", NULL, vhca_view_owner, .may_cut = true},
	{"GUID", "guid", NULL},
	{"GRANTED", NULL, format_granted},
	{"P_KEYS", NULL, format_pkeys, .may_cut = true, .wide = 1},
	{"REASON", "reason", NULL, .may_cut = true},
};

#define QUERY (VHCA_OPT_BIT(VHCA_OPT_STATE) | VHCA_OPTS_OF_VFS)

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/vfs",
		.key = "vfs",
		.empty = "no VFs; see vhcactl hcas for the adapters",
		.none = "no such VF",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
		.query = QUERY,
		.limit = VHCA_OPT_LIMIT,
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_vfs = {
	.name = "vfs",
	.has_table = true,
	.optional = QUERY,
	.summary = "list the VFs, their owners and addresses",
	.help = "\nSTATE is one of unmanaged preparing free claimed programmed attached detaching "
		"scrubbing\n"
		"quarantined. GRANTED: the subnet manager knows the GUID at this port, so the "
		"guest's port can\n"
		"come up. A P_Key with (missing) was asked for, but the host's port is not in that "
		"partition yet.\n",
	.run = run,
};
