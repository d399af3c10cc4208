// SPDX-License-Identifier: GPL-2.0
#include "iov_dir.h"

#include <linux/slab.h>

int simhca_iov_dir_create(struct simhca_iov_dir *dir, const char *name, struct kobject *parent)
{
	dir->kobj = kobject_create_and_add(name, parent);
	return dir->kobj ? 0 : -ENOMEM;
}

int simhca_iov_dir_fill(struct simhca_iov_dir *dir, const struct simhca_iov_file *like, int count,
			const struct simhca_iov_kind *kind)
{
	int i, ret = 0;

	dir->files = kcalloc(count, sizeof(*dir->files), GFP_KERNEL);
	if (!dir->files)
		return -ENOMEM;
	for (i = 0; i < count && !ret; i++) {
		struct simhca_iov_file *f = &dir->files[i];

		*f = *like;
		f->index = i;
		snprintf(f->name, sizeof(f->name), "%d", i);
		sysfs_attr_init(&f->attr.attr);
		f->attr.attr.name = f->name;
		f->attr.attr.mode = 0444 | (kind->store ? 0200 : 0);
		f->kind = kind;
		f->attr.show = simhca_iov_show;
		f->attr.store = kind->store ? simhca_iov_store : NULL;
		ret = sysfs_create_file(dir->kobj, &f->attr.attr);
	}
	return ret;
}

/* kobject_del waits until no file of the directory is being read or written. */
void simhca_iov_dir_destroy(struct simhca_iov_dir *dir)
{
	if (dir->kobj) {
		kobject_del(dir->kobj);
		kobject_put(dir->kobj);
	}
	kfree(dir->files);
	dir->kobj = NULL;
	dir->files = NULL;
}
