/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/finding.h"
#include "ctl/cli/view.h"

#define WRONG 12 /* the exit status */

/* Those of an agent of before are sentences, and only of what blocks. */
static int print_reason(struct json_object *reason, bool json)
{
	static const struct vhca_finding_members members = {"code", "reason", "hint", 19};
	bool is_sentence = json_object_is_type(reason, json_type_string);

	if (json)
		return is_sentence ? WRONG : vhca_finding_exit(reason);
	if (!is_sentence) {
		vhca_print_finding(reason, &members);
		return vhca_finding_exit(reason);
	}
	(void)printf("  %-8s %-19s %s\n", "wrong", "", json_object_get_string(reason));
	return WRONG;
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;
	struct json_object *reasons;
	int worst, r = vhca_ctl_get_state(ctl, "/readyz", &doc, err);
	bool json = ctl->opts[VHCA_OPT_JSON], is_ready;
	const char *why;

	if (r < 0)
		return r;
	reasons = vhca_view_array(doc, "reasons");
	is_ready = strcmp(vhca_view_text(doc, "status"), "ready") == 0;
	worst = is_ready || vhca_view_count(reasons) ? 0 : WRONG;
	why = is_ready ? ": nothing is wrong" : ": the agent does not say why";
	if (json)
		vhca_ctl_print_json(doc);
	else
		(void)printf("%s  %s%s\n", is_ready ? "READY" : "NOT READY",
			     vhca_view_text(doc, "node_name"), vhca_view_count(reasons) ? "" : why);
	for (size_t i = 0; i < vhca_view_count(reasons); i++) {
		r = print_reason(json_object_array_get_idx(reasons, i), json);
		worst = r > worst ? r : worst;
	}
	return worst;
}

const struct vhca_ctl_command vhca_cmd_status = {
	.name = "status",
	.summary = "say whether the host is ready for guests, and all that is wrong",
	.help = "\nA line for each reason, with its code, and what to type or to do. Exit status 0 "
		"if there is none,\n"
		"else that of the worst: 10 unknown, 11 warning, 12 wrong.\n",
	.run = run,
};
