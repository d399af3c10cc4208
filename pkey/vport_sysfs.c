/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MLNX_OFED's mlx5_core (sriov_sysfs.c there): a directory per VF that exists while it is enabled.
 * Values come from firmware.
 */
#include <errno.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "pkey/vport.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

#define AUTO_DIR VHCA_CLEANUP(vhca_sysfs_closedirp)
#define PATH_LEN 64
#define TEXT_LEN 32

static const char *const files[] = {
	[VHCA_VPORT_NODE] = "node",
	[VHCA_VPORT_PORT] = "port",
	[VHCA_VPORT_POLICY] = "policy",
};

/* Case matters to the driver. */
static const char *const policies[] = {
	[VHCA_LINK_AUTO] = "Follow",
	[VHCA_LINK_ENABLE] = "Up",
	[VHCA_LINK_DOWN] = "Down",
};

static int open_vf(const struct vhca_identity_at *at, struct vhca_sysfs_dir **ret)
{
	char path[PATH_LEN];
	int r;

	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s/sriov/%u", VHCA_BDF_STR(at->pf),
		       at->vf_index);
	r = vhca_sysfs_opendir(at->sys, path, ret);
	return r == -ENOENT ? -ENXIO : r;
}

bool vhca_vport_sysfs_exists(const struct vhca_identity_at *at)
{
	AUTO_DIR struct vhca_sysfs_dir *pf = NULL;
	char path[PATH_LEN];

	(void)snprintf(path, sizeof(path), "bus/pci/devices/%s", VHCA_BDF_STR(at->pf));
	return vhca_sysfs_opendir(at->sys, path, &pf) == 0 && vhca_sysfs_exists(pf, "sriov");
}

static int read_guid(struct vhca_sysfs_dir *vf, enum vhca_vport_attr attr, uint64_t *ret)
{
	char text[TEXT_LEN];
	int r = vhca_sysfs_read(vf, files[attr], text, sizeof(text));

	if (r < 0)
		return r;
	return vhca_guid_parse(text, ret) < 0 ? -EBADMSG : 0;
}

static int read_policy(struct vhca_sysfs_dir *vf, enum vhca_link_policy *ret)
{
	char text[TEXT_LEN];
	int r = vhca_sysfs_read(vf, files[VHCA_VPORT_POLICY], text, sizeof(text));

	if (r < 0)
		return r;
	r = vhca_word_find(policies, VHCA_ARRAY_SIZE(policies), text);
	if (r < 0)
		return -EBADMSG;
	*ret = (enum vhca_link_policy)r;
	return 0;
}

static int read_vport(const struct vhca_identity_at *at, struct vhca_vport *ret)
{
	AUTO_DIR struct vhca_sysfs_dir *vf = NULL;
	struct vhca_vport vport;
	int r = open_vf(at, &vf);

	if (r == 0)
		r = read_guid(vf, VHCA_VPORT_NODE, &vport.node_guid);
	if (r == 0)
		r = read_guid(vf, VHCA_VPORT_PORT, &vport.port_guid);
	if (r == 0)
		r = read_policy(vf, &vport.policy);
	if (r == 0)
		*ret = vport;
	return r;
}

static int write_vport(const struct vhca_identity_at *at, enum vhca_vport_attr attr, uint64_t value)
{
	AUTO_DIR struct vhca_sysfs_dir *vf = NULL;
	char text[TEXT_LEN];
	struct vhca_strbuf sb;
	int r = open_vf(at, &vf);

	if (r < 0)
		return r;
	if (attr == VHCA_VPORT_POLICY)
		return value < VHCA_ARRAY_SIZE(policies)
			       ? vhca_sysfs_write(vf, files[attr], policies[value])
			       : -EINVAL;
	/* guid_store takes eight bytes joined by colons and nothing else. */
	vhca_strbuf_init(&sb, text, sizeof(text));
	for (int shift = 56; shift >= 0; shift -= 8)
		vhca_strbuf_add(&sb, "%02x%s", (unsigned int)(value >> shift) & 0xff,
				shift > 0 ? ":" : "");
	return vhca_sysfs_write(vf, files[attr], text);
}

const struct vhca_vport_door vhca_vport_sysfs = {
	.name = "sysfs",
	.read = read_vport,
	.write = write_vport,
};
