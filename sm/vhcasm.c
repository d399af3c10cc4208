/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Our OpenSM plugin. A report is thrown away only on the plugin's own word: a 404 of a wrong URL or
 * a 403 of a proxy in between has no problem code of ours and is tried again until somebody repairs
 * it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"
#include "sm/sm.h"

static void add_dynamic(struct json_object *body, const struct vhca_sm_binding *b)
{
	if (b->dynamic_lid)
		vhca_json_add_string(body, "lid_policy", "dynamic");
}

static struct json_object *binding_body(const struct vhca_sm_binding *b)
{
	struct json_object *body = json_object_new_object();

	if (!body)
		return NULL;
	vhca_json_add_u64(body, "epoch", b->epoch);
	vhca_json_add_guid(body, "port_guid", b->port_guid);
	vhca_json_add_u64(body, "gid_index", b->gid_index);
	vhca_json_add_u64(body, "lid", b->lid);
	vhca_json_add_pkeys(body, "pkeys", b->pkeys, b->n_pkeys);
	add_dynamic(body, b);
	return body;
}

static int binding_request(const struct vhca_sm_binding *b, struct vhca_sm_request *ret)
{
	struct vhca_sm_request req = {.body = NULL};
	int n;

	if (b->bound) {
		req.body = binding_body(b);
		if (!req.body)
			return -ENOMEM;
		(void)snprintf(req.method, sizeof(req.method), "PUT");
		n = snprintf(req.path, sizeof(req.path), "/v1/bindings/%s",
			     VHCA_GUID_STR(b->vguid));
	} else {
		(void)snprintf(req.method, sizeof(req.method), "DELETE");
		n = snprintf(req.path, sizeof(req.path),
			     "/v1/bindings/%s?epoch=%" PRIu64 "&port_guid=%s%s",
			     VHCA_GUID_STR(b->vguid), b->epoch, VHCA_GUID_STR(b->port_guid),
			     b->keep_lid ? "&keep_lid=yes" : "");
	}
	if (n < 0 || (size_t)n >= sizeof(req.path)) {
		(void)json_object_put(req.body);
		return -ENAMETOOLONG;
	}
	*ret = req;
	return 0;
}

/* Where a vGUID is, or was, in the words of /v1/moves. */
static struct json_object *place(uint64_t port_guid, uint16_t gid_index, uint16_t lid)
{
	struct json_object *obj = json_object_new_object();

	if (!obj)
		return NULL;
	vhca_json_add_guid(obj, "port_guid", port_guid);
	vhca_json_add_u64(obj, "gid_index", gid_index);
	vhca_json_add_u64(obj, "lid", lid);
	return obj;
}

static int move_request(const struct vhca_sm_binding *b, const char *phase,
			struct vhca_sm_request *ret)
{
	struct vhca_sm_request req = {.method = "POST", .path = "/v1/moves"};
	struct json_object *to = place(b->port_guid, b->gid_index, b->lid);

	req.body = json_object_new_object();
	if (!req.body || !to) {
		(void)json_object_put(req.body);
		(void)json_object_put(to);
		return -ENOMEM;
	}
	/* Once the vport shows it: until then the SM would find the vGUID elsewhere. */
	if (b->vport) {
		vhca_json_add_string(req.body, "lid_policy", "vport");
		vhca_json_add_u64(to, "vport", b->vport);
	}
	add_dynamic(req.body, b);
	if (b->follow_lid)
		vhca_json_add_string(req.body, "lid_policy", "follow");
	vhca_json_add_string(req.body, "id", VHCA_UUID_STR(&b->move_id));
	vhca_json_add_u64(req.body, "epoch", b->epoch);
	vhca_json_add_guid(req.body, "vguid", b->vguid);
	vhca_json_add_string(req.body, "phase", phase);
	vhca_json_add(req.body, "from", place(b->from_port_guid, b->from_gid_index, b->from_lid));
	vhca_json_add(req.body, "to", to);
	vhca_json_add_pkeys(req.body, "pkeys", b->pkeys, b->n_pkeys);
	*ret = req;
	return 0;
}

static int commit_request(const struct vhca_sm_binding *b, struct vhca_sm_request *ret)
{
	return move_request(b, "commit", ret);
}

static int prepare_request(const struct vhca_sm_binding *b, struct vhca_sm_request *ret)
{
	return move_request(b, "prepare", ret);
}

static int members_request(const struct vhca_sm_members *m, struct vhca_sm_request *ret)
{
	struct vhca_sm_request req = {.method = "PUT"};

	/* It fits: a path of fixed length. */
	(void)snprintf(req.path, sizeof(req.path), "/v1/members/%s", VHCA_GUID_STR(m->port_guid));
	req.body = json_object_new_object();
	if (!req.body)
		return -ENOMEM;
	vhca_json_add_pkeys(req.body, "pkeys", m->pkeys, m->n_pkeys);
	*ret = req;
	return 0;
}

/* The codes of docs/design/0001-foundation.md. */
static const struct {
	const char *code;
	enum vhca_sm_answer answer;
} codes[] = {
	{VHCA_CODE_SUPERSEDED, VHCA_SM_SUPERSEDED},
	{VHCA_CODE_EPOCH_TIE, VHCA_SM_SUPERSEDED},
	{VHCA_CODE_BAD_REQUEST, VHCA_SM_REFUSED},
	{VHCA_CODE_BODY_TOO_LARGE, VHCA_SM_REFUSED},
	{VHCA_CODE_UNKNOWN_PARTITION, VHCA_SM_REFUSED},
	{VHCA_CODE_UNKNOWN_PORT, VHCA_SM_RETRY},
	{VHCA_CODE_NOT_MASTER, VHCA_SM_RETRY},
	{VHCA_CODE_TABLE_FULL, VHCA_SM_RETRY},
	{VHCA_CODE_REBUILDING, VHCA_SM_RETRY},
	{VHCA_CODE_UNAUTHORIZED, VHCA_SM_RETRY},
	{VHCA_CODE_ROLE_NEEDED, VHCA_SM_RETRY},
	{VHCA_CODE_NOT_YOUR_PORT, VHCA_SM_RETRY},
	{VHCA_CODE_NOT_THE_OWNER, VHCA_SM_SUPERSEDED},
	/* An authority that the SM lacks, say: when it is there, the same ticket will do. */
	{VHCA_CODE_TICKET_NOT_VALID, VHCA_SM_RETRY},
};

static enum vhca_sm_answer problem_answer(int status, struct json_object *problem)
{
	const char *code = vhca_json_problem_code(problem);
	bool retryable = true;

	if (!*code)
		return VHCA_SM_RETRY;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(codes); i++)
		if (strcmp(codes[i].code, code) == 0)
			return codes[i].answer;
	/*
	 * A code of a newer plugin says itself whether there is a point in trying again; trouble of
	 * the SM's own passes.
	 */
	(void)vhca_json_opt_bool(problem, "retryable", &retryable, NULL);
	return retryable || status >= 500 ? VHCA_SM_RETRY : VHCA_SM_REFUSED;
}

/*
 * Any web server says 200 to something; ours repeats what it took: member `key`, which has to be
 * `value` unless that is NULL.
 */
static enum vhca_sm_answer report_answer(int status, struct json_object *body, const char *key,
					 const char *value)
{
	const char *said = NULL;

	if (status == 0 || !json_object_is_type(body, json_type_object))
		return VHCA_SM_RETRY;
	if (status < 200 || status > 299)
		return problem_answer(status, body);
	if (vhca_json_opt_string(body, key, &said, NULL) < 0 || !said)
		return VHCA_SM_RETRY;
	return !value || strcmp(said, value) == 0 ? VHCA_SM_ACCEPTED : VHCA_SM_RETRY;
}

static enum vhca_sm_answer binding_answer(int status, struct json_object *body,
					  const struct vhca_error *err)
{
	(void)err;
	return report_answer(status, body, "vguid", NULL);
}

static enum vhca_sm_answer commit_answer(int status, struct json_object *body)
{
	return report_answer(status, body, "state", "committed");
}

static enum vhca_sm_answer prepare_answer(int status, struct json_object *body)
{
	return report_answer(status, body, "state", "prepared");
}

static enum vhca_sm_answer members_answer(int status, struct json_object *body)
{
	return report_answer(status, body, "port_guid", NULL);
}

/* Whether it was the LID, the same report without it tells. */
static bool lid_refused(int status, struct json_object *body)
{
	return status >= 400 && problem_answer(status, body) == VHCA_SM_REFUSED;
}

/* A plugin with [agents] lets no agent have it; or a token is wrong for a moment. */
static bool lid_denied(int status, struct json_object *body)
{
	return status >= 400 && strcmp(vhca_json_problem_code(body), VHCA_CODE_ROLE_NEEDED) == 0;
}

static bool commit_unknown(int status, struct json_object *body)
{
	const char *code = vhca_json_problem_code(body);

	return (status == 404 && strcmp(code, VHCA_CODE_NO_SUCH_PATH) == 0) ||
	       (status == 405 && strcmp(code, VHCA_CODE_METHOD_NOT_ALLOWED) == 0);
}

static bool wants_snapshot(int status, struct json_object *body)
{
	return status == 409 && strcmp(vhca_json_problem_code(body), VHCA_CODE_REBUILDING) == 0;
}

const struct vhca_sm_ops vhca_sm_vhcasm = {
	.name = "vhcasm",
	.fenced = true,
	.sends = true,
	.members = true,
	.no_vports = true, /* stock OpenSM, up to its head of 2026 */
	.binding_request = binding_request,
	.binding_answer = binding_answer,
	.commit_request = commit_request,
	.commit_answer = commit_answer,
	.lid_refused = lid_refused,
	.lid_denied = lid_denied,
	.commit_unknown = commit_unknown,
	.prepare_request = prepare_request,
	.prepare_answer = prepare_answer,
	.members_request = members_request,
	.members_answer = members_answer,
	.wants_snapshot = wants_snapshot,
};
