/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SYSFS_SYSFS_H
#define VHCA_SYSFS_SYSFS_H
/*
 * The only door to /sys. Every path is relative to the root given at open and may not contain "..";
 * nobody else contains the string "/sys. All calls can block in the kernel (device locks): never on
 * the state thread.
 *
 * read: to end of file into the caller's buffer, exactly one trailing newline removed,
 * NUL-terminated; -E2BIG when the value does not fit, -EBADMSG when it contains a NUL or (typed
 * readers) trailing text. write: one write(2) of value + "\n"; the errno is that of write(2); a
 * short write is -EIO.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vhca_sysfs;

/* root: "/sys" or a test tree. Takes nothing, returns an object to close. */
int vhca_sysfs_open(const char *root, struct vhca_sysfs **ret);
struct vhca_sysfs *vhca_sysfs_close(struct vhca_sysfs *sys); /* accepts NULL, returns NULL */
/* The default root ("/sys"), so that no caller spells it. */
const char *vhca_sysfs_default_root(void);

/* A device directory opened once: later accesses fail with -ENODEV/-ENOENT when the device has
 * gone, instead of hitting another device that took over the name. path is relative to the root;
 * sys is borrowed and must outlive the directory. */
struct vhca_sysfs_dir;
int vhca_sysfs_opendir(struct vhca_sysfs *sys, const char *path, struct vhca_sysfs_dir **ret);
/* A directory below one, with a life of its own. */
int vhca_sysfs_subdir(struct vhca_sysfs_dir *dir, const char *path, struct vhca_sysfs_dir **ret);
struct vhca_sysfs_dir *vhca_sysfs_closedir(struct vhca_sysfs_dir *dir);

/* attr may contain slashes ("ports/1/pkeys/0"). */
int vhca_sysfs_read(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size);
int vhca_sysfs_read_u64(struct vhca_sysfs_dir *dir, const char *attr, unsigned int base,
			uint64_t max, uint64_t *ret);
int vhca_sysfs_write(struct vhca_sysfs_dir *dir, const char *attr, const char *value);
/* Last component of a symbolic link's target ("vfio-pci", "0000:01:00.1", "12"); -ENOENT if there
 * is no link. */
int vhca_sysfs_readlink(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size);
bool vhca_sysfs_exists(struct vhca_sysfs_dir *dir, const char *attr);
/* Calls fn for every name below attr ("" = the directory itself) except . and .., in no order;
 * stops at and returns the first non-zero result. */
int vhca_sysfs_list(struct vhca_sysfs_dir *dir, const char *attr,
		    int (*fn)(void *ctx, const char *name), void *ctx);

/*
 * An attribute opened once, for reading and writing, when it is accessed more than once: opening
 * costs ten times what the read or the write costs. Each access is one system call, and each read
 * asks the driver anew. A file whose device has gone answers -ENODEV, also if another one has its
 * name by now. Independent of the directory it was opened from.
 */
struct vhca_sysfs_file;
int vhca_sysfs_file_open(struct vhca_sysfs_dir *dir, const char *attr, bool writable,
			 struct vhca_sysfs_file **ret);
struct vhca_sysfs_file *vhca_sysfs_file_close(struct vhca_sysfs_file *file); /* accepts NULL */
int vhca_sysfs_file_read(struct vhca_sysfs_file *file, char *buf, size_t size);
int vhca_sysfs_file_write(struct vhca_sysfs_file *file, const char *value);

/*
 * Made since open, for tests and metrics: write(2) calls ("a pass without drift writes nothing"),
 * read(2) calls, and attributes and directories opened.
 */
uint64_t vhca_sysfs_writes(const struct vhca_sysfs *sys);
uint64_t vhca_sysfs_reads(const struct vhca_sysfs *sys);
uint64_t vhca_sysfs_opens(const struct vhca_sysfs *sys);

#endif
