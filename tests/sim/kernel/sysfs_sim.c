/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/kernel/sysfs_sim.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/sim/kernel/sim_fuse.h"

#define THREADS_MAX 64 /* each hanging access holds one */

/* ---- start and stop ---- */

bool sysfs_sim_available(const char **ret_reason)
{
	char dir[] = "/tmp/vhca-fuse-XXXXXX";
	struct fuse *fuse;

	*ret_reason = "cannot open /dev/fuse";
	if (access("/dev/fuse", R_OK | W_OK) < 0 || mkdtemp(dir) == NULL)
		return false;
	*ret_reason = "cannot mount FUSE here (needs root, or fusermount3)";
	fuse = sim_fuse_mount(dir, NULL);
	if (fuse != NULL) {
		fuse_unmount(fuse);
		fuse_destroy(fuse);
	}
	(void)rmdir(dir);
	return fuse != NULL;
}

/*
 * As the connection ends, libfuse cancels its threads while they say so: in the C library's
 * perror() such a thread keeps the lock of stderr, and the next one who writes there hangs. This
 * one has neither a lock nor memory to lose.
 */
void perror(const char *what)
{
	char line[100];
	int n = snprintf(line, sizeof(line), "%s: errno %d\n", what, errno);

	if (n < (int)sizeof(line) && write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* there is nobody else to tell */
}

static void *serve(void *arg)
{
	struct sysfs_sim *sim = arg;
	struct fuse_loop_config *cfg = fuse_loop_cfg_create();

	assert(cfg != NULL);
	fuse_loop_cfg_set_max_threads(cfg, THREADS_MAX);
	(void)fuse_loop_mt(sim->fuse, cfg); /* ends when it is unmounted */
	fuse_loop_cfg_destroy(cfg);
	return NULL;
}

static void init_model(struct sim_model *m)
{
	static const char *const drivers[] = {"mlx4_core", "mlx5_core", "vfio-pci"};

	assert(pthread_mutex_init(&m->lock, NULL) == 0);
	assert(pthread_cond_init(&m->changed, NULL) == 0);
	m->auto_grant = true;
	m->max_vfs = UINT_MAX;
	m->next_group = 10;
	sim_tree_init(&m->tree);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(drivers); i++)
		sim_add_driver(&m->tree, drivers[i]);
	sim_put(&m->tree, "dev/vfio/vfio", "%s", "");
}

struct sysfs_sim *sysfs_sim_start(void)
{
	struct sysfs_sim *sim = calloc(1, sizeof(*sim));

	assert(sim != NULL);
	init_model(&sim->model);
	sim->faults = sim_faults_new();
	assert(pthread_mutex_init(&sim->log_lock, NULL) == 0);
	sim->log = calloc(SIM_LOG_MAX, sizeof(*sim->log));
	assert(sim->log != NULL);
	(void)snprintf(sim->mount, sizeof(sim->mount), "/tmp/vhca-sim-XXXXXX");
	assert(mkdtemp(sim->mount) != NULL);
	(void)snprintf(sim->dev, sizeof(sim->dev), "%s/dev", sim->mount);
	sim->fuse = sim_fuse_mount(sim->mount, sim);
	assert(sim->fuse != NULL);
	assert(pthread_create(&sim->thread, NULL, serve, sim) == 0);
	return sim;
}

static void let_all_go(struct sysfs_sim *sim)
{
	sim_faults_release(sim->faults, true);
	pthread_mutex_lock(&sim->model.lock);
	sim->model.stopping = true;
	pthread_cond_broadcast(&sim->model.changed);
	pthread_mutex_unlock(&sim->model.lock);
}

/*
 * The kernel reports the close of a directory later, and not at all once the connection has ended;
 * libfuse frees its memory for it only then.
 */
static void await_releases(struct sysfs_sim *sim)
{
	for (unsigned int i = 0; i < 200 && atomic_load(&sim->open_dirs) > 0; i++)
		usleep(5000);
}

struct sysfs_sim *sysfs_sim_stop(struct sysfs_sim *sim)
{
	if (sim == NULL)
		return NULL;
	let_all_go(sim);
	await_releases(sim);
	/*
	 * Forced: ends the connection and with it the serving threads, even if a descriptor below
	 * the root is still open.
	 */
	if (umount2(sim->mount, MNT_FORCE | MNT_DETACH) < 0)
		fuse_unmount(sim->fuse); /* not root: by fusermount3 */
	(void)pthread_join(sim->thread, NULL);
	fuse_unmount(sim->fuse);
	fuse_destroy(sim->fuse);
	(void)rmdir(sim->mount);
	sysfs_sim_clear_log(sim);
	free(sim->log);
	sim_faults_free(sim->faults);
	sim_tree_done(&sim->model.tree);
	(void)pthread_mutex_destroy(&sim->log_lock);
	(void)pthread_cond_destroy(&sim->model.changed);
	(void)pthread_mutex_destroy(&sim->model.lock);
	free(sim);
	return NULL;
}

const char *sysfs_sim_root(const struct sysfs_sim *sim)
{
	return sim->mount;
}

const char *sysfs_sim_dev(const struct sysfs_sim *sim)
{
	return sim->dev;
}

const struct sim_tree *sysfs_sim_tree(const struct sysfs_sim *sim)
{
	return &sim->model.tree;
}

/* ---- hardware ---- */

void sysfs_sim_add_mlx5(struct sysfs_sim *sim, const struct sim_pf *pf)
{
	pthread_mutex_lock(&sim->model.lock);
	sim_add_pf(&sim->model.tree, pf);
	pthread_mutex_unlock(&sim->model.lock);
}

void sysfs_sim_add_mlx4(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int n_vfs)
{
	struct sim_model *m = &sim->model;

	pthread_mutex_lock(&m->lock);
	sim_add_pf(&m->tree, pf);
	for (unsigned int i = 0; i < n_vfs; i++)
		sim_model_add_vf(m, pf->bdf, i);
	sim_put(&m->tree, SIM_PATH(SIM_PCI "/%s/sriov_numvfs", pf->bdf), "%u", n_vfs);
	sim_put(&m->tree, "module/mlx4_core/parameters/num_vfs", "%u", n_vfs);
	sim_put(&m->tree, "module/mlx4_core/parameters/probe_vf", "0");
	sim_add_iov(&m->tree, pf, n_vfs);
	pthread_mutex_unlock(&m->lock);
}

void sysfs_sim_set_groups(struct sysfs_sim *sim, enum sim_groups groups)
{
	pthread_mutex_lock(&sim->model.lock);
	sim->model.groups = groups;
	pthread_mutex_unlock(&sim->model.lock);
}

void sysfs_sim_limit_vfs(struct sysfs_sim *sim, unsigned int n)
{
	pthread_mutex_lock(&sim->model.lock);
	sim->model.max_vfs = n;
	pthread_mutex_unlock(&sim->model.lock);
}

void sysfs_sim_rename(struct sysfs_sim *sim, const char *pf, const char *from, const char *to)
{
	struct sim_model *m = &sim->model;
	char old[PATH_MAX], new[PATH_MAX];

	(void)snprintf(old, sizeof(old), "%s/" SIM_PCI "/%s/infiniband/%s", m->tree.root, pf, from);
	(void)snprintf(new, sizeof(new), "%s/" SIM_PCI "/%s/infiniband/%s", m->tree.root, pf, to);
	pthread_mutex_lock(&m->lock);
	assert(rename(old, new) == 0);
	sim_remove(&m->tree, SIM_PATH("class/infiniband/%s", from));
	sim_link(&m->tree, SIM_PATH("class/infiniband/%s", to),
		 SIM_PATH("../../" SIM_PCI "/%s/infiniband/%s", pf, to));
	pthread_mutex_unlock(&m->lock);
}

void sysfs_sim_reload_mlx4(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int n_vfs)
{
	struct sim_model *m = &sim->model;

	pthread_mutex_lock(&m->lock);
	sim_remove(&m->tree,
		   SIM_PATH("required/" SIM_PCI "/%s/infiniband/%s/iov", pf->bdf, pf->ibdev));
	sim_reset_maps(&m->tree, pf, n_vfs);
	pthread_mutex_unlock(&m->lock);
}

/* ---- the world outside ---- */

void sysfs_sim_hold_group(struct sysfs_sim *sim, int group, bool held)
{
	assert(group >= 0 && group < SIM_GROUPS_MAX);
	pthread_mutex_lock(&sim->model.lock);
	sim->model.held[group] = held;
	pthread_cond_broadcast(&sim->model.changed);
	pthread_mutex_unlock(&sim->model.lock);
}

void sysfs_sim_set_pkey(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int port,
			unsigned int physical, uint16_t pkey)
{
	const char *dev = SIM_PATH(SIM_PCI "/%s/infiniband/%s", pf->bdf, pf->ibdev);

	pthread_mutex_lock(&sim->model.lock);
	sim_put(&sim->model.tree, SIM_PATH("%s/iov/ports/%u/pkeys/%u", dev, port, physical),
		"0x%04x", pkey);
	sim_put(&sim->model.tree, SIM_PATH("%s/ports/%u/pkeys/%u", dev, port, physical), "0x%04x",
		pkey);
	pthread_mutex_unlock(&sim->model.lock);
}

void sysfs_sim_set_auto_grant(struct sysfs_sim *sim, bool on)
{
	pthread_mutex_lock(&sim->model.lock);
	sim->model.auto_grant = on;
	pthread_mutex_unlock(&sim->model.lock);
}

void sysfs_sim_grant(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int port,
		     unsigned int gid_index)
{
	char p[8], index[8];

	(void)snprintf(p, sizeof(p), "%u", port);
	(void)snprintf(index, sizeof(index), "%u", gid_index);
	pthread_mutex_lock(&sim->model.lock);
	sim_model_grant(&sim->model, SIM_PATH(SIM_PCI "/%s/infiniband/%s/iov", pf->bdf, pf->ibdev),
			p, index);
	pthread_mutex_unlock(&sim->model.lock);
}

void sysfs_sim_slave(struct sysfs_sim *sim, const struct sim_pf *pf, unsigned int index, bool up)
{
	const char *iov = SIM_PATH(SIM_PCI "/%s/infiniband/%s/iov", pf->bdf, pf->ibdev);
	char p[12], i[12], name[32];

	(void)snprintf(i, sizeof(i), "%u", index);
	pthread_mutex_lock(&sim->model.lock);
	for (unsigned int port = 1; port <= pf->n_ports; port++) {
		(void)snprintf(p, sizeof(p), "%u", port);
		sim_model_slave(&sim->model, iov, p, i, up);
		if (up)
			sim_model_start_smi(&sim->model,
					    SIM_PATH("%s/%s/ports/%s", iov,
						     sim_iov_name(name, pf->bdf, index), p));
	}
	pthread_mutex_unlock(&sim->model.lock);
}

/* ---- faults and log ---- */

void sysfs_sim_inject(struct sysfs_sim *sim, const struct sim_fault *fault)
{
	sim_faults_add(sim->faults, fault);
}

void sysfs_sim_clear_faults(struct sysfs_sim *sim)
{
	sim_faults_clear(sim->faults);
}

void sysfs_sim_release(struct sysfs_sim *sim)
{
	sim_faults_release(sim->faults, false);
}

unsigned int sysfs_sim_fault_hits(struct sysfs_sim *sim)
{
	return sim_faults_hits(sim->faults);
}

bool sysfs_sim_log(struct sysfs_sim *sim, size_t i, char *buf, size_t size)
{
	bool found;

	pthread_mutex_lock(&sim->log_lock);
	found = i < sim->n_log;
	if (found)
		(void)snprintf(buf, size, "%s", sim->log[i]);
	pthread_mutex_unlock(&sim->log_lock);
	return found;
}

size_t sysfs_sim_n_writes(struct sysfs_sim *sim)
{
	size_t n;

	pthread_mutex_lock(&sim->log_lock);
	n = sim->n_log;
	pthread_mutex_unlock(&sim->log_lock);
	return n;
}

void sysfs_sim_clear_log(struct sysfs_sim *sim)
{
	pthread_mutex_lock(&sim->log_lock);
	while (sim->n_log > 0)
		free(sim->log[--sim->n_log]);
	pthread_mutex_unlock(&sim->log_lock);
}
