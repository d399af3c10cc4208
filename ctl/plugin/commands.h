/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_PLUGIN_COMMANDS_H
#define VHCA_CTL_PLUGIN_COMMANDS_H
/* What the sub-commands of vhcasmctl share: its options, and a row of the command table of each. */
#include "ctl/cli/ctl.h"

enum vhca_plugin_opt {
	VHCA_OPT_CONFIG = VHCA_CTL_OPTS_SHARED,
	VHCA_PLUGIN_OPTS_COMMON, /* from here on: only for commands that list them */
	VHCA_OPT_PORT = VHCA_PLUGIN_OPTS_COMMON,
	VHCA_OPT_MODE,
	VHCA_PLUGIN_OPTS
};

extern const struct vhca_ctl_command vhca_plugin_bindings;
extern const struct vhca_ctl_command vhca_plugin_fabric;
extern const struct vhca_ctl_command vhca_plugin_forget;
extern const struct vhca_ctl_command vhca_plugin_gc;
extern const struct vhca_ctl_command vhca_plugin_lids;
extern const struct vhca_ctl_command vhca_plugin_members;
extern const struct vhca_ctl_command vhca_plugin_move;
extern const struct vhca_ctl_command vhca_plugin_owner;
extern const struct vhca_ctl_command vhca_plugin_pause;
extern const struct vhca_ctl_command vhca_plugin_plan;
extern const struct vhca_ctl_command vhca_plugin_rebalance;
extern const struct vhca_ctl_command vhca_plugin_resume;
extern const struct vhca_ctl_command vhca_plugin_status;
extern const struct vhca_ctl_command vhca_plugin_unpin;

#endif
