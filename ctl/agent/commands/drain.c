/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

#define PATH	"/v1/drain"
#define POLL_MS 500

/* ---- lines ---- */

/* A line for each domain whose state or reason has changed; printed: what the last ones said. */
static void print_changes(struct json_object *drain, struct json_object *printed)
{
	struct json_object *domains = vhca_view_array(drain, "domains");

	for (size_t i = 0; i < vhca_view_count(domains); i++) {
		struct json_object *d = json_object_array_get_idx(domains, i);
		const char *name = vhca_view_text(d, "domain_name"),
			   *reason = vhca_view_text(d, "reason");
		char line[400];

		(void)snprintf(line, sizeof(line), "%.100s: %.20s%s%.250s", name,
			       vhca_view_text(d, "state"), *reason ? ": " : "", reason);
		if (strcmp(vhca_view_text(printed, name), line) == 0)
			continue;
		(void)puts(line);
		(void)json_object_object_add(printed, name, json_object_new_string(line));
	}
	(void)fflush(stdout); /* for the pipe behind; main() reports a failure */
}

static int report(const struct vhca_ctl *ctl, struct json_object *drain)
{
	size_t parked = vhca_view_count(vhca_view_array(drain, "domains"));

	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(drain);
	else if (parked)
		(void)printf("drained: %zu domains run on without their VFs\n", parked);
	else
		(void)puts("drained: no guest has a VF of this host");
	return 0;
}

/* ---- waiting ---- */

static int check_time(const struct vhca_ctl *ctl, uint64_t start, struct json_object *drain,
		      struct vhca_error *err)
{
	if (!ctl->timeout_ms || vhca_now_ms() - start < ctl->timeout_ms)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "timeout", 0,
			     "not empty after %" PRIu32 " s, and goes on: %" PRIu64
			     " VFs are still claimed",
			     ctl->timeout_ms / 1000, vhca_view_u64(drain, "claims"));
	vhca_error_hint(err, "vhcactl claims");
	return -EAGAIN;
}

static int follow(const struct vhca_ctl *ctl, struct json_object *printed, struct vhca_error *err)
{
	uint64_t start = vhca_now_ms();

	for (;;) {
		VHCA_CTL_AUTO_PUT struct json_object *drain = NULL;
		int r = vhca_ctl_call(ctl, "GET", PATH, NULL, VHCA_CTL_READ_MS, &drain, err);

		if (r < 0)
			return r;
		if (!ctl->opts[VHCA_OPT_JSON])
			print_changes(drain, printed);
		if (!vhca_view_is_true(drain, "drained"))
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "undrained", 0,
					      "somebody has ended the drain");
		if (vhca_view_is_true(drain, "done"))
			return report(ctl, drain);
		r = check_time(ctl, start, drain, err);
		if (r < 0)
			return r;
		(void)poll(NULL, 0, POLL_MS);
	}
}

/* ---- the commands ---- */

static int fill_body(const struct vhca_ctl *ctl, struct json_object *body, struct vhca_error *err)
{
	bool park = ctl->opts[VHCA_OPT_PARK];
	struct json_object *peers;

	if (park == (ctl->n_rest > 0)) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				     "drain needs PEERs for the guests, or --park to take their "
				     "VFs out");
		vhca_error_hint(err, "vhcactl help drain");
		return -EINVAL;
	}
	if (park) {
		(void)json_object_object_add(body, "park", json_object_new_boolean(true));
		return 0;
	}
	peers = json_object_new_array();
	for (int i = 0; i < ctl->n_rest; i++)
		(void)json_object_array_add(peers, json_object_new_string(ctl->rest[i]));
	(void)json_object_object_add(body, "peers", peers);
	return 0;
}

static int run_drain(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object(), *drain = NULL;
	VHCA_CTL_AUTO_PUT struct json_object *printed = json_object_new_object();
	int r = fill_body(ctl, body, err);

	if (r < 0)
		return r;
	r = vhca_ctl_call(ctl, "POST", PATH, body, VHCA_CTL_READ_MS, &drain, err);
	if (r < 0)
		return r;
	if (!ctl->opts[VHCA_OPT_NO_WAIT])
		return follow(ctl, printed, err);
	if (ctl->opts[VHCA_OPT_JSON])
		vhca_ctl_print_json(drain);
	return 0;
}

static int run_undrain(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *drain = NULL;
	int r = vhca_ctl_ask(ctl, "DELETE", PATH, NULL, VHCA_CTL_READ_MS, &drain, err);

	if (r == 0 && !ctl->opts[VHCA_OPT_JSON])
		(void)puts("no longer drained");
	return r;
}

const struct vhca_ctl_command vhca_cmd_drain = {
	.name = "drain",
	.rest = "PEER",
	.optional = VHCA_OPT_BIT(VHCA_OPT_NO_WAIT) | VHCA_OPT_BIT(VHCA_OPT_PARK),
	.summary = "empty this host: guests with VFs go to PEERs, new ones are refused",
	.help = "\nEach guest with a VF is migrated to a [peer PEER] of vhcad.conf, by turns, four "
		"at a "
		"time; one that cannot go is\ntried again. With --park instead, the guests stay "
		"and "
		"their VFs "
		"are taken out. Returns when no guest has a VF here any\nmore. The host stays "
		"drained, "
		"restarts included, until vhcactl undrain.\n",
	.run = run_drain,
};

const struct vhca_ctl_command vhca_cmd_undrain = {
	.name = "undrain",
	.summary = "let guests have VFs of this host again",
	.help = "\nGuests whose VFs were taken out get them again. Those that went to a peer stay "
		"there.\n",
	.run = run_undrain,
};
