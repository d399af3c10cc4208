/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static void add_string(struct json_object *obj, const char *key, const char *value)
{
	(void)json_object_object_add(obj, key, json_object_new_string(value));
}

/*
 * A row is a copy of a VF of the domain, or what is known of one that it asked for, with the
 * domain's name.
 */
static void add_row(struct json_object *rows, struct json_object *domain, struct json_object *row)
{
	add_string(row, "domain", vhca_view_text(domain, "name"));
	(void)json_object_array_add(rows, row);
}

static void add_state(struct json_object *rows, struct json_object *domain, const char *name,
		      const char *state, const char *reason)
{
	struct json_object *row = json_object_new_object();

	add_string(row, "name", name);
	add_string(row, "state", state);
	add_string(row, "reason", reason);
	add_row(rows, domain, row);
}

static void add_problem(struct json_object *rows, struct json_object *domain, const char *name,
			const char *reason)
{
	add_state(rows, domain, name, "requested", reason);
}

/* What was asked for and is not there; the reason is what the operator came for. */
static void add_requests(struct json_object *rows, struct json_object *domain,
			 struct json_object *vfs)
{
	struct json_object *requests = vhca_view_array(domain, "requests");

	for (size_t i = 0; i < vhca_view_count(requests); i++) {
		struct json_object *request = json_object_array_get_idx(requests, i);
		const char *name = vhca_view_text(request, "name");

		if (!vhca_view_has(vfs, "name", name))
			add_problem(rows, domain, name, vhca_view_text(request, "problem"));
	}
	if (*vhca_view_text(domain, "problem"))
		add_problem(rows, domain, "-", vhca_view_text(domain, "problem"));
	if (*vhca_view_text(domain, "unreadable"))
		add_state(rows, domain, "-", "unreadable", vhca_view_text(domain, "unreadable"));
}

static struct json_object *flatten(struct json_object *domains)
{
	struct json_object *rows = json_object_new_array();

	for (size_t i = 0; i < vhca_view_count(domains); i++) {
		struct json_object *domain = json_object_array_get_idx(domains, i);
		struct json_object *vfs = vhca_view_array(domain, "vfs");

		for (size_t k = 0; k < vhca_view_count(vfs); k++) {
			struct json_object *row = vhca_ctl_copy_row(vfs, k);

			if (*vhca_view_text(row, "problem"))
				add_string(row, "reason", vhca_view_text(row, "problem"));
			add_row(rows, domain, row);
		}
		add_requests(rows, domain, vfs);
	}
	return rows;
}

static const struct vhca_column columns[] = {
	{"DOMAIN", "domain", NULL, .may_cut = true},
	{"NAME", "name", NULL, .may_cut = true},
	{"BDF", "bdf", NULL},
	{"STATE", "state", NULL},
	{"GUID", "guid", NULL},
	{"GRANTED", "granted", NULL, .wide = 1},
	{"IN_GUEST", "guest_address", NULL, .wide = 2},
	{"REASON", "reason", NULL, .may_cut = true},
};

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/domains",
		.key = "domains",
		.empty = "no running domain has or wants InfiniBand",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
		.query = VHCA_OPT_BIT(VHCA_OPT_LIMIT),
		.limit = VHCA_OPT_LIMIT,
		.flatten = flatten,
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_domains = {
	.name = "domains",
	.has_table = true,
	.optional = VHCA_OPT_BIT(VHCA_OPT_LIMIT),
	.summary = "list the running domains that have or want InfiniBand",
	.help = "\nA line for each VF. STATE is that of the VF, or 'requested' while the domain "
		"has none; REASON says why.\n"
		"'unreadable' is a domain whose XML cannot be read: what it asks for waits.\n"
		"IN_GUEST is the PCI address that the guest sees.\n",
	.run = run,
};
