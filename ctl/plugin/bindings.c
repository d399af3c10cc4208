/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"
#include "ctl/plugin/list.h"

#define PKEYS_SHOWN 6

static void format_pkeys(struct vhca_strbuf *sb, struct json_object *binding)
{
	vhca_view_strings(sb, vhca_view_array(binding, "pkeys"), PKEYS_SHOWN);
}

static void format_findings(struct vhca_strbuf *sb, struct json_object *binding)
{
	struct json_object *findings = vhca_view_array(binding, "findings");

	for (size_t i = 0; i < vhca_view_count(findings); i++)
		vhca_strbuf_add(sb, "%s%s", i ? "; " : "", vhca_view_item_text(findings, i));
}

static const struct vhca_column columns[] = {
	{"VGUID", "vguid", NULL},
	{"STATE", "state", NULL},
	{"PORT_GUID", "port_guid", NULL},
	{"INDEX", "gid_index", NULL, .wide = 2},
	{"LID", "lid", NULL},
	{"EPOCH", "epoch", NULL, .wide = 1},
	{"P_KEYS", NULL, format_pkeys, .may_cut = true},
	{"FINDINGS", NULL, format_findings, .may_cut = true},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/bindings",
		.key = "bindings",
		.empty = "no virtual GUID is bound",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
	};

	return vhca_plugin_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_plugin_bindings = {
	.name = "bindings",
	.args = {"VGUID"},
	.may_have_args = true,
	.has_table = true,
	.optional = VHCA_OPT_BIT(VHCA_OPT_PORT),
	.summary = "list which virtual GUID is at which port, and what of it is in force",
	.help = "\nSTATE: granted, the SA knows it at this port; pending, not yet; elsewhere, at "
		"another port; withdrawn.\n"
		"LID is that of the port, 0 if the port is not there now. FINDINGS say what is "
		"different from the report.\n",
	.run = run,
};
