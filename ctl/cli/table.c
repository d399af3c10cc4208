/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cli/table.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <json-c/json_object_iterator.h>

#include "ctl/cli/view.h"

#define CELL_MAX    65536 /* 127 P_Keys, each "0x8001(missing)", take 2031; as JSON 7000 */
#define COLUMNS_MAX 64
#define GAP	    2
#define CUT_MIN	    8 /* of a cell that is cut, or its head's */
#define CUT_MARK    "…"

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

static bool is_begin(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80; /* no continuation byte of UTF-8 */
}

/* Columns on the terminal. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += is_begin(*s);
	return n;
}

static void print_cell(FILE *out, const char *text, size_t width, bool last)
{
	size_t shown = width_of(text), left = width - 1, bytes = 0;

	if (shown > width) {
		for (; left || !is_begin(text[bytes]); bytes++)
			left -= is_begin(text[bytes]);
		(void)fprintf(out, "%.*s" CUT_MARK, (int)bytes, text);
		shown = width;
	} else {
		(void)fputs(text, out);
	}
	(void)fprintf(out, "%*s%s", last ? 0 : (int)(width + GAP - shown), "", last ? "\n" : "");
}

/* ---- how wide ---- */

struct layout {
	const struct vhca_column *columns;
	unsigned int n;
	size_t widths[COLUMNS_MAX]; /* 0: it is not shown */
};

static size_t least(const struct layout *l, unsigned int c)
{
	size_t head = width_of(l->columns[c].head), min = head > CUT_MIN ? head : CUT_MIN;

	return l->columns[c].may_cut && l->widths[c] > min ? min : l->widths[c];
}

static size_t total(const struct layout *l, size_t (*of)(const struct layout *l, unsigned int c))
{
	size_t sum = 0;

	for (unsigned int c = 0; c < l->n; c++)
		if (l->widths[c])
			sum += (of ? of(l, c) : l->widths[c]) + GAP;
	return sum - GAP;
}

/* false: there is none. */
static bool leave_away(struct layout *l)
{
	unsigned int found = l->n;

	for (unsigned int c = 0; c < l->n; c++)
		if (l->widths[c] && l->columns[c].wide &&
		    (found == l->n || l->columns[c].wide >= l->columns[found].wide))
			found = c;
	if (found == l->n)
		return false;
	l->widths[found] = 0;
	return true;
}

/* By one column of what is widest; false: nothing may be cut any more. */
static bool cut_widest(struct layout *l)
{
	unsigned int found = l->n;

	for (unsigned int c = 0; c < l->n; c++)
		if (l->widths[c] && least(l, c) < l->widths[c] &&
		    (found == l->n || l->widths[c] > l->widths[found]))
			found = c;
	if (found == l->n)
		return false;
	l->widths[found]--;
	return true;
}

void vhca_table_print(FILE *out, const struct vhca_column *columns, unsigned int n,
		      struct json_object *rows, size_t width)
{
	struct layout l = {.columns = columns, .n = n};
	size_t n_rows = json_object_array_length(rows);
	unsigned int last = 0;
	char cell[CELL_MAX];

	for (unsigned int c = 0; c < n; c++) {
		l.widths[c] = width_of(columns[c].head);
		for (size_t r = 0; r < n_rows; r++) {
			format_cell(cell, &columns[c], json_object_array_get_idx(rows, r));
			if (width_of(cell) > l.widths[c])
				l.widths[c] = width_of(cell);
		}
	}
	while (width && total(&l, least) > width && leave_away(&l))
		;
	while (width && total(&l, NULL) > width && cut_widest(&l))
		;
	for (unsigned int c = 0; c < n; c++)
		last = l.widths[c] ? c : last;
	for (unsigned int c = 0; c < n; c++)
		if (l.widths[c])
			print_cell(out, columns[c].head, l.widths[c], c == last);
	for (size_t r = 0; r < n_rows; r++)
		for (unsigned int c = 0; c < n; c++) {
			if (!l.widths[c])
				continue;
			format_cell(cell, &columns[c], json_object_array_get_idx(rows, r));
			print_cell(out, cell, l.widths[c], c == last);
		}
}

/* ---- members by name ---- */

#define NAME_SIZE 40

/* What is no text as JSON, but for a list of texts. */
static struct json_object *make_text(struct json_object *value)
{
	VHCA_CTL_AUTO_PUT struct json_object *holder = json_object_new_object();
	struct vhca_strbuf sb;
	char text[CELL_MAX];
	bool is_list = json_object_is_type(value, json_type_array);

	for (size_t i = 0; is_list && i < json_object_array_length(value); i++)
		is_list =
			json_object_is_type(json_object_array_get_idx(value, i), json_type_string);
	vhca_strbuf_init(&sb, text, sizeof(text));
	if (is_list)
		vhca_view_strings(&sb, value, SIZE_MAX);
	else if (json_object_is_type(value, json_type_array) ||
		 json_object_is_type(value, json_type_object))
		vhca_strbuf_add(
			&sb, "%s",
			json_object_to_json_string_ext(
				value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	else {
		json_object_object_add(holder, "v", json_object_get(value));
		vhca_strbuf_add(&sb, "%s", vhca_view_text(holder, "v"));
	}
	return json_object_new_string(text);
}

static int refuse_field(const char *name, struct json_object *rows, struct vhca_error *err)
{
	struct json_object *row = json_object_array_get_idx(rows, 0);
	struct json_object_iterator it, end;
	char there[sizeof(err->hint) - 16];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, there, sizeof(there));
	if (json_object_is_type(row, json_type_object)) {
		end = json_object_iter_end(row);
		for (it = json_object_iter_begin(row); !json_object_iter_equal(&it, &end);
		     json_object_iter_next(&it))
			vhca_strbuf_add(&sb, " %s", json_object_iter_peek_name(&it));
	}
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "--fields: there is no %s", name);
	vhca_error_hint(err, "there are:%s", there);
	return -EINVAL;
}

/* "bdf", and its head "BDF"; the number of those there are, or -EINVAL. */
static int split_fields(const char *fields, char names[][NAME_SIZE], char heads[][NAME_SIZE],
			struct vhca_error *err)
{
	unsigned int n = 0;

	for (const char *p = fields; *p; p += strspn(p, ", ")) {
		size_t len = strcspn(p, ", ");

		if (n == COLUMNS_MAX || len == 0 || len >= NAME_SIZE)
			return vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0,
					      "--fields %.80s: want names as in JSON, with commas",
					      fields);
		for (size_t i = 0; i < len; i++)
			heads[n][i] = (char)toupper((unsigned char)p[i]);
		memcpy(names[n], p, len);
		heads[n][len] = names[n][len] = '\0';
		p += len;
		n++;
	}
	return (int)n;
}

int vhca_table_print_fields(FILE *out, const char *fields, struct json_object *rows,
			    struct vhca_error *err)
{
	VHCA_CTL_AUTO_PUT struct json_object *texts = json_object_new_array();
	char names[COLUMNS_MAX][NAME_SIZE], heads[COLUMNS_MAX][NAME_SIZE];
	struct vhca_column columns[COLUMNS_MAX];
	size_t n_rows = json_object_array_length(rows);
	int n = split_fields(fields, names, heads, err);

	for (int c = 0; c < n; c++) {
		if (!vhca_view_has_member(rows, names[c]))
			return refuse_field(names[c], rows, err);
		columns[c] = (struct vhca_column){.head = heads[c], .key = names[c]};
	}
	for (size_t r = 0; n > 0 && r < n_rows; r++) {
		struct json_object *row = json_object_new_object();

		for (int c = 0; c < n; c++)
			(void)json_object_object_add(
				row, names[c],
				make_text(vhca_view_member(json_object_array_get_idx(rows, r),
							   names[c])));
		(void)json_object_array_add(texts, row);
	}
	if (n == 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "usage", 0, "--fields names nothing");
	if (n > 0)
		vhca_table_print(out, columns, (unsigned int)n, texts, 0);
	return n < 0 ? n : 0;
}
