/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/finding.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

static void print_sm(struct json_object *state)
{
	const char *sm_state = vhca_view_text(state, "sm_state"),
		   *master = vhca_view_text(state, "master_guid");
	bool is_master = strcmp(sm_state, "master") == 0;
	char text[160];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_strbuf_add(&sb, "%.32s", sm_state);
	if (is_master)
		vhca_strbuf_add(&sb, "%s",
				strcmp(vhca_view_text(state, "status"), "ready") == 0
					? ", ready"
					: ", NOT ready: its first sweep is not complete");
	else if (*master)
		vhca_strbuf_add(&sb, "; the master is %.32s, ask the plugin there", master);
	else
		vhca_strbuf_add(&sb, "; it knows no master");
	vhca_view_print_line("SM", text);
}

static void print_plugin(struct json_object *state)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "libvhcasm %.32s in %.64s",
		       vhca_view_text(state, "plugin_version"),
		       vhca_view_text(state, "opensm_version"));
	vhca_view_print_line("plugin", text);
	(void)snprintf(text, sizeof(text),
		       "%" PRIu64 " virtual GUIDs are bound, %" PRIu64 " ports need keys: %s",
		       vhca_view_u64(state, "bindings"), vhca_view_u64(state, "ports"),
		       vhca_view_is_true(state, "in_effect") ? "all in effect"
							     : "NOT all in effect yet");
	vhca_view_print_line("reports", text);
	(void)snprintf(text, sizeof(text),
		       "%" PRIu64 " are free; guid2lid keeps one for each of %" PRIu64 " GUIDs",
		       vhca_view_u64(state, "lids_free"), vhca_view_u64(state, "guid2lid_lines"));
	vhca_view_print_line("LIDs", text);
}

/* The exit status: that of the worst. */
static int judge(struct json_object *state, bool print)
{
	static const struct vhca_finding_members members = {"code", "reason", "hint", 15};
	struct json_object *reasons = vhca_view_array(state, "reasons");
	bool stands_by = strcmp(vhca_view_text(state, "sm_state"), "standby") == 0 &&
			 *vhca_view_text(state, "master_guid");
	int worst = 0;

	for (size_t i = 0; i < vhca_view_count(reasons); i++) {
		struct json_object *reason = json_object_array_get_idx(reasons, i);
		int r = vhca_finding_exit(reason);

		if (stands_by && strcmp(vhca_view_text(reason, "code"), "not_master") == 0)
			continue; /* that is what it is for */
		if (print)
			vhca_print_finding(reason, &members);
		worst = r > worst ? r : worst;
	}
	return worst;
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *state = NULL;
	int r = vhca_ctl_get_state(ctl, "/readyz", &state, err);

	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_JSON]) {
		vhca_ctl_print_json(state);
		return judge(state, false);
	}
	print_sm(state);
	print_plugin(state);
	return judge(state, true);
}

const struct vhca_ctl_command vhca_plugin_status = {
	.name = "status",
	.summary = "show whether this is the master and ready, and what is wrong",
	.help = "\nNever waits for OpenSM: it answers also while ways are computed. A line for "
		"each "
		"thing that is wrong.\n"
		"Exit status 0 if there is none, else that of the worst: 10 unknown, 11 warning, "
		"12 wrong. A stand-by\n"
		"that knows the master is as it should be.\n",
	.run = run,
};
