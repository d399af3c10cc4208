/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = vhca_ctl_ask(ctl, "POST", "/v1/lids/rebalance", NULL, VHCA_CTL_READ_MS, &answer,
			     err);

	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("OpenSM computes all ways anew; %s LIDs had some that moves have "
			     "left\n",
			     vhca_view_text(answer, "kept_lids"));
	return r;
}

const struct vhca_ctl_command vhca_plugin_rebalance = {
	.name = "rebalance",
	.summary = "let each LID have the routing engine's ways again",
	.help = "\nReturns when OpenSM is asked. All ways are computed anew, without a sweep; "
		"those that differ are\n"
		"sent. fabric shows when it is done: kept is 0.\n",
	.run = run,
};
