/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/migration.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

/* ---- how it ended ---- */

/* What a VF still lacks at the destination is there, not here: the way out names the host. */
static void print_ungranted(struct json_object *migration)
{
	struct json_object *vfs = vhca_view_array(migration, "vfs");

	for (size_t i = 0; i < vhca_view_count(vfs); i++) {
		struct json_object *vf = json_object_array_get_idx(vfs, i);

		if (vhca_view_member(vf, "granted") && !vhca_view_is_true(vf, "granted"))
			(void)printf("The subnet manager has not granted the GUID of %s there yet; "
				     "see vhcactl vfs on %s.\n",
				     vhca_view_text(vf, "name"), vhca_view_text(migration, "peer"));
	}
}

static int report_done(const struct vhca_ctl *ctl, struct json_object *migration,
		       struct vhca_error *err)
{
	uint64_t start = vhca_view_u64(migration, "started_ms"),
		 end = vhca_view_u64(migration, "ended_ms"), ms = end > start ? end - start : 0;
	const char *peer = vhca_view_text(migration, "peer");

	if (vhca_view_is_true(migration, "degraded")) {
		(void)vhca_error_set(err, VHCA_ERR_DEVICE, "degraded", 0,
				     "%s: is on %s, but not with all its VFs: %s", ctl->args[0],
				     peer, vhca_migration_reason(migration));
		vhca_error_hint(err, "vhcactl domains on %s", peer);
		return -EIO;
	}
	if (ctl->opts[VHCA_OPT_JSON])
		return 0;
	(void)printf("%s: moved to %s in %" PRIu64 ".%03" PRIu64 " s\n", ctl->args[0], peer,
		     ms / 1000, ms % 1000);
	print_ungranted(migration);
	return 0;
}

static int report_failed(const struct vhca_ctl *ctl, struct json_object *migration,
			 struct vhca_error *err)
{
	if (vhca_view_is_true(migration, "degraded")) {
		(void)vhca_error_set(err, VHCA_ERR_DEVICE, "degraded", 0,
				     "%s: not moved, and not all its VFs are back: %s",
				     ctl->args[0], vhca_migration_reason(migration));
		vhca_error_hint(err, "vhcactl domains");
		return -EIO;
	}
	return vhca_error_set(err, VHCA_ERR_CONFLICT, "rolled_back", 0,
			      "%s: not moved, all is back here as it was: %s", ctl->args[0],
			      vhca_migration_reason(migration));
}

/* What was asked for is that the domain stays: both ends mean the opposite here. */
static int report_cancelled(const struct vhca_ctl *ctl, struct json_object *migration,
			    struct vhca_error *err)
{
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(migration);
	if (strcmp(vhca_view_text(migration, "state"), "done") == 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_TOO_LATE, 0,
				      "%s: too late, it is on %s", ctl->args[0],
				      vhca_view_text(migration, "peer"));
	if (vhca_view_is_true(migration, "degraded"))
		return report_failed(ctl, migration, err);
	if (!ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: cancelled, all is back here as it was\n", ctl->args[0]);
	return 0;
}

/* ---- the orchestrator's turn ---- */

static int report_ready(const struct vhca_ctl *ctl, struct json_object *migration)
{
	const char *memory = vhca_view_text(migration, "peer_migration");
	char uuid[VHCA_UUID_STRLEN];
	const char *word = vhca_migration_word(uuid, migration, ctl->args[0]);

	if (ctl->opts[VHCA_OPT_JSON]) {
		vhca_ctl_print_json(migration);
		return 0;
	}
	(void)printf(
		"%s: ready. Within %" PRIu64
		" s, migrate it, for instance (--persistent --undefinesource if it is "
		"defined):\n  virsh migrate --live --p2p %s %s%s%s\nAll else follows by itself. "
		"To have its VFs back here instead: vhcactl migrate --cancel %s\n",
		ctl->args[0], vhca_view_u64(migration, "lease_left_ms") / 1000, word,
		vhca_view_text(migration, "peer_libvirt"), *memory ? " --migrateuri " : "", memory,
		word);
	return 0;
}

/* ---- the command ---- */

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *migration = NULL, *last = NULL;
	bool cancelling = ctl->opts[VHCA_OPT_CANCEL] != NULL;
	const char *mode = ctl->opts[VHCA_OPT_EXTERNAL] ? "external" : "managed";
	int r = cancelling ? vhca_migration_cancel(ctl, &migration, err)
			   : vhca_migration_begin(ctl, mode, ctl->args[1], &migration, err);

	if (r < 0)
		return r;
	if (ctl->opts[VHCA_OPT_JSON] && ctl->opts[VHCA_OPT_NO_WAIT])
		vhca_ctl_print_json(migration);
	else if (!ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: migration %s to %s%s\n", ctl->args[0],
			     vhca_view_text(migration, "id"), vhca_view_text(migration, "peer"),
			     cancelling ? " is being cancelled" : "");
	if (ctl->opts[VHCA_OPT_NO_WAIT])
		return 0;
	r = vhca_migration_follow(ctl, migration, ctl->opts[VHCA_OPT_EXTERNAL] ? "ready" : NULL,
				  &last, err);
	if (r < 0)
		return r;
	if (!cancelling && strcmp(vhca_view_text(last, "state"), "ready") == 0)
		return report_ready(ctl, last);
	if (cancelling)
		return report_cancelled(ctl, last, err);
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(last);
	return strcmp(vhca_view_text(last, "state"), "done") == 0 ? report_done(ctl, last, err)
								  : report_failed(ctl, last, err);
}

const struct vhca_ctl_command vhca_cmd_migrate = {
	.name = "migrate",
	.args = {"DOMAIN", "PEER"},
	.optional = VHCA_OPT_BIT(VHCA_OPT_CANCEL) | VHCA_OPT_BIT(VHCA_OPT_NO_WAIT) |
		    VHCA_OPT_BIT(VHCA_OPT_EXTERNAL) | VHCA_OPT_BIT(VHCA_OPT_LEASE) |
		    VHCA_OPT_BIT(VHCA_OPT_COPY_TIMEOUT) | VHCA_OPT_BIT(VHCA_OPT_EXPECTED_MAX) |
		    VHCA_OPT_BIT(VHCA_OPT_BANDWIDTH) | VHCA_OPT_BIT(VHCA_OPT_CONNECTIONS) |
		    VHCA_OPT_BIT(VHCA_OPT_AUTO_CONVERGE) | VHCA_OPT_BIT(VHCA_OPT_TLS),
	.first_arg_only = VHCA_OPT_BIT(VHCA_OPT_CANCEL),
	.summary = "move a running domain with its VFs to another hypervisor",
	.help = "\nPEER is a [peer PEER] of vhcad.conf. The guest keeps the GUIDs, P_Keys and PCI "
		"addresses of its VFs. Prints\n"
		"each step with its time when it has ended. If anything fails, the VFs come back "
		"here: exit status 4; 6 if\n"
		"that is not complete yet. Interrupting vhcactl does not stop the migration, "
		"--cancel does.\n\nHow libvirt copies the guest is as [migration] of vhcad.conf "
		"says, "
		"unless it is said here.\n\nWith --external, libvirt's part is left to somebody "
		"else: "
		"returns "
		"when the domain may be migrated, and says\nhow. vhcad sees by itself how that "
		"ends. "
		"Whoever does not migrate it within the lease leaves it here with its VFs.\n",
	.run = run,
};
