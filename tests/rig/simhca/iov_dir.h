/* SPDX-License-Identifier: GPL-2.0 */
/* A directory of numbered sysfs files, as the iov/ tree has many. */
#ifndef SIMHCA_IOV_DIR_H
#define SIMHCA_IOV_DIR_H

#include "simhca_ib.h"

#include <linux/kobject.h>
#include <linux/sysfs.h>

struct simhca_iov_kind;

/* One file: which port and function it belongs to, and its number in its directory. */
struct simhca_iov_file {
	struct kobj_attribute attr;
	char name[20];
	const struct simhca_iov_kind *kind;
	struct simhca_ib *dev;
	int fn;
	int port;
	int index;
};

struct simhca_iov_dir {
	struct kobject *kobj;
	struct simhca_iov_file *files;
};

/* What the files of a directory have in common. */
struct simhca_iov_kind {
	ssize_t (*show)(struct kobject *kobj, struct kobj_attribute *attr, char *buf);
	ssize_t (*store)(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			 size_t len);
	const char *directory; /* below the port's; NULL: in the port's own */
	bool of_function;      /* iov/<fn>/ports/<p>/, else iov/ports/<p>/ */
};

static inline struct simhca_iov_file *simhca_iov_file(struct kobj_attribute *attr)
{
	return container_of(attr, struct simhca_iov_file, attr);
}

/* ib_fault.c: how every file is read and written; it may have a fault. */
ssize_t simhca_iov_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf);
ssize_t simhca_iov_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			 size_t len);

/* Makes the directory; returns 0 or -ENOMEM. */
int simhca_iov_dir_create(struct simhca_iov_dir *dir, const char *name, struct kobject *parent);

/* Puts files 0..count-1 into it, as copies of like; hw/mlx4/sysfs.c:create_sysfs_entry. */
int simhca_iov_dir_fill(struct simhca_iov_dir *dir, const struct simhca_iov_file *like, int count,
			const struct simhca_iov_kind *kind);

/* Removes files and directory; a directory that was never made is fine. */
void simhca_iov_dir_destroy(struct simhca_iov_dir *dir);

#endif
