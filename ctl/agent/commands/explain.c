/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "ctl/agent/commands.h"
#include "ctl/cli/api.h"
#include "ctl/cli/finding.h"
#include "ctl/cli/view.h"

/* The first line that an operator sees, and what to do. */
static void print_verdict(struct json_object *verdict)
{
	const char *status = vhca_view_text(verdict, "status");
	const char *step = vhca_view_text(verdict, "step");
	const char *fix = vhca_view_text(verdict, "fix");

	for (const char *s = status; *s; s++)
		(void)putchar(toupper((unsigned char)*s));
	(void)printf("  %s: %s%s%s\n", vhca_view_text(verdict, "subject"), step, *step ? ": " : "",
		     vhca_view_text(verdict, "text"));
	if (*fix)
		(void)printf("fix:  %s\n", fix);
}

static void print_findings(struct json_object *doc)
{
	static const struct vhca_finding_members members = {"step", "text", "fix", 14};
	struct json_object *findings = vhca_view_array(doc, "findings");

	for (size_t i = 0; i < vhca_view_count(findings); i++)
		vhca_print_finding(json_object_array_get_idx(findings, i), &members);
}

static void print_vf(struct json_object *vf)
{
	(void)printf("\n%s", vhca_view_text(vf, "bdf"));
	if (*vhca_view_text(vf, "domain"))
		(void)printf("  %s/%s", vhca_view_text(vf, "domain"), vhca_view_text(vf, "name"));
	(void)printf("  %s\n", vhca_view_text(vf, "state"));
	print_findings(vf);
}

static void print_document(struct json_object *doc)
{
	struct json_object *vfs = vhca_view_array(doc, "vfs");

	print_verdict(vhca_view_member(doc, "verdict"));
	if (!vfs) {
		print_vf(doc);
		return;
	}
	if (vhca_view_count(vhca_view_array(doc, "findings")))
		(void)putchar('\n');
	print_findings(doc);
	for (size_t i = 0; i < vhca_view_count(vfs); i++)
		print_vf(json_object_array_get_idx(vfs, i));
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *doc = NULL;
	char path[VHCA_CTL_PATH_MAX];
	struct vhca_strbuf sb;
	struct vhca_bdf bdf;
	int r;

	vhca_strbuf_init(&sb, path, sizeof(path));
	vhca_strbuf_add(&sb, "/v1/%s/", vhca_bdf_parse(ctl->args[0], &bdf) < 0 ? "domains" : "vfs");
	vhca_ctl_encode(&sb, ctl->args[0]);
	vhca_strbuf_add(&sb, "/explain");
	if (sb.truncated)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", ENAMETOOLONG, "domain name");
	r = vhca_ctl_ask(ctl, "GET", path, NULL, VHCA_CTL_READ_MS, &doc, err);
	if (r < 0)
		return r;
	if (!ctl->opts[VHCA_OPT_JSON])
		print_document(doc);
	return ctl->opts[VHCA_OPT_CHECK] ? vhca_finding_exit(vhca_view_member(doc, "verdict")) : 0;
}

const struct vhca_ctl_command vhca_cmd_explain = {
	.name = "explain",
	.args = {"VF|DOMAIN"},
	.optional = VHCA_OPT_BIT(VHCA_OPT_CHECK),
	.summary = "say why a VF or a domain has no InfiniBand, and what to do",
	.help = "\nThe first line is the verdict: the first thing that is wrong on the way from "
		"the "
		"adapter's firmware to\n"
		"the guest, and the second line what to type or to do. Below, a line for each "
		"step. "
		"VF is an address\n"
		"(0000:03:00.1), DOMAIN a UUID or the name of a running domain. Exit status 0 if "
		"there is an answer,\n"
		"whatever it says; with --check that of the verdict: 0 ok, 10 unknown, 11 "
		"warning, 12 wrong.\n",
	.run = run,
};
