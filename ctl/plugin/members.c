/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"
#include "ctl/plugin/list.h"

#define PKEYS_SHOWN 6

static void format_effective(struct vhca_strbuf *sb, struct json_object *member)
{
	vhca_view_strings(sb, vhca_view_array(member, "effective"), PKEYS_SHOWN);
}

static void format_declared(struct vhca_strbuf *sb, struct json_object *member)
{
	vhca_view_strings(sb, vhca_view_array(member, "pkeys"), PKEYS_SHOWN);
}

static void format_bound(struct vhca_strbuf *sb, struct json_object *member)
{
	vhca_view_strings(sb, vhca_view_array(member, "from_bindings"), PKEYS_SHOWN);
}

static void format_inherited(struct vhca_strbuf *sb, struct json_object *member)
{
	vhca_view_strings(sb, vhca_view_array(member, "inherited"), PKEYS_SHOWN);
}

static const struct vhca_column columns[] = {
	{"PORT_GUID", "port_guid", NULL},
	{"EFFECTIVE", NULL, format_effective, .may_cut = true},
	{"DECLARED", NULL, format_declared, .may_cut = true},
	{"FROM_BINDINGS", NULL, format_bound, .may_cut = true},
	{"INHERITED", NULL, format_inherited, .may_cut = true},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/members",
		.key = "members",
		.empty = "no port needs a key",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
	};

	return vhca_plugin_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_plugin_members = {
	.name = "members",
	.has_table = true,
	.optional = VHCA_OPT_BIT(VHCA_OPT_PORT),
	.summary = "list which P_Keys each port needs, and why",
	.help = "\nEFFECTIVE is what the port is to have: what its agent has DECLARED, what its "
		"bindings need, and what this\n"
		"master found on it when it took over and nobody has reported yet (INHERITED).\n",
	.run = run,
};
