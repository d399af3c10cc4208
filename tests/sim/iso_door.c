/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* common/sysfs/sysfs.h on the adapter in memory. All accesses of the agent come through here, so this is where it meets an errno, its
 * death, or a world that acts between two of its steps. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/sysfs/sysfs.h"
#include "tests/sim/iso.h"

struct vhca_sysfs_dir {
	struct hw_dir hw;
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

int __wrap_vhca_sysfs_read(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size);
int __wrap_vhca_sysfs_read(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size)
{
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

int __wrap_vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *attr, const char *value);
int __wrap_vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *attr, const char *value)
{
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
	return r < 0 ? r : written;
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

int __wrap_vhca_sysfs_list(struct vhca_sysfs_dir *dir, const char *attr,
			   int (*fn)(void *ctx, const char *name), void *ctx);
int __wrap_vhca_sysfs_list(struct vhca_sysfs_dir *dir, const char *attr,
			   int (*fn)(void *ctx, const char *name), void *ctx)
{
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
	if (r < 0) /* the node of a bound VF exists: ENOENT cannot come from here */
		return r == -ENOENT ? -ENODEV : r;
	return door->broken != ISO_GROUP_NOT_PROBED && door->truth.hw.vfs[group - 1].open;
}
