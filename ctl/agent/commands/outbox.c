/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static void format_age(struct vhca_strbuf *sb, struct json_object *report)
{
	vhca_view_duration(sb, vhca_view_u64(report, "age_ms"));
}

static bool is_kind(struct json_object *report, const char *kind)
{
	return strcmp(vhca_view_text(report, "kind"), kind) == 0;
}

static void format_subject(struct vhca_strbuf *sb, struct json_object *report)
{
	if (is_kind(report, "members"))
		vhca_strbuf_add(sb, "port %s", vhca_view_text(report, "port_guid"));
	else
		vhca_strbuf_add(sb, "%s", vhca_view_text(report, "vguid"));
}

static void format_report(struct vhca_strbuf *sb, struct json_object *report)
{
	if (is_kind(report, "members"))
		vhca_strbuf_add(sb, "members");
	else if (is_kind(report, "move"))
		vhca_strbuf_add(sb, "moved");
	else if (vhca_view_member(report, "bound"))
		vhca_strbuf_add(sb, vhca_view_is_true(report, "bound") ? "bound" : "withdrawn");
}

static void format_next_try(struct vhca_strbuf *sb, struct json_object *report)
{
	uint64_t ms = vhca_view_u64(report, "next_try_ms");

	if (ms == 0) {
		vhca_strbuf_add(sb, "now");
		return;
	}
	vhca_strbuf_add(sb, "in ");
	vhca_view_duration(sb, ms);
}

static const struct vhca_column columns[] = {
	{"SEQ", "seq", NULL, .wide = 3},
	{"SUBJECT", NULL, format_subject},
	{"EPOCH", "epoch", NULL, .wide = 2},
	{"REPORT", NULL, format_report, .may_cut = true},
	{"STATE", "state", NULL},
	{"AGE", NULL, format_age},
	{"ATTEMPTS", "attempts", NULL, .wide = 1},
	{"NEXT", NULL, format_next_try},
	{"REASON", "reason", NULL, .may_cut = true},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/outbox",
		.key = "outbox",
		.empty = "nothing to report: the subnet manager knows all",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_outbox = {
	.name = "outbox",
	.has_table = true,
	.summary = "list what the subnet manager has not been told yet",
	.help = "\nReports wait here while the subnet manager cannot be reached; they survive a "
		"restart.\n",
	.run = run,
};
