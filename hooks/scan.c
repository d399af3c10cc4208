/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hooks/scan.h"

#include <string.h>

#include "common/base/cleanup.h"

/*
 * A tokenizer with one function per state, called for each byte, so that a piece may end anywhere;
 * on top of it a stack of the open elements that knows which of them mean something to us.
 */
enum state {
	S_TEXT,	   /* between tags */
	S_LT,	   /* after '<' */
	S_BANG,	   /* after "<!", until it is clear what it opens */
	S_COMMENT, /* these three until their closing delimiter */
	S_CDATA,
	S_PI,
	S_DOCTYPE,	 /* until the '<' of "<!DOCTYPE" is closed */
	S_DOCTYPE_LT,	 /* after '<' in it */
	S_DOCTYPE_QUOTE, /* in a literal in it */
	S_NAME,		 /* in the name of a start tag */
	S_TAG,		 /* in a start tag, between attributes */
	S_EMPTY,	 /* after the '/' of "/>" */
	S_ATTR,		 /* in the name of an attribute */
	S_EQUALS,	 /* after it */
	S_QUOTE,	 /* after '=' */
	S_VALUE,	 /* in the value */
	S_END_NAME,	 /* in the name of an end tag */
	S_END,		 /* after it */
	S_CLOSED,	 /* root element ended */
	S_BROKEN,	 /* no XML */
	S_COUNT
};

/* What an element is to us, decided by its parent and its name. */
enum kind {
	K_ROOT,
	K_OTHER,
	K_DOMAIN,
	K_METADATA,
	K_UUID,
	K_DEVICES,
	K_HOSTDEV,
	K_SOURCE,
	K_ADDRESS
};

static const struct {
	enum kind parent;
	const char *name;
	enum kind kind;
	const char *type; /* value its type attribute must have; NULL = any */
} kinds[] = {
	{K_ROOT, "domain", K_DOMAIN, NULL},
	{K_DOMAIN, "metadata", K_METADATA, NULL},
	{K_DOMAIN, "uuid", K_UUID, NULL},
	{K_DOMAIN, "devices", K_DEVICES, NULL},
	{K_DEVICES, "hostdev", K_HOSTDEV, "pci"},
	{K_DEVICES, "interface", K_HOSTDEV,
	 "hostdev"}, /* the same to libvirt, plus a MAC address */
	{K_HOSTDEV, "source", K_SOURCE, NULL},
	{K_SOURCE, "address", K_ADDRESS, NULL},
};

/* The namespaces that mean something to us. */
enum ns { NS_OTHER, NS_REQUEST, NS_AWAY };

static const char *const ns_names[] = {
	[NS_REQUEST] = VHCA_SCAN_NS,
	[NS_AWAY] = VHCA_SCAN_NS_AWAY,
};

static const struct {
	const char *name;
	uint32_t max;
} address_attrs[] = {
	{"domain", UINT16_MAX},
	{"bus", UINT8_MAX},
	{"slot", 31},
	{"function", 7},
};

/* ---- characters, text, hashes ---- */

/* A table, because each byte of up to 16 MiB is asked for while libvirt waits. */
enum { C_NAME, C_SPACE, C_MARKUP };

static const uint8_t classes[256] = {
	['\0'] = C_MARKUP, ['<'] = C_MARKUP, ['>'] = C_MARKUP, ['/'] = C_MARKUP, ['='] = C_MARKUP,
	['\''] = C_MARKUP, ['"'] = C_MARKUP, ['&'] = C_MARKUP, ['!'] = C_MARKUP, ['?'] = C_MARKUP,
	[' '] = C_SPACE,   ['\t'] = C_SPACE, ['\n'] = C_SPACE, ['\r'] = C_SPACE,
};

static bool is_space(char c)
{
	return classes[(unsigned char)c] == C_SPACE;
}

static bool is_name(char c)
{
	return classes[(unsigned char)c] == C_NAME;
}

/* Not <ctype.h>, whose tables are on pages that nothing else of a run touches. */
static bool is_name_start(char c)
{
	char lower = (char)(c | 0x20);

	return (lower >= 'a' && lower <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

/* FNV-1a, 64 bits: names are compared by hash, so they need no space and have no maximum length. */
#define HASH_EMPTY UINT64_C(0xcbf29ce484222325)

static uint64_t hash_add(uint64_t hash, char c)
{
	return (hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
}

static void text_clear(struct vhca_scan_text *text)
{
	text->len = 0;
	text->buf[0] = '\0';
	text->opaque = false;
}

static void text_add(struct vhca_scan_text *text, char c)
{
	if (c == '\0' || text->len + 1 == sizeof(text->buf)) {
		text->opaque = true;
		return;
	}
	text->buf[text->len++] = c;
	text->buf[text->len] = '\0';
}

static bool text_is(const struct vhca_scan_text *text, const char *s)
{
	return !text->opaque && strcmp(text->buf, s) == 0;
}

/* ---- namespaces ---- */

static enum ns find_ns(const struct vhca_scan_text *name)
{
	for (size_t i = NS_OTHER + 1; i < VHCA_ARRAY_SIZE(ns_names); i++)
		if (text_is(name, ns_names[i]))
			return (enum ns)i;
	return NS_OTHER;
}

static enum ns ns_of(const struct vhca_scan *scan, uint64_t prefix)
{
	for (unsigned int i = scan->n_prefixes; i-- > 0;)
		if (scan->prefixes[i].hash == prefix)
			return (enum ns)scan->prefixes[i].ns;
	return NS_OTHER;
}

/* Only declarations that change the answer of ns_of() are kept. To libxml2 xmlns:p="" is none. */
static bool declare_prefix(struct vhca_scan *scan, uint64_t prefix)
{
	enum ns ns = find_ns(&scan->value);

	if (ns == ns_of(scan, prefix) || (prefix != HASH_EMPTY && text_is(&scan->value, "")))
		return true;
	if (scan->n_prefixes == VHCA_SCAN_PREFIXES_MAX)
		return false;
	scan->prefixes[scan->n_prefixes++] = (struct vhca_scan_prefix){
		.hash = prefix,
		.depth = scan->depth,
		.ns = (uint8_t)ns,
	};
	return true;
}

/* ---- elements ---- */

static struct vhca_scan_element *top(struct vhca_scan *scan)
{
	return &scan->elements[scan->depth - 1];
}

static enum kind kind_at(const struct vhca_scan *scan, unsigned int depth)
{
	return depth == 0 ? K_ROOT : scan->elements[depth - 1].kind;
}

/* Row of kinds[] for the name just read, below parent; the length of the table if there is none. */
static size_t find_kind(const struct vhca_scan *scan, enum kind parent)
{
	size_t i = 0;

	while (i < VHCA_ARRAY_SIZE(kinds) &&
	       (kinds[i].parent != parent || !text_is(&scan->word, kinds[i].name)))
		i++;
	return i;
}

/* The name of a start tag has been read; its attributes follow. To libxml2, and so to libvirt,
 * "p:1" has no prefix. */
static enum state begin_tag(struct vhca_scan *scan)
{
	enum kind parent = kind_at(scan, scan->depth);
	size_t row = scan->has_colon ? VHCA_ARRAY_SIZE(kinds) : find_kind(scan, parent);
	bool known = row < VHCA_ARRAY_SIZE(kinds);

	if (scan->depth == VHCA_SCAN_DEPTH_MAX)
		return S_BROKEN;
	if (!is_name_start(scan->word.buf[0]))
		scan->prefix = HASH_EMPTY;
	scan->depth++;
	top(scan)->hash = scan->hash;
	top(scan)->kind = known ? (uint8_t)kinds[row].kind : K_OTHER;
	scan->wanted_type = known ? kinds[row].type : NULL;
	scan->type_matches = !scan->wanted_type;
	scan->address_bad = false;
	memset(scan->address, 0, sizeof(scan->address));
	scan->may_be_marker = scan->metadata_depth && scan->depth == scan->metadata_depth + 1 &&
			      text_is(&scan->word, "away");
	memset(&scan->migration, 0, sizeof(scan->migration));
	return S_TAG;
}

/* An attribute has been read. word is its name, or the prefix of its name. */
static enum state on_attr(struct vhca_scan *scan)
{
	if (text_is(&scan->word, "xmlns"))
		return declare_prefix(scan, scan->hash) ? S_TAG : S_BROKEN;
	if (scan->has_colon)
		return S_TAG;
	/* Numbers as libvirt writes them ("0x0000"); a domain beyond 16 bits exists (VMD), but none
	 * of ours is there. */
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(address_attrs); i++)
		if (top(scan)->kind == K_ADDRESS && text_is(&scan->word, address_attrs[i].name) &&
		    (scan->value.opaque || vhca_parse_u32(scan->value.buf, 0, address_attrs[i].max,
							  &scan->address[i]) < 0))
			scan->address_bad = true;
	/* Whether the tag is a marker shows only when all its attributes are known. */
	if (scan->may_be_marker && text_is(&scan->word, "migration") && !scan->value.opaque)
		(void)vhca_uuid_parse(scan->value.buf, &scan->migration); /* else it stays zero */
	if (scan->wanted_type && text_is(&scan->word, "type"))
		scan->type_matches = text_is(&scan->value, scan->wanted_type);
	return S_TAG;
}

static void add_hostdev(struct vhca_scan *scan)
{
	if (scan->address_bad)
		return;
	if (scan->n_hostdevs == VHCA_HOOK_HOSTDEVS_MAX) {
		scan->overflow = true;
		return;
	}
	scan->hostdevs[scan->n_hostdevs++] = (struct vhca_bdf){
		.domain = (uint16_t)scan->address[0],
		.bus = (uint8_t)scan->address[1],
		.dev = (uint8_t)scan->address[2],
		.fn = (uint8_t)scan->address[3],
	};
}

/* All attributes of a start tag have been read. */
static enum state open_element(struct vhca_scan *scan)
{
	struct vhca_scan_element *el = top(scan);
	enum ns ns = scan->metadata_depth ? ns_of(scan, scan->prefix) : NS_OTHER;

	if (!scan->type_matches)
		el->kind = K_OTHER;
	/* Whatever stands in the request's namespace is a request: the agent knows better. */
	if (ns == NS_REQUEST)
		scan->has_request = true;
	if (ns == NS_AWAY && scan->may_be_marker && !scan->has_away) {
		scan->has_away = true;
		scan->away = scan->migration;
	}
	if (el->kind == K_METADATA)
		scan->metadata_depth = scan->depth;
	if (el->kind == K_UUID)
		text_clear(&scan->content);
	if (el->kind == K_ADDRESS)
		add_hostdev(scan);
	return S_TEXT;
}

static void on_uuid(struct vhca_scan *scan)
{
	struct vhca_scan_text *text = &scan->content;
	const char *start = text->buf;

	while (is_space(*start))
		start++;
	while (text->len > 0 && is_space(text->buf[text->len - 1]))
		text->buf[--text->len] = '\0';
	if (!text->opaque && !scan->has_uuid)
		scan->has_uuid = vhca_uuid_parse(start, &scan->uuid) == 0;
}

static enum state close_element(struct vhca_scan *scan)
{
	if (top(scan)->kind == K_UUID)
		on_uuid(scan);
	if (scan->metadata_depth == scan->depth)
		scan->metadata_depth = 0;
	while (scan->n_prefixes > 0 && scan->prefixes[scan->n_prefixes - 1].depth == scan->depth)
		scan->n_prefixes--;
	scan->depth--;
	return scan->depth == 0 ? S_CLOSED : S_TEXT;
}

/* ---- the tokenizer: what a byte does in each state ---- */

static enum state on_text(struct vhca_scan *scan, char c)
{
	if (c == '<')
		return S_LT;
	if (kind_at(scan, scan->depth) == K_UUID)
		text_add(&scan->content, c);
	return S_TEXT;
}

/* One byte of an element's name: word becomes the local part, prefix the hash of what stands before
 * the colon. */
static void add_to_name(struct vhca_scan *scan, char c)
{
	if (c == ':' && !scan->has_colon) {
		scan->has_colon = true;
		scan->prefix = scan->hash;
		text_clear(&scan->word);
	} else {
		text_add(&scan->word, c);
	}
	scan->hash = hash_add(scan->hash, c);
}

static enum state on_lt(struct vhca_scan *scan, char c)
{
	scan->back = S_TEXT;
	scan->matched = 0;
	text_clear(&scan->word);
	scan->has_colon = false;
	scan->hash = scan->prefix = HASH_EMPTY;
	if (c == '!')
		return S_BANG;
	if (c == '?')
		return S_PI;
	if (c == '/')
		return scan->depth ? S_END_NAME : S_BROKEN;
	if (!is_name(c))
		return S_BROKEN;
	add_to_name(scan, c);
	return S_NAME;
}

static enum state on_doctype(struct vhca_scan *scan, char c)
{
	if (c == '"' || c == '\'') {
		scan->quote = c;
		return S_DOCTYPE_QUOTE;
	}
	if (c == '<')
		return S_DOCTYPE_LT;
	if (c == '>' && --scan->nest == 0)
		return S_TEXT;
	return S_DOCTYPE;
}

static enum state on_doctype_lt(struct vhca_scan *scan, char c)
{
	scan->back = S_DOCTYPE;
	scan->matched = 0;
	text_clear(&scan->word);
	if (c == '!')
		return S_BANG;
	if (c == '?')
		return S_PI;
	return S_BROKEN;
}

static enum state on_doctype_quote(struct vhca_scan *scan, char c)
{
	return c == scan->quote ? S_DOCTYPE : S_DOCTYPE_QUOTE;
}

/* "<!" opens a comment, CDATA or the DOCTYPE; inside of the latter, a comment or a declaration. */
static enum state on_bang(struct vhca_scan *scan, char c)
{
	text_add(&scan->word, c);
	if (text_is(&scan->word, "-"))
		return S_BANG;
	if (text_is(&scan->word, "--"))
		return S_COMMENT;
	if (scan->back == S_DOCTYPE) {
		scan->nest++;
		return on_doctype(scan, c);
	}
	if (text_is(&scan->word, "[CDATA[")) {
		scan->content.opaque = true;
		return scan->depth ? S_CDATA : S_BROKEN;
	}
	if (text_is(&scan->word, "DOCTYPE")) {
		scan->nest = 1;
		return scan->depth ? S_BROKEN : S_DOCTYPE;
	}
	if (strncmp("[CDATA[", scan->word.buf, scan->word.len) == 0 ||
	    strncmp("DOCTYPE", scan->word.buf, scan->word.len) == 0)
		return S_BANG;
	return S_BROKEN;
}

/* Skips to a delimiter whose bytes but the last are equal ("-->", "]]>", "?>"). */
static enum state skip_to(struct vhca_scan *scan, const char *delimiter, char c)
{
	if (c == delimiter[scan->matched])
		scan->matched++;
	else if (c != delimiter[0])
		scan->matched = 0;
	return delimiter[scan->matched] ? (enum state)scan->state : (enum state)scan->back;
}

static enum state on_comment(struct vhca_scan *scan, char c)
{
	return skip_to(scan, "-->", c);
}

static enum state on_cdata(struct vhca_scan *scan, char c)
{
	return skip_to(scan, "]]>", c);
}

static enum state on_pi(struct vhca_scan *scan, char c)
{
	return skip_to(scan, "?>", c);
}

static enum state on_tag(struct vhca_scan *scan, char c)
{
	if (is_space(c))
		return S_TAG;
	if (c == '/')
		return S_EMPTY;
	if (c == '>')
		return open_element(scan);
	if (!is_name(c))
		return S_BROKEN;
	text_clear(&scan->word);
	text_add(&scan->word, c);
	scan->has_colon = false;
	scan->hash = HASH_EMPTY;
	return S_ATTR;
}

static enum state on_name(struct vhca_scan *scan, char c)
{
	if (!is_name(c))
		return begin_tag(scan) == S_TAG ? on_tag(scan, c) : S_BROKEN;
	add_to_name(scan, c);
	return S_NAME;
}

static enum state on_empty(struct vhca_scan *scan, char c)
{
	if (c != '>')
		return S_BROKEN;
	(void)open_element(scan); /* its S_TEXT is overtaken at once */
	return close_element(scan);
}

static enum state on_equals(struct vhca_scan *scan, char c)
{
	if (c == '=') {
		text_clear(&scan->value);
		return S_QUOTE;
	}
	return is_space(c) ? S_EQUALS : S_BROKEN;
}

/* Of an attribute, word keeps what stands before the colon and hash what follows it. */
static enum state on_attr_name(struct vhca_scan *scan, char c)
{
	if (!is_name(c))
		return on_equals(scan, c);
	if (c == ':' && !scan->has_colon)
		scan->has_colon = true;
	else if (scan->has_colon)
		scan->hash = hash_add(scan->hash, c);
	else
		text_add(&scan->word, c);
	return S_ATTR;
}

static enum state on_quote(struct vhca_scan *scan, char c)
{
	if (c == '"' || c == '\'') {
		scan->quote = c;
		return S_VALUE;
	}
	return is_space(c) ? S_QUOTE : S_BROKEN;
}

static enum state on_value(struct vhca_scan *scan, char c)
{
	if (c == scan->quote)
		return on_attr(scan);
	if (c == '<')
		return S_BROKEN;
	text_add(&scan->value, c);
	return S_VALUE;
}

static enum state on_end(struct vhca_scan *scan, char c)
{
	if (c == '>')
		return scan->hash == top(scan)->hash ? close_element(scan) : S_BROKEN;
	return is_space(c) ? S_END : S_BROKEN;
}

static enum state on_end_name(struct vhca_scan *scan, char c)
{
	if (!is_name(c))
		return on_end(scan, c);
	add_to_name(scan, c);
	return S_END_NAME;
}

static enum state (*const on_byte[])(struct vhca_scan *scan, char c) = {
	[S_TEXT] = on_text,
	[S_LT] = on_lt,
	[S_BANG] = on_bang,
	[S_COMMENT] = on_comment,
	[S_CDATA] = on_cdata,
	[S_PI] = on_pi,
	[S_DOCTYPE] = on_doctype,
	[S_DOCTYPE_LT] = on_doctype_lt,
	[S_DOCTYPE_QUOTE] = on_doctype_quote,
	[S_NAME] = on_name,
	[S_TAG] = on_tag,
	[S_EMPTY] = on_empty,
	[S_ATTR] = on_attr_name,
	[S_EQUALS] = on_equals,
	[S_QUOTE] = on_quote,
	[S_VALUE] = on_value,
	[S_END_NAME] = on_end_name,
	[S_END] = on_end,
};
_Static_assert(VHCA_ARRAY_SIZE(on_byte) == S_CLOSED, "one function per state that goes on");

void vhca_scan_init(struct vhca_scan *scan)
{
	memset(scan, 0, sizeof(*scan)); /* S_TEXT, nothing found */
}

/* The byte that ends what the scanner is skipping; -1 if it must see each byte. */
static int awaited_byte(const struct vhca_scan *scan)
{
	if (scan->state == S_TEXT)
		return kind_at(scan, scan->depth) == K_UUID ? -1 : '<';
	if (scan->matched)
		return -1;
	if (scan->state == S_COMMENT)
		return '-';
	if (scan->state == S_CDATA)
		return ']';
	return scan->state == S_PI ? '?' : -1;
}

/* Bytes at data that change nothing: most of a long document, and memchr() is fast. */
static size_t idle_bytes(const struct vhca_scan *scan, const char *data, size_t len)
{
	int awaited = awaited_byte(scan);
	const char *found;

	if (awaited < 0)
		return 0;
	found = memchr(data, awaited, len);
	return found ? (size_t)(found - data) : len;
}

bool vhca_scan_feed(struct vhca_scan *scan, const char *data, size_t len)
{
	size_t i = 0;

	while (i < len && scan->state < S_CLOSED) {
		i += idle_bytes(scan, data + i, len - i);
		if (i < len)
			scan->state = (uint8_t)on_byte[scan->state](scan, data[i++]);
	}
	return scan->state < S_CLOSED;
}

bool vhca_scan_is_complete(const struct vhca_scan *scan)
{
	return scan->state == S_CLOSED && !scan->overflow;
}
