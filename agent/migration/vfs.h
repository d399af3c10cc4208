/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_VFS_H
#define VHCA_AGENT_MIGRATION_VFS_H
/*
 * The VFs of a migration as the other side sees them: in its status document, in the source's
 * journal, in the API.
 */
#include "agent/state/model.h"

#define VHCA_MIGRATION_VFS_MAX VHCA_DOM_VFS_MAX

struct vhca_mig_vf {
	char name[VHCA_NAME_MAX];
	struct vhca_bdf bdf;
	uint64_t guid, epoch;
	uint64_t port_guid; /* of the port that carries it; 0 = not said */
	bool attached, granted;
};

/* As it is now. */
struct vhca_mig_vf vhca_mig_vf_of(const struct vhca_claim *claim);
/* {name, bdf, guid, epoch, port_guid, attached, granted}. Caller puts it. */
struct json_object *vhca_mig_vf_to_json(const struct vhca_mig_vf *vf);
/*
 * A list of these; other members are ignored. Returns how many, 0 if anything in the list is not as
 * it has to be.
 */
unsigned int vhca_mig_vfs_parse(struct json_object *list,
				struct vhca_mig_vf ret[static VHCA_MIGRATION_VFS_MAX]);

#endif
