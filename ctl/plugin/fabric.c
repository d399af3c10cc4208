/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"
#include "ctl/plugin/commands.h"

static void print_fabric(struct json_object *fabric)
{
	char text[400];
	struct vhca_strbuf sb;

	(void)snprintf(text, sizeof(text),
		       "%" PRIu64 " switches, %" PRIu64 " end ports, highest LID %" PRIu64,
		       vhca_view_u64(fabric, "switches"), vhca_view_u64(fabric, "ports"),
		       vhca_view_u64(fabric, "max_lid"));
	vhca_view_print_line("subnet", text);
	(void)snprintf(text, sizeof(text), "LID %" PRIu64 ", port %.32s",
		       vhca_view_u64(fabric, "sm_lid"), vhca_view_text(fabric, "sm_port_guid"));
	vhca_view_print_line("SM", text);
	(void)snprintf(text, sizeof(text), "%.32s, %" PRIu64 " heavy sweeps",
		       vhca_view_text(fabric, "routing_engine"), vhca_view_u64(fabric, "sweeps"));
	vhca_view_print_line("routing", text);
	(void)snprintf(text, sizeof(text), "%" PRIu64 " of at most %" PRIu64,
		       vhca_view_u64(fabric, "dynamic_lids"), vhca_view_u64(fabric, "dynamic_max"));
	vhca_view_print_line("dynamic", text);
	(void)snprintf(text, sizeof(text), "%" PRIu64 " LIDs, by ways that moves have left",
		       vhca_view_u64(fabric, "kept_lids"));
	vhca_view_print_line("kept", text);
	vhca_strbuf_init(&sb, text, sizeof(text));
	if (vhca_view_is_true(vhca_view_member(fabric, "moves"), "paused"))
		vhca_strbuf_add(&sb, "PAUSED");
	vhca_view_counts(&sb, vhca_view_member(fabric, "moves"));
	vhca_view_print_line("moves", sb.len ? text : "none");
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *fabric = NULL;
	int r = vhca_ctl_ask(ctl, "GET", "/v1/fabric", NULL, VHCA_CTL_READ_MS, &fabric, err);

	if (r < 0 || ctl->opts[VHCA_OPT_JSON])
		return r;
	print_fabric(fabric);
	return 0;
}

const struct vhca_ctl_command vhca_plugin_fabric = {
	.name = "fabric",
	.summary = "show the subnet, and the moves of LIDs since OpenSM was started",
	.help = "\nqueued, under_way and repairing are now; the others count from OpenSM's "
		"start. libvhcasm(7) says\n"
		"what each means.\n",
	.run = run,
};
