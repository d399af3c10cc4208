/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/domain.h"
#include "ctl/cli/view.h"

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = vhca_ctl_domain_vf(ctl, "DELETE", NULL, &answer, err);

	if (!answer)
		return r;
	if (strcmp(vhca_view_text(answer, "state"), "free") == 0)
		(void)printf("%s/%s: detached; the VF is scrubbed and free again\n", ctl->args[0],
			     ctl->args[1]);
	else
		(void)printf("%s/%s: released; the VF is %s: %s\n", ctl->args[0], ctl->args[1],
			     vhca_view_text(answer, "state"), vhca_view_text(answer, "reason"));
	return 0;
}

const struct vhca_ctl_command vhca_cmd_detach = {
	.name = "detach",
	.args = {"DOMAIN", "NAME"},
	.summary = "take a VF from a running domain",
	.help = "\nAsks the guest to let go of the device, waits until it has, and returns when "
		"the VF is free again. A guest\n"
		"that does not let go keeps it: nothing is pulled out under it.\n",
	.run = run,
};
