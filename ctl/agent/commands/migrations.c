/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

static void format_domain(struct vhca_strbuf *sb, struct json_object *migration)
{
	const char *name = vhca_view_text(migration, "domain_name");

	vhca_strbuf_add(sb, "%.128s", *name ? name : vhca_view_text(migration, "domain"));
}

static void format_state(struct vhca_strbuf *sb, struct json_object *migration)
{
	vhca_strbuf_add(sb, "%.32s%s", vhca_view_text(migration, "state"),
			vhca_view_is_true(migration, "degraded") ? " (degraded)" : "");
}

/* Since its begin, by the wall clock: vhcactl and the agent are on one host. */
static void format_age(struct vhca_strbuf *sb, struct json_object *migration)
{
	uint64_t start = vhca_view_u64(migration, "started_ms"), now;
	struct timespec ts;

	if (!start || clock_gettime(CLOCK_REALTIME, &ts) < 0)
		return;
	now = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	vhca_view_duration(sb, now > start ? now - start : 0);
}

/*
 * The agents' own part of the time without VFs: "6.1ms" until the copy, "1.9ms, granted 402.3ms"
 * after it.
 */
static void format_overhead(struct vhca_strbuf *sb, struct json_object *migration)
{
	static const struct {
		const char *key, *label;
	} times[] = {
		{"removed_to_migrate", ""},
		{"removed_to_ready", ""},
		{"resumed_to_attach", ""},
		{"resumed_to_granted", "granted "},
	};
	struct json_object *obj = vhca_view_member(migration, "blackout_us");

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(times); i++) {
		uint64_t us = vhca_view_u64(obj, times[i].key);

		if (us)
			vhca_strbuf_add(sb, "%s%s%" PRIu64 ".%" PRIu64 "ms", sb->len ? ", " : "",
					times[i].label, us / 1000, us % 1000 / 100);
	}
}

static const struct vhca_column columns[] = {
	{"ID", "id", NULL},
	{"ROLE", "role", NULL, .wide = 3},
	{"DOMAIN", NULL, format_domain, .may_cut = true},
	{"PEER", "peer", NULL, .may_cut = true, .wide = 2},
	{"STATE", NULL, format_state},
	{"AGE", NULL, format_age, .wide = 4},
	{"OVERHEAD", NULL, format_overhead, .wide = 5},
	{"REASON", "reason", NULL, .may_cut = true, .wide = 1},
};

#define QUERY                                                           \
	(VHCA_OPT_BIT(VHCA_OPT_STATE) | VHCA_OPT_BIT(VHCA_OPT_DOMAIN) | \
	 VHCA_OPT_BIT(VHCA_OPT_PEER) | VHCA_OPT_BIT(VHCA_OPT_FINAL) |   \
	 VHCA_OPT_BIT(VHCA_OPT_LIMIT))

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	static const struct vhca_ctl_list list = {
		.path = "/v1/migrations",
		.key = "migrations",
		.empty = "no migrations",
		.none = "no such migration",
		.columns = columns,
		.n_columns = VHCA_ARRAY_SIZE(columns),
		.query = QUERY,
		.limit = VHCA_OPT_LIMIT,
	};

	return vhca_ctl_list(ctl, &list, err);
}

const struct vhca_ctl_command vhca_cmd_migrations = {
	.name = "migrations",
	.has_table = true,
	.optional = QUERY,
	.summary = "list the migrations from and to this host, and the last that ended",
	.help = "\nROLE is this host's: source or destination. AGE counts from the begin. A state "
		"with (degraded) is retried\n"
		"until it succeeds; REASON says what it waits for. OVERHEAD is the agents' own "
		"part "
		"of the time without\n"
		"VFs: at the source from the last VF's removal to the begin of the copy, at the "
		"destination from the guest's\n"
		"arrival to the attach, and to the SM's grant.\n",
	.run = run,
};
