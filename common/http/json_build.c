// SPDX-License-Identifier: LGPL-2.1-or-later
/* Builders. Out of memory shows as a missing or null member: a reader refuses that, and nothing
 * aborts. */
#include <string.h>

#include <json-c/json_object_iterator.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/json.h"

void vhca_json_add(struct json_object *obj, const char *key, struct json_object *child)
{
	if (!obj || json_object_object_add(obj, key, child) < 0)
		(void)json_object_put(child);
}

/*
 * Bytes of the UTF-8 character at p, 0 if there is none: RFC 3629, without overlong forms and
 * surrogates.
 */
static size_t character(const unsigned char *p)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (n == 0 || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/*
 * Messages repeat what somebody sent, cut where the buffer ended: readers refuse a document with
 * half a character in it.
 */
static struct json_object *new_string(const char *value)
{
	VHCA_AUTO_FREE char *copy = strdup(value);
	char *p = copy;

	while (p && *p) {
		size_t n = character((const unsigned char *)p);

		if (n == 0)
			*p = '?';
		p += n ? n : 1;
	}
	return copy ? json_object_new_string(copy) : NULL;
}

void vhca_json_add_string(struct json_object *obj, const char *key, const char *value)
{
	vhca_json_add(obj, key, value ? new_string(value) : NULL);
}

void vhca_json_add_u64(struct json_object *obj, const char *key, uint64_t value)
{
	vhca_json_add(obj, key, json_object_new_uint64(value));
}

void vhca_json_add_bool(struct json_object *obj, const char *key, bool value)
{
	vhca_json_add(obj, key, json_object_new_boolean(value));
}

void vhca_json_add_guid(struct json_object *obj, const char *key, uint64_t guid)
{
	vhca_json_add_string(obj, key, guid == VHCA_GUID_NONE ? NULL : VHCA_GUID_STR(guid));
}

void vhca_json_add_pkeys(struct json_object *obj, const char *key, const uint16_t *pkeys, size_t n)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < n; i++) {
		struct json_object *pkey = json_object_new_string(VHCA_PKEY_STR(pkeys[i]));

		if (json_object_array_add(array, pkey) < 0)
			(void)json_object_put(pkey);
	}
	vhca_json_add(obj, key, array);
}

static struct json_object *cut_entry(struct json_object *entry, const char *fields)
{
	struct json_object_iterator it = json_object_iter_begin(entry),
				    end = json_object_iter_end(entry);
	struct json_object *obj = json_object_new_object();

	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *key = json_object_iter_peek_name(&it);

		if (vhca_words_have(fields, ',', key, strlen(key)))
			vhca_json_add(obj, key, json_object_get(json_object_iter_peek_value(&it)));
	}
	return obj;
}

void vhca_json_cut_list(struct json_object *list, const char *fields)
{
	for (size_t i = 0; fields && i < json_object_array_length(list); i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		(void)json_object_array_put_idx(list, i, cut_entry(entry, fields)); /* is there */
	}
}
