/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

/* A row is a port with the members of the partition that are shown; takes the row. */
static void add_row(struct json_object *rows, struct json_object *partition,
		    struct json_object *row)
{
	static const char *const shared[] = {"names", "members"};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(shared); i++)
		(void)json_object_object_add(
			row, shared[i], json_object_get(vhca_view_member(partition, shared[i])));
	(void)json_object_object_add(row, "partition",
				     json_object_get(vhca_view_member(partition, "pkey")));
	(void)json_object_array_add(rows, row);
}

static struct json_object *flatten(struct json_object *partitions)
{
	struct json_object *rows = json_object_new_array();

	for (size_t i = 0; i < vhca_view_count(partitions); i++) {
		struct json_object *partition = json_object_array_get_idx(partitions, i);
		struct json_object *ports = vhca_view_array(partition, "ports");

		for (size_t p = 0; p < vhca_view_count(ports); p++)
			add_row(rows, partition, vhca_ctl_copy_row(ports, p));
		if (vhca_view_count(ports) == 0)
			add_row(rows, partition, json_object_new_object());
	}
	return rows;
}

static void format_names(struct vhca_strbuf *sb, struct json_object *row)
{
	struct json_object *names = vhca_view_array(row, "names");

	for (size_t i = 0; i < vhca_view_count(names); i++)
		vhca_strbuf_add(sb, "%s%s", i > 0 ? " " : "",
				vhca_view_text(json_object_array_get_idx(names, i), "name"));
}

static void format_vfs(struct vhca_strbuf *sb, struct json_object *row)
{
	vhca_strbuf_add(sb, "%zu", vhca_view_count(vhca_view_array(row, "members")));
}

/* "2/128": entries that are free, and all; nothing while the table has not been read. */
static void format_room(struct vhca_strbuf *sb, struct json_object *row)
{
	const char *entries = vhca_view_text(row, "table_entries");

	if (*entries)
		vhca_strbuf_add(sb, "%.8s/%.8s", vhca_view_text(row, "table_free"), entries);
}

static const struct vhca_column columns[] = {
	{"P_KEY", "partition", NULL}, {"NAMES", NULL, format_names, .may_cut = true},
	{"VFS", NULL, format_vfs},    {"PF", "pf", NULL},
	{"PORT", "port", NULL},	      {"FABRIC", "fabric", NULL, .wide = 2},
	{"AT_PORT", "pkey", NULL},    {"ROOM", NULL, format_room, .wide = 1},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/partitions",
		.key = "partitions",
		.empty = "no partition has a name, a guest or a place in a port's table here",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
		.query = VHCA_OPT_BIT(VHCA_OPT_LIMIT),
		.limit = VHCA_OPT_LIMIT,
		.flatten = flatten,
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_partitions = {
	.name = "partitions",
	.has_table = true,
	.optional = VHCA_OPT_BIT(VHCA_OPT_LIMIT),
	.summary = "list the partitions and their places in the ports' tables",
	.help = "\nA line for each port that carries VFs. VFS counts those that are promised the "
		"partition, on any\n"
		"port; --json names them. AT_PORT is the key that the port has of it, "
		"ROOM the entries of the\n"
		"port's table that are free / all of them.\n",
	.run = run,
};
