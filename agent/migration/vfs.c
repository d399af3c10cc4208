/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/migration/vfs.h"

#include <stdio.h>

#include "common/base/file.h"
#include "common/http/json.h"

struct vhca_mig_vf vhca_mig_vf_of(const struct vhca_claim *claim)
{
	struct vhca_mig_vf vf = {
		.bdf = claim->vf->bdf,
		.guid = claim->identity.guid,
		.epoch = claim->epoch,
		.port_guid = claim->vf->hca->ports[claim->vf->hca->port - 1].port_guid,
		.attached = claim->vf->state == VHCA_VF_ATTACHED,
		.granted = claim->vf->granted,
	};

	(void)snprintf(vf.name, sizeof(vf.name), "%s", claim->name);
	return vf;
}

struct json_object *vhca_mig_vf_to_json(const struct vhca_mig_vf *vf)
{
	struct json_object *o = json_object_new_object();

	vhca_json_add_string(o, "name", vf->name);
	vhca_json_add_string(o, "bdf", VHCA_BDF_STR(vf->bdf));
	vhca_json_add_guid(o, "guid", vf->guid);
	vhca_json_add_u64(o, "epoch", vf->epoch);
	if (vf->port_guid)
		vhca_json_add_guid(o, "port_guid", vf->port_guid);
	vhca_json_add_bool(o, "attached", vf->attached);
	vhca_json_add_bool(o, "granted", vf->granted);
	return o;
}

static bool parse(struct json_object *o, struct vhca_mig_vf *ret)
{
	const char *name = NULL, *bdf = NULL, *port = NULL;

	return !vhca_json_get_string(o, "name", &name, NULL) && vhca_name_is_valid(name) &&
	       !vhca_strcpy(ret->name, sizeof(ret->name), name) &&
	       !vhca_json_get_string(o, "bdf", &bdf, NULL) && !vhca_bdf_parse(bdf, &ret->bdf) &&
	       !vhca_json_get_guid(o, "guid", &ret->guid, NULL) && ret->guid != VHCA_GUID_NONE &&
	       !vhca_json_get_u64(o, "epoch", UINT64_MAX - 1, &ret->epoch, NULL) &&
	       vhca_json_opt_string(o, "port_guid", &port, NULL) == 0 &&
	       (!port || vhca_guid_parse(port, &ret->port_guid) == 0) &&
	       !vhca_json_opt_bool(o, "attached", &ret->attached, NULL) &&
	       !vhca_json_opt_bool(o, "granted", &ret->granted, NULL);
}

unsigned int vhca_mig_vfs_parse(struct json_object *list,
				struct vhca_mig_vf ret[static VHCA_MIGRATION_VFS_MAX])
{
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	if (n > VHCA_MIGRATION_VFS_MAX)
		return 0;
	for (size_t i = 0; i < n; i++) {
		ret[i] = (struct vhca_mig_vf){.attached = false};
		if (!parse(json_object_array_get_idx(list, i), &ret[i]))
			return 0;
	}
	return (unsigned int)n;
}
