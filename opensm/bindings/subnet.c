/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/subnet.h"

#include "common/base/codes.h"
#include "common/base/text.h"

int vhca_osm_check_master(const struct vhca_osm_subnet *subnet, struct vhca_error *err)
{
	struct vhca_osm_status status;
	int r;

	subnet->ops->status(subnet->ctx, &status);
	if (status.master)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_UNAVAILABLE, VHCA_CODE_NOT_MASTER, 0,
			   "this subnet manager is %s, the master is %s", status.sm_state,
			   status.master_guid ? VHCA_GUID_STR(status.master_guid) : "not known");
	vhca_error_hint(err, "send this to the master's plugin");
	return r;
}
