/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "config.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/view.h"

#define NODE	   "/v1/node"
#define DOMAINS	   "/v1/domains"
#define MIGRATIONS "/v1/migrations"

/* NODE comes before them: who does not answer that has nothing to say. */
static const char *const paths[] = {
	"/readyz",	  "/v1/config", "/v1/hcas",   "/v1/vfs",    DOMAINS,	"/v1/claims",
	"/v1/partitions", "/v1/drain",	"/v1/outbox", "/v1/events", MIGRATIONS,
};

/* An answer, or why there is none. */
static int add(const struct vhca_ctl *ctl, struct json_object *answers, const char *path,
	       struct vhca_error *err)
{
	struct json_object *answer = NULL;
	/* The one list that comes in pages unasked. */
	int r = strcmp(path, MIGRATIONS) == 0
			? vhca_ctl_get_pages(ctl, path, "migrations", &answer, err)
			: vhca_ctl_get_state(ctl, path, &answer, err);

	if (r < 0) {
		answer = json_object_new_object();
		json_object_object_add(answer, "code", json_object_new_string(err->code));
		json_object_object_add(answer, "reason", json_object_new_string(err->msg));
	}
	json_object_object_add(answers, path, answer);
	return r;
}

static void add_explanations(const struct vhca_ctl *ctl, struct json_object *answers)
{
	struct json_object *domains =
		vhca_view_array(vhca_view_member(answers, DOMAINS), "domains");

	for (size_t i = 0; i < vhca_view_count(domains); i++) {
		struct json_object *domain = json_object_array_get_idx(domains, i);
		struct vhca_error err = VHCA_ERROR_INIT;
		char path[VHCA_CTL_PATH_MAX];
		struct vhca_strbuf sb;

		vhca_strbuf_init(&sb, path, sizeof(path));
		vhca_strbuf_add(&sb, DOMAINS "/");
		vhca_ctl_encode(&sb, vhca_view_text(domain, "uuid"));
		vhca_strbuf_add(&sb, "/explain");
		(void)add(ctl, answers, path, &err);
	}
}

static int write_bundle(const char *file, struct json_object *doc, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int r = -ENOMEM;

	if (out) {
		vhca_ctl_write_json(out, doc);
		r = fclose(out) == 0 ? vhca_write_file_atomic(file, text, len, 0600) : -errno;
	}
	return r < 0 ? vhca_error_set(err, VHCA_ERR_INTERNAL, "output", -r, "%s", file) : 0;
}

static int run(const struct vhca_ctl *terminal, struct vhca_error *err)
{
	struct vhca_ctl exact = *terminal;
	const struct vhca_ctl *ctl = &exact;
	VHCA_CTL_AUTO_PUT struct json_object *doc = json_object_new_object();
	struct json_object *answers = json_object_new_object();
	const char *file = ctl->opts[VHCA_OPT_OUTPUT];
	struct vhca_error why = VHCA_ERROR_INIT;
	VHCA_AUTO_FREE char *metrics = NULL;
	int r;

	exact.keeps_controls = true;
	json_object_object_add(doc, "vhcactl", json_object_new_string(VHCA_VERSION));
	json_object_object_add(doc, "made_ms", json_object_new_int64((int64_t)vhca_wall_ms()));
	json_object_object_add(doc, "answers", answers);
	r = add(ctl, answers, NODE, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(paths); i++)
		(void)add(ctl, answers, paths[i], &why);
	add_explanations(ctl, answers);
	r = vhca_ctl_get_text(ctl, "/metrics", &metrics, &why);
	json_object_object_add(answers, "/metrics",
			       json_object_new_string(r < 0 ? why.msg : metrics));
	return write_bundle(file, doc, err);
}

const struct vhca_ctl_command vhca_cmd_support_bundle = {
	.name = "support-bundle",
	.required = VHCA_OPT_BIT(VHCA_OPT_OUTPUT),
	.summary = "write all that the agent knows into a file, for who is to help",
	.help = "\nOne JSON document with what the agent answers to each question, no token and no "
		"private key in it.\nLook at it before it leaves the house: names, addresses and "
		"P_Keys of guests are there.\nThe log is journalctl -u vhcad.\n",
	.run = run,
};
