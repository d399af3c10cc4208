/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SYSFS_SIM_H
#define VHCA_TESTS_SIM_KERNEL_SYSFS_SIM_H
/*
 * A /sys that reacts, as a FUSE file system served by threads of the test program: the production
 * sysfs door runs unmodified on its mount point. It keeps a tree of sysfs_tree.h and changes it as
 * the kernel would when a file is written: VFs appear with sriov_numvfs, drivers bind and unbind,
 * mlx4's iov maps and GUID requests; with the kernel's errnos (the place in the kernel stands with
 * each handler in sim_pci.c and sim_mlx4.c). On top: faults on the n-th access to a path, a log of
 * all writes, and what the world outside does (the SM's tables and grants, guests that hold a
 * group).
 *
 * All functions may be called from any thread. They abort the program on misuse. What it does not
 * model: a directory that was removed and made again under the same name is reached through an old
 * descriptor (in sysfs it is not).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/kernel/sysfs_tree.h"

struct sysfs_sim;

/*
 * False where FUSE cannot be mounted (no /dev/fuse, not permitted); *ret_reason says so, for
 * skip().
 */
bool sysfs_sim_available(const char **ret_reason);
/* An empty host with the drivers mlx4_core, mlx5_core and vfio-pci loaded. */
struct sysfs_sim *sysfs_sim_start(void);
/*
 * Lets hanging accesses go, unmounts, removes the tree. Close what you opened below the root first.
 * Returns NULL.
 */
struct sysfs_sim *sysfs_sim_stop(struct sysfs_sim *sim);

const char *sysfs_sim_root(const struct sysfs_sim *sim); /* for vhca_sysfs_open() */
const char *
sysfs_sim_dev(const struct sysfs_sim *sim); /* for vhca_vfio_group_busy(): holds vfio/<group> */
/*
 * The tree itself: sim_get() and sim_put() on it are neither logged nor subject to faults, and
 * cause no reaction.
 */
const struct sim_tree *sysfs_sim_tree(const struct sysfs_sim *sim);

/* ---- hardware ---- */

/* An mlx5 PF without VFs. */
void sysfs_sim_add_mlx5(struct sysfs_sim *sim, const struct sim_pf *pf);
/*
 * An mlx4 PF after driver load with num_vfs: VFs (unbound: probe_vf=0) in groups of their own,
 * parameters, iov tree.
 */
void sysfs_sim_add_mlx4(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int n_vfs);
/*
 * The next VFs come without IOMMU group (IOMMU off), or all in one group (no ACS); default: one
 * each.
 */
enum sim_groups { SIM_GROUPS_OWN, SIM_GROUPS_NONE, SIM_GROUPS_SHARED };
void sysfs_sim_set_groups(struct sysfs_sim *sim, enum sim_groups groups);
/* The mlx5 driver enables at most n VFs, whatever is asked (and the write succeeds). */
void sysfs_sim_limit_vfs(struct sysfs_sim *sim, unsigned int n);
/* udev renames the RDMA device: old path gone, new one there. */
void sysfs_sim_rename(struct sysfs_sim *sim, const char *pf, const char *from, const char *to);
/*
 * mlx4_ib is loaded again: maps as after sysfs_sim_add_mlx4(), nothing is asked for. What mlx4_core
 * and the port hold stays.
 */
void sysfs_sim_reload_mlx4(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int n_vfs);

/* ---- the world outside ---- */

/*
 * A guest opens or closes the VFIO group. Unbinding a VF of an open group, or removing it, waits
 * for the close.
 */
void sysfs_sim_hold_group(struct sysfs_sim *sim, int group, bool held);
/* The SM writes entry `physical` of the port's P_Key table. */
void sysfs_sim_set_pkey(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int port,
			unsigned int physical, uint16_t pkey);
/*
 * Whether the SM answers a GUID request at once (default) or only when sysfs_sim_grant() is called.
 */
void sysfs_sim_set_auto_grant(struct sysfs_sim *sim, bool on);
void sysfs_sim_grant(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int port,
		     unsigned int gid_index);

/*
 * The driver of VF `index` (from 1, as in the iov tree) comes up in its guest, or ends there; a
 * reset is an end.
 */
void sysfs_sim_slave(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int index, bool up);

/* ---- faults ---- */

struct sim_fault {
	bool on_read; /* else on write */
	/*
	 * fnmatch(3) on the path below the root, without a leading slash; '*' matches slashes too
	 */
	const char *pattern;
	unsigned int nth; /* which matching access from now on: 1 = the next, 0 = every one */
	int errnum;	  /* positive; 0 = the access succeeds */
	unsigned int delay_ms;
	bool hang;    /* until sysfs_sim_release() */
	bool applied; /* write: fails with errnum, but takes effect */
	bool lost;    /* write: succeeds, without effect */
};
void sysfs_sim_inject(struct sysfs_sim *sim,
		      const struct sim_fault *fault); /* copied; pattern as well */
void sysfs_sim_clear_faults(struct sysfs_sim *sim);
void sysfs_sim_release(struct sysfs_sim *sim); /* all that hang now go on */
/* How often any fault struck. */
unsigned int sysfs_sim_fault_hits(struct sysfs_sim *sim);

/* ---- log of writes ---- */

/*
 * "path=text -> errno" of write number i (0 = first since the last clear), false if there is none.
 */
bool sysfs_sim_log(struct sysfs_sim *sim, size_t i, char *buf, size_t size);
size_t sysfs_sim_n_writes(struct sysfs_sim *sim);
void sysfs_sim_clear_log(struct sysfs_sim *sim);

#endif
