/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mlx5_core: a simulated ConnectX-5. It is a family of adapters (simhca.h) on mlx4_core and
 * mlx4_ib, which therefore stay loaded; what is its own are vports, sriov_configure, and
 * MLNX_OFED's files.
 */
#ifndef SIMHCA_MLX5_H
#define SIMHCA_MLX5_H

#include "simhca_ib.h"

#define MLX5_VFS_MAX 128

/* include/linux/mlx5/vport.h: enum port_state_policy */
enum mlx5_policy { MLX5_POLICY_DOWN, MLX5_POLICY_UP, MLX5_POLICY_FOLLOW, MLX5_POLICIES };

/* include/linux/mlx5/mlx5_ifc.h: MLX5_HCA_VPORT_SEL_* */
enum mlx5_select { MLX5_SEL_PORT = 1, MLX5_SEL_NODE = 2, MLX5_SEL_POLICY = 4 };

struct mlx5_vport {
	u64 node_guid;
	u64 port_guid;
	enum mlx5_policy policy;
};

/* mlx5/driver.h: struct mlx5_vf_context, and the firmware's context of the same vport */
struct mlx5_vf {
	bool enabled;
	bool node_valid;
	bool port_valid;
	struct mlx5_vport driver; /* what the driver remembers */
	struct mlx5_vport firmware;
	struct kobject *dir; /* sriov/N */
};

struct mlx5 {
	struct pci_dev *pdev;
	u16 found_device;  /* what the function was called before */
	struct mutex lock; /* vf[] but for dir, which the PCI device's lock guards */
	struct mlx5_vf vf[MLX5_VFS_MAX];
	struct kobject *sriov;
};

/* mlx5_vport.c */
extern const struct ib_device_ops mlx5_vport_ops;
int mlx5_set_vport(struct mlx5 *m, int vf, enum mlx5_select select, const struct mlx5_vport *want);
int mlx5_query_vport(struct mlx5 *m, int vf, struct mlx5_vport *ret);
void mlx5_enable_vports(struct mlx5 *m, int n);
void mlx5_disable_vports(struct mlx5 *m);

/* mlx5_sysfs.c */
int mlx5_sysfs_init(struct mlx5 *m);
void mlx5_sysfs_cleanup(struct mlx5 *m);
int mlx5_sysfs_add_vfs(struct mlx5 *m, int n);
void mlx5_sysfs_remove_vfs(struct mlx5 *m);

#endif
