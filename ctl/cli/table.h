/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_TABLE_H
#define VHCA_CTL_CLI_TABLE_H
/*
 * Aligned tables of JSON objects. The last column is not padded: what is long (a reason) stands
 * there. A table that is given a width fits: columns are left away, and then cells are cut that may
 * be. An address or a state is shown whole or not at all, for it is there to be copied.
 */
#include <stdio.h>

#include <json-c/json_object.h>

#include "common/base/error.h"
#include "common/base/text.h"

struct vhca_column {
	const char *head;
	const char *key; /* member to show, if there is no format */
	void (*format)(struct vhca_strbuf *sb, struct json_object *row);
	bool may_cut;	    /* it is text that says something by its begin */
	unsigned char wide; /* left away where there is no room, the highest first; 0 = never */
};

/* One line of heads, one for each row; an empty or absent value is "-". width: columns of the
 * terminal; 0 = all that there is, whole. */
void vhca_table_print(FILE *out, const struct vhca_column *columns, unsigned int n,
		      struct json_object *rows, size_t width);
/*
 * The members that fields names ("bdf,state", as in JSON) of each row, whole; what is no text is
 * JSON. -EINVAL with err naming those there are where no row has one of them.
 */
int vhca_table_print_fields(FILE *out, const char *fields, struct json_object *rows,
			    struct vhca_error *err);

#endif
