// SPDX-License-Identifier: LGPL-2.1-or-later
/* Builders. Out of memory shows as a missing or null member: a reader refuses that, and nothing
 * aborts. */
#include "common/http/json.h"

#include "common/base/text.h"

void vhca_json_add(struct json_object *obj, const char *key, struct json_object *child)
{
	if (!obj || json_object_object_add(obj, key, child) < 0)
		(void)json_object_put(child);
}

void vhca_json_add_string(struct json_object *obj, const char *key, const char *value)
{
	vhca_json_add(obj, key, value ? json_object_new_string(value) : NULL);
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
