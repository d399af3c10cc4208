/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

#define GC_MS 120000 /* LIDs that move may have to wait for a sweep */

/* Of what the first argument names below a folder. */
static int ask_one(const struct vhca_ctl *ctl, const char *method, const char *folder,
		   struct json_object *body, uint32_t default_ms, struct json_object **ret,
		   struct vhca_error *err)
{
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "%s", folder);
	vhca_ctl_encode(&sb, ctl->args[0]);
	return vhca_ctl_ask(ctl, method, path, body, default_ms, ret, err);
}

static int run_forget(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = ask_one(ctl, "DELETE", "/v1/epochs/", NULL, VHCA_CTL_READ_MS, &answer, err);

	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: epoch %s is forgotten; the next report may have any\n",
			     vhca_view_text(answer, "vguid"), vhca_view_text(answer, "epoch"));
	return r;
}

static int run_unpin(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = ask_one(ctl, "DELETE", "/v1/pins/", NULL, VHCA_CTL_READ_MS, &answer, err);

	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: is %s's no more, but the node's that speaks for it next\n",
			     vhca_view_text(answer, "port_guid"), vhca_view_text(answer, "node"));
	return r;
}

static int run_owner(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object(), *answer = NULL;
	int r;

	(void)json_object_object_add(body, "port_guid", json_object_new_string(ctl->args[1]));
	r = ask_one(ctl, "PUT", "/v1/owners/", body, VHCA_CTL_READ_MS, &answer, err);
	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: is the node's with port %s, above epoch %s\n",
			     vhca_view_text(answer, "vguid"), vhca_view_text(answer, "port_guid"),
			     vhca_view_text(answer, "epoch"));
	return r;
}

static int run_gc(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = ask_one(ctl, "DELETE", "/v1/ports/", NULL, GC_MS, &answer, err);

	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: %s virtual GUIDs are withdrawn, %s dynamic LIDs free; %s are "
			     "seen elsewhere, and stay\n",
			     vhca_view_text(answer, "port_guid"),
			     vhca_view_text(answer, "withdrawn"), vhca_view_text(answer, "lids"),
			     vhca_view_text(answer, "left"));
	return r;
}

const struct vhca_ctl_command vhca_plugin_gc = {
	.name = "gc",
	.args = {"PORT_GUID"},
	.summary = "drop all that is known of the port of a node that does not come back",
	.help = "\nIts bindings are withdrawn at their epochs, and its LIDs given back. Only what "
		"is "
		"not in the subnet now.\n"
		"If the node comes back after all, its guests lose their GUIDs until it takes them "
		"anew.\n",
	.run = run_gc,
};

const struct vhca_ctl_command vhca_plugin_forget = {
	.name = "forget",
	.args = {"VGUID"},
	.summary = "let a virtual GUID that is not bound begin anew, at any epoch",
	.help = "\nNothing fences it until the next report: a former owner who does not know that "
		"he is one may bind it.\n",
	.run = run_forget,
};

const struct vhca_ctl_command vhca_plugin_owner = {
	.name = "owner",
	.args = {"VGUID", "PORT_GUID"},
	.summary = "say whose a virtual GUID is, where no ticket does",
	.help = "\nBefore a guest is started on another host because its own has died, and where "
		"two have asked for it.\n"
		"From another port it is withdrawn at once. Only with [tickets] required.\n",
	.run = run_owner,
};

const struct vhca_ctl_command vhca_plugin_unpin = {
	.name = "unpin",
	.args = {"PORT_GUID"},
	.summary = "let a port be the node's that speaks for it next",
	.help = "\nFor a port that is in another host now. Each OpenSM keeps its own pins: ask a "
		"stand-by, too.\n",
	.run = run_unpin,
};
