// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI driver "mlx5_core". It matches no device by id: `driver_override` gives it the PF that
 * mlx4_core had, so both families fit on one emulated controller. Modelled: mlx5/core/sriov.c
 * (mlx5_core_sriov_configure and what it calls), mlx5/core/main.c (remove_one).
 */
#include "simhca_mlx5.h"

#include <linux/module.h>
#include <linux/slab.h>

#define DEVICE_PF 0x1017 /* ConnectX-5; 0x1018 is its VF */

static struct mlx5 *to_mlx5(struct pci_dev *pdev)
{
	return ((struct simhca *)pci_get_drvdata(pdev))->family_priv;
}

/*
 * mlx5_sriov_enable: the vports come before the functions, with what the driver remembers of them.
 */
static int enable_vfs(struct mlx5 *m, int n)
{
	int ret = mlx5_sysfs_add_vfs(m, n);

	if (ret)
		return ret;
	mlx5_enable_vports(m, n);
	ret = pci_enable_sriov(m->pdev, n);
	if (!ret)
		return 0;
	pci_warn(m->pdev, "pci_enable_sriov failed : %d\n", ret);
	mlx5_disable_vports(m);
	mlx5_sysfs_remove_vfs(m);
	return ret;
}

/* mlx5_sriov_disable */
static void disable_vfs(struct mlx5 *m)
{
	mlx5_sysfs_remove_vfs(m);
	pci_disable_sriov(m->pdev);
	mlx5_disable_vports(m);
}

/* mlx5_core_sriov_configure */
static int sriov_configure(struct pci_dev *pdev, int n)
{
	struct mlx5 *m = to_mlx5(pdev);

	if (n > MLX5_VFS_MAX)
		return -ERANGE;
	if (n)
		return enable_vfs(m, n) ?: n;
	disable_vfs(m);
	return 0;
}

static const struct simhca_family mlx5_family = {
	.ib_name = "mlx5_%d",
	.node_desc = "MT4119 ConnectX-5 (simhca)",
	.max_ports = 1, /* a second port is another PF */
	.ib_ops = &mlx5_vport_ops,
};

static int mlx5_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct mlx5 *m;
	int ret;

	if (pdev->is_virtfn)
		return -ENODEV;
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->pdev = pdev;
	m->found_device = pdev->device;
	mutex_init(&m->lock);
	simhca_wear_ids(pdev, DEVICE_PF);
	ret = mlx5_sysfs_init(m);
	if (!ret)
		ret = simhca_load(pdev, &mlx5_family, m);
	if (!ret)
		return 0;
	mlx5_sysfs_cleanup(m);
	pdev->device = m->found_device;
	kfree(m);
	return ret;
}

static void mlx5_remove(struct pci_dev *pdev)
{
	struct mlx5 *m = to_mlx5(pdev);

	disable_vfs(m);
	simhca_unload(pdev);
	mlx5_sysfs_cleanup(m);
	pdev->device = m->found_device;
	kfree(m);
}

static struct pci_driver mlx5_driver = {
	.name = "mlx5_core",
	.probe = mlx5_probe,
	.remove = mlx5_remove,
	.sriov_configure = sriov_configure,
};
module_pci_driver(mlx5_driver);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("simhca: simulated ConnectX-5 for tests, shadows the real mlx5_core");
