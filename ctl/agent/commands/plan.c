/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/domain.h"
#include "ctl/cli/api.h"
#include "ctl/cli/server.h"
#include "ctl/cli/view.h"

#define XML_MAX (64u * 1024) /* the agent takes no more */
#define OF_ONE_VF                                                         \
	(VHCA_OPT_BIT(VHCA_OPT_PARTITION) | VHCA_OPT_BIT(VHCA_OPT_GUID) | \
	 VHCA_OPT_BIT(VHCA_OPT_FABRIC) | VHCA_OPT_BIT(VHCA_OPT_PF) | VHCA_OPT_BIT(VHCA_OPT_NUMA))

static const struct vhca_column columns[] = {
	{"NAME", "name", NULL, .may_cut = true},
	{"BDF", "bdf", NULL},
	{"PF", "pf", NULL, .wide = 2},
	{"FABRIC", "fabric", NULL, .may_cut = true, .wide = 3},
	{"NUMA", "numa", NULL, .wide = 4},
	{"CLAIM", "claim", NULL, .wide = 1},
};

/* One VF, or a domain's XML, and nothing of both. */
static int make_body(const struct vhca_ctl *ctl, struct json_object *body, struct vhca_error *err)
{
	struct json_object *vfs, *vf;
	const char *file = ctl->opts[VHCA_OPT_XML];
	bool is_of_vf = ctl->args[0] != NULL;
	VHCA_AUTO_FREE char *xml = NULL;
	size_t len = 0;
	int r = 0;

	for (unsigned int i = 0; i < VHCA_CTL_OPTS_MAX; i++)
		is_of_vf = is_of_vf || (ctl->opts[i] && (OF_ONE_VF & VHCA_OPT_BIT(i)));
	if (file ? is_of_vf : !ctl->args[1] || !ctl->opts[VHCA_OPT_PARTITION])
		return vhca_ctl_refuse(err,
				       "plan needs DOMAIN, NAME and --partition, or --xml "
				       "alone",
				       "vhcactl help plan");
	if (file && strcmp(file, "-") == 0)
		r = vhca_read_fd(STDIN_FILENO, XML_MAX, &xml, &len);
	else if (file)
		r = vhca_read_file(file, XML_MAX, &xml, &len);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", -r, "--xml %s", file);
	if (xml) {
		(void)json_object_object_add(body, "xml",
					     json_object_new_string_len(xml, (int)len));
		return 0;
	}
	vfs = json_object_new_array();
	vf = json_object_new_object();
	(void)json_object_object_add(body, "domain", json_object_new_string(ctl->args[0]));
	(void)json_object_object_add(body, "vfs", vfs);
	(void)json_object_array_add(vfs, vf);
	(void)json_object_object_add(vf, "name", json_object_new_string(ctl->args[1]));
	return vhca_ctl_add_wish(ctl, vf, err);
}

static int run(const struct vhca_ctl *ctl, struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *body = json_object_new_object(), *doc = NULL;
	struct json_object *vfs;
	int r = make_body(ctl, body, err);

	if (r == 0)
		r = vhca_ctl_ask(ctl, "POST", "/v1/plan", body, VHCA_CTL_READ_MS, &doc, err);
	if (r < 0 || ctl->opts[VHCA_OPT_JSON])
		return r;
	vfs = vhca_view_array(doc, "vfs");
	if (vhca_view_count(vfs))
		return vhca_ctl_print_rows(ctl, columns, VHCA_ARRAY_SIZE(columns), vfs, vfs, err);
	(void)puts("no VF is asked for");
	return 0;
}

const struct vhca_ctl_command vhca_cmd_plan = {
	.name = "plan",
	.has_table = true,
	.args = {"DOMAIN", "NAME"},
	.may_have_args = true,
	.optional = OF_ONE_VF | VHCA_OPT_BIT(VHCA_OPT_XML),
	.summary = "say which VFs a domain would get, or why not",
	.help = "\nNothing is claimed or changed. DOMAIN, NAME and --partition are those of "
		"attach; "
		"DOMAIN need not run if it\n"
		"is a UUID. With --xml it is all that a domain's XML asks for, as libvirt has it "
		"or "
		"is to get it. A VF that\n"
		"the domain has is named with its CLAIM. What would be refused is said as attach "
		"would say it.\n",
	.run = run,
};
