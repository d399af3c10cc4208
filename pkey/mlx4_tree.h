/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_MLX4_TREE_H
#define VHCA_PKEY_MLX4_TREE_H
/*
 * The mlx4 driver's `iov` tree (drivers/infiniband/hw/mlx4/sysfs.c), typed: one attribute a call, negative errno, no policy.
 * A function directory is found by its gid_idx, never by its name, which equals the VF's address only on simple cards.
 */
#include "pkey/identity.h"

struct vhca_mlx4_fn {
	struct vhca_sysfs_dir
		*dev;  /* the RDMA device, opened once: a rename does not divert later accesses */
	char name[32]; /* directory below iov/ */
	uint16_t gid_index; /* slave number = index in admin_guids and gids; never 0 for a VF */
};

/* Opens the tree of at->ibdev (through the PF's PCI address: a device that took over the name is not reached) and finds the
 * VF. -ENOENT: no such RDMA device, renamed; -EAGAIN: it has no iov tree (yet); -ENXIO: the tree lacks this VF on at->port. */
int vhca_mlx4_open(const struct vhca_identity_at *at, struct vhca_mlx4_fn *ret);
void vhca_mlx4_close(struct vhca_mlx4_fn *fn);

/* Bit p-1 is set when the VF has physical port p and that port is InfiniBand: an Ethernet port has no P_Keys and no SA. */
int vhca_mlx4_ib_ports(const struct vhca_mlx4_fn *fn, unsigned int *ret_mask);

/* The port's physical P_Key table, 0 = empty; one entry of it. */
int vhca_mlx4_read_table(const struct vhca_mlx4_fn *fn, uint8_t port,
			 uint16_t ret[static VHCA_PKEY_TABLE_MAX], unsigned int *ret_n);
int vhca_mlx4_read_pkey(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int physical,
			uint16_t *ret);

/* Virtual to physical index, VHCA_PKEY_UNMAPPED for "none"; the whole map, one entry, and writing one. */
int vhca_mlx4_read_map(const struct vhca_mlx4_fn *fn, uint8_t port,
		       int16_t ret[static VHCA_PKEY_TABLE_MAX], unsigned int *ret_n);
int vhca_mlx4_read_index(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt,
			 int16_t *ret);
int vhca_mlx4_write_index(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt,
			  int16_t physical);

/* What the host has asked for: all ones = deleted, 0 = the SM shall choose. */
int vhca_mlx4_read_admin_guid(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret);
int vhca_mlx4_write_admin_guid(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t guid);
/* What the SM has granted: low half of the GID; 0 = nothing. */
int vhca_mlx4_read_granted(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret);

#endif
