/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>

#include "ctl/agent/commands.h"
#include "ctl/agent/domain.h"
#include "ctl/cli/view.h"

/* The answer is the claim, with the VF as "vf". */
static void print_claim(const struct vhca_ctl *ctl, struct json_object *claim)
{
	struct json_object *vf = vhca_view_member(claim, "vf");

	(void)printf("%s/%s: attached VF %s with GUID %s\n", ctl->args[0], ctl->args[1],
		     vhca_view_text(claim, "bdf"), vhca_view_text(claim, "guid"));
	if (!vhca_view_is_true(vf, "granted"))
		(void)puts("The subnet manager has not granted the GUID yet; vhcactl vfs shows "
			   "when and why not.");
	if (vhca_view_count(vhca_view_array(vf, "missing")))
		(void)puts("The host's port is not in all of its partitions yet; vhcactl vfs shows "
			   "which.");
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object(), *claim = NULL;
	int r = vhca_ctl_add_wish(ctl, body, err);

	if (r == 0)
		r = vhca_ctl_domain_vf(ctl, "POST", body, &claim, err);
	if (claim)
		print_claim(ctl, claim);
	return r;
}

const struct vhca_ctl_command vhca_cmd_attach = {
	.name = "attach",
	.args = {"DOMAIN", "NAME"},
	.required = VHCA_OPT_BIT(VHCA_OPT_PARTITION),
	.optional = VHCA_OPT_BIT(VHCA_OPT_GUID) | VHCA_OPT_BIT(VHCA_OPT_FABRIC) |
		    VHCA_OPT_BIT(VHCA_OPT_PF) | VHCA_OPT_BIT(VHCA_OPT_NUMA),
	.summary = "give a running domain a VF",
	.help = "\nDOMAIN is the name or UUID of a running domain, NAME the VF's name in it (ib0). "
		"Returns when the guest has\n"
		"the device. The attachment is live only: it is not in the domain's persistent "
		"XML.\n",
	.run = run,
};
