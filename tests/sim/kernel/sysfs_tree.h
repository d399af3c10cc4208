/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SYSFS_TREE_H
#define VHCA_TESTS_SIM_KERNEL_SYSFS_TREE_H
/*
 * A directory that looks like /sys of a host with ConnectX adapters: paths, links and text formats
 * are the kernel's (the place in the kernel stands with each in sysfs_tree.c). It does not react: a
 * write changes a file and nothing else. The reacting one is sysfs_sim.h, which serves such a tree.
 * Helpers abort the test program on failure.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/text.h"

/* Usable length of a port's P_Key table in an mlx4 master (mlx4_parav_master_pf_caps). */
#define SIM_PKEYS    127
#define SIM_GUIDS    128
#define SIM_PATH_MAX 192

struct sim_tree {
	char root[64]; /* absolute */
};

struct sim_pf {
	const char *bdf, *driver, *ibdev; /* ibdev: "" = no RDMA device */
	uint16_t device;		  /* PCI device ID, e.g. 0x1003 */
	uint16_t total_vfs;		  /* 0 = the SR-IOV files are absent */
	unsigned int n_ports;
	uint64_t node_guid;
	unsigned int n_pkeys; /* length of the ports' P_Key tables; 0 = SIM_PKEYS */
};

/* Formatted path in a buffer of the caller's block. */
char *sim_path(char buf[static SIM_PATH_MAX], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define SIM_PATH(...) sim_path((char[SIM_PATH_MAX]){0}, __VA_ARGS__)
#define SIM_PCI	      "devices/pci0000:00" /* where all devices live */

/* Empty tree with bus/pci/{devices,drivers}; in $TMPDIR, /dev/shm or /tmp. */
void sim_tree_init(struct sim_tree *tree);
void sim_tree_done(struct sim_tree *tree); /* removes everything */

/* ---- raw ---- */
void sim_put(const struct sim_tree *tree, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3,
			      4))); /* creates directories; the text gets a newline unless empty */
bool sim_get(const struct sim_tree *tree, const char *path, char *buf,
	     size_t size); /* without newline */
bool sim_readlink(const struct sim_tree *tree, const char *path, char *buf, size_t size);
void sim_link(const struct sim_tree *tree, const char *path, const char *target);
void sim_remove(const struct sim_tree *tree, const char *path); /* recursive; absent is fine */

/* ---- adapters ---- */
void sim_add_driver(const struct sim_tree *tree, const char *name);
void sim_bind(const struct sim_tree *tree, const char *bdf,
	      const char *driver); /* links both ways */
void sim_unbind(const struct sim_tree *tree, const char *bdf);
void sim_add_pf(const struct sim_tree *tree, const struct sim_pf *pf);
/*
 * Creates VF `index` of the PF with links both ways, in an IOMMU group of its own (group < 0:
 * none); not bound.
 */
void sim_add_vf(const struct sim_tree *tree, const char *pf, unsigned int index, const char *vf,
		int group);
/* A network device of the PF (drivers/net: net-sysfs.c); type 32 = IPoIB, 1 = Ethernet. */
void sim_add_netdev(const struct sim_tree *tree, const char *pf, const char *name,
		    unsigned int type, unsigned int ifindex);
/* MLNX_OFED's files of a VF (sriov_sysfs.c there), as after sriov_numvfs: GUIDs zero, link down. */
void sim_add_ofed_vf(const struct sim_tree *tree, const char *pf, unsigned int index);
/*
 * mlx4's iov tree after driver load: n_vfs + 1 functions, VF virtual 0 -> physical 0,
 * random-looking admin GUIDs, nothing granted, 0xffff at physical index 0.
 */
void sim_add_iov(const struct sim_tree *tree, const struct sim_pf *pf, unsigned int n_vfs);
/* The maps as mlx4_ib makes them when it is loaded. */
void sim_reset_maps(const struct sim_tree *tree, const struct sim_pf *pf, unsigned int n_vfs);
/* Directory of slave n below iov/, as mlx4 names it. */
char *sim_iov_name(char buf[static 32], const char *pf, unsigned int slave);
/* Address of VF `index` with offset 1 and stride 1. */
char *sim_vf_bdf(char buf[static VHCA_BDF_STRLEN], const char *pf, unsigned int index);

#endif
