/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;
	int r = vhca_ctl_ask(ctl, "POST", "/v1/reload", NULL, VHCA_CTL_READ_MS, &doc, err);

	/* Without an answer nobody knows which one is in force. */
	if (r < 0 && err->kind != VHCA_ERR_UNAVAILABLE)
		vhca_error_prefix(err, "reload refused, the old configuration stays");
	if (r == 0 && !ctl->opts[VHCA_OPT_JSON])
		(void)puts("the new configuration is in force");
	return r;
}

const struct vhca_ctl_command vhca_cmd_reload = {
	.name = "reload",
	.summary = "let the agent read its configuration again",
	.help = "\nA configuration that is wrong, or that changes what needs a restart, is refused "
		"as a whole.\n",
	.run = run,
};
