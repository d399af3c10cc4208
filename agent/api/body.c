/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/body.h"

#include "agent/state/model.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/http/json.h"

#define LEASE_MIN_S 10

int api_check_body(struct json_object *body, const char *const *members, const char *needed,
		   struct vhca_error *err)
{
	if (!body)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "a JSON body with %s is needed", needed);
	return vhca_json_check_members(body, members, err);
}

int api_parse_place(struct json_object *body, struct vhca_vf_request *ret, struct vhca_error *err)
{
	const char *pf = NULL;
	uint64_t numa = UINT64_MAX;
	int r = vhca_json_opt_string(body, "pf", &pf, err);

	if (!r)
		r = vhca_json_opt_u64(body, "numa", VHCA_NUMA_NODE_MAX, &numa, err);
	if (r < 0)
		return r;
	ret->numa = numa == UINT64_MAX ? -1 : (int)numa;
	ret->has_pf = pf != NULL;
	if (pf && vhca_bdf_parse(pf, &ret->pf))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "pf: \"%.40s\" is no PCI address", pf);
	return 0;
}

int api_parse_lease(struct json_object *body, uint32_t *ret, struct vhca_error *err)
{
	uint64_t seconds = 0;
	int r = vhca_json_opt_u64(body, "lease", UINT32_MAX, &seconds, err);

	if (r < 0)
		return r;
	if (json_object_object_get(body, "lease") &&
	    (seconds < LEASE_MIN_S || seconds > VHCA_CLAIM_LEASE_MAX))
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "body: lease: %d to %d seconds are possible", LEASE_MIN_S,
				      VHCA_CLAIM_LEASE_MAX);
	*ret = (uint32_t)seconds;
	return 0;
}

int api_parse_renewal(struct json_object *body, uint32_t *ret, struct vhca_error *err)
{
	static const char *const members[] = {"lease", NULL};
	int r = api_check_body(body, members, "lease", err);

	if (r == 0)
		r = api_parse_lease(body, ret, err);
	if (r < 0 || *ret)
		return r;
	return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
			      "body: lease is needed");
}
