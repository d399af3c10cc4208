/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sriov/usage.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "sriov/vfio.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

/* vfio-pci, or a vendor's own: mlx5_vfio_pci */
static bool is_vfio(const char *driver)
{
	return strstr(driver, "vfio") != NULL;
}

/*
 * A cdev (/dev/vfio/devices/vfioN) opens for everybody at the same time. The node of the group says
 * who has the device, also through a cdev (drivers/vfio/group.c: cdev_device_open_cnt), so without
 * that node nothing says it.
 */
static int check_vfio(const char *dev_root, const struct vhca_vf_facts *vf, struct vhca_error *err)
{
	int r = vf->iommu_group < 0 ? -ENOENT : vhca_vfio_group_busy(dev_root, vf->iommu_group);
	const char *bdf = VHCA_BDF_STR(vf->bdf);

	if (r == 0 || (r == -ENOENT && !is_vfio(vf->driver)))
		return 0;
	if (r == 1) {
		(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_in_use", EBUSY,
				     "%s: somebody has its vfio group %d open", bdf,
				     vf->iommu_group);
		vhca_error_hint(err,
				"detach it from its guest, or end the process that fuser -v "
				"/dev/vfio/%d names",
				vf->iommu_group);
		return -EBUSY;
	}
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_in_use", -r,
			     "%s: nothing says whether somebody has it by %s: %s/vfio/%d", bdf,
			     vf->driver[0] ? vf->driver : "vfio", dev_root, vf->iommu_group);
	vhca_error_hint(err, "vhcad looks at the nodes of vfio's groups: the kernel needs "
			     "CONFIG_VFIO_GROUP=y, and vhcad the host's /dev");
	return -EBUSY;
}

/* ---- the host's own driver ---- */

/* The devices of a class that the driver made of the VF. */
struct class_look {
	struct vhca_sysfs_dir *vf;
	const char *bdf;
	unsigned int n;
	struct vhca_error *err;
};

static int used_by_host(struct vhca_error *err, const char *bdf, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int used_by_host(struct vhca_error *err, const char *bdf, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_in_use", EBUSY, "%s: %s", bdf, what);
	vhca_error_hint(err,
			"vhcad takes it when that has ended; to leave it to the host for good: "
			"exclude in [hca] of vhcad.conf");
	return -EBUSY;
}

/* net/core/net-sysfs.c: flags reads "0x1003" */
static int check_netdev(void *ctx, const char *name)
{
	struct class_look *look = ctx;
	char attr[64];
	uint64_t flags;

	look->n++;
	(void)snprintf(attr, sizeof(attr), "net/%s/flags", name);
	if (vhca_sysfs_read_u64(look->vf, attr, 16, UINT32_MAX, &flags) < 0)
		return used_by_host(look->err, look->bdf,
				    "whether its network device %s is up cannot be read", name);
	if (flags & IFF_UP)
		return used_by_host(look->err, look->bdf, "its network device %s is up", name);
	return 0;
}

static int count_device(void *ctx, const char *name)
{
	struct class_look *look = ctx;

	(void)name;
	look->n++;
	return 0;
}

/*
 * A device that was moved to another network namespace is shown there only, but the directory of
 * its class stays with the VF (net/core/dev.c: __dev_change_net_namespace renames it under the
 * namespace's tag; drivers/base/core.c: class_dir_child_ns_type).
 */
static int check_class(struct class_look *look, const char *class, const char *what,
		       int (*fn)(void *ctx, const char *name))
{
	int r;

	look->n = 0;
	r = vhca_sysfs_list(look->vf, class, fn, look);
	if (r == -ENOENT || (r == 0 && look->n))
		return 0;
	if (r == 0)
		return used_by_host(look->err, look->bdf,
				    "its %s device is in another network namespace", what);
	if (r == -EBUSY)
		return r;
	return used_by_host(look->err, look->bdf, "its %s device cannot be read", what);
}

static int check_host(struct vhca_sysfs *sys, const struct vhca_vf_facts *vf, bool is_ours,
		      struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *dir = NULL;
	struct class_look look = {.bdf = VHCA_BDF_STR(vf->bdf), .err = err};
	char path[96];
	int r;

	if (!vf->driver[0] || is_vfio(vf->driver))
		return 0;
	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s", look.bdf);
	r = vhca_sysfs_opendir(sys, path, &dir);
	if (r < 0)
		return used_by_host(err, look.bdf, "what %s made of it cannot be read", vf->driver);
	look.vf = dir;
	r = check_class(&look, "net", "network", is_ours ? count_device : check_netdev);
	return r < 0 ? r : check_class(&look, "infiniband", "RDMA", count_device);
}

int vhca_vf_check_unused(struct vhca_sysfs *sys, const char *dev_root,
			 const struct vhca_vf_facts *known, bool is_ours, struct vhca_error *err)
{
	struct vhca_vf_facts vf;
	int r = vhca_inventory_read_vf(sys, known->bdf, &vf, err);

	if (r < 0 && r != -ENOENT)
		return -EBUSY;
	if (r == -ENOENT) {
		/* Whoever has it open keeps the group's node, not the VF's directory. */
		vf = *known;
		vf.driver[0] = '\0';
	}
	r = check_vfio(dev_root, &vf, err);
	return r < 0 ? r : check_host(sys, &vf, is_ours, err);
}
