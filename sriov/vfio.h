/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_VFIO_H
#define VHCA_SRIOV_VFIO_H
/* Keeping a VF on vfio-pci. Blocking; on the PF's strand. */
#include "sriov/inventory.h"

/*
 * driver_override = vfio-pci, unbind from another driver if one is bound, bind, read the driver
 * link back. An override that names a driver which is not loaded silently binds nothing, so that is
 * refused before; vhcad's unit has systemd load it. A VF without IOMMU group, or whose group holds
 * other devices than this VF, is refused with the reason. Does nothing (no write) when already
 * bound.
 */
int vhca_vfio_bind(struct vhca_sysfs *sys, struct vhca_bdf vf, struct vhca_error *err);

/* 1 = somebody has /dev/vfio/<group> or noiommu-<group> open (EBUSY probe), 0 = free, negative
 * errno = cannot tell; -ENOENT = there is no such node. dev_root is "/dev" or a test directory. */
int vhca_vfio_group_busy(const char *dev_root, int group);

#endif
