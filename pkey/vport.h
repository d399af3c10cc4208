/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_VPORT_H
#define VHCA_PKEY_VPORT_H
/*
 * What the host can say about one mlx5 VF, and the two doors to it: files of MLNX_OFED, or
 * rtnetlink on the PF's IPoIB network device. One value a call, negative errno, no policy. All
 * calls block.
 */
#include "pkey/identity.h"

struct vhca_vport {
	uint64_t node_guid, port_guid; /* 0 and all ones: nobody's */
	enum vhca_link_policy policy;
};

enum vhca_vport_attr { VHCA_VPORT_NODE, VHCA_VPORT_PORT, VHCA_VPORT_POLICY };

struct vhca_vport_door {
	const char *name;
	/*
	 * GUIDs are read from the driver's memory: zero may mean that none was set since it was
	 * loaded
	 */
	bool cached;
	/*
	 * -ENXIO: the PF has no such VF; -ENODATA: the kernel does not read GUIDs back; -ENONET: no
	 * IPoIB device (netlink).
	 */
	int (*read)(const struct vhca_identity_at *at, struct vhca_vport *ret);
	/*
	 * value: a GUID, or an enum vhca_link_policy. Only for a VF that read() has found: the
	 * kernel does not check the index.
	 */
	int (*write)(const struct vhca_identity_at *at, enum vhca_vport_attr attr, uint64_t value);
};
extern const struct vhca_vport_door vhca_vport_sysfs, vhca_vport_netlink;

/* True if the driver has the files: then they are the better door. */
bool vhca_vport_sysfs_exists(const struct vhca_identity_at *at);

#endif
