/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/base_file.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"

struct parser {
	const char *name;
	size_t line;
	bool open; /* inside a statement whose ';' has not come yet */
	bool last; /* no further statement on this line */
	struct vhca_osm_base *base;
	struct vhca_error *err;
};

static int bad(const struct parser *p, const char *what, const char *word)
{
	return vhca_error_set(p->err, VHCA_ERR_INVALID, "bad_base_file", EINVAL, "%s:%zu: %s%s%s",
			      p->name, p->line, what, word ? ": " : "", word ? word : "");
}

/* Only these are blanks to OpenSM; a carriage return is not. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char *strip(char *s)
{
	size_t n;

	while (is_blank(*s))
		s++;
	n = strlen(s);
	while (n && is_blank(s[n - 1]))
		s[--n] = '\0';
	return s;
}

/* Cuts "name = value" in two; *ret_value is NULL without a '='. Returns the name. */
static char *cut_pair(char *token, char **ret_value)
{
	char *eq = strchr(token, '=');

	*ret_value = NULL;
	if (eq) {
		*eq = '\0';
		*ret_value = strip(eq + 1);
	}
	return strip(token);
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* OpenSM reads a leading 0 as octal; here that is refused rather than understood differently. */
static int read_number(const char *value, uint64_t max, uint64_t *ret)
{
	if (!value || (value[0] == '0' && isdigit((unsigned char)value[1])))
		return -EINVAL;
	return vhca_parse_u64(value, 0, max, ret);
}

static int parse_header_flag(const struct parser *p, char *token, uint8_t *sl)
{
	static const char *const numbers[] = {"mtu",	"rate",	     "scope", "Q_Key",
					      "TClass", "FlowLabel", NULL};
	static const char *const memberships[] = {"full", "limited", "both", NULL};
	char *value, *flag = cut_pair(token, &value);
	uint64_t n;

	if (strcmp(flag, "ipoib") == 0)
		return value ? bad(p, "flag takes no value", flag) : 0;
	if (strcmp(flag, "defmember") == 0)
		return value && is_one_of(value, memberships)
			       ? 0
			       : bad(p, "defmember must be full, limited or both", value);
	if (strcmp(flag, "sl") == 0) {
		if (read_number(value, 15, &n) < 0)
			return bad(p, "sl must be 0..15", value);
		*sl = (uint8_t)n;
		return 0;
	}
	if (is_one_of(flag, numbers))
		return read_number(value, UINT32_MAX, &n) < 0 ? bad(p, "flag needs a number", flag)
							      : 0;
	if (strcmp(flag, "indx0") == 0)
		return bad(p, "not supported, it would move keys that VFs map by index", flag);
	return bad(p, "unknown partition flag", flag);
}

static int add_prtn(const struct parser *p, uint16_t pkey_base, uint8_t sl)
{
	struct vhca_osm_base *base = p->base;
	struct vhca_osm_base_prtn *prtns;

	if (base->n == VHCA_OSM_BASE_PRTNS_MAX)
		return bad(p, "too many partitions", NULL);
	prtns = reallocarray(base->prtns, base->n + 1, sizeof(*prtns));
	if (!prtns)
		return vhca_error_no_memory(p->err, p->name);
	base->prtns = prtns;
	prtns[base->n++] = (struct vhca_osm_base_prtn){.pkey_base = pkey_base, .sl = sl};
	return 0;
}

static int parse_header(const struct parser *p, char *header)
{
	char *save = NULL, *token = strtok_r(header, ",", &save), *value;
	const char *key;
	uint64_t pkey;
	uint8_t sl = 0;

	if (!token)
		return bad(p, "no partition definition found", NULL);
	key = cut_pair(token, &value);
	if (value)
		key = value;
	if (read_number(key, UINT16_MAX, &pkey) < 0 || vhca_pkey_base((uint16_t)pkey) == 0)
		return bad(p, "a partition must have a number (name=0x8001)", key);
	while ((token = strtok_r(NULL, ",", &save))) {
		int r = parse_header_flag(p, token, &sl);

		if (r < 0)
			return r;
	}
	return add_prtn(p, vhca_pkey_base((uint16_t)pkey), sl);
}

static int parse_member(const struct parser *p, char *token)
{
	static const char *const names[] = {"NONE",	   "ALL",  "ALL_CAS", "ALL_SWITCHES",
					    "ALL_ROUTERS", "SELF", NULL};
	static const char *const memberships[] = {"full", "limited", "both", NULL};
	char *membership, *name = cut_pair(token, &membership);
	uint64_t guid;

	if (membership && !is_one_of(membership, memberships))
		return bad(p, "membership must be full, limited or both", membership);
	if (is_one_of(name, names))
		return 0;
	if (read_number(name, UINT64_MAX, &guid) < 0 || guid == 0)
		return bad(p, "not a port GUID", name);
	return 0;
}

/*
 * "mgid=GID,flags": OpenSM reads the rest of the line as flags of this multicast group; a wrong one
 * is no error there.
 */
static int parse_mgid(const struct parser *p, char *body)
{
	char *rest = body, *gid;
	const char *name = cut_pair(strsep(&rest, ","), &gid);
	struct in6_addr addr;

	if (strcmp(name, "mgid") != 0 || !gid || inet_pton(AF_INET6, gid, &addr) != 1 ||
	    addr.s6_addr[0] != 0xff)
		return bad(p, "not a multicast GID", gid ? gid : name);
	if (!p->last)
		return bad(p, "nothing may follow on the line of an mgid", NULL);
	/* Otherwise OpenSM looks for flags behind the semicolon and reads on in an old line. */
	if (!p->open && !rest)
		return bad(p, "an mgid at the end of a statement needs a flag", gid);
	return 0;
}

static int parse_members(const struct parser *p, char *body)
{
	char *save = NULL;

	body = strip(body);
	if (strncmp(body, "mgid", 4) == 0)
		return parse_mgid(p, body);
	for (char *token = strtok_r(body, ",", &save); token; token = strtok_r(NULL, ",", &save)) {
		int r = *strip(token) ? parse_member(p, token) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* One statement, or the part of it that stands on this line. */
static int parse_segment(struct parser *p, char *segment, bool ends)
{
	char *body = segment;

	if (!p->open) {
		char *colon = strchr(segment, ':');
		int r;

		if (!colon)
			return bad(p, "no partition definition found", strip(segment));
		*colon = '\0';
		body = colon + 1;
		r = parse_header(p, segment);
		if (r < 0)
			return r;
	}
	/* OpenSM takes what follows such a semicolon for members of the same partition. */
	if (body == segment && *strip(body) == '\0')
		return bad(p, "a semicolon must not stand alone", NULL);
	p->open = !ends;
	return parse_members(p, body);
}

static int parse_line(struct parser *p, char *line)
{
	char *end;

	if (strlen(line) > VHCA_OSM_BASE_LINE_MAX)
		return bad(p, "line too long", NULL);
	line[strcspn(line, "#")] = '\0';
	do {
		int r;

		end = strchr(line, ';');
		if (end)
			*end = '\0';
		if (!end && *strip(line) == '\0')
			return 0;
		p->last = !end || *strip(end + 1) == '\0';
		r = parse_segment(p, line, end != NULL);
		if (r < 0)
			return r;
		line = end ? end + 1 : line;
	} while (end);
	return 0;
}

static int parse_lines(struct parser *p, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		int r;

		p->line++;
		r = parse_line(p, line);
		if (r < 0)
			return r;
	}
	return p->open ? bad(p, "the last statement does not end with ';'", NULL) : 0;
}

static char *with_newline(const char *text)
{
	size_t len = strlen(text);
	char *copy = calloc(1, len + 2);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	if (len && copy[len - 1] != '\n')
		copy[len] = '\n';
	return copy;
}

int vhca_osm_base_parse(const char *name, const char *text, struct vhca_osm_base *ret,
			struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_osm_base_done)
	struct vhca_osm_base base = {.text = with_newline(text)};
	VHCA_AUTO_FREE char *scratch = strdup(text);
	struct parser p = {.name = name, .base = &base, .err = err};
	int r;

	if (!base.text || !scratch)
		return vhca_error_no_memory(err, name);
	if (strncmp(text, VHCA_OSM_GENERATED, strlen(VHCA_OSM_GENERATED)) == 0)
		return bad(&p, "written by libvhcasm.so: put the administrator's own file back",
			   NULL);
	r = parse_lines(&p, scratch);
	if (r < 0)
		return r;
	*ret = base;
	base = (struct vhca_osm_base){0};
	return 0;
}

int vhca_osm_base_load(const char *path, struct vhca_osm_base *ret, struct stat *ret_stat,
		       struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;
	int r;

	/* Read after stat: a change in between is seen as a change the next time. */
	if (stat(path, ret_stat) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_base_file", errno, "%s", path);
	r = vhca_read_file(path, VHCA_OSM_BASE_MAX, &text, &len);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_base_file", -r, "%s", path);
	if (strlen(text) != len)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_base_file", 0, "%s: NUL byte",
				      path);
	return vhca_osm_base_parse(path, text, ret, err);
}

void vhca_osm_base_done(struct vhca_osm_base *base)
{
	free(base->text);
	free(base->prtns);
	*base = (struct vhca_osm_base){0};
}

const struct vhca_osm_base_prtn *vhca_osm_base_find(const struct vhca_osm_base *base,
						    uint16_t pkey_base)
{
	for (size_t i = base->n; i-- > 0;)
		if (base->prtns[i].pkey_base == pkey_base)
			return &base->prtns[i];
	return NULL;
}
