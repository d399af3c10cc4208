/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * common/sysfs/sysfs.h and pkey/rtnl.h on the adapter in memory. All accesses of the agent come
 * through here, so this is where it meets an errno, its death, or a world that acts between two of
 * its steps.
 */
#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/sysfs/sysfs.h"
#include "tests/sim/host/iso.h"

#define ATTR_LEN 96

struct vhca_sysfs_dir {
	struct hw_dir hw;
	char below[ATTR_LEN]; /* "iov/ports/1/pkeys/", or nothing */
};

struct vhca_sysfs_file {
	struct vhca_sysfs_dir dir;
	char attr[ATTR_LEN];
	bool writable;
};

static struct iso *door;

void iso_door_use(struct iso *it)
{
	door = it;
}

/* 0: go on. Else the errno of the access; *ret_applied: which takes effect all the same. */
static int strike(bool on_read, bool *ret_lost, bool *ret_applied)
{
	struct iso_fault *f = &door->fault;

	if (door->dying)
		return -EIO;
	if (door->die_in && --door->die_in == 0) {
		door->dying = true;
		return -EIO;
	}
	if (door->meddle_in && --door->meddle_in == 0 && door->meddle)
		door->meddle(door);
	if (!f->in || f->on_read != on_read || --f->in)
		return 0;
	f->hits++;
	truth_delay(&door->truth);
	*ret_lost = f->lost;
	*ret_applied = f->applied;
	return f->lost ? 0 : -f->errnum;
}

static int read_access(void)
{
	bool lost = false, applied = false;

	return strike(true, &lost, &applied);
}

/* ---- vports ---- */

/*
 * A broken agent, or half of one: firmware keeps what was to go, while the agent reads that it has
 * gone.
 */
static void leave_out(struct hw_vport *vp, const struct hw_vport *before)
{
	if (door->broken == ISO_LINK_LEFT && vp->link == HW_LINK_DOWN)
		vp->link = before->link;
	if (door->broken == ISO_GUID_LEFT && hw_is_nobody(vp->node))
		vp->node = before->node;
	if (door->broken == ISO_GUID_LEFT && hw_is_nobody(vp->port))
		vp->port = before->port;
	if (door->broken == ISO_CACHE_LEFT && hw_is_nobody(vp->cached_node))
		vp->cached_node = before->cached_node;
	if (door->broken == ISO_CACHE_LEFT && hw_is_nobody(vp->cached_port))
		vp->cached_port = before->cached_port;
}

/* The agent has set something in the kernel: so has firmware. */
static void vports_set(void)
{
	struct hw *hw = &door->truth.hw;

	for (unsigned int v = 0; v < HW_VFS; v++) {
		struct hw_vport before = hw->vports[v];

		hw_vport_sync(hw, v);
		leave_out(&hw->vports[v], &before);
		truth_vport_set(&door->truth, v, &before);
	}
	iso_sm_vports(door);
}

/* rtnl_fill_vfinfo() leaves a VF out if its ndo_get_vf_config fails */
static void leave_vfs_out(struct sim_rtnl *kernel, bool out)
{
	for (unsigned int v = 0; v < HW_VFS; v++)
		kernel->vfs[v].broken = out;
}

/* mlx5_cmd_exec() gave up waiting: firmware works, and mlx5_ib_set_vf_guid() does not remember. */
static void forget_set(struct sim_rtnl *kernel, const struct sim_rtnl_vf *before)
{
	for (unsigned int v = 0; v < HW_VFS; v++) {
		kernel->vfs[v].cached_node = before[v].cached_node;
		kernel->vfs[v].cached_port = before[v].cached_port;
	}
}

int iso_door_rtnl(void *ctx, const void *request, size_t len, void **ret_reply, size_t *ret_len)
{
	struct iso *it = ctx;
	struct sim_rtnl *kernel = &it->kernel;
	struct sim_rtnl_vf before[HW_VFS];
	bool set = ((const struct nlmsghdr *)request)->nlmsg_type == RTM_SETLINK;
	bool lost = false, applied = false, distorted;
	int r = strike(!set, &lost, &applied);

	it->writes += set;
	if (it->dying)
		return r;
	distorted = r < 0 && !set && (it->fault.cut || it->fault.absent);
	kernel->fail_at = (r < 0 && !distorted) || lost ? kernel->calls + 1 : 0;
	kernel->fail_errno = -r;
	kernel->fail_applied = applied;
	kernel->fail_lost = lost;
	memcpy(before, kernel->vfs, sizeof(before));
	leave_vfs_out(kernel, distorted && it->fault.absent);
	(void)kernel->ops.call(kernel, request, len, ret_reply, ret_len);
	leave_vfs_out(kernel, false);
	if (r < 0 && it->fault.uncached)
		forget_set(kernel, before);
	if (set)
		vports_set();
	if (distorted && it->fault.cut)
		*ret_len /= 2;
	return r < 0 && it->fault.silent
		       ? -EIO
		       : 0; /* what there is of an answer is for the caller to free */
}

/* ---- files ---- */

/* A broken agent: these writes never reach the adapter, and nobody looks whether they did. */
static bool left_out(const struct hw_target *t, const char *text)
{
	if (door->broken == ISO_DEFAULT_LEFT)
		return t->is_map && t->virt == 0 && !strcmp(text, "none");
	return door->broken == ISO_GUID_LEFT && !t->is_map && !strcmp(text, "ffffffffffffffff");
}

static bool reads_left_out(const struct hw_target *t, const char *text)
{
	if (door->broken == ISO_DEFAULT_LEFT)
		return t->is_map && t->virt == 0 && !strcmp(text, "0");
	return door->broken == ISO_GUID_LEFT && !t->is_map;
}

/* ---- the door ---- */

int __wrap_vhca_sysfs_opendir(struct vhca_sysfs *sys, const char *path,
			      struct vhca_sysfs_dir **ret);
int __wrap_vhca_sysfs_opendir(struct vhca_sysfs *sys, const char *path, struct vhca_sysfs_dir **ret)
{
	struct vhca_sysfs_dir *dir = calloc(1, sizeof(*dir));
	int r = read_access();

	(void)sys;
	assert(dir);
	if (!r)
		r = hw_opendir(&door->truth.hw, path, &dir->hw);
	if (r < 0)
		free(dir);
	else
		*ret = dir;
	return r;
}

struct vhca_sysfs_dir *__wrap_vhca_sysfs_closedir(struct vhca_sysfs_dir *dir);
struct vhca_sysfs_dir *__wrap_vhca_sysfs_closedir(struct vhca_sysfs_dir *dir)
{
	free(dir);
	return NULL;
}

/* As below the device itself. */
static const char *whole(const struct vhca_sysfs_dir *dir, const char *attr,
			 char buf[static ATTR_LEN])
{
	size_t below = strlen(dir->below), n = below + strlen(attr);

	assert(n < ATTR_LEN); /* not by snprintf(), as in hw.c */
	memcpy(buf, dir->below, below);
	memcpy(buf + below, attr, n - below + 1);
	if (n > 0 && buf[n - 1] == '/') /* "" = the directory itself */
		buf[n - 1] = '\0';
	return buf;
}

int __wrap_vhca_sysfs_subdir(struct vhca_sysfs_dir *dir, const char *path,
			     struct vhca_sysfs_dir **ret);
int __wrap_vhca_sysfs_subdir(struct vhca_sysfs_dir *dir, const char *path,
			     struct vhca_sysfs_dir **ret)
{
	struct vhca_sysfs_dir *sub;
	char name[32];
	int r = read_access();

	if (!r && !hw_name(&door->truth.hw, &dir->hw, path, 0, name, sizeof(name)))
		r = -ENOENT;
	if (r < 0)
		return r;
	sub = malloc(sizeof(*sub));
	assert(sub && !dir->below[0]);
	*sub = *dir;
	(void)snprintf(sub->below, sizeof(sub->below), "%s/", path);
	*ret = sub;
	return 0;
}

int __wrap_vhca_sysfs_read(struct vhca_sysfs_dir *dir, const char *name, char *buf, size_t size);
int __wrap_vhca_sysfs_read(struct vhca_sysfs_dir *dir, const char *name, char *buf, size_t size)
{
	const char *attr = whole(dir, name, (char[ATTR_LEN]){0});
	struct hw_target target;
	int r = read_access();
	unsigned int i;

	if (!r)
		r = hw_read(&door->truth.hw, &dir->hw, attr, buf, size);
	if (!r && door->broken == ISO_REORDER_IGNORED &&
	    sscanf(attr, "iov/ports/1/pkeys/%u", &i) == 1)
		(void)snprintf(buf, size, "0x%04x", door->shown[i]);
	if (!r && hw_target(&dir->hw, attr, &target) && reads_left_out(&target, buf))
		(void)vhca_strcpy(buf, size, target.is_map ? "none" : "ffffffffffffffff");
	return r;
}

int __wrap_vhca_sysfs_read_u64(struct vhca_sysfs_dir *dir, const char *attr, unsigned int base,
			       uint64_t max, uint64_t *ret);
int __wrap_vhca_sysfs_read_u64(struct vhca_sysfs_dir *dir, const char *attr, unsigned int base,
			       uint64_t max, uint64_t *ret)
{
	char text[64];
	int r = __wrap_vhca_sysfs_read(dir, attr, text, sizeof(text));

	return r < 0 ? r : vhca_parse_u64(text, base, max, ret);
}

int __wrap_vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *name, const char *value);
int __wrap_vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *name, const char *value)
{
	const char *attr = whole(dir, name, (char[ATTR_LEN]){0});
	bool lost = false, applied = false;
	struct hw_target target;
	int r = strike(false, &lost, &applied), written;

	door->writes++;
	if ((r < 0 && !applied) || lost)
		return r;
	if (hw_target(&dir->hw, attr, &target)) {
		if (left_out(&target, value))
			return r;
		truth_before_write(&door->truth, &target, value);
	}
	written = hw_write(&door->truth.hw, &dir->hw, attr, value);
	if (dir->hw.kind == HW_DIR_VPORT)
		vports_set();
	return r < 0 ? r : written;
}

/* No access of its own: who opens a file reads it next, and meets the same errno there. */
int __wrap_vhca_sysfs_file_open(struct vhca_sysfs_dir *dir, const char *attr, bool writable,
				struct vhca_sysfs_file **ret);
int __wrap_vhca_sysfs_file_open(struct vhca_sysfs_dir *dir, const char *attr, bool writable,
				struct vhca_sysfs_file **ret)
{
	struct vhca_sysfs_file *file;
	char text[64];
	int r = door->dying ? -EIO
			    : hw_read(&door->truth.hw, &dir->hw,
				      whole(dir, attr, (char[ATTR_LEN]){0}), text, sizeof(text));

	if (r < 0)
		return r == -ENODEV ? -ENOENT : r; /* of a directory that has gone */
	file = malloc(sizeof(*file));
	assert(file);
	*file = (struct vhca_sysfs_file){.dir = *dir, .writable = writable};
	assert(vhca_strcpy(file->attr, sizeof(file->attr), attr) >= 0);
	*ret = file;
	return 0;
}

struct vhca_sysfs_file *__wrap_vhca_sysfs_file_close(struct vhca_sysfs_file *file);
struct vhca_sysfs_file *__wrap_vhca_sysfs_file_close(struct vhca_sysfs_file *file)
{
	free(file);
	return NULL;
}

int __wrap_vhca_sysfs_file_read(struct vhca_sysfs_file *file, char *buf, size_t size);
int __wrap_vhca_sysfs_file_read(struct vhca_sysfs_file *file, char *buf, size_t size)
{
	return __wrap_vhca_sysfs_read(&file->dir, file->attr, buf, size);
}

int __wrap_vhca_sysfs_file_write(struct vhca_sysfs_file *file, const char *value);
int __wrap_vhca_sysfs_file_write(struct vhca_sysfs_file *file, const char *value)
{
	assert(file->writable);
	return __wrap_vhca_sysfs_write(&file->dir, file->attr, value);
}

int __wrap_vhca_sysfs_readlink(struct vhca_sysfs_dir *dir, const char *attr, char *buf,
			       size_t size);
int __wrap_vhca_sysfs_readlink(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size)
{
	int r = read_access();

	return r < 0 ? r : hw_readlink(&door->truth.hw, &dir->hw, attr, buf, size);
}

bool __wrap_vhca_sysfs_exists(struct vhca_sysfs_dir *dir, const char *attr);
bool __wrap_vhca_sysfs_exists(struct vhca_sysfs_dir *dir, const char *attr)
{
	return !read_access() && hw_exists(&door->truth.hw, &dir->hw, attr);
}

int __wrap_vhca_sysfs_list(struct vhca_sysfs_dir *dir, const char *path,
			   int (*fn)(void *ctx, const char *name), void *ctx);
int __wrap_vhca_sysfs_list(struct vhca_sysfs_dir *dir, const char *path,
			   int (*fn)(void *ctx, const char *name), void *ctx)
{
	const char *attr = whole(dir, path, (char[ATTR_LEN]){0});
	char name[32];
	int r = read_access();

	if (!r && !hw_name(&door->truth.hw, &dir->hw, attr, 0, name, sizeof(name)))
		r = -ENOENT;
	for (unsigned int i = 0;
	     !r && hw_name(&door->truth.hw, &dir->hw, attr, i, name, sizeof(name)); i++)
		r = fn(ctx, name);
	return r;
}

/* vfio_main.c vfio_group_fops_open(): a group can be opened once */
int __wrap_vhca_vfio_group_busy(const char *dev_root, int group);
int __wrap_vhca_vfio_group_busy(const char *dev_root, int group)
{
	int r = read_access();

	(void)dev_root;
	if (r < 0) /* ENOENT, too: the group's node may be hidden, or the kernel has only cdevs */
		return r;
	return door->broken != ISO_GROUP_NOT_PROBED && door->truth.hw.vfs[group - 1].open;
}
