/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "ctl/api.h"
#include "ctl/migration.h"
#include "ctl/view.h"

static void add_string(struct json_object *obj, const char *key, const char *value)
{
	(void)json_object_object_add(obj, key, json_object_new_string(value));
}

/* ---- how it ended ---- */

static const char *reason_of(struct json_object *migration)
{
	const char *reason = vhca_view_text(migration, "reason");

	return *reason ? reason : "no reason given";
}

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
				     peer, reason_of(migration));
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
				     ctl->args[0], reason_of(migration));
		vhca_error_hint(err, "vhcactl domains");
		return -EIO;
	}
	return vhca_error_set(err, VHCA_ERR_CONFLICT, "rolled_back", 0,
			      "%s: not moved, all is back here as it was: %s", ctl->args[0],
			      reason_of(migration));
}

static int report(const struct vhca_ctl *ctl, struct json_object *migration, struct vhca_error *err)
{
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(migration);
	return strcmp(vhca_view_text(migration, "state"), "done") == 0
		       ? report_done(ctl, migration, err)
		       : report_failed(ctl, migration, err);
}

/* What was asked for is that the domain stays: both ends mean the opposite here. */
static int report_cancelled(const struct vhca_ctl *ctl, struct json_object *migration,
			    struct vhca_error *err)
{
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(migration);
	if (strcmp(vhca_view_text(migration, "state"), "done") == 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "too_late", 0,
				      "%s: too late, it is on %s", ctl->args[0],
				      vhca_view_text(migration, "peer"));
	if (vhca_view_is_true(migration, "degraded"))
		return report_failed(ctl, migration, err);
	if (!ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: cancelled, all is back here as it was\n", ctl->args[0]);
	return 0;
}

/* ---- begin ---- */

static int begin(const struct vhca_ctl *ctl, struct json_object **ret, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object();
	int r;

	add_string(body, "domain", ctl->args[0]);
	add_string(body, "peer", ctl->args[1]);
	add_string(body, "mode", "managed");
	r = vhca_ctl_call(ctl, "POST", "/v1/migrations", body, VHCA_CTL_READ_MS, ret, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", ctl->args[0]);
	return r;
}

/* ---- cancel ---- */

static bool is_of(struct json_object *migration, const char *domain)
{
	return strcmp(vhca_view_text(migration, "domain_name"), domain) == 0 ||
	       strcasecmp(vhca_view_text(migration, "domain"), domain) == 0;
}

static int check_role(const char *domain, struct json_object *migration, struct vhca_error *err)
{
	const char *peer = vhca_view_text(migration, "peer");

	if (strcmp(vhca_view_text(migration, "role"), "source") == 0)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "not_source", 0,
			     "%s: comes from %s, which alone can cancel it", domain, peer);
	vhca_error_hint(err, "vhcactl migrate --cancel %s on %s", domain, peer);
	return -EIO;
}

/* The running migration of a domain, borrowed from the list. */
static int find_running(const char *domain, struct json_object *list, struct json_object **ret,
			struct vhca_error *err)
{
	for (size_t i = 0; i < vhca_view_count(list); i++) {
		struct json_object *migration = json_object_array_get_idx(list, i);

		if (!is_of(migration, domain) || vhca_migration_is_over(migration))
			continue;
		*ret = migration;
		return check_role(domain, migration, err);
	}
	return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_migration", 0,
			      "%s: is not being migrated", domain);
}

static int cancel(const struct vhca_ctl *ctl, struct json_object **ret, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL, *answer = NULL;
	struct json_object *running = NULL;
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	int r = vhca_ctl_call(ctl, "GET", "/v1/migrations", NULL, VHCA_CTL_READ_MS, &doc, err);

	if (r < 0)
		return r;
	r = find_running(ctl->args[0], vhca_view_array(doc, "migrations"), &running, err);
	if (r < 0)
		return r;
	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/migrations/");
	vhca_ctl_encode(&sb, vhca_view_text(running, "id"));
	vhca_strbuf_add(&sb, "/abort");
	r = vhca_ctl_call(ctl, "POST", path, NULL, VHCA_CTL_READ_MS, &answer, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", ctl->args[0]);
	else
		*ret = json_object_get(running);
	return r;
}

/* ---- the command ---- */

static void print_begun(const struct vhca_ctl *ctl, struct json_object *migration)
{
	if (ctl->opts[VHCA_OPT_JSON] && ctl->opts[VHCA_OPT_NO_WAIT])
		vhca_ctl_print_json(migration);
	else if (!ctl->opts[VHCA_OPT_JSON])
		(void)printf("%s: migration %s to %s%s\n", ctl->args[0],
			     vhca_view_text(migration, "id"), vhca_view_text(migration, "peer"),
			     ctl->opts[VHCA_OPT_CANCEL] ? " is being cancelled" : "");
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *migration = NULL, *last = NULL;
	bool cancelling = ctl->opts[VHCA_OPT_CANCEL] != NULL;
	int r = cancelling ? cancel(ctl, &migration, err) : begin(ctl, &migration, err);

	if (r < 0)
		return r;
	print_begun(ctl, migration);
	if (ctl->opts[VHCA_OPT_NO_WAIT])
		return 0;
	r = vhca_migration_follow(ctl, migration, &last, err);
	if (r < 0)
		return r;
	return cancelling ? report_cancelled(ctl, last, err) : report(ctl, last, err);
}

const struct vhca_ctl_command vhca_cmd_migrate = {
	.name = "migrate",
	.args = {"DOMAIN", "PEER"},
	.optional = VHCA_OPT_BIT(VHCA_OPT_CANCEL) | VHCA_OPT_BIT(VHCA_OPT_NO_WAIT),
	.first_arg_only = VHCA_OPT_BIT(VHCA_OPT_CANCEL),
	.summary = "move a running domain with its VFs to another hypervisor",
	.help = "\nPEER is a [peer PEER] of vhcad.conf. The guest keeps the GUIDs, P_Keys and PCI "
		"addresses of its VFs. Prints\n"
		"each step with its time when it has ended. If anything fails, the VFs come back "
		"here: exit status 4; 6 if\n"
		"that is not complete yet. Interrupting vhcactl does not stop the migration, "
		"--cancel does.\n",
	.run = run,
};
