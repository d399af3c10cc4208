// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/json.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json_object_iterator.h>
#include <json-c/json_tokener.h>
#include <json-c/json_visit.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"

/* json_tokener_free() of json-c 0.16 crashes on NULL. */
static void free_tokener(struct json_tokener **tok)
{
	if (*tok)
		json_tokener_free(*tok);
}

__attribute__((format(printf, 2, 3))) static int bad(struct vhca_error *err, const char *fmt, ...)
{
	char text[192];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0, "body: %s", text);
	return -EINVAL;
}

/* ---- parsing ---- */

/* Length of the run at the start of text that is either all ASCII or all not. */
static size_t run_length(const char *text, size_t len)
{
	size_t n = 1;

	while (n < len && (unsigned char)text[n] >> 7 == (unsigned char)text[0] >> 7)
		n++;
	return n;
}

/* Gives json-c one run. When strict, its 0.18 takes every byte beyond ASCII in a string for a
 * control character (char is signed there); elsewhere such a byte is an error in any case. */
static struct json_object *parse_run(struct json_tokener *tok, const char *text, size_t len)
{
	bool ascii = (unsigned char)text[0] < 0x80;

	json_tokener_set_flags(tok, JSON_TOKENER_ALLOW_TRAILING_CHARS | JSON_TOKENER_VALIDATE_UTF8 |
					    (ascii ? JSON_TOKENER_STRICT : 0));
	return json_tokener_parse_ex(tok, text, (int)len);
}

/*
 * Parses one value and says where it ended. A number at the very end is complete only when json-c
 * sees what follows it: it gets a blank.
 */
static enum json_tokener_error parse_text(struct json_tokener *tok, const char *text, size_t len,
					  struct json_object **ret, size_t *ret_end)
{
	enum json_tokener_error e = json_tokener_continue;
	size_t n;

	*ret_end = 0;
	for (size_t done = 0; e == json_tokener_continue && done < len; done += n) {
		n = run_length(text + done, len - done);
		*ret = parse_run(tok, text + done, n);
		*ret_end = done + json_tokener_get_parse_end(tok);
		e = json_tokener_get_error(tok);
	}
	if (e != json_tokener_continue)
		return e;
	*ret = parse_run(tok, "\n", 1);
	*ret_end = len;
	return json_tokener_get_error(tok);
}

/* Of valid JSON: each colon that stands in no string is a member's. */
static size_t count_colons(const char *text, size_t len)
{
	bool in_string = false;
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (text[i] == ':' && !in_string)
			n++;
	}
	return n;
}

static int count_member(struct json_object *obj, int flags, struct json_object *parent,
			const char *key, size_t *index, void *arg)
{
	(void)obj;
	(void)parent;
	(void)index;
	if (key && flags != JSON_C_VISIT_SECOND)
		++*(size_t *)arg;
	return JSON_C_VISIT_RETURN_CONTINUE;
}

int vhca_json_parse(const char *text, size_t len, struct json_object **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(free_tokener) struct json_tokener *tok = NULL;
	struct json_object *obj;
	enum json_tokener_error e;
	size_t end, members = 0;

	if (len > INT_MAX)
		return bad(err, "too long");
	if (memchr(text, '\0', len)) /* json-c would take it for the end */
		return bad(err, "contains a NUL byte");
	tok = json_tokener_new_ex(VHCA_JSON_DEPTH_MAX);
	if (!tok)
		return vhca_error_no_memory(err, "body");
	e = parse_text(tok, text, len, &obj, &end);
	if (e != json_tokener_success)
		return bad(err, "no JSON: %s", json_tokener_error_desc(e));
	while (end < len && strchr(" \t\r\n", text[end]))
		end++;
	if (end < len) {
		(void)json_object_put(obj);
		return bad(err, "text after the end of the JSON value");
	}
	/* json-c keeps the last of the members of one name: then the text has more of them. */
	(void)json_c_visit(obj, 0, count_member, &members); /* fails only if count_member() does */
	if (count_colons(text, len) != members) {
		(void)json_object_put(obj);
		return bad(err, "a member is given twice");
	}
	*ret = obj;
	return 0;
}

/* ---- accessors ---- */

/* The member, or NULL if it is absent or null; fails if obj is no object. */
static int find(struct json_object *obj, const char *key, struct json_object **ret,
		struct vhca_error *err)
{
	struct json_object *member = NULL;

	if (!json_object_is_type(obj, json_type_object))
		return bad(err, "a JSON object is expected");
	(void)json_object_object_get_ex(obj, key, &member); /* leaves NULL when absent */
	*ret = member;
	return 0;
}

static int find_required(struct json_object *obj, const char *key, struct json_object **ret,
			 struct vhca_error *err)
{
	int r = find(obj, key, ret, err);

	if (r < 0)
		return r;
	return *ret ? 0 : bad(err, "%s: is missing", key);
}

static int to_string(struct json_object *member, const char *key, const char **ret,
		     struct vhca_error *err)
{
	const char *s;

	if (!json_object_is_type(member, json_type_string))
		return bad(err, "%s: a string is expected", key);
	s = json_object_get_string(member);
	if (strlen(s) != (size_t)json_object_get_string_len(member))
		return bad(err, "%s: contains a NUL character", key);
	*ret = s;
	return 0;
}

static int to_u64(struct json_object *member, const char *key, uint64_t max, uint64_t *ret,
		  struct vhca_error *err)
{
	uint64_t value;

	if (!json_object_is_type(member, json_type_int))
		return bad(err, "%s: a whole number is expected", key);
	value = json_object_get_uint64(member);
	/* json-c clamps: a negative number reads as 0 here, one beyond 64 bits as UINT64_MAX
	 * already in the parser. */
	if (json_object_get_int64(member) < 0 || value > max || value == UINT64_MAX)
		return bad(err, "%s: not in the range 0 to %" PRIu64, key, max);
	*ret = value;
	return 0;
}

int vhca_json_get_string(struct json_object *obj, const char *key, const char **ret,
			 struct vhca_error *err)
{
	struct json_object *member = NULL;
	int r = find_required(obj, key, &member, err);

	return r < 0 ? r : to_string(member, key, ret, err);
}

int vhca_json_opt_string(struct json_object *obj, const char *key, const char **ret,
			 struct vhca_error *err)
{
	struct json_object *member = NULL;
	int r = find(obj, key, &member, err);

	return r < 0 || !member ? r : to_string(member, key, ret, err);
}

int vhca_json_get_u64(struct json_object *obj, const char *key, uint64_t max, uint64_t *ret,
		      struct vhca_error *err)
{
	struct json_object *member = NULL;
	int r = find_required(obj, key, &member, err);

	return r < 0 ? r : to_u64(member, key, max, ret, err);
}

int vhca_json_opt_u64(struct json_object *obj, const char *key, uint64_t max, uint64_t *ret,
		      struct vhca_error *err)
{
	struct json_object *member = NULL;
	int r = find(obj, key, &member, err);

	return r < 0 || !member ? r : to_u64(member, key, max, ret, err);
}

int vhca_json_opt_bool(struct json_object *obj, const char *key, bool *ret, struct vhca_error *err)
{
	struct json_object *member = NULL;
	int r = find(obj, key, &member, err);

	if (r < 0 || !member)
		return r;
	if (!json_object_is_type(member, json_type_boolean))
		return bad(err, "%s: true or false is expected", key);
	*ret = json_object_get_boolean(member);
	return 0;
}

int vhca_json_get_guid(struct json_object *obj, const char *key, uint64_t *ret,
		       struct vhca_error *err)
{
	const char *text = NULL;
	int r = vhca_json_get_string(obj, key, &text, err);

	if (r < 0)
		return r;
	if (vhca_guid_parse(text, ret) < 0)
		return bad(err, "%s: \"%.40s\" is no GUID (such as \"0x0002c90300a1b2c3\")", key,
			   text);
	return 0;
}

int vhca_json_get_pkeys(struct json_object *obj, const char *key, uint16_t *ret, size_t max,
			size_t *ret_n, struct vhca_error *err)
{
	struct json_object *array = NULL;
	size_t n;
	int r = find_required(obj, key, &array, err);

	if (r < 0)
		return r;
	if (!json_object_is_type(array, json_type_array))
		return bad(err, "%s: an array of P_Keys is expected", key);
	n = json_object_array_length(array);
	if (n > max)
		return bad(err, "%s: %zu P_Keys, at most %zu are possible", key, n, max);
	for (size_t i = 0; i < n; i++) {
		struct json_object *element = json_object_array_get_idx(array, i);

		if (!json_object_is_type(element, json_type_string) ||
		    vhca_pkey_parse(json_object_get_string(element), &ret[i]) < 0)
			return bad(err, "%s[%zu]: a P_Key such as \"0x8001\" is expected", key, i);
		if (vhca_pkey_find(ret, i, ret[i]) >= 0)
			return bad(err, "%s[%zu]: %s is there twice", key, i,
				   VHCA_PKEY_STR(ret[i]));
	}
	*ret_n = n;
	return 0;
}

static bool is_listed(const char *key, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(key, *list) == 0)
			return true;
	return false;
}

int vhca_json_check_members(struct json_object *obj, const char *const *allowed,
			    struct vhca_error *err)
{
	struct json_object_iterator it, end;

	if (!json_object_is_type(obj, json_type_object))
		return bad(err, "a JSON object is expected");
	it = json_object_iter_begin(obj);
	end = json_object_iter_end(obj);
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it))
		if (!is_listed(json_object_iter_peek_name(&it), allowed))
			return bad(err, "%.40s: unknown member", json_object_iter_peek_name(&it));
	return 0;
}
