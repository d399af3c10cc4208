/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SIM_MODEL_H
#define VHCA_TESTS_SIM_KERNEL_SIM_MODEL_H
/* Inside of the simulator: what the reactions share. */
#include <pthread.h>

#include "tests/sim/kernel/sysfs_sim.h"

#define SIM_GROUPS_MAX 1024
#define SIM_PARTS_MAX  5
#define SIM_PART_LEN   64

struct sim_model {
	struct sim_tree tree;
	pthread_mutex_t lock; /* guards the tree and all below; handlers run with it held */
	pthread_cond_t changed;
	bool stopping;
	enum sim_groups groups;
	int next_group;
	unsigned int max_vfs;
	bool auto_grant;
	bool held[SIM_GROUPS_MAX]; /* open in a guest */
	char busy_pf
		[SIM_PART_LEN]; /* whose device lock a sriov_numvfs write holds; "" = nobody's */
};

/* The '*' components of the path that matched, in order. */
struct sim_parts {
	char part[SIM_PARTS_MAX][SIM_PART_LEN];
};

/* text: as written, without its newline. 0 or a negative errno. */
typedef int (*sim_store_fn)(struct sim_model *m, const struct sim_parts *p, const char *text);

struct sim_store {
	const char *pattern; /* components are literal or '*' */
	sim_store_fn fn;
};
extern const struct sim_store sim_pci_stores[], sim_mlx4_stores[],
	sim_mlx5_stores[]; /* end with a NULL pattern */

/* Adds VF `index` in the group that the next VF gets; lock held. */
void sim_model_add_vf(struct sim_model *m, const char *pf, unsigned int index);
/* The SM's answer to the GUID request of this index; lock held. */
void sim_model_grant(struct sim_model *m, const char *iov, const char *port, const char *index);
/* The driver of this function comes up: what it may send on this port (a path); lock held. */
void sim_model_start_smi(struct sim_model *m, const char *port);
/* The driver of this VF comes up, or ends; lock held. */
void sim_model_slave(struct sim_model *m, const char *iov, const char *port, const char *index,
		     bool up);

#endif
