// SPDX-License-Identifier: LGPL-2.1-or-later
/* RFC 9457 problem documents, both ways. */
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"

/* Codes whose HTTP status or retry policy is not that of their kind. */
static const struct exception {
	const char *code;
	int status;
	bool retryable;
} exceptions[] = {
	{VHCA_CODE_BODY_TOO_LARGE, 413, false},
	{VHCA_CODE_CURSOR_GONE, 410, false},
	{VHCA_CODE_GUEST_BUSY, 409, true},     /* it is still at the last plug or unplug */
	{VHCA_CODE_GUID_IS_A_PORT, 409, true}, /* the next sweep may see another one there */
	{VHCA_CODE_JOB_HELD, 409, true},       /* libvirt: another operation on the domain ends */
	{VHCA_CODE_KEY_IN_USE, 409, true},     /* the first of these requests ends */
	{VHCA_CODE_KEY_REUSED, 422, false},
	{VHCA_CODE_METHOD_NOT_ALLOWED, 405, false},
	{VHCA_CODE_NO_ROOT_PORT, 507, false},  /* the domain has to be changed */
	{VHCA_CODE_NOT_MASTER, 421, true},     /* ask the master; mastership may come back */
	{VHCA_CODE_OWNER_DISPUTED, 409, true}, /* when somebody has said whose it is */
	{VHCA_CODE_OWNER_UNKNOWN, 409, true},  /* when others have reported */
	{VHCA_CODE_PRECONDITION_FAILED, 412, false},
	{VHCA_CODE_REBUILDING, 409, true}, /* the SM still collects the agents' bindings */
	{VHCA_CODE_UNAUTHORIZED, 401, false},
	{VHCA_CODE_UNKNOWN_PORT, 409, true}, /* the port may come up */
};

static const char *const titles[] = {
	[VHCA_ERR_NONE] = "No error",
	[VHCA_ERR_INVALID] = "The request is wrong",
	[VHCA_ERR_NOT_FOUND] = "The object does not exist",
	[VHCA_ERR_CONFLICT] = "The state of the object forbids this now",
	[VHCA_ERR_EXHAUSTED] = "A limit is reached",
	[VHCA_ERR_DEVICE] = "The device refused",
	[VHCA_ERR_UNAVAILABLE] = "A peer cannot be reached",
	[VHCA_ERR_DENIED] = "Not allowed",
	[VHCA_ERR_INTERNAL] = "Internal error",
};
_Static_assert(VHCA_ARRAY_SIZE(titles) == VHCA_ERR_COUNT, "one title a kind");

static const struct exception *find_exception(const struct vhca_error *err)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(exceptions); i++)
		if (vhca_error_is(err, exceptions[i].code))
			return &exceptions[i];
	return NULL;
}

int vhca_json_problem_status(const struct vhca_error *err)
{
	const struct exception *e = find_exception(err);

	return e ? e->status : vhca_err_to_http(err->kind);
}

bool vhca_json_problem_retryable(const struct vhca_error *err)
{
	const struct exception *e = find_exception(err);

	return e ? e->retryable
		 : err->kind == VHCA_ERR_UNAVAILABLE || err->kind == VHCA_ERR_EXHAUSTED;
}

struct json_object *vhca_json_problem(const struct vhca_error *err)
{
	const char *code = *err->code ? err->code : vhca_err_to_string(err->kind);
	enum vhca_err kind = err->kind < VHCA_ERR_COUNT ? err->kind : VHCA_ERR_INTERNAL;
	struct json_object *doc = json_object_new_object();
	char type[96];

	(void)snprintf(type, sizeof(type), "urn:vhcad:problem:%s", code);
	vhca_json_add_string(doc, "type", type);
	vhca_json_add_string(doc, "title", titles[kind]);
	vhca_json_add_u64(doc, "status", (uint64_t)vhca_json_problem_status(err));
	vhca_json_add_string(doc, "detail", err->msg);
	vhca_json_add_string(doc, "code", code);
	vhca_json_add_string(doc, "kind", vhca_err_to_string(kind));
	vhca_json_add_string(doc, "hint", err->hint);
	vhca_json_add_bool(doc, "retryable", vhca_json_problem_retryable(err));
	return doc;
}

/* For answers that are no problem documents of ours: a proxy's, say. */
static enum vhca_err kind_of_status(int status)
{
	static const struct {
		int status;
		enum vhca_err kind;
	} table[] = {
		{400, VHCA_ERR_INVALID},     {401, VHCA_ERR_DENIED},
		{403, VHCA_ERR_DENIED},	     {404, VHCA_ERR_NOT_FOUND},
		{405, VHCA_ERR_INVALID},     {409, VHCA_ERR_CONFLICT},
		{410, VHCA_ERR_NOT_FOUND},   {412, VHCA_ERR_CONFLICT},
		{413, VHCA_ERR_INVALID},     {421, VHCA_ERR_UNAVAILABLE},
		{429, VHCA_ERR_UNAVAILABLE}, {502, VHCA_ERR_UNAVAILABLE},
		{503, VHCA_ERR_UNAVAILABLE}, {504, VHCA_ERR_UNAVAILABLE},
		{507, VHCA_ERR_EXHAUSTED},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++)
		if (table[i].status == status)
			return table[i].kind;
	return VHCA_ERR_INTERNAL;
}

/* A string member of whatever the peer sent, or NULL. */
static const char *member(struct json_object *doc, const char *key)
{
	const char *s = NULL;

	(void)vhca_json_opt_string(doc, key, &s, NULL); /* a wrong type counts as absent */
	return s;
}

const char *vhca_json_problem_code(struct json_object *doc)
{
	const char *code = json_object_is_type(doc, json_type_object) ? member(doc, "code") : NULL;

	return code ? code : "";
}

int vhca_json_problem_find(struct json_object *doc, const char *const *codes, size_t n)
{
	return vhca_word_find(codes, n, vhca_json_problem_code(doc));
}

void vhca_json_problem_to_error(struct json_object *doc, int status, struct vhca_error *ret)
{
	const char *word = member(doc, "kind");
	const char *detail = member(doc, "detail");
	const char *hint = member(doc, "hint");
	enum vhca_err kind = word ? vhca_err_from_string(word) : kind_of_status(status);
	const char *code = member(doc, "code");

	if (!code || !*code || strlen(code) >= sizeof(ret->code))
		code = vhca_err_to_string(kind);
	if (detail && *detail)
		(void)vhca_error_set(ret, kind, code, 0, "%s", detail);
	else
		(void)vhca_error_set(ret, kind, code, 0, "the server answered with status %d",
				     status);
	if (hint)
		vhca_error_hint(ret, "%s", hint);
	vhca_blot_controls(ret->msg); /* somebody's terminal shows it in the end */
	vhca_blot_controls(ret->hint);
}
