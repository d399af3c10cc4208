/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/sysfs/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/role.h"
#include "common/base/text.h"

#define VALUE_MAX 4095 /* a sysfs attribute is at most one page */

struct vhca_sysfs {
	int root_fd;
	bool ordinary; /* a tree of ordinary files, which keep the end of a longer value */
	_Atomic uint64_t writes, reads, opens; /* strands of several PFs work at the same time */
};

struct vhca_sysfs_dir {
	struct vhca_sysfs *sys; /* borrowed */
	int fd;
};

struct vhca_sysfs_file {
	struct vhca_sysfs *sys; /* borrowed */
	int fd;
};

const char *vhca_sysfs_default_root(void)
{
	return "/sys";
}

/* Relative, not empty, and no ".." component: a name that came from outside cannot leave its
 * directory by text. */
static int check_path(const char *path)
{
	if (path[0] == '\0' || path[0] == '/')
		return -EINVAL;
	for (const char *p = path; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 2 && p[0] == '.' && p[1] == '.')
			return -EINVAL;
		p += len;
		p += strspn(p, "/");
	}
	return 0;
}

VHCA_DEFINE_CLEANUP(struct vhca_sysfs, vhca_sysfs_close)

int vhca_sysfs_open(const char *root, struct vhca_sysfs **ret)
{
	VHCA_CLEANUP(vhca_sysfs_closep) struct vhca_sysfs *sys = calloc(1, sizeof(*sys));
	struct statfs fs;

	if (!sys)
		return -ENOMEM;
	sys->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sys->root_fd < 0 || fstatfs(sys->root_fd, &fs) < 0)
		return -errno;
	sys->ordinary = fs.f_type != SYSFS_MAGIC;
	*ret = vhca_steal_ptr(&sys);
	return 0;
}

struct vhca_sysfs *vhca_sysfs_close(struct vhca_sysfs *sys)
{
	if (!sys)
		return NULL;
	vhca_close_cleanup(&sys->root_fd);
	free(sys);
	return NULL;
}

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

static int open_dir(struct vhca_sysfs *sys, int at, const char *path, struct vhca_sysfs_dir **ret)
{
	VHCA_CLEANUP(vhca_sysfs_closedirp) struct vhca_sysfs_dir *dir = NULL;
	int r = check_path(path);

	if (r < 0)
		return r;
	dir = calloc(1, sizeof(*dir));
	if (!dir)
		return -ENOMEM;
	dir->sys = sys;
	(void)atomic_fetch_add(&sys->opens, 1);
	dir->fd = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir->fd < 0)
		return -errno;
	*ret = vhca_steal_ptr(&dir);
	return 0;
}

int vhca_sysfs_opendir(struct vhca_sysfs *sys, const char *path, struct vhca_sysfs_dir **ret)
{
	vhca_may_block("sysfs opendir");
	return open_dir(sys, sys->root_fd, path, ret);
}

int vhca_sysfs_subdir(struct vhca_sysfs_dir *dir, const char *path, struct vhca_sysfs_dir **ret)
{
	vhca_may_block("sysfs opendir");
	return open_dir(dir->sys, dir->fd, path, ret);
}

struct vhca_sysfs_dir *vhca_sysfs_closedir(struct vhca_sysfs_dir *dir)
{
	if (!dir)
		return NULL;
	vhca_close_cleanup(&dir->fd);
	free(dir);
	return NULL;
}

static int open_attr(struct vhca_sysfs_dir *dir, const char *attr, int flags)
{
	int r = check_path(attr);
	int fd;

	if (r < 0)
		return r;
	(void)atomic_fetch_add(&dir->sys->opens, 1);
	fd = openat(dir->fd, attr, flags | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	return fd;
}

/*
 * From the start, up to size bytes or end of file; the number read. A show() gives all it has to
 * the first read, so a newline at the end of less than was asked for is the end: no second read
 * that only says so.
 */
static ssize_t read_upto(struct vhca_sysfs *sys, int fd, char *buf, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = pread(fd, buf + len, size - len, (off_t)len);

		(void)atomic_fetch_add(&sys->reads, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
		if (n == 0 || (len < size && buf[len - 1] == '\n'))
			break;
	}
	return (ssize_t)len;
}

static int read_value(struct vhca_sysfs *sys, int fd, char *buf, size_t size)
{
	char value[VALUE_MAX + 2]; /* and its newline */
	ssize_t len = read_upto(sys, fd, value, sizeof(value));

	if (len < 0)
		return (int)len;
	if ((size_t)len == sizeof(value))
		return -E2BIG;
	if (len > 0 && value[len - 1] == '\n')
		len--;
	if ((size_t)len >= size)
		return -E2BIG;
	if (memchr(value, '\0', (size_t)len))
		return -EBADMSG;
	memcpy(buf, value, (size_t)len);
	buf[len] = '\0';
	return 0;
}

int vhca_sysfs_read(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size)
{
	VHCA_AUTO_CLOSE int fd = -1;

	vhca_may_block("sysfs read");
	fd = open_attr(dir, attr, O_RDONLY);
	return fd < 0 ? fd : read_value(dir->sys, fd, buf, size);
}

int vhca_sysfs_read_u64(struct vhca_sysfs_dir *dir, const char *attr, unsigned int base,
			uint64_t max, uint64_t *ret)
{
	char value[32];
	int r = vhca_sysfs_read(dir, attr, value, sizeof(value));

	if (r < 0)
		return r;
	r = vhca_parse_u64(value, base, max, ret);
	return r == -EINVAL ? -EBADMSG : r;
}

static bool fits(const char *value)
{
	return strlen(value) <= VALUE_MAX;
}

/* A value that fits. */
static int write_value(struct vhca_sysfs *sys, int fd, const char *value)
{
	char line[VALUE_MAX + 2];
	size_t len = strlen(value);
	ssize_t n;

	memcpy(line, value, len);
	line[len++] = '\n'; /* InfiniBand attributes want it */
	do {
		(void)atomic_fetch_add(&sys->writes, 1);
		n = pwrite(fd, line, len, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *attr, const char *value)
{
	VHCA_AUTO_CLOSE int fd = -1;

	vhca_may_block("sysfs write");
	if (!fits(value))
		return -E2BIG;
	fd = open_attr(dir, attr, dir->sys->ordinary ? O_WRONLY | O_TRUNC : O_WRONLY);
	return fd < 0 ? fd : write_value(dir->sys, fd, value);
}

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_file, vhca_sysfs_file_close)

int vhca_sysfs_file_open(struct vhca_sysfs_dir *dir, const char *attr, bool writable,
			 struct vhca_sysfs_file **ret)
{
	VHCA_CLEANUP(vhca_sysfs_file_closep)
	struct vhca_sysfs_file *file = calloc(1, sizeof(*file));

	vhca_may_block("sysfs open");
	if (!file)
		return -ENOMEM;
	file->sys = dir->sys;
	file->fd = open_attr(dir, attr, writable ? O_RDWR : O_RDONLY);
	if (file->fd < 0)
		return file->fd;
	*ret = vhca_steal_ptr(&file);
	return 0;
}

struct vhca_sysfs_file *vhca_sysfs_file_close(struct vhca_sysfs_file *file)
{
	if (!file)
		return NULL;
	vhca_close_cleanup(&file->fd);
	free(file);
	return NULL;
}

int vhca_sysfs_file_read(struct vhca_sysfs_file *file, char *buf, size_t size)
{
	vhca_may_block("sysfs read");
	return read_value(file->sys, file->fd, buf, size);
}

int vhca_sysfs_file_write(struct vhca_sysfs_file *file, const char *value)
{
	vhca_may_block("sysfs write");
	if (!fits(value))
		return -E2BIG;
	if (file->sys->ordinary && ftruncate(file->fd, 0) < 0)
		return -errno;
	return write_value(file->sys, file->fd, value);
}

int vhca_sysfs_readlink(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size)
{
	char target[PATH_MAX];
	const char *slash;
	ssize_t len;
	int r = check_path(attr);

	vhca_may_block("sysfs readlink");
	if (r < 0)
		return r;
	len = readlinkat(dir->fd, attr, target, sizeof(target));
	if (len < 0)
		return -errno;
	if ((size_t)len == sizeof(target))
		return -E2BIG;
	target[len] = '\0';
	slash = strrchr(target, '/');
	return vhca_strcpy(buf, size, slash ? slash + 1 : target) < 0 ? -E2BIG : 0;
}

bool vhca_sysfs_exists(struct vhca_sysfs_dir *dir, const char *attr)
{
	vhca_may_block("sysfs exists");
	return check_path(attr) == 0 && faccessat(dir->fd, attr, F_OK, 0) == 0;
}

static void closedir_cleanup(DIR **d)
{
	if (*d)
		(void)closedir(*d); /* fails only for a bad stream */
}

/* Closes fd, also on failure. */
static int list_fd(int fd, int (*fn)(void *ctx, const char *name), void *ctx)
{
	VHCA_CLEANUP(closedir_cleanup) DIR *d = fdopendir(fd);
	int r = 0;

	if (!d) {
		r = -errno;
		vhca_close_cleanup(&fd);
		return r;
	}
	while (r == 0) {
		const struct dirent *e;

		errno = 0; /* readdir(3) tells the end from an error only by errno */
		e = readdir(d);
		if (!e)
			return -errno;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = fn(ctx, e->d_name);
	}
	return r;
}

int vhca_sysfs_list(struct vhca_sysfs_dir *dir, const char *attr,
		    int (*fn)(void *ctx, const char *name), void *ctx)
{
	int fd;

	vhca_may_block("sysfs list");
	fd = open_attr(dir, *attr ? attr : ".", O_RDONLY | O_DIRECTORY);
	return fd < 0 ? fd : list_fd(fd, fn, ctx);
}

uint64_t vhca_sysfs_writes(const struct vhca_sysfs *sys)
{
	return atomic_load(&sys->writes);
}

uint64_t vhca_sysfs_reads(const struct vhca_sysfs *sys)
{
	return atomic_load(&sys->reads);
}

uint64_t vhca_sysfs_opens(const struct vhca_sysfs *sys)
{
	return atomic_load(&sys->opens);
}
