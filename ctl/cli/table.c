/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cli/table.h"

#include <string.h>

#include "ctl/cli/view.h"

#define CELL_MAX    4096 /* 127 P_Keys, each "0x8001(missing)", take 2031 */
#define COLUMNS_MAX 16

static void format_cell(char cell[static CELL_MAX], const struct vhca_column *col,
			struct json_object *row)
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, cell, CELL_MAX);
	if (col->format)
		col->format(&sb, row);
	else
		vhca_strbuf_add(&sb, "%.*s", CELL_MAX - 1, vhca_view_text(row, col->key));
	if (sb.len == 0)
		vhca_strbuf_add(&sb, "-");
}

/* Columns on the terminal: UTF-8 continuation bytes take none. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void print_cell(FILE *out, const char *text, size_t width, bool last)
{
	size_t pad = last ? 0 : width + 2 - width_of(text);

	(void)fprintf(out, "%s%*s%s", text, (int)pad, "", last ? "\n" : "");
}

void vhca_table_print(FILE *out, const struct vhca_column *columns, unsigned int n,
		      struct json_object *rows)
{
	size_t widths[COLUMNS_MAX], n_rows = json_object_array_length(rows);
	char cell[CELL_MAX];

	for (unsigned int c = 0; c < n; c++) {
		widths[c] = width_of(columns[c].head);
		for (size_t r = 0; r < n_rows; r++) {
			format_cell(cell, &columns[c], json_object_array_get_idx(rows, r));
			if (width_of(cell) > widths[c])
				widths[c] = width_of(cell);
		}
	}
	for (unsigned int c = 0; c < n; c++)
		print_cell(out, columns[c].head, widths[c], c == n - 1);
	for (size_t r = 0; r < n_rows; r++)
		for (unsigned int c = 0; c < n; c++) {
			format_cell(cell, &columns[c], json_object_array_get_idx(rows, r));
			print_cell(out, cell, widths[c], c == n - 1);
		}
}
