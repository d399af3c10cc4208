/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CTL_H
#define VHCA_CTL_CTL_H
/*
 * What the sub-commands of vhcactl share. A sub-command is one file of commands/ that defines one
 * row of the command table; help, argument checks and the bash completion's test come from that
 * row.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

#define VHCA_CTL_ARGS_MAX 2

enum vhca_ctl_opt {
	VHCA_OPT_JSON,
	VHCA_OPT_SOCKET,
	VHCA_OPT_TIMEOUT,
	VHCA_OPT_HELP,
	VHCA_OPT_VERSION,
	/* from here on: only for commands that list them */
	VHCA_OPT_PARTITION,
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
	VHCA_OPT_BANDWIDTH,
	VHCA_OPT_CONNECTIONS,
	VHCA_OPT_AUTO_CONVERGE,
	VHCA_OPT_TLS,
	VHCA_OPT_PARK,
	VHCA_OPT_CHECK,
	VHCA_CTL_OPTS
};
#define VHCA_OPT_BIT(opt) (1u << (opt))

/* One invocation, after its command line was checked. Strings are borrowed from argv. */
struct vhca_ctl {
	const char *opts[VHCA_CTL_OPTS]; /* value, "" for a flag, NULL if not given */
	const char *args[VHCA_CTL_ARGS_MAX];
	char *const *rest; /* further arguments, of a command that takes them */
	int n_rest;
	const char *socket_path;
	uint32_t timeout_ms; /* 0 = the command's own default */
};

struct vhca_ctl_command {
	const char *name;
	const char *args[VHCA_CTL_ARGS_MAX]; /* names of the arguments, all of them required */
	const char *rest;	     /* name of any number of arguments behind them; NULL: none */
	uint32_t required, optional; /* VHCA_OPT_BIT() of its own options */
	uint32_t first_arg_only;     /* those of them with which only the first argument is taken */
	const char *summary;	     /* a line of the command list */
	const char *help;	     /* paragraphs behind it, "" if there is no more to say */
	/* The exit status, or a negative errno with err set. */
	int (*run)(const struct vhca_ctl *ctl, struct vhca_error *err);
};

extern const struct vhca_ctl_command vhca_cmd_adopt;
extern const struct vhca_ctl_command vhca_cmd_forget;
extern const struct vhca_ctl_command vhca_cmd_attach;
extern const struct vhca_ctl_command vhca_cmd_claims;
extern const struct vhca_ctl_command vhca_cmd_detach;
extern const struct vhca_ctl_command vhca_cmd_domains;
extern const struct vhca_ctl_command vhca_cmd_drain;
extern const struct vhca_ctl_command vhca_cmd_explain;
extern const struct vhca_ctl_command vhca_cmd_hcas;
extern const struct vhca_ctl_command vhca_cmd_migrate;
extern const struct vhca_ctl_command vhca_cmd_migrations;
extern const struct vhca_ctl_command vhca_cmd_node;
extern const struct vhca_ctl_command vhca_cmd_outbox;
extern const struct vhca_ctl_command vhca_cmd_park;
extern const struct vhca_ctl_command vhca_cmd_reload;
extern const struct vhca_ctl_command vhca_cmd_takeover;
extern const struct vhca_ctl_command vhca_cmd_undrain;
extern const struct vhca_ctl_command vhca_cmd_unpark;
extern const struct vhca_ctl_command vhca_cmd_vfs;
extern const struct vhca_ctl_command vhca_cmd_watch;

#endif
