/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sriov/inventory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)
VHCA_DEFINE_CLEANUP(struct vhca_inventory, vhca_inventory_free)

#define AUTO_DIR VHCA_CLEANUP(vhca_sysfs_closedirp)
#define PATH_LEN 96

#define VENDOR_MELLANOX 0x15b3 /* include/linux/pci_ids.h: PCI_VENDOR_ID_MELLANOX */

static const struct {
	enum vhca_family family;
	const char *name;
	const char *driver;
} families[] = {
	{VHCA_FAMILY_MLX4, "mlx4", "mlx4_core"},
	{VHCA_FAMILY_MLX5, "mlx5", "mlx5_core"},
};

const char *vhca_family_to_string(enum vhca_family family)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(families); i++) {
		if (families[i].family == family)
			return families[i].name;
	}
	return "unknown";
}

static int family_of_driver(const char *driver, enum vhca_family *ret)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(families); i++) {
		if (strcmp(families[i].driver, driver) == 0) {
			*ret = families[i].family;
			return 0;
		}
	}
	return -ENOENT;
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

static int open_pci(struct vhca_sysfs *sys, struct vhca_bdf bdf, struct vhca_sysfs_dir **ret)
{
	char path[PATH_LEN];

	snprintf(path, sizeof(path), "bus/pci/devices/%s", VHCA_BDF_STR(bdf));
	return vhca_sysfs_opendir(sys, path, ret);
}

static int count_one(void *ctx, const char *name)
{
	unsigned int *n = ctx;

	(void)name;
	(*n)++;
	return 0;
}

/* Number of names in a directory; 0 if there is no such directory. */
static unsigned int count_names(struct vhca_sysfs_dir *dir, const char *attr)
{
	unsigned int n = 0;

	if (vhca_sysfs_list(dir, attr, count_one, &n) < 0)
		return 0;
	return n;
}

/* An absent link is the empty string: no driver, no group. */
static int read_link_or_empty(struct vhca_sysfs_dir *dir, const char *attr, char *buf, size_t size)
{
	int r = vhca_sysfs_readlink(dir, attr, buf, size);

	if (r != -ENOENT)
		return r < 0 ? r : 0;
	buf[0] = '\0';
	return 0;
}

/* ---- one VF ---- */

static int read_group(struct vhca_sysfs_dir *dir, struct vhca_vf_facts *vf)
{
	char text[16];
	uint32_t group;
	int r = read_link_or_empty(dir, "iommu_group", text, sizeof(text));

	if (r < 0)
		return r;
	vf->iommu_group = -1;
	vf->group_size = 0;
	if (text[0] == '\0')
		return 0;
	r = vhca_parse_u32(text, 10, INT32_MAX, &group);
	if (r < 0)
		return r;
	vf->iommu_group = (int)group;
	vf->group_size = (uint16_t)count_names(dir, "iommu_group/devices");
	return 0;
}

static int read_vf(struct vhca_sysfs *sys, struct vhca_bdf bdf, struct vhca_vf_facts *ret)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	struct vhca_vf_facts vf = {.bdf = bdf};
	int r = open_pci(sys, bdf, &dir);

	if (r < 0)
		return r;
	r = read_link_or_empty(dir, "driver", vf.driver, sizeof(vf.driver));
	if (r < 0)
		return r;
	r = read_group(dir, &vf);
	if (r < 0)
		return r;
	*ret = vf;
	return 0;
}

int vhca_inventory_read_vf(struct vhca_sysfs *sys, struct vhca_bdf bdf, struct vhca_vf_facts *ret,
			   struct vhca_error *err)
{
	int r = read_vf(sys, bdf, ret);

	if (r == -ENOENT || r == -ENODEV)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "vf_gone", ENOENT,
				      "%s: no such PCI function", VHCA_BDF_STR(bdf));
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "vf_unreadable", -r,
				      "%s: read driver and IOMMU group", VHCA_BDF_STR(bdf));
	return 0;
}

/* VF number `index` of the PF: virtfnN is the only robust map from index to address. */
static int read_vf_at(struct vhca_sysfs *sys, struct vhca_sysfs_dir *pf_dir, uint16_t index,
		      struct vhca_vf_facts *ret)
{
	char attr[16], target[VHCA_BDF_STRLEN];
	struct vhca_bdf bdf;
	int r;

	snprintf(attr, sizeof(attr), "virtfn%u", index);
	r = vhca_sysfs_readlink(pf_dir, attr, target, sizeof(target));
	if (r < 0)
		return r;
	r = vhca_bdf_parse(target, &bdf);
	if (r < 0)
		return r;
	r = read_vf(sys, bdf, ret);
	if (r < 0)
		return r;
	ret->index = index;
	return 0;
}

/* The virtfnN links of a PF. */
struct links {
	uint16_t n;
	bool seen[VHCA_VFS_MAX];
};

static int on_link(void *ctx, const char *name)
{
	static const char prefix[] = "virtfn";
	struct links *links = ctx;
	uint32_t index;

	if (strncmp(name, prefix, strlen(prefix)) != 0 ||
	    vhca_parse_u32(name + strlen(prefix), 10, UINT16_MAX, &index) < 0)
		return 0;
	links->n++;
	if (index < VHCA_VFS_MAX)
		links->seen[index] = true;
	return 0;
}

/*
 * The links are the count: sriov_numvfs says the same, but reading it waits for the PF's device
 * lock (drivers/pci/iov.c: sriov_numvfs_show), and so for ever while somebody takes VFs away that a
 * guest holds. Then the link of such a VF is gone already, and those of others may still be there.
 */
static int read_vfs(struct vhca_sysfs *sys, struct vhca_sysfs_dir *dir, struct vhca_pf_facts *pf)
{
	struct links links = {0};
	int r = vhca_sysfs_list(dir, "", on_link, &links);

	if (r < 0)
		return r;
	pf->num_vfs = links.n;
	if (links.n > VHCA_VFS_MAX)
		vhca_log_warning("%s: has %u VFs; only the first %d are used",
				 VHCA_BDF_STR(pf->bdf), links.n, VHCA_VFS_MAX);
	for (uint16_t i = 0; i < VHCA_VFS_MAX; i++) {
		if (!links.seen[i])
			continue;
		r = read_vf_at(sys, dir, i, &pf->vfs[pf->n_vfs]);
		/* It was there a moment ago: somebody is creating or deleting VFs right now. */
		if (is_gone(r))
			return -EAGAIN;
		if (r < 0)
			return r;
		pf->n_vfs++;
	}
	return 0;
}

/* ---- one PF ---- */

/* A function has one RDMA device, but mlx4 has a network device for each port. */
static int lowest_name(void *ctx, const char *name)
{
	char *lowest = ctx;

	if (lowest[0] && strcmp(name, lowest) >= 0)
		return 0;
	return vhca_strcpy(lowest, VHCA_DEVICE_NAME_MAX, name) < 0 ? -E2BIG : 0;
}

/* drivers/infiniband/core/sysfs.c link_layer_show: "InfiniBand", "Ethernet" or "Unknown" */
static enum vhca_ib_ports read_link_layers(struct vhca_sysfs_dir *dir,
					   const struct vhca_pf_facts *pf)
{
	char attr[PATH_LEN + 32], text[32];

	for (unsigned int port = 1; port <= pf->n_ports; port++) {
		snprintf(attr, sizeof(attr), "infiniband/%s/ports/%u/link_layer", pf->ibdev, port);
		if (vhca_sysfs_read(dir, attr, text, sizeof(text)) < 0)
			return VHCA_IB_PORTS_UNKNOWN;
		if (strcmp(text, "InfiniBand") == 0)
			return VHCA_IB_PORTS_SOME;
	}
	return pf->n_ports ? VHCA_IB_PORTS_NONE : VHCA_IB_PORTS_UNKNOWN;
}

/*
 * The RDMA device may come and go by itself: what cannot be read is left empty, and read again at
 * the next scan.
 */
static void read_rdma(struct vhca_sysfs_dir *dir, struct vhca_pf_facts *pf)
{
	char attr[PATH_LEN], text[32];

	if (vhca_sysfs_list(dir, "infiniband", lowest_name, pf->ibdev) < 0 || !pf->ibdev[0]) {
		pf->ibdev[0] = '\0';
		return;
	}
	if (vhca_sysfs_list(dir, "net", lowest_name, pf->netdev) < 0)
		pf->netdev[0] = '\0';
	snprintf(attr, sizeof(attr), "infiniband/%s/ports", pf->ibdev);
	pf->n_ports = (uint8_t)count_names(dir, attr);
	snprintf(attr, sizeof(attr), "infiniband/%s/node_guid", pf->ibdev);
	if (vhca_sysfs_read(dir, attr, text, sizeof(text)) < 0 ||
	    vhca_guid_parse(text, &pf->node_guid) < 0)
		pf->node_guid = 0;
	pf->ib_ports = read_link_layers(dir, pf);
}

static int read_u16(struct vhca_sysfs_dir *dir, const char *attr, unsigned int base, uint16_t *ret)
{
	uint64_t value;
	int r = vhca_sysfs_read_u64(dir, attr, base, UINT16_MAX, &value);

	if (r < 0)
		return r;
	*ret = (uint16_t)value;
	return 0;
}

/*
 * A function without SR-IOV capability, or with SR-IOV off in firmware, has none of these files:
 * all zero.
 */
static int read_sriov(struct vhca_sysfs_dir *dir, struct vhca_pf_facts *pf)
{
	uint16_t autoprobe = 0;
	int r = read_u16(dir, "sriov_totalvfs", 10, &pf->total_vfs);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	r = read_u16(dir, "sriov_drivers_autoprobe", 10, &autoprobe);
	if (r < 0)
		return r;
	pf->autoprobe = autoprobe != 0;
	return 0;
}

static int read_pf_facts(struct vhca_sysfs *sys, struct vhca_sysfs_dir *dir,
			 struct vhca_pf_facts *pf)
{
	uint64_t node;
	int r = vhca_sysfs_readlink(dir, "driver", pf->driver, sizeof(pf->driver));

	if (r == 0)
		r = family_of_driver(pf->driver, &pf->family);
	if (r == 0)
		r = read_u16(dir, "vendor", 16, &pf->vendor);
	if (r == 0)
		r = read_u16(dir, "device", 16, &pf->device);
	if (r == 0)
		r = read_sriov(dir, pf);
	if (r < 0)
		return r;
	/* "-1" is what the kernel prints for "unknown", and no unsigned number. */
	r = vhca_sysfs_read_u64(dir, "numa_node", 10, INT32_MAX, &node);
	pf->numa_node = r < 0 ? -1 : (int)node;
	read_rdma(dir, pf);
	return pf->total_vfs ? read_vfs(sys, dir, pf) : 0;
}

int vhca_inventory_read_pf(struct vhca_sysfs *sys, struct vhca_bdf bdf, struct vhca_pf_facts *ret,
			   struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	VHCA_AUTO_FREE struct vhca_pf_facts *pf = calloc(1, sizeof(*pf));
	int r;

	if (!pf)
		return vhca_error_no_memory(err, "read PF");
	pf->bdf = bdf;
	r = open_pci(sys, bdf, &dir);
	if (r == 0)
		r = read_pf_facts(sys, dir, pf);
	if (is_gone(r))
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "pf_gone", ENOENT,
				      "%s: no such adapter, or not on mlx4_core or mlx5_core",
				      VHCA_BDF_STR(bdf));
	if (r == -EAGAIN)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "vfs_changing", EAGAIN,
				      "%s: VFs appear or disappear while they are read",
				      VHCA_BDF_STR(bdf));
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "pf_unreadable", -r, "%s: read adapter",
				      VHCA_BDF_STR(bdf));
	*ret = *pf;
	return 0;
}

/* ---- the host ---- */

struct candidates {
	unsigned int n;
	struct vhca_bdf
		bdf[VHCA_PFS_MAX * (VHCA_VFS_MAX + 1)]; /* VFs are on the drivers' lists too */
};

/* A driver's directory holds a link per device, named by its address, among control files. */
static int on_driver_entry(void *ctx, const char *name)
{
	struct candidates *c = ctx;
	struct vhca_bdf bdf;

	if (vhca_bdf_parse(name, &bdf) < 0)
		return 0;
	if (c->n == VHCA_ARRAY_SIZE(c->bdf))
		return -E2BIG;
	c->bdf[c->n++] = bdf;
	return 0;
}

static int list_candidates(struct vhca_sysfs *sys, struct candidates *c)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(families); i++) {
		AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
		char path[PATH_LEN];
		int r;

		snprintf(path, sizeof(path), "bus/pci/drivers/%s", families[i].driver);
		r = vhca_sysfs_opendir(sys, path, &dir);
		if (r == -ENOENT)
			continue; /* module not loaded */
		if (r == 0)
			r = vhca_sysfs_list(dir, "", on_driver_entry, c);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_vf(struct vhca_sysfs *sys, struct vhca_bdf bdf)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;

	return open_pci(sys, bdf, &dir) == 0 && vhca_sysfs_exists(dir, "physfn");
}

static int compare_pf(const void *a, const void *b)
{
	return vhca_bdf_cmp(((const struct vhca_pf_facts *)a)->bdf,
			    ((const struct vhca_pf_facts *)b)->bdf);
}

static int add_pf(struct vhca_sysfs *sys, struct vhca_inventory *inv, struct vhca_bdf bdf,
		  struct vhca_error *err)
{
	struct vhca_error e = VHCA_ERROR_INIT;
	int r;

	if (inv->n_pfs == VHCA_PFS_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_pfs", 0,
				      "%s: more than %d adapters in this host", VHCA_BDF_STR(bdf),
				      VHCA_PFS_MAX);
	r = vhca_inventory_read_pf(sys, bdf, &inv->pfs[inv->n_pfs], &e);
	if (r == -ENOENT)
		return 0; /* went away since it was listed */
	if (r == 0)
		inv->n_pfs++;
	else if (err)
		*err = e;
	return r;
}

struct plugged {
	struct vhca_sysfs *sys;
	struct vhca_inventory *inv;
};

/* One whose vendor cannot be read is there as well. */
static int on_function(void *ctx, const char *name)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	struct vhca_plugged one = {.device = 0}, *more;
	struct plugged *p = ctx;
	uint16_t vendor = 0;
	int r;

	if (vhca_bdf_parse(name, &one.bdf) < 0)
		return 0;
	r = open_pci(p->sys, one.bdf, &dir);
	if (r == 0 && vhca_sysfs_exists(dir, "physfn"))
		return 0;
	if (r == 0)
		r = read_u16(dir, "vendor", 16, &vendor);
	if (is_gone(r) || (r == 0 && vendor != VENDOR_MELLANOX))
		return 0;
	if (r == 0)
		(void)read_u16(dir, "device", 16, &one.device); /* 0 is not known */
	more = reallocarray(p->inv->plugged, p->inv->n_plugged + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[p->inv->n_plugged++] = one;
	p->inv->plugged = more;
	return 0;
}

/* An adapter whose driver is not loaded is on no driver's list, and has not been pulled out. */
static int list_plugged(struct vhca_sysfs *sys, struct vhca_inventory *inv, struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	int r = vhca_sysfs_opendir(sys, "bus/pci/devices", &dir);

	if (r == 0)
		r = vhca_sysfs_list(dir, "", on_function, &(struct plugged){sys, inv});
	if (r < 0 && r != -ENOENT)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "pci_unreadable", -r,
				      "list the devices of the PCI bus");
	return 0;
}

struct nodes {
	struct vhca_sysfs_dir *dir;
	struct vhca_inventory *inv;
};

static int on_node(void *ctx, const char *name)
{
	static const char prefix[] = "node";
	struct nodes *nodes = ctx;
	struct vhca_inventory *inv = nodes->inv;
	struct vhca_numa_node *node = &inv->nodes[inv->n_nodes];
	char attr[PATH_LEN], text[4096]; /* a page */

	if (inv->n_nodes == VHCA_NODES_MAX || strncmp(name, prefix, strlen(prefix)) != 0 ||
	    vhca_parse_u32(name + strlen(prefix), 10, UINT16_MAX, &node->number) < 0)
		return 0;
	snprintf(attr, sizeof(attr), "%.32s/cpulist", name);
	if (vhca_sysfs_read(nodes->dir, attr, text, sizeof(text)) == 0 &&
	    vhca_cpus_parse(text, &node->cpus) == 0 && !vhca_cpus_is_empty(&node->cpus))
		inv->n_nodes++;
	return 0;
}

/* Only for the choice among VFs: what cannot be read is not known. */
static void read_nodes(struct vhca_sysfs *sys, struct vhca_inventory *inv)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;

	inv->nodes = calloc(VHCA_NODES_MAX, sizeof(*inv->nodes));
	if (!inv->nodes || vhca_sysfs_opendir(sys, "devices/system/node", &dir) < 0)
		return;
	(void)vhca_sysfs_list(dir, "", on_node, &(struct nodes){dir, inv});
}

int vhca_inventory_scan(struct vhca_sysfs *sys, struct vhca_inventory **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_inventory_freep) struct vhca_inventory *inv = calloc(1, sizeof(*inv));
	VHCA_AUTO_FREE struct candidates *c = calloc(1, sizeof(*c));
	int r;

	if (inv)
		inv->pfs = calloc(VHCA_PFS_MAX, sizeof(*inv->pfs));
	if (!inv || !inv->pfs || !c)
		return vhca_error_no_memory(err, "scan adapters");
	r = list_candidates(sys, c);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "pci_unreadable", -r,
				      "list the devices of mlx4_core and mlx5_core");
	for (unsigned int i = 0; i < c->n; i++) {
		if (is_vf(sys, c->bdf[i]))
			continue;
		r = add_pf(sys, inv, c->bdf[i], err);
		if (r < 0)
			return r;
	}
	r = list_plugged(sys, inv, err);
	if (r < 0)
		return r;
	read_nodes(sys, inv);
	qsort(inv->pfs, inv->n_pfs, sizeof(*inv->pfs), compare_pf);
	*ret = vhca_steal_ptr(&inv);
	return 0;
}

struct vhca_inventory *vhca_inventory_free(struct vhca_inventory *inv)
{
	if (inv) {
		free(inv->pfs);
		free(inv->nodes);
		free(inv->plugged);
	}
	free(inv);
	return NULL;
}
