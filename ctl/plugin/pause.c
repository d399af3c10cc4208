/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

static int ask(const struct vhca_ctl *ctl, const char *path, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *answer = NULL;
	int r = vhca_ctl_ask(ctl, "POST", path, NULL, VHCA_CTL_READ_MS, &answer, err);

	if (answer && !ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: %s wait, %s are under way\n",
			     vhca_view_is_true(answer, "paused") ? "no move begins" : "moves go on",
			     vhca_view_text(answer, "waiting"),
			     vhca_view_text(answer, "under_way"));
	return r;
}

static int run_pause(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	return ask(ctl, "/v1/lids/pause", err);
}

static int run_resume(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	return ask(ctl, "/v1/lids/resume", err);
}

const struct vhca_ctl_command vhca_plugin_pause = {
	.name = "pause",
	.summary = "let no move of a LID begin, until resume",
	.help = "\nThose that are under way end. Reports that need a move wait a minute, are "
		"refused "
		"then, and come\n"
		"again; guests whose LID is to come wait as long. Over when OpenSM ends.\n",
	.run = run_pause,
};

const struct vhca_ctl_command vhca_plugin_resume = {
	.name = "resume",
	.summary = "let moves of LIDs go on",
	.help = "",
	.run = run_resume,
};
