/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/codes.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/migration.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static int begun(const struct vhca_ctl *ctl, struct json_object *migration)
{
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(migration);
	return 0;
}

static int run_park(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *migration = NULL, *last = NULL;
	char uuid[VHCA_UUID_STRLEN];
	int r = vhca_migration_begin(ctl, "park", NULL, &migration, err);

	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_NO_WAIT])
		return begun(ctl, migration);
	r = vhca_migration_follow(ctl, migration, "parked", &last, err);
	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(last);
	if (strcmp(vhca_view_text(last, "state"), "failed") == 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "rolled_back", 0,
				      "%s: not parked, all is as it was: %s",
				      vhca_view_text(last, "domain_name"),
				      vhca_migration_reason(last));
	if (!ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: runs without its VFs for %" PRIu64
			     " s, or until vhcactl unpark %s. A saved domain gets them again when "
			     "it is restored.\n",
			     ctl->args[0], vhca_view_u64(last, "lease_left_ms") / 1000,
			     vhca_migration_word(uuid, last, ctl->args[0]));
	return 0;
}

static int run_unpark(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *migration = NULL, *last = NULL;
	int r = vhca_migration_cancel(ctl, &migration, err);

	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_NO_WAIT])
		return begun(ctl, migration);
	r = vhca_migration_follow(ctl, migration, NULL, &last, err);
	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(last);
	if (strcmp(vhca_view_text(last, "state"), "done") == 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_TOO_LATE, 0,
				      "%s: does not run here any more", ctl->args[0]);
	if (!ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: has its VFs again\n", ctl->args[0]);
	return 0;
}

const struct vhca_ctl_command vhca_cmd_park = {
	.name = "park",
	.args = {"DOMAIN"},
	.optional = VHCA_OPT_BIT(VHCA_OPT_NO_WAIT) | VHCA_OPT_BIT(VHCA_OPT_LEASE),
	.summary = "take a domain's VFs out of the way, to save it for instance",
	.help = "\nlibvirt saves no domain with a VF: vhcactl park vm1 && virsh save vm1 FILE. The "
		"domain "
		"keeps its VFs and their\naddresses for the time of the lease; then, or with "
		"vhcactl "
		"unpark, it has them again. When it stops (saved, shut\ndown), they are free. A "
		"restored domain gets what its metadata asks for, with the same GUIDs.\n",
	.run = run_park,
};

const struct vhca_ctl_command vhca_cmd_unpark = {
	.name = "unpark",
	.args = {"DOMAIN"},
	.optional = VHCA_OPT_BIT(VHCA_OPT_NO_WAIT),
	.summary = "give a parked domain its VFs again",
	.help = "",
	.run = run_unpark,
};
