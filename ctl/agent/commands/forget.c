/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/hcas/");
	vhca_ctl_encode(&sb, ctl->args[0]);
	if (sb.truncated)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", ENAMETOOLONG, "adapter");
	r = vhca_ctl_ask(ctl, "DELETE", path, NULL, VHCA_CTL_READ_MS, &doc, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", ctl->args[0]);
	else if (!ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s and its VFs are forgotten\n", vhca_view_text(doc, "bdf"));
	return r;
}

const struct vhca_ctl_command vhca_cmd_forget = {
	.name = "forget",
	.args = {"ADAPTER"},
	.summary = "forget an adapter that was pulled out",
	.help = "\nIts VFs, which nobody can scrub any more, go from the lists and from the state "
		"database. Refused while the\n"
		"adapter is there, or a claim is left at it. Should it come back, it is treated as "
		"a new one.\n"
		"ADAPTER is the PCI address of its PF, as vhcactl hcas shows it.\n",
	.run = run,
};
