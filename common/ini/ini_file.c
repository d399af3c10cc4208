/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * inih knows sections and keys; how it is built is the distribution's choice (200-byte lines,
 * inline comments, continuation lines, no line numbers). So inih gets each line through our reader,
 * stripped of what those options act on: comments and blank lines arrive as empty lines, leading
 * blanks are gone (no continuation), and of a pair only "key =" goes through inih. The value is
 * taken from the reader's own line, where it is whole.
 */
#include "common/ini/ini_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ini.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

#define SECTION_MAX 49 /* inih's MAX_SECTION - 1: a longer name would be cut in silence */

struct reader {
	const char *name, *pos, *end;
	char line[VHCA_INI_LINE_MAX +
		  1]; /* the current line, without leading and trailing blanks */
	unsigned int lineno;
	vhca_ini_pair_fn on_pair;    /* NULL: syntax only */
	vhca_ini_pair_fn on_section; /* NULL: not wanted */
	void *ctx;
	struct vhca_error *err;
	int rc; /* the first failure; parsing ends */
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *r, const char *fmt, ...)
{
	char reason[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	(void)vhca_error_set(r->err, VHCA_ERR_INVALID, "bad_config", 0, "%s:%u: %s", r->name,
			     r->lineno, reason);
	r->rc = -EINVAL;
	return r->rc;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Copies the next line into r->line; false at the end of the text. */
static bool next_line(struct reader *r)
{
	const char *eol, *next;

	if (r->pos == r->end)
		return false;
	r->lineno++;
	eol = memchr(r->pos, '\n', (size_t)(r->end - r->pos));
	next = eol ? eol + 1 : r->end;
	if (!eol)
		eol = r->end;
	if (eol - r->pos > VHCA_INI_LINE_MAX)
		return fail(r, "line is longer than %d bytes", VHCA_INI_LINE_MAX) == 0;
	if (memchr(r->pos, '\0', (size_t)(eol - r->pos)))
		return fail(r, "NUL byte in the line") == 0;
	while (r->pos < eol && is_blank(*r->pos))
		r->pos++;
	while (eol > r->pos && is_blank(eol[-1]))
		eol--;
	memcpy(r->line, r->pos, (size_t)(eol - r->pos));
	r->line[eol - r->pos] = '\0';
	r->pos = next;
	return true;
}

/* Length of the section header in the current line, or a negative value with r->rc set. */
static int section_length(struct reader *r)
{
	char name[SECTION_MAX + 1];
	const char *end = strchr(r->line, ']');
	size_t len;

	if (!end || end[1])
		return fail(r, "section header must be \"[name]\" with nothing after it");
	len = (size_t)(end - r->line) - 1;
	if (len > SECTION_MAX)
		return fail(r, "section name is longer than %d bytes", SECTION_MAX);
	if (!r->on_section)
		return (int)len + 2;
	memcpy(name, r->line + 1, len);
	name[len] = '\0';
	r->rc = r->on_section(r->ctx, name, "", "", r->lineno, r->err);
	if (r->rc < 0)
		vhca_error_prefix(r->err, "%s:%u: [%s]", r->name, r->lineno, name);
	return r->rc < 0 ? r->rc : (int)len + 2;
}

/* What inih is to see of the current line: its length, or a negative errno after fail(). */
static int visible_length(struct reader *r)
{
	size_t len = strlen(r->line);
	const char *end;

	if (len == 0 || strchr("#;", r->line[0]))
		return 0;
	if (r->line[0] == '[')
		return section_length(r);
	end = strchr(r->line, '=');
	if (!end || end == r->line)
		return fail(r, "neither \"[section]\" nor \"key = value\"");
	if (memchr(r->line, ':', (size_t)(end - r->line)))
		return fail(r, "key contains \":\"");
	return (int)(end - r->line) + 1;
}

/* ini_reader: as fgets(). */
static char *read_line(char *str, int num, void *stream)
{
	struct reader *r = stream;
	int len;

	if (r->rc || !next_line(r))
		return NULL;
	len = visible_length(r);
	if (len < 0)
		return NULL;
	if (len + 2 > num) {
		(void)fail(r, "key is longer than %d bytes", num - 3);
		return NULL;
	}
	memcpy(str, r->line, (size_t)len);
	str[len] = '\n';
	str[len + 1] = '\0';
	return str;
}

/* ini_handler: 1 is success. */
static int take_pair(void *user, const char *section, const char *key, const char *unused)
{
	struct reader *r = user;
	const char *value = strchr(r->line, '=');

	(void)unused; /* empty: the value did not go through inih */
	if (!value)
		return fail(r, "not a pair") == 0;
	if (!r->on_pair)
		return 1;
	value++;
	while (is_blank(*value))
		value++;
	r->rc = r->on_pair(r->ctx, section, key, value, r->lineno, r->err);
	if (r->rc < 0)
		vhca_error_prefix(r->err, "%s:%u: %s", r->name, r->lineno, key);
	return r->rc == 0;
}

static int run(struct reader *r, const char *text, size_t len)
{
	int failed_line;

	r->pos = text;
	r->end = text + len;
	r->lineno = 0;
	failed_line = ini_parse_stream(read_line, r, take_pair, r);
	if (r->rc < 0)
		return r->rc;
	if (failed_line == 0)
		return 0;
	r->lineno = failed_line > 0 ? (unsigned int)failed_line : r->lineno;
	return fail(r, "neither \"[section]\" nor \"key = value\"");
}

/* Checks the size and steps over a byte order mark. */
static int check_text(const char *name, const char **text, size_t *len, struct vhca_error *err)
{
	if (*len > VHCA_INI_FILE_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_config", EFBIG, "%s", name);
	if (*len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
		*text += 3;
		*len -= 3;
	}
	return 0;
}

int vhca_ini_parse_text(const char *name, const char *text, size_t len, vhca_ini_pair_fn fn,
			void *ctx, struct vhca_error *err)
{
	struct reader r = {.name = name, .ctx = ctx, .err = err};
	int rc = check_text(name, &text, &len, err);

	if (rc < 0)
		return rc;
	/*
	 * inih goes on after a syntax error: check the whole text before the first pair has an
	 * effect.
	 */
	rc = run(&r, text, len);
	if (rc < 0)
		return rc;
	r.on_pair = fn;
	return run(&r, text, len);
}

int vhca_ini_list_sections(const char *name, const char *text, size_t len, vhca_ini_pair_fn fn,
			   void *ctx, struct vhca_error *err)
{
	struct reader r = {.name = name, .ctx = ctx, .err = err, .on_section = fn};
	int rc = check_text(name, &text, &len, err);

	return rc < 0 ? rc : run(&r, text, len);
}

int vhca_ini_read_file(const char *path, char **ret, size_t *ret_len, struct vhca_error *err)
{
	int r = vhca_read_file(path, VHCA_INI_FILE_MAX, ret, ret_len);

	if (r == -ENOENT)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_config", -r, "%s", path);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "unreadable_config", -r, "%s", path);
	return 0;
}
