// SPDX-License-Identifier: GPL-2.0
/*
 * The iov/ tree, function half: iov/<fn>/ports/<p>/{pkey_idx,gid_idx,smi_enabled,enable_smi_admin}.
 * Checked against hw/mlx4/sysfs.c: register_one_pkey_tree (a VF has its own ports only), add_port,
 * store_port_pkey, add_vf_smi_entries; mlx4_core/cmd.c:mlx4_vf_set_enable_smi_admin.
 */
#include "iov_dir.h"

#include <linux/slab.h>

struct fn_port {
	struct simhca_iov_dir dir;
	struct simhca_iov_dir pkey_idx;
	struct simhca_iov_dir gid_idx;
	struct simhca_iov_file smi_enabled;
	struct simhca_iov_file enable_smi_admin;
};

struct simhca_iov_fn {
	struct simhca_iov_dir dir;
	struct simhca_iov_dir ports;
	struct fn_port port[SIMHCA_MAX_PORTS + 1];
};

static u8 map_entry(const struct simhca_iov_file *f)
{
	return READ_ONCE(f->dev->hca->func[f->fn].virt2phys[f->port][f->index]);
}

static ssize_t pkey_idx_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);
	int physical = map_entry(f);

	if (physical >= simhca_pkey_table_len(f->dev->hca))
		return sysfs_emit(buf, "none\n");
	return sysfs_emit(buf, "%d\n", physical);
}

/* Anything that begins with "no" is none; else a C integer, so 010 is eight. The PF's map is fixed.
 */
static ssize_t pkey_idx_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			      size_t len)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);
	int physical;

	atomic_inc(&f->dev->hca->stats.pkey_idx_writes);
	if (!f->fn)
		return -EINVAL;
	if (!strncasecmp(buf, "no", 2))
		physical = SIMHCA_PKEY_NONE;
	else if (sscanf(buf, "%i", &physical) != 1 ||
		 physical >= simhca_pkey_table_len(f->dev->hca) || physical < 0)
		return -EINVAL;
	simhca_set_map(f->dev->hca, f->fn, f->port, f->index, physical);
	return len;
}

/* sysfs.c:show_port_gid_idx */
static ssize_t gid_idx_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", simhca_iov_file(attr)->fn);
}

static ssize_t smi_enabled_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);

	return sysfs_emit(buf, "%d\n", f->dev->hca->func[f->fn].smi_enabled[f->port]);
}

static ssize_t enable_smi_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);

	return sysfs_emit(buf, "%d\n", f->dev->hca->func[f->fn].enable_smi[f->port]);
}

static ssize_t enable_smi_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t len)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);
	int enable;

	if (sscanf(buf, "%i", &enable) != 1 || enable < 0 || enable > 1)
		return -EINVAL;
	f->dev->hca->func[f->fn].enable_smi[f->port] = enable;
	return len;
}

static const struct simhca_iov_kind pkey_idx_kind = {pkey_idx_show, pkey_idx_store, "pkey_idx",
						     true};
static const struct simhca_iov_kind gid_idx_kind = {gid_idx_show, NULL, "gid_idx", true};

static int add_smi_file(struct simhca_iov_file *f, const struct simhca_iov_file *like,
			const char *name, struct kobject *parent,
			const struct simhca_iov_kind *kind)
{
	*f = *like;
	sysfs_attr_init(&f->attr.attr);
	strscpy(f->name, name, sizeof(f->name));
	f->attr.attr.name = f->name;
	f->attr.attr.mode = kind->store ? 0644 : 0444;
	f->kind = kind;
	f->attr.show = simhca_iov_show;
	f->attr.store = kind->store ? simhca_iov_store : NULL;
	return sysfs_create_file(parent, &f->attr.attr);
}

/* add_vf_smi_entries: not for the master. */
static int add_smi(struct fn_port *p, const struct simhca_iov_file *like)
{
	static const struct simhca_iov_kind enabled = {smi_enabled_show, NULL, NULL, true};
	static const struct simhca_iov_kind admin = {enable_smi_show, enable_smi_store, NULL, true};
	int ret;

	if (!like->fn)
		return 0;
	ret = add_smi_file(&p->smi_enabled, like, "smi_enabled", p->dir.kobj, &enabled);
	if (!ret)
		ret = add_smi_file(&p->enable_smi_admin, like, "enable_smi_admin", p->dir.kobj,
				   &admin);
	return ret;
}

static int add_port(struct simhca_iov_fn *f, const struct simhca_iov_file *like)
{
	struct fn_port *p = &f->port[like->port];
	char name[4];
	int ret;

	snprintf(name, sizeof(name), "%d", like->port);
	ret = simhca_iov_dir_create(&p->dir, name, f->ports.kobj);
	if (!ret)
		ret = simhca_iov_dir_create(&p->pkey_idx, "pkey_idx", p->dir.kobj);
	if (!ret)
		ret = simhca_iov_dir_fill(&p->pkey_idx, like, simhca_pkey_table_len(like->dev->hca),
					  &pkey_idx_kind);
	if (!ret)
		ret = simhca_iov_dir_create(&p->gid_idx, "gid_idx", p->dir.kobj);
	if (!ret)
		ret = simhca_iov_dir_fill(&p->gid_idx, like, 1, &gid_idx_kind);
	if (!ret)
		ret = add_smi(p, like);
	return ret;
}

static void remove_port(struct fn_port *p)
{
	simhca_iov_dir_destroy(&p->gid_idx);
	simhca_iov_dir_destroy(&p->pkey_idx);
	simhca_iov_dir_destroy(&p->dir);
}

/* sysfs.c:get_name: the PF's domain and bus, then decimal fn/8 and fn%8; a BDF only by chance. */
static void function_name(struct simhca *hca, int fn, char *name, size_t size)
{
	snprintf(name, size, "%.8s%.2d.%d", pci_name(hca->pdev), fn / 8, fn % 8);
}

struct simhca_iov_fn *simhca_iov_fn_create(struct simhca_ib *dev, struct kobject *iov, int fn)
{
	struct simhca_iov_fn *f = kzalloc(sizeof(*f), GFP_KERNEL);
	struct simhca_iov_file like = {.dev = dev, .fn = fn};
	char name[32];
	int ret;

	if (!f)
		return NULL;
	function_name(dev->hca, fn, name, sizeof(name));
	ret = simhca_iov_dir_create(&f->dir, name, iov);
	if (!ret)
		ret = simhca_iov_dir_create(&f->ports, "ports", f->dir.kobj);
	for (like.port = 1; like.port <= dev->hca->num_ports && !ret; like.port++)
		if (simhca_func_has_port(dev->hca, fn, like.port))
			ret = add_port(f, &like);
	if (ret) {
		simhca_iov_fn_destroy(f);
		return NULL;
	}
	return f;
}

void simhca_iov_fn_destroy(struct simhca_iov_fn *f)
{
	int port;

	for (port = 1; port <= SIMHCA_MAX_PORTS; port++)
		remove_port(&f->port[port]);
	simhca_iov_dir_destroy(&f->ports);
	simhca_iov_dir_destroy(&f->dir);
	kfree(f);
}
