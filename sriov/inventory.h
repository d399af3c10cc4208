/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_INVENTORY_H
#define VHCA_SRIOV_INVENTORY_H
/*
 * What the host has: SR-IOV capable ConnectX PFs and their VFs, keyed on PCI address, never on
 * mlx4_0-like names. Enumerated by the device links below bus/pci/drivers/{mlx4_core,mlx5_core},
 * read through the sysfs door: one source, the same in a test tree. (Hot-plug is watched with
 * libudev, by the agent; an event only means "scan again".) No attribute is read that waits for a
 * device lock, so a PF on which a write hangs does not hold up the scan; it belongs on a strand all
 * the same.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/cpus.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/sysfs/sysfs.h"

#define VHCA_VFS_MAX   126 /* mlx4: MLX4_MAX_NUM_VF; mlx5 firmware: 127 */
#define VHCA_PFS_MAX   32
#define VHCA_PORTS_MAX 2
#define VHCA_NODES_MAX 64 /* of more, the rest is not known */

#define VHCA_DEVICE_NAME_MAX 64

enum vhca_family { VHCA_FAMILY_MLX4, VHCA_FAMILY_MLX5 };
const char *vhca_family_to_string(enum vhca_family family); /* "mlx4" */

/* What link layers a PF's ports have, as its RDMA device says. */
enum vhca_ib_ports { VHCA_IB_PORTS_UNKNOWN, VHCA_IB_PORTS_NONE, VHCA_IB_PORTS_SOME };

struct vhca_vf_facts {
	struct vhca_bdf bdf;
	uint16_t index;	     /* N of virtfnN */
	int iommu_group;     /* -1: none (IOMMU off) */
	uint16_t group_size; /* devices in the group; more than 1 = ACS problem */
	char driver[32];     /* "" = none */
};

struct vhca_pf_facts {
	struct vhca_bdf bdf;
	enum vhca_family family;
	char driver[32];
	/* RDMA device name right now; "" while none is registered. udev may rename it */
	char ibdev[VHCA_DEVICE_NAME_MAX];
	char netdev[VHCA_DEVICE_NAME_MAX]; /* its network device, the first by name; "" = none */
	uint16_t vendor, device;
	int numa_node;	    /* -1 = unknown */
	uint16_t total_vfs; /* 0 = SR-IOV is off in the adapter's firmware */
	/* that can be seen; fewer than exist while somebody creates or deletes some */
	uint16_t num_vfs;
	bool autoprobe;
	uint8_t n_ports;
	enum vhca_ib_ports ib_ports; /* UNKNOWN while there is no RDMA device */
	uint64_t node_guid;	     /* 0 = unknown */
	uint16_t n_vfs;		     /* num_vfs, of which the indices below VHCA_VFS_MAX */
	struct vhca_vf_facts vfs[VHCA_VFS_MAX]; /* in the order of their indices */
};

struct vhca_numa_node {
	uint32_t number;
	struct vhca_cpus cpus;
};

struct vhca_plugged {
	struct vhca_bdf bdf;
	uint16_t device; /* PCI device ID; 0 = cannot be read */
};

struct vhca_inventory {
	uint16_t n_pfs, n_nodes;
	struct vhca_pf_facts *pfs;    /* sorted by address */
	struct vhca_numa_node *nodes; /* those with CPUs; none on a kernel without NUMA */
	/* Where the bus has a function of Mellanox that is no VF, on whatever driver. */
	size_t n_plugged;
	struct vhca_plugged *plugged;
};

/* Scans the host. A PF that disappears in the middle is left out, not an error. */
int vhca_inventory_scan(struct vhca_sysfs *sys, struct vhca_inventory **ret,
			struct vhca_error *err);
/*
 * Re-reads one PF (after enabling). -ENOENT when it is gone or on another driver; -EAGAIN
 * "vfs_changing" when somebody else is creating or deleting its VFs right now.
 */
int vhca_inventory_read_pf(struct vhca_sysfs *sys, struct vhca_bdf bdf, struct vhca_pf_facts *ret,
			   struct vhca_error *err);
/*
 * Re-reads one VF: driver and group. ret->index is 0: only the PF knows it. -ENOENT when it is
 * gone.
 */
int vhca_inventory_read_vf(struct vhca_sysfs *sys, struct vhca_bdf bdf, struct vhca_vf_facts *ret,
			   struct vhca_error *err);
struct vhca_inventory *vhca_inventory_free(struct vhca_inventory *inv); /* accepts NULL */

#endif
