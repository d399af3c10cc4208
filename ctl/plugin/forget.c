/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

/* DELETE of what the argument names below a folder. */
static int delete_one(const struct vhca_ctl *ctl, const char *folder, struct json_object **ret,
		      struct vhca_error *err)
{
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "%s", folder);
	vhca_ctl_encode(&sb, ctl->args[0]);
	return vhca_ctl_ask(ctl, "DELETE", path, NULL, VHCA_CTL_READ_MS, ret, err);
}

static int run_forget(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = delete_one(ctl, "/v1/epochs/", &answer, err);

	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: epoch %s is forgotten; the next report may have any\n",
			     vhca_view_text(answer, "vguid"), vhca_view_text(answer, "epoch"));
	return r;
}

static int run_unpin(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = delete_one(ctl, "/v1/pins/", &answer, err);

	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: is %s's no more, but the node's that speaks for it next\n",
			     vhca_view_text(answer, "port_guid"), vhca_view_text(answer, "node"));
	return r;
}

const struct vhca_ctl_command vhca_plugin_forget = {
	.name = "forget",
	.args = {"VGUID"},
	.summary = "let a virtual GUID that is not bound begin anew, at any epoch",
	.help = "\nNothing fences it until the next report: a former owner who does not know that "
		"he is one may bind it.\n",
	.run = run_forget,
};

const struct vhca_ctl_command vhca_plugin_unpin = {
	.name = "unpin",
	.args = {"PORT_GUID"},
	.summary = "let a port be the node's that speaks for it next",
	.help = "\nFor a port that is in another host now. Each OpenSM keeps its own pins: ask a "
		"stand-by, too.\n",
	.run = run_unpin,
};
