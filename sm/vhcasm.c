/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Our OpenSM plugin. A report is thrown away only on the plugin's own word: a 404 of a wrong URL or a 403 of a proxy in between
 * has no problem code of ours and is tried again until somebody repairs it.
 */
#include "sm/sm.h"

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
		n = snprintf(req.path, sizeof(req.path), "/v1/bindings/%s?epoch=%" PRIu64,
			     VHCA_GUID_STR(b->vguid), b->epoch);
	}
	if (n < 0 || (size_t)n >= sizeof(req.path)) {
		(void)json_object_put(req.body);
		return -ENAMETOOLONG;
	}
	*ret = req;
	return 0;
}

/* The codes of docs/design/0001-foundation.md. */
static const struct {
	const char *code;
	enum vhca_sm_answer answer;
} codes[] = {
	{"superseded", VHCA_SM_SUPERSEDED},	{"epoch_tie", VHCA_SM_REFUSED},
	{"bad_request", VHCA_SM_REFUSED},	{"body_too_large", VHCA_SM_REFUSED},
	{"unknown_partition", VHCA_SM_REFUSED}, {"unknown_port", VHCA_SM_RETRY},
	{"not_master", VHCA_SM_RETRY},		{"table_full", VHCA_SM_RETRY},
};

static enum vhca_sm_answer problem_answer(int status, struct json_object *problem)
{
	const char *code = NULL;
	bool retryable = true;

	if (vhca_json_opt_string(problem, "code", &code, NULL) < 0 || !code)
		return VHCA_SM_RETRY;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(codes); i++)
		if (strcmp(codes[i].code, code) == 0)
			return codes[i].answer;
	/* A code of a newer plugin says itself whether there is a point in trying again; trouble of the SM's own passes. */
	(void)vhca_json_opt_bool(problem, "retryable", &retryable, NULL);
	return retryable || status >= 500 ? VHCA_SM_RETRY : VHCA_SM_REFUSED;
}

static enum vhca_sm_answer binding_answer(int status, struct json_object *body,
					  const struct vhca_error *err)
{
	const char *vguid = NULL;

	(void)err;
	if (status == 0 || !json_object_is_type(body, json_type_object))
		return VHCA_SM_RETRY;
	if (status < 200 || status > 299)
		return problem_answer(status, body);
	/* Any web server says 200 to something; ours repeats whose binding it took. */
	return vhca_json_opt_string(body, "vguid", &vguid, NULL) == 0 && vguid ? VHCA_SM_ACCEPTED
									       : VHCA_SM_RETRY;
}

const struct vhca_sm_ops vhca_sm_vhcasm = {
	.name = "vhcasm",
	.fenced = true,
	.sends = true,
	.members = true,
	.binding_request = binding_request,
	.binding_answer = binding_answer,
};
