/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl/cli/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object_iterator.h>

struct json_object *vhca_view_member(struct json_object *obj, const char *key)
{
	struct json_object *member = NULL;

	if (json_object_is_type(obj, json_type_object))
		(void)json_object_object_get_ex(obj, key, &member); /* leaves NULL if absent */
	return member;
}

bool vhca_view_has_member(struct json_object *array, const char *key)
{
	for (size_t i = 0; i < vhca_view_count(array); i++) {
		struct json_object *item = json_object_array_get_idx(array, i);

		if (json_object_is_type(item, json_type_object) &&
		    json_object_object_get_ex(item, key, NULL))
			return true;
	}
	return false;
}

static const char *text_of(struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_boolean:
		return json_object_get_boolean(value) ? "yes" : "no";
	case json_type_string:
	case json_type_int:
	case json_type_double:
		return json_object_get_string(value);
	case json_type_null:
	case json_type_object:
	case json_type_array:
		break;
	}
	return "";
}

const char *vhca_view_text(struct json_object *obj, const char *key)
{
	return text_of(vhca_view_member(obj, key));
}

uint64_t vhca_view_u64(struct json_object *obj, const char *key)
{
	struct json_object *member = vhca_view_member(obj, key);

	return json_object_is_type(member, json_type_int) ? json_object_get_uint64(member) : 0;
}

bool vhca_view_is_true(struct json_object *obj, const char *key)
{
	struct json_object *member = vhca_view_member(obj, key);

	return json_object_is_type(member, json_type_boolean) && json_object_get_boolean(member);
}

struct json_object *vhca_view_array(struct json_object *obj, const char *key)
{
	struct json_object *member = vhca_view_member(obj, key);

	return json_object_is_type(member, json_type_array) ? member : NULL;
}

size_t vhca_view_count(struct json_object *array)
{
	return array ? json_object_array_length(array) : 0;
}

const char *vhca_view_item_text(struct json_object *array, size_t i)
{
	return text_of(json_object_array_get_idx(array, i));
}

bool vhca_view_has(struct json_object *array, const char *key, const char *text)
{
	for (size_t i = 0; i < vhca_view_count(array); i++) {
		struct json_object *item = json_object_array_get_idx(array, i);

		if (strcmp(key ? vhca_view_text(item, key) : text_of(item), text) == 0)
			return true;
	}
	return false;
}

void vhca_view_duration(struct vhca_strbuf *sb, uint64_t ms)
{
	uint64_t s = ms / 1000;

	if (ms < 10000)
		vhca_strbuf_add(sb, "%" PRIu64 ".%" PRIu64 "s", s, ms % 1000 / 100);
	else if (s < 60)
		vhca_strbuf_add(sb, "%" PRIu64 "s", s);
	else if (s < 3600)
		vhca_strbuf_add(sb, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		vhca_strbuf_add(sb, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		vhca_strbuf_add(sb, "%" PRIu64 "d%02" PRIu64 "h", s / 86400, s / 3600 % 24);
}

void vhca_view_time(struct vhca_strbuf *sb, uint64_t wall_ms)
{
	time_t t = (time_t)(wall_ms / 1000);
	char text[32];
	struct tm tm;

	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%F %T", &tm) > 0)
		vhca_strbuf_add(sb, "%s", text);
}

void vhca_view_strings(struct vhca_strbuf *sb, struct json_object *array, size_t max)
{
	size_t n = vhca_view_count(array);

	for (size_t i = 0; i < n && i < max; i++)
		vhca_strbuf_add(sb, "%s%.40s", i ? " " : "", vhca_view_item_text(array, i));
	if (n > max)
		vhca_strbuf_add(sb, " +%zu", n - max);
}

void vhca_view_counts(struct vhca_strbuf *sb, struct json_object *obj)
{
	struct json_object_iterator it, end;

	if (!json_object_is_type(obj, json_type_object))
		return;
	it = json_object_iter_begin(obj);
	end = json_object_iter_end(obj);
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *name = json_object_iter_peek_name(&it);

		if (vhca_view_u64(obj, name))
			vhca_strbuf_add(sb, "%s%s %.32s", sb->len ? ", " : "",
					vhca_view_text(obj, name), name);
	}
}

void vhca_view_owner(struct vhca_strbuf *sb, struct json_object *obj)
{
	const char *domain = vhca_view_text(obj, "domain_name");
	const char *name = vhca_view_text(obj, "name");

	if (!*domain)
		domain = vhca_view_text(obj, "domain");
	if (*domain)
		vhca_strbuf_add(sb, "%.128s/%.32s", domain, *name ? name : "?");
}

void vhca_view_print_line(const char *name, const char *text)
{
	(void)printf("%-10s%s\n", name, text);
}
