/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SIM_RTNL_H
#define VHCA_TESTS_SIM_KERNEL_SIM_RTNL_H
/*
 * A kernel behind pkey/rtnl.h: rtnetlink on the IPoIB device of a mlx5 PF, with the driver's memory
 * of GUIDs (the cache) and what firmware holds apart, as in hw/mlx5/ib_virt.c and
 * mlx5/core/sriov.c. It reads the request byte by byte, with the kernel's rules and without libnl,
 * and answers as rtnl_fill_vfinfo() does.
 */
#include "pkey/rtnl.h"

#define SIM_RTNL_VFS 126

struct sim_rtnl_vf {
	uint64_t node, port; /* firmware */
	uint32_t policy;     /* firmware; IFLA_VF_LINK_STATE_* */
	uint64_t cached_node, cached_port;
	bool broken; /* ndo_get_vf_config fails: the kernel leaves the VF out of its answer */
};

struct sim_rtnl {
	struct vhca_rtnl ops; /* for vhca_identity_at.rtnl */
	uint32_t ifindex;
	uint16_t type;	    /* of the device; 32 = ARPHRD_INFINIBAND */
	const char *parent; /* IFLA_PARENT_DEV_NAME; NULL: a kernel before 5.14 */
	bool no_get_guid;   /* a kernel before 5.5 */
	bool refuses_zero;  /* firmware takes zero for no GUID */
	uint32_t n_vfs;
	struct sim_rtnl_vf vfs[SIM_RTNL_VFS];

	unsigned int calls, sets;     /* so far */
	unsigned int fail_at;	      /* this call (1 = first) fails with fail_errno; 0 = none */
	int fail_errno;		      /* positive; 0 with lost: success without effect */
	bool fail_applied, fail_lost; /* takes effect all the same; a set that is forgotten */
	bool hit;		      /* the fault struck */
	unsigned char last[512];      /* the last request */
	size_t last_len;
};

void sim_rtnl_init(struct sim_rtnl *sim, uint32_t ifindex, const char *parent, uint32_t n_vfs);
/*
 * sriov_numvfs 0 and back: firmware forgets, sriov_restore_guids() applies what is cached and not
 * zero.
 */
void sim_rtnl_recreate(struct sim_rtnl *sim);
/* mlx5_core is loaded anew. */
void sim_rtnl_reload(struct sim_rtnl *sim);

#endif
