/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_JSON_H
#define VHCA_HTTP_JSON_H
/*
 * json-c with strict, bounded accessors: each getter names the member in its error ("body:
 * pkeys[2]: ..."). Objects are reference-counted by json-c; who creates one owns one reference.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "common/base/error.h"

#define VHCA_JSON_DEPTH_MAX 16

/* Parses exactly one JSON value of len bytes (trailing blanks allowed, trailing text not). A member
 * that is given twice is refused. */
int vhca_json_parse(const char *text, size_t len, struct json_object **ret, struct vhca_error *err);

/* Members of an object; a missing required member, a wrong type, or a value out of range is
 * VHCA_ERR_INVALID "bad_request" and -EINVAL. The *_opt forms leave *ret alone when the member is
 * absent (or null). Numbers reach UINT64_MAX - 1 (json-c's limit). Strings are borrowed from the
 * object. */
int vhca_json_get_string(struct json_object *obj, const char *key, const char **ret,
			 struct vhca_error *err);
int vhca_json_get_u64(struct json_object *obj, const char *key, uint64_t max, uint64_t *ret,
		      struct vhca_error *err);
int vhca_json_get_guid(struct json_object *obj, const char *key, uint64_t *ret,
		       struct vhca_error *err);
int vhca_json_opt_string(struct json_object *obj, const char *key, const char **ret,
			 struct vhca_error *err);
int vhca_json_opt_u64(struct json_object *obj, const char *key, uint64_t max, uint64_t *ret,
		      struct vhca_error *err);
int vhca_json_opt_bool(struct json_object *obj, const char *key, bool *ret, struct vhca_error *err);
/* An array of P_Keys as text ("0x8001"); at most max; returns the count in *ret_n. Duplicates are
 * refused. */
int vhca_json_get_pkeys(struct json_object *obj, const char *key, uint16_t *ret, size_t max,
			size_t *ret_n, struct vhca_error *err);
/* Refuses members of obj that are not in the NULL-terminated list. */
int vhca_json_check_members(struct json_object *obj, const char *const *allowed,
			    struct vhca_error *err);

/* Builders; they abort on out-of-memory never: a NULL child is stored as null. */
void vhca_json_add_string(struct json_object *obj, const char *key,
			  const char *value); /* NULL -> null; what is no UTF-8 -> "?" */
void vhca_json_add_u64(struct json_object *obj, const char *key, uint64_t value);
void vhca_json_add_bool(struct json_object *obj, const char *key, bool value);
void vhca_json_add_guid(struct json_object *obj, const char *key,
			uint64_t guid); /* "0x..."; 0 -> null */
void vhca_json_add_pkeys(struct json_object *obj, const char *key, const uint16_t *pkeys, size_t n);
void vhca_json_add(struct json_object *obj, const char *key,
		   struct json_object *child); /* takes child */

/*
 * Leaves these members of the objects of a list ("bdf,state"), in their order: what one does not
 * have is not in it. NULL: all.
 */
void vhca_json_cut_list(struct json_object *list, const char *fields);

/* RFC 9457 problem+json of an error: {type,title,status,detail,code,kind,hint,retryable}. Caller
 * puts it. */
struct json_object *vhca_json_problem(const struct vhca_error *err);
/* HTTP status of an error: that of its kind, except for a few codes of the API (not_master 421,
 * body_too_large 413, ...). */
int vhca_json_problem_status(const struct vhca_error *err);
/* May the same request succeed later: true for unavailable and exhausted, with exceptions by code
 * (unknown_port, rebuilding). */
bool vhca_json_problem_retryable(const struct vhca_error *err);
/* Of a problem document; "" if it is none. Borrowed. */
const char *vhca_json_problem_code(struct json_object *doc);
/* Which of n codes is its own; negative if none is, or it is none. */
int vhca_json_problem_find(struct json_object *doc, const char *const *codes, size_t n);
/* The reverse, for clients: fills err from a problem document (or from status alone when doc is
 * NULL or something else). */
void vhca_json_problem_to_error(struct json_object *doc, int status, struct vhca_error *ret);

#endif
