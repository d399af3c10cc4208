/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/world_mlx5.h"

#include <assert.h>
#include <string.h>

#define PF	"0000:01:00.0"
#define IFINDEX 4
#define STALE	UINT64_C(0x02c9ab0000000f00)

static struct vhca_identity_at place(const struct world *w, unsigned int v)
{
	return (struct vhca_identity_at){
		.sys = w->mlx5->sys,
		.rtnl = &w->mlx5->kernel.ops,
		.pf = {.bus = 1},
		.ibdev = "mlx5_0",
		.vf_index = (uint16_t)v,
		.port = 1,
		.n_ports = 1,
	};
}

/*
 * The world's word for "withdrawn" is all ones; half of that is a number that is nobody's, and no
 * other VF's of any host.
 */
static void mirror(struct world *w, unsigned int v)
{
	const struct sim_rtnl_vf *fw = &w->mlx5->kernel.vfs[v];
	bool no_port = fw->port == 0 || fw->port == UINT64_MAX;
	bool no_node = fw->node == 0 || fw->node == UINT64_MAX;

	if (!no_port)
		w->vfs[v].last = fw->port;
	w->vfs[v].guid = no_port ? (w->port_guid & 0xff00) + v + 1 : fw->port;
	if (no_port && no_node && fw->policy == VHCA_LINK_DOWN)
		w->vfs[v].guid = UINT64_MAX;
}

void world_mlx5_init(struct world *w, struct world_mlx5 *m)
{
	const struct sim_pf pf = {.bdf = PF,
				  .driver = "mlx5_core",
				  .ibdev = "mlx5_0",
				  .device = 0x101b,
				  .total_vfs = w->n_vfs,
				  .n_ports = 1};

	w->mlx5 = m;
	sim_rtnl_init(&m->kernel, IFINDEX, PF, w->n_vfs);
	sim_tree_init(&m->tree);
	sim_add_driver(&m->tree, pf.driver);
	sim_add_pf(&m->tree, &pf);
	sim_add_netdev(&m->tree, PF, "ib0", 32, IFINDEX);
	assert(vhca_sysfs_open(m->tree.root, &m->sys) == 0);
	for (unsigned int v = 0; v < w->n_vfs; v++) {
		uint64_t guid = STALE + (w->port_guid & 0xff00) + v; /* another on each host */

		m->kernel.vfs[v] = (struct sim_rtnl_vf){
			.node = guid, .port = guid, .cached_node = guid, .cached_port = guid};
		mirror(w, v);
		memset(w->vfs[v].map, -1, sizeof(w->vfs[v].map));
	}
}

void world_mlx5_reset(struct world *w)
{
	sim_rtnl_reload(&w->mlx5->kernel);
	for (unsigned int v = 0; v < w->n_vfs; v++) {
		mirror(w, v);
		memset(w->vfs[v].map, -1, sizeof(w->vfs[v].map));
	}
}

void world_mlx5_done(struct world *w)
{
	vhca_sysfs_close(w->mlx5->sys);
	sim_tree_done(&w->mlx5->tree);
	w->mlx5 = NULL;
}

static void arm(struct world_mlx5 *m, enum vhca_effect effect)
{
	if (m->fail_nth == 0 || m->fail_effect != effect)
		return;
	m->kernel.hit = false;
	m->kernel.fail_at = m->kernel.calls + m->fail_nth;
	m->kernel.fail_errno = m->fail_errno;
	m->fail_nth = 0;
}

int world_mlx5_apply(struct world *w, unsigned int v, enum vhca_effect effect,
		     const struct vhca_identity *want, struct vhca_effect_result *res)
{
	const struct vhca_identity_ops *ops = &vhca_identity_mlx5;
	struct vhca_identity_at at = place(w, v);
	int r;

	arm(w->mlx5, effect);
	if (effect == VHCA_EFFECT_PROGRAM)
		r = ops->program(&at, want, &res->missing, &res->hw, &res->err);
	else
		r = ops->scrub(&at, &res->err);
	mirror(w, v);
	return r;
}

int world_mlx5_read(const struct world *w, unsigned int v, struct vhca_identity_state *ret,
		    struct vhca_error *err)
{
	struct vhca_identity_at at = place(w, v);

	return vhca_identity_mlx5.read(&at, ret, err);
}
