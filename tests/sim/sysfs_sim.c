/* SPDX-License-Identifier: LGPL-2.1-or-later */
#define FUSE_USE_VERSION 312
#include "tests/sim/sysfs_sim.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fuse.h>

#include "common/base/cleanup.h"
#include "tests/sim/sim_fault.h"
#include "tests/sim/sim_model.h"

#define LOG_MAX	    65536
#define VALUE_MAX   4096
#define THREADS_MAX 64 /* each hanging access holds one */

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

static struct sysfs_sim *self(void)
{
	return fuse_get_context()->private_data;
}

/* ---- reading: the tree as it is ---- */

static char *backing(const char *path, char buf[static PATH_MAX])
{
	(void)snprintf(buf, PATH_MAX, "%s%s", self()->model.tree.root, path);
	return buf;
}

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	char buf[PATH_MAX];

	(void)fi;
	return lstat(backing(path, buf), st) < 0 ? -errno : 0;
}

static int op_readlink(const char *path, char *buf, size_t size)
{
	char name[PATH_MAX];
	ssize_t n = readlink(backing(path, name), buf, size - 1);

	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

static int op_opendir(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	(void)fi;
	atomic_fetch_add(&self()->open_dirs, 1);
	return 0;
}

static int op_releasedir(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	(void)fi;
	atomic_fetch_sub(&self()->open_dirs, 1);
	return 0;
}

static int op_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	char name[PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(backing(path, name));

	(void)offset;
	(void)fi;
	(void)flags;
	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL)
		(void)fill(buf, e->d_name, NULL, 0, 0);
	(void)closedir(d);
	return 0;
}

/* sriov_numvfs_show takes the device lock, which a write to it holds all the time. */
static void wait_for_device_lock(struct sim_model *m, const char *path)
{
	char held[SIM_PATH_MAX];

	do {
		(void)snprintf(held, sizeof(held), "/" SIM_PCI "/%s/sriov_numvfs", m->busy_pf);
		if (m->busy_pf[0] == '\0' || strcmp(held, path) != 0 || m->stopping)
			return;
		pthread_cond_wait(&m->changed, &m->lock);
	} while (true);
}

static int op_read(const char *path, char *buf, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	struct sysfs_sim *sim = self();
	struct sim_fault fault;
	VHCA_AUTO_CLOSE int fd = -1;
	char name[PATH_MAX];
	ssize_t n;

	(void)fi;
	if (offset == 0 && sim_faults_strike(sim->faults, true, path + 1, &fault) &&
	    fault.errnum != 0)
		return -fault.errnum;
	pthread_mutex_lock(&sim->model.lock);
	wait_for_device_lock(&sim->model, path);
	fd = open(backing(path, name), O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, buf, size, offset);
	pthread_mutex_unlock(&sim->model.lock);
	return n < 0 ? -errno : (int)n;
}

/* ---- writing: reactions ---- */

/* Next component of *p without its slash; false at the end. */
static bool next_component(const char **p, const char **start, size_t *len)
{
	*p += strspn(*p, "/");
	*start = *p;
	*len = strcspn(*p, "/");
	*p += *len;
	return *len > 0;
}

static bool match(const char *pattern, const char *path, struct sim_parts *parts)
{
	const char *a, *b;
	size_t alen, blen;
	unsigned int n = 0;

	memset(parts, 0, sizeof(*parts));
	while (next_component(&pattern, &a, &alen)) {
		if (!next_component(&path, &b, &blen))
			return false;
		if (alen == 1 && *a == '*') {
			if (n == SIM_PARTS_MAX || blen >= SIM_PART_LEN)
				return false;
			memcpy(parts->part[n++], b, blen);
		} else if (alen != blen || memcmp(a, b, alen) != 0) {
			return false;
		}
	}
	return !next_component(&path, &b, &blen);
}

static sim_store_fn find_store(const char *path, struct sim_parts *parts)
{
	static const struct sim_store *const tables[] = {sim_pci_stores, sim_mlx4_stores};

	for (size_t t = 0; t < VHCA_ARRAY_SIZE(tables); t++) {
		for (const struct sim_store *s = tables[t]; s->pattern != NULL; s++) {
			if (match(s->pattern, path, parts))
				return s->fn;
		}
	}
	return NULL;
}

/* The mlx4_ib sysfs of an Ethernet port has no store function (add_port: is_eth), so its files are read-only. */
static bool is_ethernet_port(struct sysfs_sim *sim, const char *path)
{
	struct sim_parts p;
	char layer[32] = "";

	if (!match(SIM_PCI "/*/infiniband/*/iov/*/ports/*/pkey_idx/*", path, &p))
		return false;
	(void)sim_get(&sim->model.tree,
		      SIM_PATH(SIM_PCI "/%s/infiniband/%s/ports/%s/link_layer", p.part[0],
			       p.part[1], p.part[3]),
		      layer, sizeof(layer));
	return strcmp(layer, "Ethernet") == 0;
}

/* dev/vfio/N is opened by the probe of a group: EBUSY while a guest holds it (vfio_group_fops_open). */
static int open_group(struct sysfs_sim *sim, const char *path)
{
	const char *name = path + strlen("/dev/vfio/");
	long group = strtol(name, NULL, 10);
	bool held;

	pthread_mutex_lock(&sim->model.lock);
	held = group >= 0 && group < SIM_GROUPS_MAX && sim->model.held[group];
	pthread_mutex_unlock(&sim->model.lock);
	return held ? -EBUSY : 0;
}

static int op_open(const char *path, struct fuse_file_info *fi)
{
	struct sysfs_sim *sim = self();
	struct sim_parts parts;
	char name[PATH_MAX];

	fi->direct_io = 1; /* sizes mean nothing here, and every read is a read */
	if (access(backing(path, name), F_OK) < 0)
		return -errno;
	if (strncmp(path, "/dev/vfio/", strlen("/dev/vfio/")) == 0)
		return open_group(sim, path);
	if ((fi->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	/* kernfs_fop_open: no store function, no opening for writing, not even for root */
	if (find_store(path, &parts) == NULL || is_ethernet_port(sim, path))
		return -EACCES;
	return 0;
}

static int op_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)path;
	(void)size;
	(void)fi;
	return 0; /* O_TRUNC, which sysfs ignores */
}

static void log_write(struct sysfs_sim *sim, const char *path, const char *text, int r)
{
	char *line = NULL;

	if (asprintf(&line, "%s=%s -> %d", path + 1, text, -r) < 0)
		abort();
	pthread_mutex_lock(&sim->log_lock);
	assert(sim->n_log < LOG_MAX);
	sim->log[sim->n_log++] = line;
	pthread_mutex_unlock(&sim->log_lock);
}

static int react(struct sysfs_sim *sim, const char *path, const char *text)
{
	struct sim_parts parts;
	sim_store_fn fn = find_store(path, &parts);
	char name[PATH_MAX];
	int r;

	if (fn == NULL)
		return -EIO;
	pthread_mutex_lock(&sim->model.lock);
	/* the device may have gone since the open */
	r = access(backing(path, name), F_OK) < 0 ? -ENODEV : fn(&sim->model, &parts, text);
	pthread_mutex_unlock(&sim->model.lock);
	return r;
}

static int op_write(const char *path, const char *buf, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	struct sysfs_sim *sim = self();
	struct sim_fault fault = {0};
	char text[VALUE_MAX];
	int r = 0;

	(void)offset;
	(void)fi;
	if (size == 0 || size >= sizeof(text))
		return -EINVAL;
	memcpy(text, buf, size);
	text[size] = '\0';
	text[strcspn(text, "\n")] = '\0';
	(void)sim_faults_strike(sim->faults, false, path + 1, &fault);
	if (!fault.lost && (fault.errnum == 0 || fault.applied))
		r = react(sim, path, text);
	if (fault.errnum != 0)
		r = -fault.errnum;
	log_write(sim, path, text, r);
	return r < 0 ? r : (int)size;
}

static void *op_init(struct fuse_conn_info *conn, struct fuse_config *cfg)
{
	(void)conn;
	cfg->entry_timeout = 0;
	cfg->attr_timeout = 0;
	cfg->negative_timeout = 0;
	cfg->nullpath_ok = 0;
	return self();
}

static const struct fuse_operations operations = {
	.getattr = op_getattr,
	.readlink = op_readlink,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.truncate = op_truncate,
	.init = op_init,
};

/* ---- start and stop ---- */

static struct fuse *mount_at(const char *mount, struct sysfs_sim *sim)
{
	char *argv[] = {(char[]){"sysfs_sim"}, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse *fuse = fuse_new(&args, &operations, sizeof(operations), sim);

	fuse_opt_free_args(&args);
	if (fuse == NULL)
		return NULL;
	if (fuse_mount(fuse, mount) != 0) {
		fuse_destroy(fuse);
		return NULL;
	}
	return fuse;
}

bool sysfs_sim_available(const char **ret_reason)
{
	char dir[] = "/tmp/vhca-fuse-XXXXXX";
	struct fuse *fuse;

	*ret_reason = "cannot open /dev/fuse";
	if (access("/dev/fuse", R_OK | W_OK) < 0 || mkdtemp(dir) == NULL)
		return false;
	*ret_reason = "cannot mount FUSE here (needs root, or fusermount3)";
	fuse = mount_at(dir, NULL);
	if (fuse != NULL) {
		fuse_unmount(fuse);
		fuse_destroy(fuse);
	}
	(void)rmdir(dir);
	return fuse != NULL;
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
	sim->log = calloc(LOG_MAX, sizeof(*sim->log));
	assert(sim->log != NULL);
	(void)snprintf(sim->mount, sizeof(sim->mount), "/tmp/vhca-sim-XXXXXX");
	assert(mkdtemp(sim->mount) != NULL);
	(void)snprintf(sim->dev, sizeof(sim->dev), "%s/dev", sim->mount);
	sim->fuse = mount_at(sim->mount, sim);
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

/* The kernel reports the close of a directory later, and not at all once the connection has ended; libfuse frees its
 * memory for it only then. */
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
	/* Forced: ends the connection and with it the serving threads, even if a descriptor below the root is still open. */
	(void)umount2(sim->mount, MNT_FORCE | MNT_DETACH);
	fuse_unmount(sim->fuse);
	(void)pthread_join(sim->thread, NULL);
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
	sim_remove(&m->tree, SIM_PATH(SIM_PCI "/%s/infiniband/%s/iov", pf->bdf, pf->ibdev));
	sim_add_iov(&m->tree, pf, n_vfs);
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
