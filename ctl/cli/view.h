/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_VIEW_H
#define VHCA_CTL_CLI_VIEW_H
/*
 * Members of a server's answers as people read them. Lenient on purpose: a member that is absent,
 * null or of another type shows as nothing, so that an older program still shows the rest.
 */
#include <stdbool.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

static inline void vhca_ctl_put_cleanup(struct json_object **obj)
{
	(void)json_object_put(*obj); /* accepts NULL */
}

#define VHCA_CTL_AUTO_PUT VHCA_CLEANUP(vhca_ctl_put_cleanup)

/* The member, or NULL. Borrowed. */
struct json_object *vhca_view_member(struct json_object *obj, const char *key);
/* Whether an object of the array has it, and be it null. */
bool vhca_view_has_member(struct json_object *array, const char *key);
/* Text of a string or number, "yes"/"no" of a boolean; "" for anything else. Borrowed from obj. */
const char *vhca_view_text(struct json_object *obj, const char *key);
uint64_t vhca_view_u64(struct json_object *obj, const char *key); /* 0 if absent */
bool vhca_view_is_true(struct json_object *obj, const char *key);
/* The member if it is an array, else NULL; its length. */
struct json_object *vhca_view_array(struct json_object *obj, const char *key);
size_t vhca_view_count(struct json_object *array);		      /* accepts NULL */
const char *vhca_view_item_text(struct json_object *array, size_t i); /* as vhca_view_text() */
/* Whether an object of the array has this text as its member; without a key, an element itself. */
bool vhca_view_has(struct json_object *array, const char *key, const char *text);

/* "0.4s" "12s" "3m05s" "2h10m" "3d04h" */
void vhca_view_duration(struct vhca_strbuf *sb, uint64_t ms);
/* Local time, "2026-11-20 05:40:26". */
void vhca_view_time(struct vhca_strbuf *sb, uint64_t wall_ms);
/* "0x8001 0x7fff +3": an array of strings, blank-separated, at most max of them. */
void vhca_view_strings(struct vhca_strbuf *sb, struct json_object *array, size_t max);
/* "3 free, 1 attached": the members of an object that are numbers above 0, by their names. */
void vhca_view_counts(struct vhca_strbuf *sb, struct json_object *obj);
/* "DOMAIN/NAME" of an object that has both. */
void vhca_view_owner(struct vhca_strbuf *sb, struct json_object *obj);
/* A line of what is one thing: "SM        vhcasm: reachable". */
void vhca_view_print_line(const char *name, const char *text);

#endif
