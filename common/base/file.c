/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/role.h"
#include "common/base/text.h"

static uint64_t clock_us(clockid_t clock)
{
	struct timespec ts = {0};

	(void)clock_gettime(clock, &ts); /* cannot fail for the clocks used */
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t vhca_now_ms(void)
{
	return clock_us(CLOCK_BOOTTIME) / 1000;
}

uint64_t vhca_now_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

uint64_t vhca_wall_ms(void)
{
	return clock_us(CLOCK_REALTIME) / 1000;
}

/* Reads to end of file. Grows by doubling, so that files whose st_size is 0 (proc) work as well. */
int vhca_read_fd(int fd, size_t max, char **ret_data, size_t *ret_len)
{
	VHCA_AUTO_FREE char *buf = NULL;
	size_t size = 0, len = 0;

	for (;;) {
		ssize_t n;

		if (len + 1 >= size) {
			char *bigger = realloc(buf, size = size ? size * 2 : 4096);

			if (!bigger)
				return -ENOMEM;
			buf = bigger;
		}
		n = read(fd, buf + len, size - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	buf[len] = '\0';
	*ret_data = vhca_steal_ptr(&buf);
	*ret_len = len;
	return 0;
}

int vhca_read_file(const char *path, size_t max, char **ret_data, size_t *ret_len)
{
	VHCA_AUTO_CLOSE int fd = -1;

	vhca_may_block("read file");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	return vhca_read_fd(fd, max, ret_data, ret_len);
}

int vhca_read_state(const char *path, size_t max, char **ret, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = vhca_read_file(path, max, &text, &len);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "state_unreadable", -r, "%s",
				      path);
	if (strlen(text) != len)
		return vhca_error_set(err, VHCA_ERR_INVALID, "state_damaged", 0, "%s: NUL byte",
				      path);
	*ret = vhca_steal_ptr(&text);
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int directory_of(const char *path, char ret[static PATH_MAX])
{
	char *slash;

	if (vhca_strcpy(ret, PATH_MAX, path) < 0)
		return -ENAMETOOLONG;
	slash = strrchr(ret, '/');
	if (!slash)
		(void)vhca_strcpy(ret, PATH_MAX, "."); /* fits */
	else
		slash[slash == ret] = '\0'; /* keeps the slash of "/" */
	return 0;
}

static struct {
	int (*run)(void *ctx, vhca_disk_fn fn, void *arg);
	void *ctx;
} disk;

void vhca_set_disk(int (*run)(void *ctx, vhca_disk_fn fn, void *arg), void *ctx)
{
	disk.run = run;
	disk.ctx = ctx;
}

int vhca_run_at_disk(vhca_disk_fn fn, void *arg)
{
	vhca_may_block("disk");
	return disk.run ? disk.run(disk.ctx, fn, arg) : fn(arg);
}

/* Unlike what people call their copies (state.backup), so that it can be removed by its name. */
#define UNFINISHED ".tmp-"
#define LETTER	   "[0-9A-Za-z]" /* mkostemp(3) */

struct file_text {
	const char *path;
	const void *data;
	size_t len;
	mode_t mode;
};

static int write_atomic(void *arg)
{
	const struct file_text *f = arg;
	VHCA_AUTO_CLOSE int fd = -1;
	VHCA_AUTO_CLOSE int folder = -1;
	char tmp[PATH_MAX], dir[PATH_MAX];
	int r;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%s" UNFINISHED "XXXXXX", f->path) >= sizeof(tmp))
		return -ENAMETOOLONG;
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = write_all(fd, f->data, f->len);
	if (r == 0 && (fchmod(fd, f->mode) < 0 || fsync(fd) < 0 || rename(tmp, f->path) < 0))
		r = -errno;
	if (r < 0) {
		(void)unlink(tmp); /* the first error is the one to report */
		return r;
	}
	/* Else the rename may be lost at a power failure although the file's data was synced. */
	r = directory_of(f->path, dir);
	if (r < 0)
		return r;
	folder = open(dir, O_RDONLY | O_CLOEXEC);
	return folder < 0 || fsync(folder) < 0 ? -errno : 0;
}

int vhca_write_file_atomic(const char *path, const void *data, size_t len, mode_t mode)
{
	struct file_text f = {.path = path, .data = data, .len = len, .mode = mode};

	vhca_may_block("write file");
	return vhca_run_at_disk(write_atomic, &f);
}

int vhca_sweep_leftovers(const char *path, time_t age_s)
{
	char where[PATH_MAX], pattern[NAME_MAX];
	const struct dirent *entry;
	const char *slash = strrchr(path, '/');
	struct stat st;
	int n = 0;
	DIR *dir;

	vhca_may_block("sweep directory");
	if (directory_of(path, where) < 0 ||
	    (size_t)snprintf(pattern, sizeof(pattern),
			     "%s" UNFINISHED LETTER LETTER LETTER LETTER LETTER LETTER,
			     slash ? slash + 1 : path) >= sizeof(pattern))
		return -ENAMETOOLONG;
	dir = opendir(where);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) /* at an error what is left stays */
		if (fnmatch(pattern, entry->d_name, 0) == 0 &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && (age_s == 0 || time(NULL) - st.st_mtime >= age_s) &&
		    unlinkat(dirfd(dir), entry->d_name, 0) == 0)
			n++;
	(void)closedir(dir); /* it was only read */
	return n;
}

bool vhca_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int mkdir_one(const char *path, mode_t mode)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int vhca_mkdir_p(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	int r;

	if (vhca_strcpy(part, sizeof(part), path) < 0)
		return -ENAMETOOLONG;
	if (!part[0])
		return -ENOENT;
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		r = mkdir_one(part, mode);
		if (r < 0)
			return r;
		*p = '/';
	}
	return mkdir_one(part, mode);
}
