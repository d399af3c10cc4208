/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

#define PKEYS_SHOWN 6

static void format_pkeys(struct vhca_strbuf *sb, struct json_object *claim)
{
	vhca_view_strings(sb, vhca_view_array(claim, "pkeys"), PKEYS_SHOWN);
}

static void format_created(struct vhca_strbuf *sb, struct json_object *claim)
{
	uint64_t ms = vhca_view_u64(claim, "created_ms");

	if (ms)
		vhca_view_time(sb, ms);
}

static void format_lease(struct vhca_strbuf *sb, struct json_object *claim)
{
	uint64_t ms = vhca_view_u64(claim, "lease_ends_ms");

	if (ms)
		vhca_view_time(sb, ms);
}

static const struct vhca_column columns[] = {
	{"CLAIM", "id", NULL},
	{"DOMAIN/NAME", NULL, vhca_view_owner, .may_cut = true},
	{"BDF", "bdf", NULL},
	{"STATE", "state", NULL},
	{"GUID", "guid", NULL, .wide = 1},
	{"EPOCH", "epoch", NULL, .wide = 4},
	{"P_KEYS", NULL, format_pkeys, .may_cut = true, .wide = 2},
	{"WAY", "way", NULL, .wide = 3},
	{"CREATED", NULL, format_created, .wide = 5},
	{"LEASE_ENDS", NULL, format_lease, .wide = 3},
	{"REASON", "reason", NULL, .may_cut = true, .wide = 1},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/claims",
		.key = "claims",
		.empty = "no claims",
		.none = "no such claim",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
		.query = VHCA_OPTS_OF_VFS,
		.limit = VHCA_OPT_LIMIT,
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_claims = {
	.name = "claims",
	.has_table = true,
	.optional = VHCA_OPTS_OF_VFS,
	.summary = "list which VF is promised to whom",
	.help = "\nWAY is how the claim came about: the domain's metadata, a claim made before the "
		"start, or attach.\n",
	.run = run,
};
