/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

/* A move waits up to 60 s for a sweep, and for moves before it. */
#define MOVE_MS 120000

static int put_lid(const struct vhca_ctl *ctl, const char *query, uint32_t ms,
		   struct json_object **ret, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object();
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/lids/");
	vhca_ctl_encode(&sb, ctl->args[0]);
	vhca_strbuf_add(&sb, "%s", query);
	(void)json_object_object_add(body, "port_guid", json_object_new_string(ctl->args[1]));
	if (ctl->opts[VHCA_OPT_MODE])
		(void)json_object_object_add(body, "mode",
					     json_object_new_string(ctl->opts[VHCA_OPT_MODE]));
	return vhca_ctl_ask(ctl, "PUT", path, body, ms, ret, err);
}

/* "LID 7: ..." of what it costs; false if nothing changes. */
static bool print_change(struct json_object *change, const char *verb)
{
	struct json_object *smps = vhca_view_member(change, "smps"),
			   *other = vhca_view_member(change, "exchanged");

	if (!other) {
		(void)printf("LID %s is at %s already: nothing changes\n",
			     vhca_view_text(change, "lid"), vhca_view_text(change, "port_guid"));
		return false;
	}
	(void)printf("LID %s %s to %s, LID %s to %s\n", vhca_view_text(change, "lid"), verb,
		     vhca_view_text(change, "port_guid"), vhca_view_text(other, "lid"),
		     vhca_view_text(other, "port_guid"));
	(void)printf("%s: %" PRIu64 " switches; SMPs: %" PRIu64 " LFT, %" PRIu64
		     " PortInfo, %" PRIu64 " to drain before\n",
		     vhca_view_text(change, "mode"), vhca_view_u64(change, "switches"),
		     vhca_view_u64(smps, "lft"), vhca_view_u64(smps, "port_info"),
		     vhca_view_u64(change, "drain_smps"));
	return true;
}

static int run_plan(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *plan = NULL;
	struct json_object *guids;
	int r = put_lid(ctl, "?plan=yes", VHCA_CTL_READ_MS, &plan, err);

	if (r < 0 || ctl->opts[VHCA_OPT_JSON])
		return r;
	if (!print_change(plan, "would go"))
		return 0;
	guids = vhca_view_array(plan, "switch_guids");
	for (size_t i = 0; i < vhca_view_count(guids); i++)
		(void)printf("  %s\n", vhca_view_item_text(guids, i));
	return 0;
}

static int run_move(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *move = NULL;
	int r = put_lid(ctl, "", MOVE_MS, &move, err);

	if (r < 0 || ctl->opts[VHCA_OPT_JSON])
		return r;
	if (!print_change(move, "went"))
		return 0;
	if (strcmp(vhca_view_text(move, "state"), "repairing") == 0)
		(void)printf("REPAIRING: %" PRIu64 " SMPs are not acknowledged; OpenSM sweeps "
			     "until they are (vhcasmctl fabric)\n",
			     vhca_view_u64(move, "missing"));
	else
		(void)printf("all acknowledged after %" PRIu64 " us\n",
			     vhca_view_u64(move, "duration_us"));
	return 0;
}

const struct vhca_ctl_command vhca_plugin_plan = {
	.name = "plan",
	.args = {"LID", "PORT_GUID"},
	.optional = VHCA_OPT_BIT(VHCA_OPT_MODE),
	.summary = "say what it would cost to move a LID to a port, and change nothing",
	.help = "\nThen the switches that would change, a line each.\n",
	.run = run_plan,
};

const struct vhca_ctl_command vhca_plugin_move = {
	.name = "move",
	.args = {"LID", "PORT_GUID"},
	.optional = VHCA_OPT_BIT(VHCA_OPT_MODE),
	.summary = "move a LID to a port; that port's LID goes to the present owner",
	.help = "\nThe two ports exchange their LIDs; on an adapter with shared ports the host's "
		"goes. Needs enable = yes in\n"
		"[lids] of vhcasm.conf. Waits for a sweep that is under way. A refusal means that "
		"all is as before.\n",
	.run = run_move,
};
