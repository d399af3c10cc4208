/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mainline kernel: ib_ipoib passes what rtnetlink asks of the PF's network device on to mlx5_ib
 * (hw/mlx5/ib_virt.c).
 */
#include <errno.h>
#include <linux/if_arp.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "pkey/rtnl.h"
#include "pkey/vport.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

#define AUTO_DIR VHCA_CLEANUP(vhca_sysfs_closedirp)
#define PATH_LEN 96

struct search {
	struct vhca_sysfs_dir *pf;
	uint32_t ifindex; /* the lowest: P_Key children come after their parent */
};

static int read_number(struct vhca_sysfs_dir *pf, const char *name, const char *attr, uint64_t *ret)
{
	char path[PATH_LEN];
	int n = snprintf(path, sizeof(path), "net/%s/%s", name, attr);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return vhca_sysfs_read_u64(pf, path, 10, INT32_MAX, ret);
}

static int on_netdev(void *ctx, const char *name)
{
	struct search *s = ctx;
	uint64_t type, ifindex = 0;
	int r = read_number(s->pf, name, "type", &type);

	if (r == 0 && type == ARPHRD_INFINIBAND)
		r = read_number(s->pf, name, "ifindex", &ifindex);
	if (r == -ENOENT)
		return 0; /* renamed or removed meanwhile */
	if (r < 0)
		return r;
	if (ifindex > 0 && (s->ifindex == 0 || ifindex < s->ifindex))
		s->ifindex = (uint32_t)ifindex;
	return 0;
}

/* Only network devices of our own namespace are listed. */
static int find_netdev(const struct vhca_identity_at *at, struct vhca_rtnl_vf *ret)
{
	AUTO_DIR struct vhca_sysfs_dir *pf = NULL;
	struct search s = {0};
	char path[PATH_LEN];
	int r;

	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s", VHCA_BDF_STR(at->pf));
	r = vhca_sysfs_opendir(at->sys, path, &pf);
	if (r < 0)
		return r;
	s.pf = pf;
	r = vhca_sysfs_list(pf, "net", on_netdev, &s);
	if (r == -ENOENT || (r == 0 && s.ifindex == 0))
		return -ENONET;
	if (r < 0)
		return r;
	*ret = (struct vhca_rtnl_vf){.ifindex = s.ifindex, .vf = at->vf_index, .parent = at->pf};
	return 0;
}

static const struct vhca_rtnl *rtnl_of(const struct vhca_identity_at *at)
{
	return at->rtnl != NULL ? at->rtnl : &vhca_rtnl_kernel;
}

static int read_vport(const struct vhca_identity_at *at, struct vhca_vport *ret)
{
	struct vhca_rtnl_vf vf;
	int r = find_netdev(at, &vf);

	return r < 0 ? r : vhca_rtnl_get_vf(rtnl_of(at), &vf, ret);
}

static int write_vport(const struct vhca_identity_at *at, enum vhca_vport_attr attr, uint64_t value)
{
	struct vhca_rtnl_vf vf;
	int r = find_netdev(at, &vf);

	return r < 0 ? r : vhca_rtnl_set_vf(rtnl_of(at), &vf, attr, value);
}

const struct vhca_vport_door vhca_vport_netlink = {
	.name = "netlink",
	.cached = true,
	.read = read_vport,
	.write = write_vport,
};
