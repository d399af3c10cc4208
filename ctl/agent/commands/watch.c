/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

#define HISTORY 10 /* events shown at the start, unless --since says otherwise */
#define WAIT_S	25
#define RETRY_S 1

struct watch {
	const struct vhca_ctl *ctl;
	char cursor[VHCA_CTL_CURSOR_MAX];
	bool answered; /* once; from then on a silent agent is waited for */
	bool silent;   /* said so */
};

static void print_event(const struct vhca_ctl *ctl, struct json_object *event)
{
	char head[96];
	struct vhca_strbuf sb;

	if (ctl->opts[VHCA_OPT_JSON]) {
		vhca_ctl_print_json_line(event);
		return;
	}
	vhca_strbuf_init(&sb, head, sizeof(head));
	vhca_view_time(&sb, vhca_view_u64(event, "time_ms"));
	vhca_strbuf_add(&sb, "  %-7.32s ", vhca_view_text(event, "kind"));
	(void)printf("%s%s: %s\n", head, vhca_view_text(event, "subject"),
		     vhca_view_text(event, "text"));
}

static int poll_once(struct watch *w, unsigned int wait_s, size_t newest, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;
	struct json_object *events;
	size_t n;
	int r;

	r = vhca_ctl_get_events(w->ctl, w->cursor, wait_s, &doc, err);
	if (r < 0)
		return r;
	events = vhca_view_array(doc, "events");
	n = vhca_view_count(events);
	for (size_t i = n > newest ? n - newest : 0; i < n; i++)
		print_event(w->ctl, json_object_array_get_idx(events, i));
	(void)fflush(stdout); /* for the pipe behind; main() reports a failure */
	w->answered = true;
	w->silent = false;
	return vhca_ctl_take_cursor(doc, w->cursor, err);
}

/* The watcher stays when some events were missed, and when the agent is being restarted,
 * perhaps, or has too many watchers. */
static int outlive(struct watch *w, int r, const struct vhca_error *err)
{
	if (vhca_error_is(err, VHCA_CODE_CURSOR_GONE)) {
		(void)fputs("vhcactl: some events were missed; what the agent still knows "
			    "follows\n",
			    stderr);
		return vhca_strcpy(w->cursor, sizeof(w->cursor), "oldest");
	}
	if (!w->answered || err->kind != VHCA_ERR_UNAVAILABLE)
		return r;
	if (!w->silent)
		(void)fprintf(stderr, "vhcactl: %s; waiting\n", err->msg);
	w->silent = true;
	(void)sleep(RETRY_S);
	return 0;
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	struct watch w = {.ctl = ctl, .cursor = "oldest"};
	const char *since = ctl->opts[VHCA_OPT_SINCE];
	unsigned int wait_s = 0;
	int r = 0;

	if (since && vhca_strcpy(w.cursor, sizeof(w.cursor), since) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
				      "--since: a cursor has at most %d characters",
				      VHCA_CTL_CURSOR_MAX - 1);
	while (r == 0 && !ferror(stdout)) {
		r = poll_once(&w, wait_s, w.answered || since ? SIZE_MAX : HISTORY, err);
		if (r < 0)
			r = outlive(&w, r, err);
		wait_s = WAIT_S;
	}
	return r;
}

const struct vhca_ctl_command vhca_cmd_watch = {
	.name = "watch",
	.optional = VHCA_OPT_BIT(VHCA_OPT_SINCE),
	.summary = "follow what happens, until interrupted",
	.help = "\nStarts with the last 10 events. With --json one event a line, each with the "
		"CURSOR behind it. Outlives a\n"
		"restart of the agent, and says when events were missed.\n",
	.run = run,
};
