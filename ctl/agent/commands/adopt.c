/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/domain.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static void print_pkeys(struct vhca_strbuf *sb, struct json_object *claim)
{
	vhca_view_strings(sb, vhca_view_array(claim, "pkeys"), VHCA_CTL_PATH_MAX);
}

static const struct vhca_column columns[] = {
	{"DOMAIN/NAME", NULL, vhca_view_owner, .may_cut = true},
	{"BDF", "bdf", NULL},
	{"STATE", "state", NULL},
	{"GUID", "guid", NULL, .wide = 1},
	{"WAY", "way", NULL, .wide = 3},
	{"P_KEYS", NULL, print_pkeys, .may_cut = true, .wide = 2},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;
	int r = vhca_ctl_domain(ctl, "adopt", NULL, &doc, err);
	struct json_object *claims;

	if (r < 0 || !doc)
		return r;
	claims = vhca_view_array(doc, "claims");
	return vhca_ctl_print_rows(ctl, columns, VHCA_ARRAY_SIZE(columns), claims, claims, err);
}

const struct vhca_ctl_command vhca_cmd_adopt = {
	.name = "adopt",
	.has_table = true,
	.args = {"DOMAIN"},
	.summary = "take over the VFs that a running domain got without vhcad",
	.help = "\nEach VF is claimed as it stands, and nothing is written to it: if the domain's "
		"metadata asks for VFs,\n"
		"they must show just that; without metadata they keep what they show. Otherwise "
		"the differences are\n"
		"said, and no VF of the domain is adopted. Prints the domain's claims.\n",
	.run = run,
};
