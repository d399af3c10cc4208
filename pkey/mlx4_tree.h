/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_MLX4_TREE_H
#define VHCA_PKEY_MLX4_TREE_H
/*
 * The mlx4 driver's `iov` tree (drivers/infiniband/hw/mlx4/sysfs.c), typed: one attribute a call,
 * negative errno, no policy. A function directory is found by its gid_idx, never by its name, which
 * equals the VF's address only on simple cards.
 */
#include "pkey/identity.h"

#define VHCA_MLX4_PORTS 2

/*
 * A directory of numbered attributes. Each is opened at its first access and kept: writing, reading
 * back and proving cost one system call each then.
 */
struct vhca_mlx4_table {
	struct vhca_sysfs_dir *dir;
	struct vhca_sysfs_file *file[VHCA_PKEY_TABLE_MAX];
};

struct vhca_mlx4_fn {
	struct vhca_sysfs_dir
		*dev;  /* the RDMA device, opened once: a rename does not divert later accesses */
	char name[32]; /* directory below iov/ */
	uint16_t gid_index; /* slave number = index in admin_guids and gids; never 0 for a VF */
	bool writable;
	struct vhca_identity_kept *kept; /* borrowed, or NULL */
	uint64_t since_ms;		 /* vhca_now_ms() when it was opened */
	/* by port - 1 */
	struct vhca_mlx4_table maps[VHCA_MLX4_PORTS], own_pkeys[VHCA_MLX4_PORTS];
	struct vhca_sysfs_file *admin_guid[VHCA_MLX4_PORTS];
};

/*
 * Opens the tree of at->ibdev (through the PF's PCI address: a device that took over the name is
 * not reached) and finds the VF. -ENOENT: no such RDMA device, renamed; -EAGAIN: it has no iov tree
 * (yet); -ENXIO: the tree lacks this VF on at->port.
 */
int vhca_mlx4_open(const struct vhca_identity_at *at, bool writable, struct vhca_mlx4_fn *ret);
void vhca_mlx4_close(struct vhca_mlx4_fn *fn);

/*
 * Bit p-1 is set when the VF has physical port p and that port is InfiniBand: an Ethernet port has
 * no P_Keys and no SA.
 */
int vhca_mlx4_ib_ports(const struct vhca_mlx4_fn *fn, unsigned int *ret_mask);

/*
 * The port's physical P_Key table: its length; one entry, 0 = empty. A firmware command each: read
 * what is needed.
 */
int vhca_mlx4_table_size(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int *ret);
int vhca_mlx4_read_pkey(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int physical,
			uint16_t *ret);
/*
 * What the entry showed to a call for another VF of this adapter that began at most
 * VHCA_MLX4_SEEN_MS before this one; false: nobody has read it, or too long ago. For a guess that
 * is proven: a VF's own looks and writes take up to 10 ms.
 */
#define VHCA_MLX4_SEEN_MS 20
bool vhca_mlx4_seen_pkey(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int physical,
			 uint16_t *ret);

/*
 * Virtual to physical index, VHCA_PKEY_UNMAPPED for "none": the map's length, one entry, and
 * writing one.
 */
int vhca_mlx4_map_size(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int *ret);
int vhca_mlx4_read_index(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt, int16_t *ret);
int vhca_mlx4_write_index(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt,
			  int16_t physical);

/* May the VF's next driver send SMPs of all kinds, as an SM does (enable_smi_admin)? What the
 * present driver may, smi_enabled, was taken over from here at its start, and stays after a
 * reset. */
int vhca_mlx4_read_smi(const struct vhca_mlx4_fn *fn, uint8_t port, bool *ret);
int vhca_mlx4_forbid_smi(const struct vhca_mlx4_fn *fn, uint8_t port);

/* What the host has asked for: all ones = deleted, 0 = the SM shall choose. */
int vhca_mlx4_read_admin_guid(struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret);
int vhca_mlx4_write_admin_guid(struct vhca_mlx4_fn *fn, uint8_t port, uint64_t guid);
/* What the SM has granted: low half of the GID; 0 = nothing. */
int vhca_mlx4_read_granted(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret);
/* The port's own GUID. */
int vhca_mlx4_read_port_guid(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret);

#endif
