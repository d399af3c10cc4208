/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_AGENT_COMMANDS_H
#define VHCA_CTL_AGENT_COMMANDS_H
/*
 * What the sub-commands of vhcactl share. A sub-command is one file of commands/ that defines one
 * row of the command table, main.c.
 */
#include "ctl/cli/ctl.h"

/* Only for commands that list them. */
enum vhca_agent_opt {
	VHCA_OPT_PARTITION = VHCA_CTL_OPTS_SHARED,
	VHCA_OPT_GUID,
	VHCA_OPT_FABRIC,
	VHCA_OPT_PF,
	VHCA_OPT_NUMA,
	VHCA_OPT_STATE,
	VHCA_OPT_SINCE,
	VHCA_OPT_CANCEL,
	VHCA_OPT_NO_WAIT,
	VHCA_OPT_EXTERNAL,
	VHCA_OPT_LEASE,
	VHCA_OPT_COPY_TIMEOUT,
	VHCA_OPT_EXPECTED_MAX,
	VHCA_OPT_BANDWIDTH,
	VHCA_OPT_CONNECTIONS,
	VHCA_OPT_AUTO_CONVERGE,
	VHCA_OPT_TLS,
	VHCA_OPT_PARK,
	VHCA_OPT_CHECK,
	VHCA_OPT_OUTPUT,
	VHCA_OPT_DOMAIN,
	VHCA_OPT_PEER,
	VHCA_OPT_FINAL,
	VHCA_OPT_LIMIT,
	VHCA_OPT_XML,
	VHCA_OPT_ONCE,
	VHCA_AGENT_OPTS
};

/* Of lists of VFs and of claims: which. */
#define VHCA_OPTS_OF_VFS                                               \
	(VHCA_OPT_BIT(VHCA_OPT_DOMAIN) | VHCA_OPT_BIT(VHCA_OPT_PF) |   \
	 VHCA_OPT_BIT(VHCA_OPT_FABRIC) | VHCA_OPT_BIT(VHCA_OPT_NUMA) | \
	 VHCA_OPT_BIT(VHCA_OPT_PARTITION) | VHCA_OPT_BIT(VHCA_OPT_LIMIT))

extern const struct vhca_ctl_command vhca_cmd_adopt;
extern const struct vhca_ctl_command vhca_cmd_forget;
extern const struct vhca_ctl_command vhca_cmd_attach;
extern const struct vhca_ctl_command vhca_cmd_claims;
extern const struct vhca_ctl_command vhca_cmd_config;
extern const struct vhca_ctl_command vhca_cmd_detach;
extern const struct vhca_ctl_command vhca_cmd_domains;
extern const struct vhca_ctl_command vhca_cmd_drain;
extern const struct vhca_ctl_command vhca_cmd_explain;
extern const struct vhca_ctl_command vhca_cmd_hcas;
extern const struct vhca_ctl_command vhca_cmd_lease;
extern const struct vhca_ctl_command vhca_cmd_metrics;
extern const struct vhca_ctl_command vhca_cmd_migrate;
extern const struct vhca_ctl_command vhca_cmd_migrations;
extern const struct vhca_ctl_command vhca_cmd_node;
extern const struct vhca_ctl_command vhca_cmd_outbox;
extern const struct vhca_ctl_command vhca_cmd_park;
extern const struct vhca_ctl_command vhca_cmd_partitions;
extern const struct vhca_ctl_command vhca_cmd_plan;
extern const struct vhca_ctl_command vhca_cmd_reload;
extern const struct vhca_ctl_command vhca_cmd_status;
extern const struct vhca_ctl_command vhca_cmd_support_bundle;
extern const struct vhca_ctl_command vhca_cmd_takeover;
extern const struct vhca_ctl_command vhca_cmd_top;
extern const struct vhca_ctl_command vhca_cmd_undrain;
extern const struct vhca_ctl_command vhca_cmd_unpark;
extern const struct vhca_ctl_command vhca_cmd_vfs;
extern const struct vhca_ctl_command vhca_cmd_watch;

#endif
