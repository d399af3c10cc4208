/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/plan.h"

#include <stdio.h>
#include <string.h>

#include "agent/state/exclude.h"
#include "common/base/cleanup.h"
#include "sriov/enable.h"
#include "sriov/usage.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs, vhca_sysfs_close)
VHCA_DEFINE_CLEANUP(struct vhca_inventory, vhca_inventory_free)

static void plan_vf(struct vhca_sysfs *sys, enum vhca_family family, const struct vhca_vf_facts *vf,
		    const char *dev_root)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	static const char *const withdrawn[] = {
		[VHCA_FAMILY_MLX4] = "no GUID, P_Key map none",
		[VHCA_FAMILY_MLX5] = "no GUIDs, link down",
	};
	const char *driver = vf->driver[0] ? vf->driver : "no driver";

	if (vf->iommu_group < 0)
		printf("  %s: cannot be used: no IOMMU group (is the IOMMU enabled in the BIOS and "
		       "on the kernel command line?)\n",
		       VHCA_BDF_STR(vf->bdf));
	else if (vf->group_size > 1)
		printf("  %s: cannot be used: IOMMU group %d holds %u devices (no ACS on its "
		       "path)\n",
		       VHCA_BDF_STR(vf->bdf), vf->iommu_group, vf->group_size);
	else if (vhca_vf_check_unused(sys, dev_root, vf, false, &err) < 0)
		printf("  in use: %s: not touched\n", err.msg);
	else if (strcmp(driver, "vfio-pci") == 0)
		printf("  %s: on vfio-pci already; its identity is withdrawn: %s\n",
		       VHCA_BDF_STR(vf->bdf), withdrawn[family]);
	else
		printf("  %s: from %s to vfio-pci; its identity is withdrawn: %s\n",
		       VHCA_BDF_STR(vf->bdf), driver, withdrawn[family]);
}

static void plan_count(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t want)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	switch (vhca_enable_plan(sys, pf, want, &err)) {
	case VHCA_ENABLE_NOTHING:
		printf("  has its %u VFs\n", want);
		break;
	case VHCA_ENABLE_WRITE:
		printf("  %u VFs are enabled (sriov_numvfs, with sriov_drivers_autoprobe off)\n",
		       want);
		break;
	case VHCA_ENABLE_REPLACE:
		printf("  its %u VFs are removed and %u made, if no guest has one of them\n",
		       pf->num_vfs, want);
		break;
	case VHCA_ENABLE_RELOAD:
	case VHCA_ENABLE_REFUSED:
		printf("  not changed: %s%s%s\n", err.msg, err.hint[0] ? "; " : "", err.hint);
		break;
	}
}

static void plan_pf(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf,
		    const struct vhca_conf *conf, const char *dev_root)
{
	const struct vhca_conf_hca *c = vhca_conf_hca(conf, pf->bdf);

	printf("%s (%s, %s): %u of at most %u VFs\n", VHCA_BDF_STR(pf->bdf), pf->driver,
	       pf->ibdev[0] ? pf->ibdev : "no RDMA device", pf->num_vfs, pf->total_vfs);
	if (!c || !c->manage) {
		printf("  not managed by the configuration: not touched\n");
		return;
	}
	if (pf->ib_ports != VHCA_IB_PORTS_SOME) {
		printf("  %s\n", pf->ib_ports == VHCA_IB_PORTS_NONE
					 ? "none of its ports is InfiniBand: not touched"
					 : "not touched before it has an RDMA device, which says "
					   "whether it is InfiniBand");
		return;
	}
	if (c->vfs != VHCA_CONF_VFS_KEEP)
		plan_count(sys, pf, c->vfs);
	for (unsigned int i = 0; i < pf->n_vfs; i++) {
		if (vhca_conf_excludes(conf, pf->bdf, pf->vfs[i].bdf))
			printf("  %s: left out by the configuration (exclude): not touched\n",
			       VHCA_BDF_STR(pf->vfs[i].bdf));
		else
			plan_vf(sys, pf->family, &pf->vfs[i], dev_root);
	}
}

static void warn(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "vhcad: warning: %s\n", text);
}

void vhca_plan_warn(const struct vhca_conf *conf, const char *sysfs_root)
{
	VHCA_CLEANUP(vhca_sysfs_closep) struct vhca_sysfs *sys = NULL;
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *inv = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	/* A configuration may be checked where its adapters are not. */
	if (vhca_sysfs_open(sysfs_root, &sys) < 0 || vhca_inventory_scan(sys, &inv, &err) < 0)
		return;
	(void)vhca_exclude_check(conf, inv, warn, NULL);
}

int vhca_plan_print(const struct vhca_conf *conf, const char *sysfs_root, const char *dev_root,
		    struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_sysfs_closep) struct vhca_sysfs *sys = NULL;
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *inv = NULL;
	int r = vhca_sysfs_open(sysfs_root, &sys);

	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "sysfs", -r, "%s", sysfs_root);
	r = vhca_inventory_scan(sys, &inv, err);
	if (r < 0)
		return r;
	if (!inv->n_pfs)
		printf("no ConnectX physical function with a driver on this host\n");
	for (unsigned int i = 0; i < inv->n_pfs; i++)
		plan_pf(sys, &inv->pfs[i], conf, dev_root);
	return 0;
}
