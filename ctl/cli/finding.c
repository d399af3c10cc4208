/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cli/finding.h"

#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "ctl/cli/view.h"

void vhca_print_finding(struct json_object *finding, const struct vhca_finding_members *members)
{
	const char *fix = vhca_view_text(finding, members->fix);

	(void)printf("  %-8s %-*s %s", vhca_view_text(finding, "status"), members->width,
		     vhca_view_text(finding, members->subject),
		     vhca_view_text(finding, members->text));
	if (*fix)
		(void)printf("\n  %-8s %-*s -> %s", "", members->width, "", fix);
	(void)putchar('\n');
}

int vhca_finding_exit(struct json_object *finding)
{
	static const struct {
		const char *word;
		int exit_status;
	} table[] = {{"ok", 0}, {"unknown", 10}, {"warning", 11}, {"wrong", 12}};
	const char *status = vhca_view_text(finding, "status");

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++)
		if (strcmp(status, table[i].word) == 0)
			return table[i].exit_status;
	return 1;
}
