/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/body.h"

#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/http/json.h"

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
