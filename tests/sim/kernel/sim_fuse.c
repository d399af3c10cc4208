/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/kernel/sim_fuse.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

#define VALUE_MAX 4096

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
	static const struct sim_store *const tables[] = {sim_pci_stores, sim_mlx4_stores,
							 sim_mlx5_stores};

	for (size_t t = 0; t < VHCA_ARRAY_SIZE(tables); t++) {
		for (const struct sim_store *s = tables[t]; s->pattern != NULL; s++) {
			if (match(s->pattern, path, parts))
				return s->fn;
		}
	}
	return NULL;
}

/*
 * The mlx4_ib sysfs of an Ethernet port has no store function (add_port: is_eth), so its files are
 * read-only.
 */
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

/* dev/vfio/N, or noiommu-N, is opened by the probe of a group: EBUSY while a guest holds it
 * (vfio_group_fops_open). */
static int open_group(struct sysfs_sim *sim, const char *path)
{
	static const char noiommu[] = "noiommu-";
	const char *name = path + strlen("/dev/vfio/");
	size_t skip = strncmp(name, noiommu, strlen(noiommu)) == 0 ? strlen(noiommu) : 0;
	long group = strtol(name + skip, NULL, 10);
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
	assert(sim->n_log < SIM_LOG_MAX);
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

/* ---- mount ---- */

struct fuse *sim_fuse_mount(const char *mount, struct sysfs_sim *sim)
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
