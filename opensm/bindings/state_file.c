/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/state_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/text.h"

#define HEADER "vhcasm-state 2"

/* ---- writing ---- */

/*
 * The whole file is written for each burst of reports: by stdio, 46256 bindings took 32 ms of
 * OpenSM's processor. A line of bounded length is put without a look at the room, which is reserved
 * before.
 */
struct text {
	char *buf;
	size_t len, size;
	bool failed; /* out of memory */
};

static void text_done(struct text *t)
{
	free(t->buf);
}

static bool reserve(struct text *t, size_t more)
{
	size_t size = t->size ? t->size : 4096;
	char *buf;

	while (size - t->len < more)
		size *= 2;
	if (t->failed || size == t->size)
		return !t->failed;
	buf = realloc(t->buf, size);
	t->failed = !buf;
	if (buf) {
		t->buf = buf;
		t->size = size;
	}
	return !t->failed;
}

static void put_string(struct text *t, const char *s)
{
	size_t n = strlen(s);

	memcpy(t->buf + t->len, s, n);
	t->len += n;
}

static void put_hex(struct text *t, uint64_t value, unsigned int digits)
{
	char *p = t->buf + t->len;

	*p++ = '0';
	*p++ = 'x';
	for (unsigned int shift = digits * 4; shift > 0; shift -= 4)
		*p++ = "0123456789abcdef"[value >> (shift - 4) & 15];
	t->len += 2 + digits;
}

static void put_decimal(struct text *t, uint64_t value)
{
	char digits[21] = "";
	char *p = digits + sizeof(digits) - 1;

	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	put_string(t, p);
}

/* More than any line without its keys, and more than a key, takes. */
#define LINE_ROOM 128
#define KEY_ROOM  8

static bool reserve_line(struct text *t, size_t keys)
{
	return reserve(t, LINE_ROOM + keys * KEY_ROOM);
}

static void put_pkeys(struct text *t, const uint16_t *pkeys, size_t n)
{
	if (n == 0)
		put_string(t, " -");
	for (size_t i = 0; i < n; i++) {
		put_string(t, i ? "," : " ");
		put_hex(t, pkeys[i], 4);
	}
	put_string(t, "\n");
}

/*
 * "b VGUID EPOCH PORT", as of a tombstone, "t" or "n"; "v", of a tombstone "w", if the vGUID's keys
 * are, or were, at a port of its own; "h" if they were before it was bound anew.
 */
static void put_owner(struct text *t, const char *word, const struct vhca_osm_binding *b)
{
	put_string(t, word);
	put_hex(t, b->vguid, 16);
	put_string(t, " ");
	put_decimal(t, b->epoch);
	put_string(t, " ");
	put_hex(t, b->port_guid, 16);
}

static size_t put_tombstones(struct text *t, const struct vhca_osm_table *table)
{
	const struct vhca_osm_binding *b = NULL;
	size_t n = 0;

	for (; (b = vhca_osm_table_next_tombstone(table, b)) && reserve_line(t, 0); n++) {
		const char *word = b->own_port ? "w " : "t ";

		put_owner(t, b->never_bound ? "n " : word, b);
		put_string(t, "\n");
	}
	return n;
}

static size_t put_bindings(struct text *t, const struct vhca_osm_table *table)
{
	for (size_t i = 0; i < vhca_osm_table_records(table); i++) {
		const struct vhca_osm_binding *b = vhca_osm_table_record(table, i);

		if (b->withdrawn || !reserve_line(t, b->n_pkeys))
			continue;
		put_owner(t, b->own_port ? "v " : b->had_port ? "h " : "b ", b);
		put_string(t, " ");
		put_decimal(t, b->gid_index);
		put_string(t, " ");
		put_decimal(t, b->lid);
		put_pkeys(t, b->pkeys, b->n_pkeys);
	}
	return vhca_osm_table_bindings(table);
}

/*
 * "o VGUID PORT", of the other party; PORT 0 of a tombstone that has an owner, and no other one.
 * "u VGUID" or "d VGUID", of one whose owner is not known.
 */
static size_t put_owners(struct text *t, const struct vhca_osm_table *table)
{
	size_t lines = 0;

	for (size_t i = 0; i < vhca_osm_table_records(table); i++) {
		const struct vhca_osm_binding *b = vhca_osm_table_record(table, i);
		const struct vhca_osm_owner *owner = &b->owner;

		if ((b->withdrawn ? owner->kept : owner->other_port != 0) && reserve_line(t, 0)) {
			put_string(t, "o ");
			put_hex(t, b->vguid, 16);
			put_string(t, " ");
			put_hex(t, owner->other_port, 16);
			put_string(t, "\n");
			lines++;
		}
		if (owner->doubt != VHCA_OSM_DOUBT_NONE && reserve_line(t, 0)) {
			put_string(t, owner->doubt == VHCA_OSM_DOUBT_STALE ? "u " : "d ");
			put_hex(t, b->vguid, 16);
			put_string(t, "\n");
			lines++;
		}
	}
	return lines;
}

static bool is_declared(const struct vhca_osm_need *need)
{
	return need->declared;
}

static bool is_inherited(const struct vhca_osm_need *need)
{
	return need->inherited;
}

/* One line for each port with keys of this kind. */
static size_t put_ports(struct text *t, const struct vhca_osm_table *table, const char *word,
			bool (*has)(const struct vhca_osm_need *need))
{
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	size_t lines = 0;

	for (size_t i = 0; i < vhca_osm_table_ports(table); i++) {
		const struct vhca_osm_port *p = vhca_osm_table_port_at(table, i);
		size_t n = 0;

		for (size_t k = 0; k < p->n_needs; k++)
			if (has(&p->needs[k]))
				pkeys[n++] = p->needs[k].pkey;
		if (n == 0 || !reserve_line(t, n))
			continue;
		put_string(t, word);
		put_hex(t, p->guid, 16);
		put_pkeys(t, pkeys, n);
		lines++;
	}
	return lines;
}

static size_t put_pins(struct text *t, const struct vhca_osm_table *table)
{
	for (size_t i = 0; i < vhca_osm_table_pins(table); i++) {
		const struct vhca_osm_pin *pin = vhca_osm_table_pin_at(table, i);

		if (!reserve_line(t, 0))
			break;
		put_string(t, "p ");
		put_hex(t, pin->guid, 16);
		put_string(t, " ");
		put_string(t, pin->node);
		put_string(t, "\n");
	}
	return vhca_osm_table_pins(table);
}

int vhca_osm_state_format(const struct vhca_osm_table *table, char **ret_text, size_t *ret_len)
{
	VHCA_CLEANUP(text_done) struct text t = {.buf = NULL};
	size_t records;

	if (reserve_line(&t, 0))
		put_string(&t, HEADER "\n");
	records = put_tombstones(&t, table);
	records += put_bindings(&t, table);
	records += put_owners(&t, table);
	records += put_ports(&t, table, "m ", is_declared);
	records += put_ports(&t, table, "i ", is_inherited);
	records += put_pins(&t, table);
	if (!reserve_line(&t, 0))
		return -ENOMEM;
	put_string(&t, "end ");
	put_decimal(&t, records);
	put_string(&t, "\n");
	t.buf[t.len] = '\0';
	*ret_len = t.len;
	*ret_text = vhca_steal_ptr(&t.buf);
	return 0;
}

/* ---- reading ---- */

#define FIELDS_MAX 7

struct line {
	size_t n;
	const char *field[FIELDS_MAX + 1];
};

static int parse_pkeys(const char *text, uint16_t *ret, size_t *ret_n)
{
	VHCA_AUTO_FREE char *copy = strdup(text);
	char *rest = copy, *word;
	size_t n = 0;

	if (!copy)
		return -ENOMEM;
	*ret_n = 0;
	if (strcmp(text, "-") == 0)
		return 0;
	while ((word = strsep(&rest, ","))) {
		if (n == VHCA_OSM_PORT_PKEYS_MAX || vhca_pkey_parse(word, &ret[n]) < 0)
			return -EINVAL;
		n++;
	}
	*ret_n = n;
	return 0;
}

static int parse_owner(const struct line *l, struct vhca_osm_binding *ret)
{
	if (vhca_guid_parse(l->field[1], &ret->vguid) < 0 ||
	    vhca_parse_u64(l->field[2], 10, UINT64_MAX, &ret->epoch) < 0 ||
	    vhca_parse_u64(l->field[3], 16, UINT64_MAX, &ret->port_guid) < 0)
		return -EINVAL;
	return ret->vguid ? 0 : -EINVAL;
}

static int load_tombstone(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	struct vhca_osm_binding b = {.never_bound = l->field[0][0] == 'n',
				     .own_port = l->field[0][0] == 'w'};

	if (l->n != 4 || parse_owner(l, &b) < 0 || vhca_osm_table_find(t, b.vguid))
		return -EINVAL;
	return vhca_osm_table_add_tombstone(t, &b, err);
}

static int load_binding(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	struct vhca_osm_binding b = {.pkeys = pkeys,
				     .own_port = l->field[0][0] == 'v',
				     .had_port = l->field[0][0] == 'h'};
	uint32_t gid_index, lid;
	size_t n;

	if (l->n != 7 || parse_owner(l, &b) < 0 || vhca_osm_table_find(t, b.vguid) ||
	    vhca_parse_u32(l->field[4], 10, UINT16_MAX, &gid_index) < 0 ||
	    vhca_parse_u32(l->field[5], 10, UINT16_MAX, &lid) < 0 ||
	    parse_pkeys(l->field[6], pkeys, &n) < 0)
		return -EINVAL;
	b.gid_index = (uint16_t)gid_index;
	b.lid = (uint16_t)lid;
	b.n_pkeys = (uint16_t)n;
	return vhca_osm_table_put(t, &b, VHCA_OSM_PORT_PKEYS_MAX, err);
}

/* Of a record that stands before, and was bound; NULL = there is none. */
static const struct vhca_osm_binding *parse_owned(const struct line *l, size_t fields,
						  const struct vhca_osm_table *t)
{
	const struct vhca_osm_binding *b;
	uint64_t vguid;

	if (l->n != fields || vhca_guid_parse(l->field[1], &vguid) < 0)
		return NULL;
	b = vhca_osm_table_find(t, vguid);
	return b && !b->never_bound ? b : NULL;
}

static int load_other(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	const struct vhca_osm_binding *b = parse_owned(l, 3, t);
	struct vhca_osm_owner owner;

	(void)err;
	if (!b || b->owner.kept || b->owner.other_port)
		return -EINVAL;
	owner = (struct vhca_osm_owner){.kept = b->withdrawn, .doubt = b->owner.doubt};
	if (vhca_parse_u64(l->field[2], 16, UINT64_MAX, &owner.other_port) < 0 ||
	    (!owner.kept && !owner.other_port))
		return -EINVAL;
	vhca_osm_table_set_owner(t, b->vguid, &owner);
	return 0;
}

static int load_doubt(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	const struct vhca_osm_binding *b = parse_owned(l, 2, t);
	struct vhca_osm_owner owner;

	(void)err;
	if (!b || b->owner.doubt != VHCA_OSM_DOUBT_NONE)
		return -EINVAL;
	owner = b->owner;
	owner.doubt = l->field[0][0] == 'u' ? VHCA_OSM_DOUBT_STALE : VHCA_OSM_DOUBT_DISPUTED;
	vhca_osm_table_set_owner(t, b->vguid, &owner);
	return 0;
}

static int parse_port(const struct line *l, uint64_t *ret_guid, uint16_t *ret_pkeys, size_t *ret_n)
{
	if (l->n != 3 || vhca_guid_parse(l->field[1], ret_guid) < 0 || *ret_guid == 0)
		return -EINVAL;
	return parse_pkeys(l->field[2], ret_pkeys, ret_n);
}

static int load_member(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	uint64_t guid;
	size_t n;

	if (parse_port(l, &guid, pkeys, &n) < 0)
		return -EINVAL;
	return vhca_osm_table_declare(t, guid, pkeys, n, VHCA_OSM_PORT_PKEYS_MAX, err);
}

static int load_inherited(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
	uint64_t guid;
	size_t n;

	if (parse_port(l, &guid, pkeys, &n) < 0)
		return -EINVAL;
	return vhca_osm_table_inherit(t, guid, pkeys, n, err);
}

static int load_pin(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	uint64_t guid;

	if (l->n != 3 || vhca_guid_parse(l->field[1], &guid) < 0 || guid == 0 ||
	    vhca_osm_table_pinned(t, guid))
		return -EINVAL;
	return vhca_osm_table_pin(t, guid, l->field[2], err);
}

static int load_line(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err)
{
	static const struct {
		const char *word;
		int (*load)(const struct line *l, struct vhca_osm_table *t, struct vhca_error *err);
	} kinds[] = {{"t", load_tombstone}, {"w", load_tombstone}, {"n", load_tombstone},
		     {"b", load_binding},   {"v", load_binding},   {"h", load_binding},
		     {"m", load_member},    {"i", load_inherited}, {"o", load_other},
		     {"u", load_doubt},	    {"d", load_doubt},	   {"p", load_pin}};

	for (size_t i = 0; l->n && i < VHCA_ARRAY_SIZE(kinds); i++)
		if (strcmp(l->field[0], kinds[i].word) == 0)
			return kinds[i].load(l, t, err);
	return -EINVAL;
}

static bool is_end(const struct line *l, size_t records)
{
	uint64_t n;

	return l->n == 2 && strcmp(l->field[0], "end") == 0 &&
	       vhca_parse_u64(l->field[1], 10, SIZE_MAX, &n) == 0 && n == records;
}

static int damaged(struct vhca_error *err, size_t line, const char *what)
{
	int r = vhca_error_set(err, VHCA_ERR_INVALID, "state_damaged", EINVAL, "line %zu: %s", line,
			       what);

	vhca_error_hint(err, "restore the file, or move it away: OpenSM then starts without "
			     "bindings and the agents must report again");
	return r;
}

/* What stands there may be right, and OpenSM's option another one than when it was written. */
static int refuse_line(struct vhca_error *err, size_t line, const struct vhca_error *why)
{
	int r;

	if (!vhca_error_is(why, VHCA_CODE_BOTH_MEMBERSHIPS))
		return damaged(err, line, why->kind ? why->msg : "not understood");
	r = vhca_error_set(err, why->kind, "both_memberships", 0, "line %zu: %s", line, why->msg);
	vhca_error_hint(err, "allow_both_pkeys was TRUE in opensm.conf when this was reported: set "
			     "it again, or have one of the two withdrawn before");
	return r;
}

int vhca_osm_state_parse(char *text, struct vhca_osm_table *t, struct vhca_error *err)
{
	struct vhca_error why = VHCA_ERROR_INIT;
	char *save = NULL, *line = strtok_r(text, "\n", &save);
	size_t number = 1;

	if (!line || strcmp(line, HEADER) != 0)
		return damaged(err, 1, "does not begin with \"" HEADER "\"");
	while ((line = strtok_r(NULL, "\n", &save))) {
		struct line l = {0};
		char *word;

		number++;
		while (l.n <= FIELDS_MAX && (word = strsep(&line, " ")))
			l.field[l.n++] = word;
		if (is_end(&l, number - 2))
			return strtok_r(NULL, "\n", &save)
				       ? damaged(err, number + 1, "text after the end")
				       : 0;
		if (load_line(&l, t, &why) < 0)
			return refuse_line(err, number, &why);
	}
	return damaged(err, number, "the end is missing");
}

/* ---- the file ---- */

int vhca_osm_state_load(const char *path, struct vhca_osm_table *t, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	int r = vhca_read_state(path, VHCA_OSM_STATE_MAX, &text, err);

	if (r < 0)
		return r == -ENOENT ? 1 : r;
	r = vhca_osm_state_parse(text, t, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", path);
	return r;
}

int vhca_osm_state_save(const char *path, const struct vhca_osm_table *t)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;
	int r = vhca_osm_state_format(t, &text, &len);

	return r < 0 ? r : vhca_write_file_atomic(path, text, len, 0640);
}
