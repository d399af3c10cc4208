// SPDX-License-Identifier: GPL-2.0
/*
 * MLNX_OFED's files, not in the mainline kernel: <pf>/sriov/<n>/{node,port,policy} while VF n is
 * enabled. Modelled after sriov_sysfs.c of MLNX_OFED's mlx5_core (guid_show, guid_store,
 * policy_show, policy_store): values come from firmware.
 */
#include "simhca_mlx5.h"

#include <linux/module.h>

#define GUID_BYTES 8

static bool ofed;
module_param(ofed, bool, 0444);
MODULE_PARM_DESC(ofed, "simhca: show the files of MLNX_OFED");

/* <pf>/sriov/<n>: the PF and the number of the VF by the names alone */
static struct mlx5 *owner(struct kobject *dir, int *vf)
{
	struct pci_dev *pdev = to_pci_dev(kobj_to_dev(dir->parent->parent));

	return kstrtoint(kobject_name(dir), 10, vf)
		       ? NULL
		       : ((struct simhca *)pci_get_drvdata(pdev))->family_priv;
}

static int query(struct kobject *dir, struct mlx5_vport *ret)
{
	int vf;
	struct mlx5 *m = owner(dir, &vf);

	return m ? mlx5_query_vport(m, vf, ret) : -EINVAL;
}

static int modify(struct kobject *dir, enum mlx5_select select, const struct mlx5_vport *want)
{
	int vf;
	struct mlx5 *m = owner(dir, &vf);

	return m ? mlx5_set_vport(m, vf, select, want) : -EINVAL;
}

static int parse_guid(const char *buf, u64 *ret)
{
	unsigned int byte[GUID_BYTES];
	int i, n;

	n = sscanf(buf, "%02x:%02x:%02x:%02x:%02x:%02x:%02x:%02x", &byte[0], &byte[1], &byte[2],
		   &byte[3], &byte[4], &byte[5], &byte[6], &byte[7]);
	if (n != GUID_BYTES)
		return -EINVAL;
	for (*ret = 0, i = 0; i < GUID_BYTES; i++)
		*ret = *ret << 8 | byte[i];
	return 0;
}

static enum mlx5_select select_of(const struct kobj_attribute *attr)
{
	return strcmp(attr->attr.name, "node") ? MLX5_SEL_PORT : MLX5_SEL_NODE;
}

static ssize_t guid_show(struct kobject *dir, struct kobj_attribute *attr, char *buf)
{
	struct mlx5_vport vport;
	int ret = query(dir, &vport);
	__be64 bytes;

	if (ret)
		return ret;
	bytes = cpu_to_be64(select_of(attr) == MLX5_SEL_NODE ? vport.node_guid : vport.port_guid);
	return sysfs_emit(buf, "%*phC\n", GUID_BYTES, &bytes);
}

static ssize_t guid_store(struct kobject *dir, struct kobj_attribute *attr, const char *buf,
			  size_t len)
{
	struct mlx5_vport want = {};
	int ret = parse_guid(buf, &want.node_guid);

	want.port_guid = want.node_guid;
	return ret ?: modify(dir, select_of(attr), &want) ?: len;
}

static const char *const policies[MLX5_POLICIES] = {
	[MLX5_POLICY_DOWN] = "Down",
	[MLX5_POLICY_UP] = "Up",
	[MLX5_POLICY_FOLLOW] = "Follow",
};

static ssize_t policy_show(struct kobject *dir, struct kobj_attribute *attr, char *buf)
{
	struct mlx5_vport vport;

	return query(dir, &vport) ?: sysfs_emit(buf, "%s\n", policies[vport.policy]);
}

static ssize_t policy_store(struct kobject *dir, struct kobj_attribute *attr, const char *buf,
			    size_t len)
{
	struct mlx5_vport want = {};

	while (want.policy < MLX5_POLICIES && !sysfs_streq(buf, policies[want.policy]))
		want.policy++;
	if (want.policy == MLX5_POLICIES)
		return -EINVAL;
	return modify(dir, MLX5_SEL_POLICY, &want) ?: len;
}

static struct kobj_attribute node_file = __ATTR(node, 0644, guid_show, guid_store);
static struct kobj_attribute port_file = __ATTR(port, 0644, guid_show, guid_store);
static struct kobj_attribute policy_file = __ATTR_RW(policy);
static const struct attribute *files[] = {&node_file.attr, &port_file.attr, &policy_file.attr,
					  NULL};

int mlx5_sysfs_init(struct mlx5 *m)
{
	if (!ofed)
		return 0;
	m->sriov = kobject_create_and_add("sriov", &m->pdev->dev.kobj);
	return m->sriov ? 0 : -ENOMEM;
}

void mlx5_sysfs_cleanup(struct mlx5 *m)
{
	kobject_put(m->sriov);
}

static int add_vf(struct mlx5 *m, int vf)
{
	char name[12];

	snprintf(name, sizeof(name), "%d", vf);
	m->vf[vf].dir = kobject_create_and_add(name, m->sriov);
	return m->vf[vf].dir ? sysfs_create_files(m->vf[vf].dir, files) : -ENOMEM;
}

int mlx5_sysfs_add_vfs(struct mlx5 *m, int n)
{
	int ret = 0, vf;

	for (vf = 0; m->sriov && vf < n && !ret; vf++)
		ret = add_vf(m, vf);
	if (ret)
		mlx5_sysfs_remove_vfs(m);
	return ret;
}

void mlx5_sysfs_remove_vfs(struct mlx5 *m)
{
	int vf;

	for (vf = 0; vf < MLX5_VFS_MAX; vf++) {
		kobject_put(m->vf[vf].dir);
		m->vf[vf].dir = NULL;
	}
}
