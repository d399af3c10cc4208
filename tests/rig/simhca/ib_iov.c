// SPDX-License-Identifier: GPL-2.0
/*
 * The iov/ tree, port half: iov/ports/<p>/{admin_guids,gids,pkeys,mcgs}. Checked against
 * hw/mlx4/sysfs.c: mlx4_ib_device_register_sysfs, add_port_entries.
 */
#include "iov_dir.h"

#include <linux/slab.h>

/* What sscanf leaves when it finds no number: the kernel stores uninitialised stack. */
#define STACK_GARBAGE 0xdeadbeefdeadbeefull

struct iov_port {
	struct simhca_iov_dir dir;
	struct simhca_iov_dir admin_guids;
	struct simhca_iov_dir gids;
	struct simhca_iov_dir pkeys;
	struct simhca_iov_dir mcgs;
};

struct simhca_iov {
	struct simhca_iov_dir root;
	struct simhca_iov_dir ports;
	struct iov_port port[SIMHCA_MAX_PORTS + 1];
	struct simhca_iov_fn *fn[SIMHCA_MAX_FUNCS];
};

/* sysfs.c:show_admin_alias_guid */
static ssize_t admin_guid_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);

	return sysfs_emit(buf, "%llx\n", f->dev->hca->func[f->index].admin_guid[f->port]);
}

/* sysfs.c:store_admin_alias_guid: entry 0 is ignored with success, text that is no number is not.
 */
static ssize_t admin_guid_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t len)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);
	u64 guid = STACK_GARBAGE;

	atomic_inc(&f->dev->hca->stats.admin_guid_writes);
	if (!f->index) {
		pr_err("GUID 0 block 0 is RO\n");
		return len;
	}
	if (sscanf(buf, "%llx", &guid) != 1)
		pr_debug("admin_guids/%d: not a number\n", f->index);
	simhca_alias_guid_admin(f->dev, f->port, f->index, guid);
	return len;
}

/* sysfs.c:show_port_gid: what the SM has written into the port's GUID table */
static ssize_t gid_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);
	union ib_gid gid;

	simhca_phys_gid(f->dev->hca, f->port, f->index, &gid);
	return sysfs_emit(buf, "%pI6\n", gid.raw);
}

/* sysfs.c:show_phys_port_pkey */
static ssize_t pkey_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);

	return sysfs_emit(buf, "0x%04x\n", simhca_phys_pkey(f->dev->hca, f->port, f->index));
}

static const struct simhca_iov_kind admin_guid_kind = {admin_guid_show, admin_guid_store,
						       "admin_guids", false};
static const struct simhca_iov_kind gid_kind = {gid_show, NULL, "gids", false};
static const struct simhca_iov_kind pkey_kind = {pkey_show, NULL, "pkeys", false};

static int add_table(struct simhca_iov_dir *dir, const char *name, struct kobject *parent,
		     const struct simhca_iov_file *like, int count,
		     const struct simhca_iov_kind *kind)
{
	int ret = simhca_iov_dir_create(dir, name, parent);

	return ret ? ret : simhca_iov_dir_fill(dir, like, count, kind);
}

static int add_port(struct simhca_ib *dev, struct iov_port *p, int port)
{
	struct simhca_iov_file like = {.dev = dev, .port = port};
	char name[4];
	int ret;

	snprintf(name, sizeof(name), "%d", port);
	ret = simhca_iov_dir_create(&p->dir, name, dev->iov->ports.kobj);
	if (!ret)
		ret = add_table(&p->admin_guids, "admin_guids", p->dir.kobj, &like, SIMHCA_GUIDS,
				&admin_guid_kind);
	if (!ret)
		ret = add_table(&p->gids, "gids", p->dir.kobj, &like, SIMHCA_GUIDS, &gid_kind);
	if (!ret)
		ret = add_table(&p->pkeys, "pkeys", p->dir.kobj, &like,
				simhca_pkey_table_len(dev->hca), &pkey_kind);
	if (!ret)
		ret = simhca_iov_dir_create(&p->mcgs, "mcgs", p->dir.kobj);
	return ret;
}

static void remove_port(struct iov_port *p)
{
	simhca_iov_dir_destroy(&p->mcgs);
	simhca_iov_dir_destroy(&p->pkeys);
	simhca_iov_dir_destroy(&p->gids);
	simhca_iov_dir_destroy(&p->admin_guids);
	simhca_iov_dir_destroy(&p->dir);
}

static int create_tree(struct simhca_ib *dev)
{
	struct simhca_iov *iov = dev->iov;
	int port, fn, ret;

	ret = simhca_iov_dir_create(&iov->root, "iov", &dev->ib.dev.kobj);
	if (!ret)
		ret = simhca_iov_dir_create(&iov->ports, "ports", iov->root.kobj);
	for (port = 1; port <= dev->hca->num_ports && !ret; port++)
		ret = add_port(dev, &iov->port[port], port);
	for (fn = 0; fn <= dev->hca->num_vfs && !ret; fn++) {
		iov->fn[fn] = simhca_iov_fn_create(dev, iov->root.kobj, fn);
		ret = iov->fn[fn] ? 0 : -ENOMEM;
	}
	return ret;
}

int simhca_iov_create(struct simhca_ib *dev)
{
	int ret;

	dev->iov = kzalloc(sizeof(*dev->iov), GFP_KERNEL);
	if (!dev->iov)
		return -ENOMEM;
	ret = simhca_faults_create(dev);
	if (!ret)
		ret = create_tree(dev);
	if (ret)
		simhca_iov_destroy(dev);
	return ret;
}

void simhca_iov_destroy(struct simhca_ib *dev)
{
	struct simhca_iov *iov = dev->iov;
	int port, fn;

	for (fn = 0; fn < SIMHCA_MAX_FUNCS; fn++)
		if (iov->fn[fn])
			simhca_iov_fn_destroy(iov->fn[fn]);
	for (port = 1; port <= SIMHCA_MAX_PORTS; port++)
		remove_port(&iov->port[port]);
	simhca_iov_dir_destroy(&iov->ports);
	simhca_iov_dir_destroy(&iov->root);
	simhca_faults_destroy(dev);
	kfree(iov);
	dev->iov = NULL;
}
