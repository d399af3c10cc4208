// SPDX-License-Identifier: GPL-2.0
/*
 * Vports: what firmware has of them, what the driver remembers, and how the kernel's own ib_ipoib
 * gets at both. Modelled: hw/mlx5/ib_virt.c (all ops; rtnetlink reaches them by
 * ulp/ipoib/ipoib_main.c: ipoib_netdev_ops_pf), mlx5/core/vport.c
 * (mlx5_core_modify_hca_vport_context), mlx5/core/sriov.c (sriov_restore_guids).
 */
#include "simhca_mlx5.h"

#include <linux/if_link.h>
#include <linux/module.h>

static bool refuse_zero;
module_param(refuse_zero, bool, 0644);
MODULE_PARM_DESC(refuse_zero, "simhca: firmware takes no zero GUID");

static int fail;
module_param(fail, int, 0644);
MODULE_PARM_DESC(fail, "simhca: errno of every change of a vport; 0 = none");

static struct mlx5 *to_mlx5(struct ib_device *ib)
{
	return simhca_ib(ib)->hca->family_priv;
}

/* Under the lock. core/cmd.c:cmd_status_to_err: a vport that firmware does not have is EINVAL. */
static struct mlx5_vf *find_vf(struct mlx5 *m, int vf)
{
	return vf >= 0 && vf < MLX5_VFS_MAX && m->vf[vf].enabled ? &m->vf[vf] : NULL;
}

static bool is_refused(enum mlx5_select select, const struct mlx5_vport *want)
{
	return READ_ONCE(refuse_zero) && ((select & MLX5_SEL_NODE && !want->node_guid) ||
					  (select & MLX5_SEL_PORT && !want->port_guid));
}

static void copy_selected(struct mlx5_vport *to, enum mlx5_select select,
			  const struct mlx5_vport *from)
{
	if (select & MLX5_SEL_NODE)
		to->node_guid = from->node_guid;
	if (select & MLX5_SEL_PORT)
		to->port_guid = from->port_guid;
	if (select & MLX5_SEL_POLICY)
		to->policy = from->policy;
}

/*
 * Under the lock. To the record of what guests see; an adapter that is not loaded yet has no
 * guests.
 */
static void show_vport(struct mlx5 *m, int vf)
{
	struct simhca *hca = pci_get_drvdata(m->pdev);
	const struct mlx5_vport *v = &m->vf[vf].firmware;

	if (hca)
		simhca_set_vport_guids(hca, vf + 1, v->node_guid, v->port_guid);
}

/* Under the lock. mlx5_core_modify_hca_vport_context */
static int modify_firmware(struct mlx5 *m, int vf, enum mlx5_select select,
			   const struct mlx5_vport *want)
{
	struct mlx5_vf *f = find_vf(m, vf);
	int error = READ_ONCE(fail);

	if (error)
		return -error;
	if (!f || is_refused(select, want))
		return -EINVAL;
	copy_selected(&f->firmware, select, want);
	show_vport(m, vf);
	return 0;
}

/*
 * ib_virt.c:set_vf_node_guid, set_vf_port_guid, mlx5_ib_set_vf_link_state: remembered once firmware
 * has taken it.
 */
int mlx5_set_vport(struct mlx5 *m, int vf, enum mlx5_select select, const struct mlx5_vport *want)
{
	int ret;

	mutex_lock(&m->lock);
	ret = modify_firmware(m, vf, select, want);
	if (!ret) {
		copy_selected(&m->vf[vf].driver, select, want);
		m->vf[vf].node_valid |= !!(select & MLX5_SEL_NODE);
		m->vf[vf].port_valid |= !!(select & MLX5_SEL_PORT);
	}
	mutex_unlock(&m->lock);
	return ret;
}

/* mlx5_query_hca_vport_context */
int mlx5_query_vport(struct mlx5 *m, int vf, struct mlx5_vport *ret)
{
	struct mlx5_vf *f;

	mutex_lock(&m->lock);
	f = find_vf(m, vf);
	if (f)
		*ret = f->firmware;
	mutex_unlock(&m->lock);
	return f ? 0 : -EINVAL;
}

/*
 * Under the lock. sriov_restore_guids: what is not zero goes back to firmware, a former tenant's
 * GUID, too. A policy of "down" is zero there.
 */
static void restore(struct mlx5 *m, int vf)
{
	const struct mlx5_vport *was = &m->vf[vf].driver;
	enum mlx5_select select = (was->port_guid ? MLX5_SEL_PORT : 0) |
				  (was->node_guid ? MLX5_SEL_NODE : 0) |
				  (was->policy ? MLX5_SEL_POLICY : 0);

	if (select && modify_firmware(m, vf, select, was))
		pci_warn(m->pdev, "modify vport context failed, unable to restore VF %d settings\n",
			 vf);
}

/* sriov.c:mlx5_device_enable_sriov. A vport that firmware makes anew has no GUIDs and is down. */
void mlx5_enable_vports(struct mlx5 *m, int n)
{
	int vf;

	mutex_lock(&m->lock);
	for (vf = 0; vf < n; vf++) {
		m->vf[vf].enabled = true;
		m->vf[vf].firmware = (struct mlx5_vport){};
		show_vport(m, vf);
		restore(m, vf);
	}
	mutex_unlock(&m->lock);
}

/* sriov.c:mlx5_device_disable_sriov; the driver's memory stays. */
void mlx5_disable_vports(struct mlx5 *m)
{
	int vf;

	mutex_lock(&m->lock);
	for (vf = 0; vf < MLX5_VFS_MAX; vf++)
		m->vf[vf].enabled = false;
	mutex_unlock(&m->lock);
}

/* ---- the ops ---- */

/* mlx_to_net_policy and net_to_mlx_policy */
static const int net_policies[MLX5_POLICIES] = {
	[MLX5_POLICY_DOWN] = IFLA_VF_LINK_STATE_DISABLE,
	[MLX5_POLICY_UP] = IFLA_VF_LINK_STATE_ENABLE,
	[MLX5_POLICY_FOLLOW] = IFLA_VF_LINK_STATE_AUTO,
};

static int get_vf_config(struct ib_device *ib, int vf, u32 port, struct ifla_vf_info *info)
{
	struct mlx5_vport vport;
	int ret = mlx5_query_vport(to_mlx5(ib), vf, &vport);

	if (ret)
		return ret;
	memset(info, 0, sizeof(*info));
	info->linkstate = net_policies[vport.policy];
	return 0;
}

static int set_vf_link_state(struct ib_device *ib, int vf, u32 port, int state)
{
	struct mlx5_vport want = {};

	while (want.policy < MLX5_POLICIES && net_policies[want.policy] != state)
		want.policy++;
	if (want.policy == MLX5_POLICIES)
		return -EINVAL;
	return mlx5_set_vport(to_mlx5(ib), vf, MLX5_SEL_POLICY, &want);
}

static int set_vf_guid(struct ib_device *ib, int vf, u32 port, u64 guid, int type)
{
	const struct mlx5_vport want = {.node_guid = guid, .port_guid = guid};

	if (type == IFLA_VF_IB_NODE_GUID)
		return mlx5_set_vport(to_mlx5(ib), vf, MLX5_SEL_NODE, &want);
	if (type == IFLA_VF_IB_PORT_GUID)
		return mlx5_set_vport(to_mlx5(ib), vf, MLX5_SEL_PORT, &want);
	return -EINVAL;
}

/* The driver's memory, not firmware. The real one does not look whether there is such a VF. */
static int get_vf_guid(struct ib_device *ib, int vf, u32 port, struct ifla_vf_guid *node,
		       struct ifla_vf_guid *port_guid)
{
	struct mlx5 *m = to_mlx5(ib);

	if (vf < 0 || vf >= MLX5_VFS_MAX)
		return -EINVAL;
	mutex_lock(&m->lock);
	node->guid = m->vf[vf].node_valid ? m->vf[vf].driver.node_guid : 0;
	port_guid->guid = m->vf[vf].port_valid ? m->vf[vf].driver.port_guid : 0;
	mutex_unlock(&m->lock);
	return 0;
}

const struct ib_device_ops mlx5_vport_ops = {
	.get_vf_config = get_vf_config,
	.set_vf_link_state = set_vf_link_state,
	.set_vf_guid = set_vf_guid,
	.get_vf_guid = get_vf_guid,
};
