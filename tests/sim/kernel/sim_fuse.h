/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_KERNEL_SIM_FUSE_H
#define VHCA_TESTS_SIM_KERNEL_SIM_FUSE_H
/* Inside of the simulator: its object and the file system that serves it. */
#define FUSE_USE_VERSION 312
#include <stdatomic.h>

#include <fuse.h>

#include "tests/sim/kernel/sim_fault.h"
#include "tests/sim/kernel/sim_model.h"

#define SIM_LOG_MAX 65536

struct sysfs_sim {
	struct sim_model model;
	struct sim_faults *faults;
	char mount[64], dev[80];
	struct fuse *fuse;
	pthread_t thread;
	atomic_uint open_dirs;
	pthread_mutex_t log_lock;
	char **log;
	size_t n_log;
};

/* NULL where FUSE cannot be mounted. */
struct fuse *sim_fuse_mount(const char *mount, struct sysfs_sim *sim);

#endif
