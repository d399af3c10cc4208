/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

#define PKEYS_SHOWN 6 /* of up to 128 */
/* what takes longer hangs: removing VFs, the slowest job, takes a second */
#define BUSY_MS 5000

static const char *const hca_members[] = {"bdf",	  "family",	  "ibdev",     "managed",
					  "num_vfs",	  "want_vfs",	  "total_vfs", "problem",
					  "capabilities", "busy_since_ms"};

/* A row is a port with the members of its adapter that are shown; takes the row. */
static void add_row(struct json_object *rows, struct json_object *hca, struct json_object *row)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(hca_members); i++)
		(void)json_object_object_add(
			row, hca_members[i],
			json_object_get(vhca_view_member(hca, hca_members[i])));
	(void)json_object_array_add(rows, row);
}

static struct json_object *flatten(struct json_object *hcas)
{
	struct json_object *rows = json_object_new_array();

	for (size_t i = 0; i < vhca_view_count(hcas); i++) {
		struct json_object *hca = json_object_array_get_idx(hcas, i);
		struct json_object *ports = vhca_view_array(hca, "ports");

		for (size_t p = 0; p < vhca_view_count(ports); p++)
			add_row(rows, hca, vhca_ctl_copy_row(ports, p));
		if (vhca_view_count(ports) == 0)
			add_row(rows, hca, json_object_new_object());
	}
	return rows;
}

/* "8/16": VFs there are, and could be; "8->4/16" while their number is not the configured one. */
static void format_vfs(struct vhca_strbuf *sb, struct json_object *row)
{
	const char *want = vhca_view_text(row, "want_vfs");

	vhca_strbuf_add(sb, "%.8s", vhca_view_text(row, "num_vfs"));
	if (*want && vhca_view_u64(row, "want_vfs") != vhca_view_u64(row, "num_vfs"))
		vhca_strbuf_add(sb, "->%.8s", want);
	vhca_strbuf_add(sb, "/%.8s", vhca_view_text(row, "total_vfs"));
}

static void format_pkeys(struct vhca_strbuf *sb, struct json_object *row)
{
	vhca_view_strings(sb, vhca_view_array(row, "pkeys"), PKEYS_SHOWN);
}

/* Whose word puts a VF into its partitions. */
static void format_keys_by(struct vhca_strbuf *sb, struct json_object *row)
{
	struct json_object *can = vhca_view_member(row, "capabilities");

	if (can)
		vhca_strbuf_add(sb, "%s", vhca_view_is_true(can, "host_pkey_map") ? "host" : "sm");
}

/*
 * A job that hangs is the problem, whatever else there is: nothing on this adapter goes on before
 * it.
 */
static void format_problem(struct vhca_strbuf *sb, struct json_object *row)
{
	uint64_t busy_ms = vhca_view_u64(row, "busy_since_ms");
	const char *problem = vhca_view_text(row, "problem");

	if (busy_ms >= BUSY_MS) {
		vhca_strbuf_add(sb, "in the kernel for ");
		vhca_view_duration(sb, busy_ms);
		vhca_strbuf_add(sb, "%s", *problem ? "; " : "");
	}
	vhca_strbuf_add(sb, "%s", problem);
}

static const struct vhca_column columns[] = {
	{"BDF", "bdf", NULL},
	{"FAMILY", "family", NULL, .wide = 4},
	{"DEVICE", "ibdev", NULL, .wide = 3},
	{"MANAGED", "managed", NULL, .wide = 5},
	{"VFS", NULL, format_vfs},
	{"PORT", "port", NULL, .wide = 1},
	{"PORT_GUID", "guid", NULL},
	{"LID", "lid", NULL, .wide = 1},
	{"SM_LID", "sm_lid", NULL, .wide = 4},
	{"STATE", "state", NULL},
	{"KEYS_BY", NULL, format_keys_by, .wide = 5},
	{"P_KEYS", NULL, format_pkeys, .may_cut = true, .wide = 2},
	{"PROBLEM", NULL, format_problem, .may_cut = true},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/hcas",
		.key = "hcas",
		.empty = "no ConnectX adapter",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
		.flatten = flatten,
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_hcas = {
	.name = "hcas",
	.has_table = true,
	.summary = "list the adapters and their ports",
	.help = "\nVFS: there are / could be; 8->4/16 means that 8 exist and the configuration "
		"wants 4. P_KEYS are\n"
		"those of the host's port. KEYS_BY host (mlx4): a VF can only use a key that "
		"stands there. KEYS_BY sm\n"
		"(mlx5): they say nothing about VFs, whose partitions exist only at the subnet "
		"manager.\n",
	.run = run,
};
