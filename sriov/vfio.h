/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_VFIO_H
#define VHCA_SRIOV_VFIO_H
/* Keeping a VF on vfio-pci. Blocking; on the PF's strand. */
#include "sriov/inventory.h"

/* driver_override = vfio-pci, unbind from another driver if one is bound, bind, read the driver link back. Loads vfio-pci first
 * if it is not there (modprobe by posix_spawn). A VF without IOMMU group, or whose group holds other devices than this VF,
 * is refused with the reason. Does nothing (no write) when already bound. */
int vhca_vfio_bind(struct vhca_sysfs *sys, struct vhca_bdf vf, struct vhca_error *err);

/* 1 = somebody has /dev/vfio/<group> open (EBUSY probe), 0 = free, negative errno = cannot tell.
 * dev_root is "/dev" or a test directory. */
int vhca_vfio_group_busy(const char *dev_root, int group);
/* Whether somebody may use the VF through vfio. 1 = yes, 0 = no: it is not on vfio-pci, or nobody has its group open; negative errno = cannot
 * tell. -ENOENT: it is on vfio-pci and its group has no node, as in kernels without CONFIG_VFIO_GROUP, where users open /dev/vfio/devices/vfioN,
 * and in no-IOMMU mode, where the node is /dev/vfio/noiommu-N (drivers/vfio/group.c and device_cdev.c, Linux 6.12). */
int vhca_vfio_in_use(const char *dev_root, const struct vhca_vf_facts *vf);

#endif
