/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static const struct vhca_column columns[] = {
	{"SECTION", "section", NULL, .may_cut = true},
	{"KEY", "key", NULL},
	{"VALUE", "value", NULL, .may_cut = true},
	{"DEFAULT", "default", NULL, .may_cut = true},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/config",
		.key = "settings",
		.empty = "no settings",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_config = {
	.name = "config",
	.has_table = true,
	.summary = "list the configuration that is in effect",
	.help = "\nWhat the agent has read last, whatever the files say by now, and the defaults; "
		"see vhcad.conf(5).\n",
	.run = run,
};
