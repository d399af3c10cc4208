/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/domain.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL, *body = json_object_new_object();
	int r;

	(void)json_object_object_add(body, "evidence", json_object_new_string(ctl->args[1]));
	r = vhca_ctl_domain(ctl, "takeover", body, &doc, err);
	if (doc)
		(void)printf("%s may take its addresses over for %s seconds; vhcactl domains shows "
			     "what it gets\n",
			     vhca_view_text(doc, "domain"), vhca_view_text(doc, "seconds"));
	return r;
}

const struct vhca_ctl_command vhca_cmd_takeover = {
	.name = "takeover",
	.args = {"DOMAIN", "EVIDENCE"},
	.summary = "let a domain take its addresses from a dead host",
	.help = "\nFor a domain that is restarted here because its host is dead: the subnet "
		"manager "
		"still has its addresses\n"
		"there, and takes them away from that host when this one asks. EVIDENCE is a line "
		"that says how it is known\n"
		"that the domain does not run there any more (for example who fenced the host); it "
		"goes into the log.\n"
		"DOMAIN is the UUID of a domain, or the name of a running one.\n",
	.run = run,
};
