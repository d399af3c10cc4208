/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/plugin/commands.h"
#include "ctl/plugin/list.h"

static const struct vhca_column columns[] = {
	{"LID", "lid", NULL},
	{"VGUID", "vguid", NULL},
	{"PORT_GUID", "port_guid", NULL},
	{"SWITCH_GUID", "switch_guid", NULL, .wide = 2},
	{"PORT", "switch_port", NULL, .wide = 2},
	{"NODE", "node", NULL, .may_cut = true},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/lids",
		.key = "lids",
		.empty = "no port has a LID yet",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
	};

	return vhca_plugin_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_plugin_lids = {
	.name = "lids",
	.args = {"LID"},
	.may_have_args = true,
	.has_table = true,
	.summary = "list who has which LID, and where that is plugged in",
	.help = "\nVGUID: whose dynamic LID this is; as long as no port has the virtual GUID, the "
		"rest is the hypervisor's\n"
		"port. PORT is the one of the switch that it is plugged into.\n",
	.run = run,
};
