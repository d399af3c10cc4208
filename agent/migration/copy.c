/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How libvirt is to copy a guest, as a request, the API and the journal say it. */

#include "agent/migration/migration.h"
#include "common/base/codes.h"
#include "common/http/json.h"

struct json_object *vhca_mig_copy_to_json(const struct vhca_conf_copy *copy)
{
	struct json_object *o = json_object_new_object();

	vhca_json_add_u64(o, "timeout", copy->timeout_ms / 1000);
	vhca_json_add_u64(o, "expected_max", copy->expected_max_ms / 1000);
	vhca_json_add_u64(o, "bandwidth", copy->bandwidth_mib);
	vhca_json_add_u64(o, "connections", copy->connections);
	vhca_json_add_bool(o, "auto_converge", copy->auto_converge);
	vhca_json_add_bool(o, "tls", copy->tls);
	return o;
}

static int parse_timeout(struct json_object *o, uint32_t *ret_ms, struct vhca_error *err)
{
	uint64_t seconds = *ret_ms / 1000;
	int r = vhca_json_opt_u64(o, "timeout", VHCA_COPY_TIMEOUT_MAX_MS / 1000, &seconds, err);

	if (!r && seconds && seconds < VHCA_COPY_TIMEOUT_MIN_MS / 1000)
		r = vhca_error_set(
			err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			"body: timeout: %u to %u seconds are possible, or 0 for no limit",
			VHCA_COPY_TIMEOUT_MIN_MS / 1000, VHCA_COPY_TIMEOUT_MAX_MS / 1000);
	if (!r)
		*ret_ms = (uint32_t)seconds * 1000;
	return r;
}

static int parse_number(struct json_object *o, const char *key, unsigned int max, unsigned int *ret,
			struct vhca_error *err)
{
	uint64_t n = *ret;
	int r = vhca_json_opt_u64(o, key, max, &n, err);

	*ret = (unsigned int)n;
	return r;
}

int vhca_mig_copy_parse(struct json_object *o, struct vhca_conf_copy *copy, struct vhca_error *err)
{
	static const char *const members[] = {"timeout",     "expected_max",  "bandwidth",
					      "connections", "auto_converge", "tls",
					      NULL};
	unsigned int expected_s = copy->expected_max_ms / 1000;
	int r;

	if (!json_object_is_type(o, json_type_object))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: copy: an object is needed");
	r = vhca_json_check_members(o, members, err);
	if (!r)
		r = parse_timeout(o, &copy->timeout_ms, err);
	if (r == 0)
		r = parse_number(o, "expected_max", VHCA_COPY_TIMEOUT_MAX_MS / 1000, &expected_s,
				 err);
	copy->expected_max_ms = expected_s * 1000;
	if (!r)
		r = parse_number(o, "bandwidth", VHCA_COPY_BANDWIDTH_MAX, &copy->bandwidth_mib,
				 err);
	if (!r)
		r = parse_number(o, "connections", VHCA_COPY_CONNECTIONS_MAX, &copy->connections,
				 err);
	if (!r)
		r = vhca_json_opt_bool(o, "auto_converge", &copy->auto_converge, err);
	if (!r)
		r = vhca_json_opt_bool(o, "tls", &copy->tls, err);
	if (r == 0 && copy->expected_max_ms && !copy->bandwidth_mib)
		r = vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				   "body: copy: expected_max needs a bandwidth: without it nobody "
				   "knows how long the copy takes");
	return r;
}
