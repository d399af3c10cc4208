/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/host/hw.h"
#include "tests/sim/kernel/sim_rtnl.h"

#define NETDEV "ib0"

_Static_assert((int)HW_LINK_AUTO == (int)IFLA_VF_LINK_STATE_AUTO &&
		       (int)HW_LINK_UP == (int)IFLA_VF_LINK_STATE_ENABLE &&
		       (int)HW_LINK_DOWN == (int)IFLA_VF_LINK_STATE_DISABLE,
	       "the kernel's order");

bool hw_is_nobody(uint64_t guid)
{
	return guid == 0 || guid == UINT64_MAX;
}

/* ---- vports ---- */

bool hw_vport_is_up(const struct hw *hw, unsigned int v)
{
	const struct hw_vport *vp = &hw->vports[v];

	return vp->link != HW_LINK_DOWN && hw->vfs[v].guest_driver && !hw_is_nobody(vp->port);
}

void hw_vport_sync(struct hw *hw, unsigned int v)
{
	const struct sim_rtnl_vf *vf = &hw->kernel->vfs[v];
	struct hw_vport *vp = &hw->vports[v];

	vp->node = vf->node;
	vp->port = vf->port;
	vp->link = (enum hw_link)vf->policy;
	vp->cached_node = vf->cached_node;
	vp->cached_port = vf->cached_port;
	if (!hw_vport_is_up(hw, v))
		vp->known = 0;
}

/*
 * What another system left in firmware, of which this driver knows nothing: mlx5_sriov_init()
 * begins with an empty memory.
 */
void hw_vports_start(struct hw *hw)
{
	for (unsigned int v = 0; v < HW_VFS; v++) {
		uint64_t guid = 0x0214060000000000 + hw->reload * 256u + v * 16u;

		hw->kernel->vfs[v] = (struct sim_rtnl_vf){.node = guid, .port = guid};
		hw_vport_sync(hw, v);
	}
}

/* mlx5_sriov_attach(), by way of mlx5_recover_device() */
void hw_vports_recover(struct hw *hw)
{
	sim_rtnl_recreate(hw->kernel);
	for (unsigned int v = 0; v < HW_VFS; v++)
		hw_vport_sync(hw, v);
}

void hw_vport_give(struct hw *hw, unsigned int v, const uint16_t *keys, unsigned int n)
{
	struct hw_vport *vp = &hw->vports[v];

	vp->known = vp->port;
	memset(vp->keys, 0, sizeof(vp->keys));
	for (unsigned int i = 0; i < n && i < HW_VPORT_MAX - 1; i++)
		vp->keys[i] = keys[i];
}

/* ---- files ---- */

bool hw_mlx5_opendir(const struct hw *hw, const char *path, struct hw_dir *ret)
{
	char want[96];

	(void)snprintf(want, sizeof(want), "bus/pci/devices/%s", HW_PF);
	ret->kind = HW_DIR_PF;
	if (!strcmp(path, want))
		return true;
	ret->kind = HW_DIR_VPORT;
	for (ret->vf = 0; ret->vf < HW_VFS && hw->card == HW_MLX5_OFED; ret->vf++) {
		(void)snprintf(want, sizeof(want), "bus/pci/devices/%s/sriov/%u", HW_PF, ret->vf);
		if (!strcmp(path, want))
			return true;
	}
	*ret = (struct hw_dir){.reload = hw->reload};
	return false;
}

/* net/core/net-sysfs.c: type_show() "%d\n", ifindex_show() "%d\n" */
static int read_netdev(const struct hw *hw, const char *attr, char *buf, size_t size)
{
	if (!hw->registered)
		return -ENOENT;
	if (!strcmp(attr, "net/" NETDEV "/type"))
		(void)snprintf(buf, size, "%u", hw->kernel->type);
	else if (!strcmp(attr, "net/" NETDEV "/ifindex"))
		(void)snprintf(buf, size, "%u", hw->kernel->ifindex);
	else
		return -ENOENT;
	return 0;
}

/* MLNX_OFED sriov_sysfs.c show_guid(): eight bytes joined by colons */
static void show_guid(uint64_t guid, char *buf, size_t size)
{
	size_t at = 0;

	for (int shift = 56; shift >= 0; shift -= 8)
		at += (size_t)snprintf(buf + at, size - at, "%02x%s",
				       (unsigned int)(guid >> shift) & 0xff, shift ? ":" : "");
}

static const char *const policies[] = {
	[HW_LINK_AUTO] = "Follow", [HW_LINK_UP] = "Up", [HW_LINK_DOWN] = "Down"};

/* sriov_sysfs.c node_show(), port_show(), policy_show(): they ask firmware */
int hw_mlx5_read(const struct hw *hw, const struct hw_dir *dir, const char *attr, char *buf,
		 size_t size)
{
	const struct sim_rtnl_vf *vf = &hw->kernel->vfs[dir->vf];

	if (dir->kind == HW_DIR_PF)
		return read_netdev(hw, attr, buf, size);
	if (!strcmp(attr, "node"))
		show_guid(vf->node, buf, size);
	else if (!strcmp(attr, "port"))
		show_guid(vf->port, buf, size);
	else if (!strcmp(attr, "policy"))
		(void)snprintf(buf, size, "%s", policies[vf->policy]);
	else
		return -ENOENT;
	return 0;
}

/* sriov_sysfs.c guid_store(): exactly eight bytes */
static bool parse_guid(const char *text, uint64_t *ret)
{
	unsigned int b[8];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4],
		   &b[5], &b[6], &b[7], &end) != 8 ||
	    text[end])
		return false;
	*ret = 0;
	for (unsigned int i = 0; i < 8; i++)
		*ret = *ret << 8 | b[i];
	return true;
}

/* policy_store() */
static int store_policy(struct sim_rtnl_vf *vf, const char *text)
{
	for (unsigned int i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (strcmp(text, policies[i]) != 0)
			continue;
		vf->policy = i;
		return 0;
	}
	return -EINVAL;
}

/* node_store(), port_store(): the driver remembers what firmware has accepted */
int hw_mlx5_write(struct hw *hw, const struct hw_dir *dir, const char *attr, const char *text)
{
	struct sim_rtnl_vf *vf = &hw->kernel->vfs[dir->vf];
	bool node = !strcmp(attr, "node");
	uint64_t guid;

	if (!strcmp(attr, "policy"))
		return store_policy(vf, text);
	if (!node && strcmp(attr, "port") != 0)
		return -ENOENT;
	if (!parse_guid(text, &guid) || (hw->kernel->refuses_zero && !guid))
		return -EINVAL;
	*(node ? &vf->node : &vf->port) = guid;
	*(node ? &vf->cached_node : &vf->cached_port) = guid;
	return 0;
}

bool hw_mlx5_name(const struct hw *hw, const struct hw_dir *dir, const char *attr, unsigned int i,
		  char *buf, size_t size)
{
	(void)snprintf(buf, size, NETDEV);
	return dir->kind == HW_DIR_PF && !strcmp(attr, "net") && hw->registered && i == 0;
}
