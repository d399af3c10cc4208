/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "common/base/text.h"
#include "common/http/auth.h"
#include "config.h"
#include "ctl/cli/options.h"

static int run(const struct vhca_ctl_program *program, int argc, char **argv,
	       struct vhca_error *err)
{
	const struct vhca_ctl_command *cmd;
	struct vhca_ctl ctl;
	int r = vhca_ctl_parse(program, argc, argv, &ctl, &cmd, err);

	if (r < 0)
		return r;
	if (!cmd && ctl.opts[VHCA_OPT_HELP])
		return vhca_ctl_print_help(stdout, program, ctl.args[0], err);
	if (!cmd) {
		(void)printf("%s " VHCA_VERSION "\n", program->name);
		return 0;
	}
	r = program->connect(&ctl, err);
	if (r == 0)
		r = cmd->run(&ctl, err);
	(void)vhca_http_auth_free(ctl.server.auth);
	if (program->disconnect)
		program->disconnect(&ctl);
	return r;
}

int vhca_ctl_main(const struct vhca_ctl_program *program, int argc, char **argv)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int status = run(program, argc, argv, &err);

	if (status < 0) {
		vhca_blot_controls(err.msg); /* there may be words of an answer in it */
		vhca_blot_controls(err.hint);
		(void)fprintf(stderr, "%s: %s\n", program->name, err.msg);
		if (err.hint[0])
			(void)fprintf(stderr, "hint: %s\n", err.hint);
		status = vhca_err_to_exit(err.kind);
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		(void)fprintf(stderr, "%s: the output could not be written\n", program->name);
		return status ? status : 1;
	}
	return status;
}
