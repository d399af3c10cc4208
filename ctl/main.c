/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vhcactl: the command line to vhcad's HTTP API on its unix socket. */
#include <stdio.h>

#include "config.h"
#include "ctl/options.h"

static int run(int argc, char **argv, struct vhca_error *err)
{
	const struct vhca_ctl_command *cmd;
	struct vhca_ctl ctl;
	int r = vhca_ctl_parse(argc, argv, &ctl, &cmd, err);

	if (r < 0)
		return r;
	if (cmd)
		return cmd->run(&ctl, err);
	if (ctl.opts[VHCA_OPT_HELP])
		return vhca_ctl_print_help(stdout, ctl.args[0], err);
	(void)puts("vhcactl " VHCA_VERSION);
	return 0;
}

int main(int argc, char **argv)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int status = run(argc, argv, &err);

	if (status < 0) {
		(void)fprintf(stderr, "vhcactl: %s\n", err.msg);
		if (err.hint[0])
			(void)fprintf(stderr, "hint: %s\n", err.hint);
		status = vhca_err_to_exit(err.kind);
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		(void)fputs("vhcactl: the output could not be written\n", stderr);
		return status ? status : 1;
	}
	return status;
}
