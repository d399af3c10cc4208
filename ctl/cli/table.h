/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_TABLE_H
#define VHCA_CTL_CLI_TABLE_H
/*
 * Aligned tables of JSON objects. The last column is not padded: what is long (a reason) stands
 * there.
 */
#include <stdio.h>

#include <json-c/json_object.h>

#include "common/base/text.h"

struct vhca_column {
	const char *head;
	const char *key; /* member to show, if there is no format */
	void (*format)(struct vhca_strbuf *sb, struct json_object *row);
};

/* One line of heads, one for each row; an empty or absent value is "-". */
void vhca_table_print(FILE *out, const struct vhca_column *columns, unsigned int n,
		      struct json_object *rows);

#endif
