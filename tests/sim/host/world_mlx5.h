/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_WORLD_MLX5_H
#define VHCA_TESTS_SIM_HOST_WORLD_MLX5_H
/*
 * A world whose HCA is a mlx5 one: the production back end programs its VFs, on a kernel of
 * sim_rtnl.h.
 */
#include "tests/sim/host/world.h"
#include "tests/sim/kernel/sim_rtnl.h"
#include "tests/sim/kernel/sysfs_tree.h"

struct world_mlx5 {
	struct sim_rtnl kernel;
	struct sim_tree tree;
	struct vhca_sysfs *sys;
	/*
	 * The next effect of this kind: its nth call to the kernel (1 = first) fails. 0: none does.
	 */
	enum vhca_effect fail_effect;
	unsigned int fail_nth;
	int fail_errno;
};

/*
 * Between world_init() and world_start(); VFs are as a driver leaves them that has cached a former
 * tenant's GUIDs.
 */
void world_mlx5_init(struct world *w, struct world_mlx5 *m);
void world_mlx5_done(struct world *w);
/* The host is booted anew. */
void world_mlx5_reset(struct world *w);

/* PREPARE, SCRUB or PROGRAM of VF v; keeps w->vfs[v].guid in step with firmware. */
int world_mlx5_apply(struct world *w, unsigned int v, enum vhca_effect effect,
		     const struct vhca_identity *want, struct vhca_effect_result *res);
int world_mlx5_read(const struct world *w, unsigned int v, struct vhca_identity_state *ret,
		    struct vhca_error *err);

#endif
