/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/dynamic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"

#define HEADER	  "vhcasm-dynamic-lids 1"
#define LINE_SIZE 64 /* of each line, its end included */
#define LID_MAX	  0xbfff
#define FILE_SIZE ((size_t)LINE_SIZE * (LID_MAX + 2))

void vhca_osm_dynamic_lids_done(struct vhca_osm_dynamic_lids *t)
{
	if (t->leaving)
		vhca_osm_dynamic_lids_done(t->leaving);
	free(t->leaving);
	free(t->rows);
	*t = (struct vhca_osm_dynamic_lids){0};
}

void vhca_osm_dynamic_lids_clear(struct vhca_osm_dynamic_lids *t)
{
	t->n = 0;
	if (t->leaving)
		t->leaving->n = 0;
}

/* ---- in memory ---- */

/* Where the vGUID is, or would be. */
static size_t position(const struct vhca_osm_dynamic_lids *t, uint64_t vguid)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->rows[middle].vguid < vguid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct vhca_osm_dynamic_lids *t, size_t at, uint64_t vguid)
{
	return at < t->n && t->rows[at].vguid == vguid;
}

const struct vhca_osm_dynamic_lid *vhca_osm_dynamic_lids_find(const struct vhca_osm_dynamic_lids *t,
							      uint64_t vguid)
{
	size_t at = position(t, vguid);

	return is_at(t, at, vguid) ? &t->rows[at] : NULL;
}

const struct vhca_osm_dynamic_lid *
vhca_osm_dynamic_lids_find_lid(const struct vhca_osm_dynamic_lids *t, uint16_t lid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->rows[i].lid == lid)
			return &t->rows[i];
	return NULL;
}

static int make_room(struct vhca_osm_dynamic_lids *t)
{
	size_t room = t->room ? t->room * 2 : 64;
	struct vhca_osm_dynamic_lid *rows;

	if (t->n < t->room)
		return 0;
	rows = reallocarray(t->rows, room, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	t->rows = rows;
	t->room = room;
	return 0;
}

int vhca_osm_dynamic_lids_set(struct vhca_osm_dynamic_lids *t,
			      const struct vhca_osm_dynamic_lid *row)
{
	size_t at = position(t, row->vguid);

	if (!is_at(t, at, row->vguid)) {
		if (make_room(t) < 0)
			return -ENOMEM;
		(void)memmove(&t->rows[at + 1], &t->rows[at], (t->n - at) * sizeof(*t->rows));
		t->n++;
	}
	t->rows[at] = *row;
	return 0;
}

void vhca_osm_dynamic_lids_remove(struct vhca_osm_dynamic_lids *t, uint64_t vguid)
{
	size_t at = position(t, vguid);

	if (!is_at(t, at, vguid))
		return;
	t->n--;
	(void)memmove(&t->rows[at], &t->rows[at + 1], (t->n - at) * sizeof(*t->rows));
}

int vhca_osm_dynamic_lids_leave(struct vhca_osm_dynamic_lids *t,
				const struct vhca_osm_dynamic_lid *row)
{
	if (!t->leaving)
		t->leaving = calloc(1, sizeof(*t->leaving));
	return t->leaving ? vhca_osm_dynamic_lids_set(t->leaving, row) : -ENOMEM;
}

void vhca_osm_dynamic_lids_return(struct vhca_osm_dynamic_lids *t, uint64_t vguid)
{
	if (t->leaving)
		vhca_osm_dynamic_lids_remove(t->leaving, vguid);
}

/* ---- as a text ---- */

int vhca_osm_dynamic_lids_format(const struct vhca_osm_dynamic_lids *t, char **ret_text,
				 size_t *ret_len)
{
	size_t size = LINE_SIZE * (t->n + 2), len;
	char *text = malloc(size);

	if (!text)
		return -ENOMEM;
	len = (size_t)snprintf(text, LINE_SIZE, HEADER "\n");
	for (size_t i = 0; i < t->n; i++)
		len += (size_t)snprintf(text + len, LINE_SIZE, "d %s %u %s\n",
					VHCA_GUID_STR(t->rows[i].vguid), t->rows[i].lid,
					VHCA_GUID_STR(t->rows[i].pf_guid));
	len += (size_t)snprintf(text + len, LINE_SIZE, "end %zu\n", t->n);
	*ret_text = text;
	*ret_len = len;
	return 0;
}

/* The next line without its end; NULL if the text ends, or ends without one. */
static char *next_line(char **text)
{
	char *line = *text, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return line;
}

static bool parse_row(char *line, struct vhca_osm_dynamic_lid *ret)
{
	char *save = NULL;
	const char *word = strtok_r(line, " ", &save), *vguid = strtok_r(NULL, " ", &save),
		   *lid = strtok_r(NULL, " ", &save), *pf = strtok_r(NULL, " ", &save);
	uint32_t n = 0;

	if (!pf || strtok_r(NULL, " ", &save) || strcmp(word, "d") != 0 ||
	    vhca_guid_parse(vguid, &ret->vguid) < 0 || vhca_guid_parse(pf, &ret->pf_guid) < 0 ||
	    vhca_parse_u32(lid, 10, LID_MAX, &n) < 0 || n == 0)
		return false;
	ret->lid = (uint16_t)n;
	return true;
}

/* One LID for each vGUID, one vGUID for each LID. `seen`: by LID. */
static bool fits(const struct vhca_osm_dynamic_lids *t, const struct vhca_osm_dynamic_lid *row,
		 bool *seen)
{
	bool fits = t->n < LID_MAX && !seen[row->lid] &&
		    (t->n == 0 || t->rows[t->n - 1].vguid < row->vguid);

	seen[row->lid] = true;
	return fits;
}

static bool is_end(const char *line, const struct vhca_osm_dynamic_lids *t)
{
	char end[LINE_SIZE];

	(void)snprintf(end, sizeof(end), "end %zu", t->n);
	return strcmp(line, end) == 0;
}

static int damaged(unsigned int line, const char *why, struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_INVALID, "state_damaged", 0, "line %u: %s", line, why);

	vhca_error_hint(err, "restore the file, or move it away: the next report of each "
			     "vGUID then gives it a LID again");
	return r;
}

int vhca_osm_dynamic_lids_parse(char *text, struct vhca_osm_dynamic_lids *t, struct vhca_error *err)
{
	VHCA_AUTO_FREE bool *seen = calloc(LID_MAX + 1, sizeof(*seen));
	struct vhca_osm_dynamic_lid row;
	const char *header = next_line(&text);
	unsigned int number = 1;
	char *line = NULL;

	if (!seen)
		return vhca_error_no_memory(err, "dynamic LIDs");
	if (!header || strcmp(header, HEADER) != 0)
		return damaged(1, "not \"" HEADER "\"", err);
	for (number = 2; (line = next_line(&text)) && !is_end(line, t); number++)
		if (!parse_row(line, &row) || !fits(t, &row, seen) ||
		    vhca_osm_dynamic_lids_set(t, &row) < 0)
			break;
	if (!line || !is_end(line, t) || *text)
		return damaged(number, "no record, or not the end that was expected", err);
	return 0;
}

/* ---- as a file ---- */

int vhca_osm_dynamic_lids_load(const char *path, struct vhca_osm_dynamic_lids *t,
			       struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	int r = vhca_read_state(path, FILE_SIZE, &text, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = vhca_osm_dynamic_lids_parse(text, t, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", path);
	return r;
}

int vhca_osm_dynamic_lids_save(const char *path, const struct vhca_osm_dynamic_lids *t)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = vhca_osm_dynamic_lids_format(t, &text, &len);

	return r < 0 ? r : vhca_write_file_atomic(path, text, len, 0640);
}
