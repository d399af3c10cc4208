/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object(), *doc = NULL;
	char path[VHCA_CTL_PATH_MAX], owner[256];
	struct vhca_strbuf sb;
	uint64_t seconds;
	int r;

	/* Which ones are possible the agent says. */
	if (vhca_parse_u64(ctl->args[1], 10, UINT32_MAX, &seconds) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				      "\"%.40s\" is no number of seconds", ctl->args[1]);
	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/claims/");
	vhca_ctl_encode(&sb, ctl->args[0]);
	vhca_strbuf_add(&sb, "/lease");
	if (sb.truncated)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", ENAMETOOLONG, "claim");
	(void)json_object_object_add(body, "lease", json_object_new_int64((int64_t)seconds));
	r = vhca_ctl_ask(ctl, "POST", path, body, VHCA_CTL_READ_MS, &doc, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", ctl->args[0]);
	if (r < 0 || ctl->opts[VHCA_OPT_JSON])
		return r;
	vhca_strbuf_init(&sb, owner, sizeof(owner));
	vhca_view_owner(&sb, doc);
	(void)printf("%s: kept for %" PRIu64 " s without its domain\n", owner, seconds);
	return 0;
}

const struct vhca_ctl_command vhca_cmd_lease = {
	.name = "lease",
	.args = {"CLAIM", "SECONDS"},
	.summary = "keep a VF for a domain that is not here yet",
	.help = "\nThe time that is left begins anew, and is this long. It counts while libvirt "
		"knows no such domain, running or\n"
		"defined; then the claim ends. For claims that were made before the domain's start "
		"(WAY claim of vhcactl claims,\n"
		"which also lists the CLAIMs and their time).\n",
	.run = run,
};
