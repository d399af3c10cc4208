/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static void print_agent(struct json_object *node)
{
	char text[256];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_strbuf_add(&sb, "%.64s: vhcad %.32s, API %.8s", vhca_view_text(node, "node_name"),
			vhca_view_text(node, "version"), vhca_view_text(node, "api"));
	if (vhca_view_u64(node, "started_ms")) {
		vhca_strbuf_add(&sb, ", since ");
		vhca_view_time(&sb, vhca_view_u64(node, "started_ms"));
	}
	vhca_view_print_line("agent", text);
}

static void print_sm(struct json_object *sm)
{
	const char *backend = vhca_view_text(sm, "backend");
	uint64_t pending = vhca_view_u64(sm, "pending");
	char text[160];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, text, sizeof(text));
	if (strcmp(backend, "none") == 0)
		vhca_strbuf_add(&sb, "none: partitions are made by hand, nobody is told");
	else
		vhca_strbuf_add(&sb, "%.16s: %s, %s", backend,
				vhca_view_is_true(sm, "reachable") ? "reachable" : "NOT reachable",
				vhca_view_is_true(sm, "fenced") ? "fenced" : "not fenced");
	if (pending)
		vhca_strbuf_add(&sb, ", %" PRIu64 " to report (vhcactl outbox)", pending);
	vhca_view_print_line("SM", text);
}

static void print_node(struct json_object *node)
{
	struct json_object *libvirt = vhca_view_member(node, "libvirt"),
			   *loop = vhca_view_member(node, "loop");
	uint64_t us = vhca_view_u64(loop, "max_callback_us");
	char text[300];
	struct vhca_strbuf sb;

	print_agent(node);
	(void)snprintf(text, sizeof(text), "%.250s: %s", vhca_view_text(libvirt, "uri"),
		       vhca_view_is_true(libvirt, "connected") ? "connected" : "NOT connected");
	vhca_view_print_line("libvirt", text);
	print_sm(vhca_view_member(node, "sm"));
	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_view_counts(&sb, vhca_view_member(node, "counts"));
	vhca_view_print_line("VFs", sb.len ? text : "none");
	if (vhca_view_text(node, "store_problem")[0])
		vhca_view_print_line("store", vhca_view_text(node, "store_problem"));
	if (vhca_view_is_true(node, "drained"))
		vhca_view_print_line("drain", "drained: no guest gets a VF here (vhcactl undrain)");
	(void)snprintf(text, sizeof(text),
		       "longest callback %" PRIu64 ".%" PRIu64 " ms, %" PRIu64 " blocking calls",
		       us / 1000, us % 1000 / 100, vhca_view_u64(loop, "blocking_calls"));
	vhca_view_print_line("loop", text);
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *node = NULL;
	int r = vhca_ctl_ask(ctl, "GET", "/v1/node", NULL, VHCA_CTL_READ_MS, &node, err);

	if (r < 0 || ctl->opts[VHCA_OPT_JSON])
		return r;
	print_node(node);
	return 0;
}

const struct vhca_ctl_command vhca_cmd_node = {
	.name = "node",
	.summary = "show the agent, its connections, and how many VFs are in which state",
	.help = "",
	.run = run,
};
