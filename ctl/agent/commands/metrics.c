/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	const char *path = ctl->opts[VHCA_OPT_OUTPUT];
	VHCA_AUTO_FREE char *text = NULL;
	int r = vhca_ctl_get_text(ctl, "/metrics", &text, err);

	if (r < 0)
		return r;
	if (path) {
		r = vhca_write_file_atomic(path, text, strlen(text), 0644);
		return r < 0 ? vhca_error_set(err, VHCA_ERR_INTERNAL, "output", -r, "%s", path) : 0;
	}
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		vhca_blot_controls(line); /* of a label */
		(void)printf("%s%s", line, rest ? "\n" : "");
	}
	return fflush(stdout) == 0
		       ? 0
		       : vhca_error_set(err, VHCA_ERR_INTERNAL, "output", errno, "standard output");
}

const struct vhca_ctl_command vhca_cmd_metrics = {
	.name = "metrics",
	.optional = VHCA_OPT_BIT(VHCA_OPT_OUTPUT),
	.summary = "print what Prometheus reads",
	.help = "\nFor a textfile collector: --output FILE.prom replaces that file as a whole, and "
		"leaves it as it\nwas where the agent does not answer.\n",
	.run = run,
};
