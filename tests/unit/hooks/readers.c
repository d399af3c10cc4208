/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/hooks/readers.h"

bool agent_has_request(const struct vhca_dom_info *info)
{
	return info->n_requests || info->request_error.kind != VHCA_ERR_NONE;
}

static bool has_hostdev(const struct vhca_scan *scan, struct vhca_bdf bdf)
{
	for (unsigned int i = 0; i < scan->n_hostdevs; i++)
		if (vhca_bdf_cmp(scan->hostdevs[i], bdf) == 0)
			return true;
	return false;
}

const char *scan_missed(const struct vhca_scan *scan, const struct vhca_dom_info *info)
{
	if (agent_has_request(info) && !scan->has_request)
		return "a request";
	if (info->has_away && (!scan->has_away || !vhca_uuid_equal(&scan->away, &info->away)))
		return "a marker";
	for (unsigned int i = 0; i < info->n_hostdevs; i++)
		if (!has_hostdev(scan, info->hostdevs[i].host))
			return "a host device";
	return NULL;
}
