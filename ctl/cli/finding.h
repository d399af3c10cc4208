/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_FINDING_H
#define VHCA_CTL_CLI_FINDING_H
/* What the server has found wrong, as people read it and as a script hears it. */
#include <json-c/json_object.h>

/* How the document calls what a finding is about, its sentence and the way out. */
struct vhca_finding_members {
	const char *subject, *text, *fix;
	int width; /* of the first's column */
};

/* A line, and one more for the way out if there is any. */
void vhca_print_finding(struct json_object *finding, const struct vhca_finding_members *members);
/*
 * Of its status: 0 ok, 10 unknown, 11 warning, 12 wrong. Not those of errors, so that a script
 * tells what is wrong here from a question that was not answered.
 */
int vhca_finding_exit(struct json_object *finding);

#endif
