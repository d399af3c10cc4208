/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sriov/vfio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/role.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

#define AUTO_DIR VHCA_CLEANUP(vhca_sysfs_closedirp)
#define VFIO_PCI "vfio-pci"

static int open_at(struct vhca_sysfs *sys, const char *parent, const char *name,
		   struct vhca_sysfs_dir **ret)
{
	char path[96];

	snprintf(path, sizeof(path), "bus/pci/%s/%s", parent, name);
	return vhca_sysfs_opendir(sys, path, ret);
}

/* ---- checks that come before any write ---- */

static int check_group(const struct vhca_vf_facts *vf, struct vhca_error *err)
{
	const char *bdf = VHCA_BDF_STR(vf->bdf);

	if (vf->iommu_group < 0) {
		(void)vhca_error_set(err, VHCA_ERR_DEVICE, "no_iommu_group", ENODEV,
				     "%s: has no IOMMU group, vfio-pci would refuse it", bdf);
		vhca_error_hint(err,
				"enable VT-d or AMD-Vi in the BIOS and boot with intel_iommu=on "
				"(Intel); dmesg must show DMAR or AMD-Vi");
		return -ENODEV;
	}
	if (vf->group_size != 1) {
		(void)vhca_error_set(
			err, VHCA_ERR_DEVICE, "iommu_group_shared", EPERM,
			"%s: its IOMMU group %d holds %u devices, a guest needs one of its own",
			bdf, vf->iommu_group, vf->group_size);
		vhca_error_hint(
			err, "the bridge above the adapter lacks ACS: use another slot, or enable "
			     "ACS in the BIOS");
		return -EPERM;
	}
	return 0;
}

static int open_vf(struct vhca_sysfs *sys, struct vhca_bdf bdf, struct vhca_sysfs_dir **ret,
		   struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	int r = open_at(sys, "devices", VHCA_BDF_STR(bdf), &dir);

	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "vf_gone", -r,
				      "%s: no such PCI function", VHCA_BDF_STR(bdf));
	if (!vhca_sysfs_exists(dir, "physfn"))
		return vhca_error_set(
			err, VHCA_ERR_INVALID, "not_a_vf", EINVAL,
			"%s: is no virtual function, will not be taken from its driver",
			VHCA_BDF_STR(bdf));
	*ret = vhca_steal_ptr(&dir);
	return 0;
}

/* ---- the driver ---- */

static int open_driver(struct vhca_sysfs *sys, struct vhca_sysfs_dir **ret, struct vhca_error *err)
{
	int r = open_at(sys, "drivers", VFIO_PCI, ret);

	if (r == 0)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_DEVICE, "no_vfio_pci", -r, "find the driver " VFIO_PCI);
	vhca_error_hint(err,
			"run 'modprobe " VFIO_PCI "' and look at what it says; the kernel needs "
			"CONFIG_VFIO_PCI. vhcad's unit wants modprobe@vfio_pci.service, and may "
			"load no module itself");
	return r;
}

static int unbind_vf(struct vhca_sysfs *sys, const char *bdf, const char *driver,
		     struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	int r;

	if (driver[0] == '\0')
		return 0;
	r = open_at(sys, "drivers", driver, &dir);
	if (r == 0)
		r = vhca_sysfs_write(dir, "unbind", bdf);
	/* ENODEV: no longer bound to that driver, which is what was wanted. */
	if (r == 0 || r == -ENODEV)
		return 0;
	return vhca_error_set(err, VHCA_ERR_DEVICE, "unbind_failed", -r, "%s: unbind from %s", bdf,
			      driver);
}

/* bind, not drivers_probe: only bind reports why nothing got bound (drivers/base/bus.c). */
static int bind_vf(struct vhca_sysfs_dir *driver, const char *bdf, struct vhca_error *err)
{
	int r = vhca_sysfs_write(driver, "bind", bdf);

	/* EBUSY: a driver was quicker; whether it was vfio-pci is for the read-back to say. */
	if (r == 0 || r == -EBUSY)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_DEVICE, "bind_failed", -r, "%s: bind to " VFIO_PCI, bdf);
	if (r == -EINVAL)
		vhca_error_hint(
			err,
			"the IOMMU is off or not cache-coherent: see dmesg for DMAR or AMD-Vi");
	else
		vhca_error_hint(err, "see dmesg for the reason of vfio-pci");
	return r;
}

static int verify(struct vhca_sysfs_dir *dir, const char *bdf, struct vhca_error *err)
{
	char driver[32] = "";
	int r = vhca_sysfs_readlink(dir, "driver", driver, sizeof(driver));

	if (r >= 0 && strcmp(driver, VFIO_PCI) == 0)
		return 0;
	if (r < 0 && r != -ENOENT)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "bind_unproven", -r, "%s: read driver",
				      bdf);
	return vhca_error_set(err, VHCA_ERR_DEVICE, "bind_not_effective", EIO,
			      "%s: bound to %s after binding it to " VFIO_PCI, bdf,
			      driver[0] != '\0' ? driver : "no driver");
}

int vhca_vfio_bind(struct vhca_sysfs *sys, struct vhca_bdf vf, struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	AUTO_DIR struct vhca_sysfs_dir *driver = NULL;
	char bdf[VHCA_BDF_STRLEN];
	struct vhca_vf_facts facts;
	int r = open_vf(sys, vf, &dir, err);

	if (r < 0)
		return r;
	r = vhca_inventory_read_vf(sys, vf, &facts, err);
	if (r < 0)
		return r;
	r = check_group(&facts, err);
	if (r < 0)
		return r;
	if (strcmp(facts.driver, VFIO_PCI) == 0)
		return 0;
	r = open_driver(sys, &driver, err);
	if (r < 0)
		return r;
	vhca_bdf_format(bdf, vf);
	/*
	 * The override first: between unbind and bind no other driver may grab the VF, and with
	 * autoprobe off the kernel refuses a bind without it.
	 */
	r = vhca_sysfs_write(dir, "driver_override", VFIO_PCI);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "override_failed", -r,
				      "%s: set driver_override to " VFIO_PCI, bdf);
	r = unbind_vf(sys, bdf, facts.driver, err);
	if (r < 0)
		return r;
	r = bind_vf(driver, bdf, err);
	if (r < 0)
		return r;
	return verify(dir, bdf, err);
}

static int node_busy(const char *dev_root, const char *prefix, int group)
{
	VHCA_AUTO_CLOSE int fd = -1;
	char path[128];
	int n = snprintf(path, sizeof(path), "%s/vfio/%s%d", dev_root, prefix, group);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	vhca_may_block("open vfio group");
	/*
	 * A group can be opened once (vfio_group_fops_open): EBUSY is the answer. Without
	 * SET_CONTAINER our own open has no effect on the device, but keeps it as short as possible
	 * for a starting guest.
	 */
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return 0;
	return errno == EBUSY ? 1 : -errno;
}

/* A device without IOMMU that vfio made a group for has another name (vfio_create_group). */
int vhca_vfio_group_busy(const char *dev_root, int group)
{
	int r = group < 0 ? -EINVAL : node_busy(dev_root, "", group);

	return r == -ENOENT ? node_busy(dev_root, "noiommu-", group) : r;
}
