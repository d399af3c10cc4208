/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_OPTIONS_H
#define VHCA_CTL_CLI_OPTIONS_H
/* The command line: options, the command table, and the help that comes from both. */
#include <stdio.h>

#include "ctl/cli/ctl.h"

/*
 * Parses argv. *ret_command is NULL when help or the version is asked for (ctl->opts says which;
 * args[0] may name the command to explain). VHCA_ERR_INVALID "usage" otherwise. ret->server is
 * left to the program's connect().
 */
int vhca_ctl_parse(const struct vhca_ctl_program *program, int argc, char **argv,
		   struct vhca_ctl *ret, const struct vhca_ctl_command **ret_command,
		   struct vhca_error *err);

/*
 * Help for one command, or the list of all when name is NULL. -ENOENT with err for an unknown name.
 */
int vhca_ctl_print_help(FILE *out, const struct vhca_ctl_program *program, const char *name,
			struct vhca_error *err);

#endif
