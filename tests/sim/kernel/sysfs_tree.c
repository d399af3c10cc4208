/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/kernel/sysfs_tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* ---- raw ---- */

static char *full(const struct sim_tree *tree, const char *path, char buf[static 2 * SIM_PATH_MAX])
{
	int n = snprintf(buf, 2 * SIM_PATH_MAX, "%s/%s", tree->root, path);

	assert(n > 0 && n < 2 * SIM_PATH_MAX);
	return buf;
}

static void make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0755) < 0)
			assert(errno == EEXIST);
		*p = '/';
	}
}

static void put_text(const struct sim_tree *tree, const char *path, const char *text)
{
	VHCA_AUTO_CLOSE int fd = -1;
	char buf[2 * SIM_PATH_MAX];
	size_t len = strlen(text);

	fd = open(full(tree, path, buf), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 && errno == ENOENT) {
		make_parents(buf);
		fd = open(buf, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	}
	assert(fd >= 0);
	assert(write(fd, text, len) == (ssize_t)len);
}

void sim_put(const struct sim_tree *tree, const char *path, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	assert(n >= 0 && (size_t)n < sizeof(text) - 1);
	if (n > 0) {
		text[n] = '\n';
		text[n + 1] = '\0';
	}
	put_text(tree, path, text);
}

bool sim_get(const struct sim_tree *tree, const char *path, char *buf, size_t size)
{
	VHCA_AUTO_CLOSE int fd = -1;
	char name[2 * SIM_PATH_MAX];
	ssize_t n;

	fd = open(full(tree, path, name), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return false;
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return true;
}

bool sim_readlink(const struct sim_tree *tree, const char *path, char *buf, size_t size)
{
	char name[2 * SIM_PATH_MAX];
	ssize_t n = readlink(full(tree, path, name), buf, size - 1);

	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

void sim_link(const struct sim_tree *tree, const char *path, const char *target)
{
	char buf[2 * SIM_PATH_MAX];

	make_parents(full(tree, path, buf));
	assert(symlink(target, buf) == 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void sim_remove(const struct sim_tree *tree, const char *path)
{
	char buf[2 * SIM_PATH_MAX];

	(void)nftw(full(tree, path, buf), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/*
 * A tree has thousands of tiny files, and a test makes it anew for each case: memory, if there is
 * any.
 */
static const char *temp_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	if (tmp != NULL && strlen(tmp) < 40)
		return tmp;
	return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

void sim_tree_init(struct sim_tree *tree)
{
	int n = snprintf(tree->root, sizeof(tree->root), "%s/vhca-sysfs-XXXXXX", temp_dir());

	assert(n > 0 && (size_t)n < sizeof(tree->root));
	assert(mkdtemp(tree->root) != NULL);
	sim_put(tree, "bus/pci/drivers_probe", "%s", "");
	sim_put(tree, "bus/pci/drivers/README", "%s", ""); /* makes the directory */
	sim_put(tree, "bus/pci/devices/README", "%s", "");
	sim_remove(tree, "bus/pci/drivers/README");
	sim_remove(tree, "bus/pci/devices/README");
}

void sim_tree_done(struct sim_tree *tree)
{
	(void)nftw(tree->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- PCI ---- */

char *sim_path(char buf[static SIM_PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, SIM_PATH_MAX, fmt, ap);
	va_end(ap);
	assert(n > 0 && n < SIM_PATH_MAX);
	return buf;
}
/* drivers/base/bus.c: bus_add_driver; the control files are write-only there */
void sim_add_driver(const struct sim_tree *tree, const char *name)
{
	sim_put(tree, SIM_PATH("bus/pci/drivers/%s/bind", name), "%s", "");
	sim_put(tree, SIM_PATH("bus/pci/drivers/%s/unbind", name), "%s", "");
	sim_put(tree, SIM_PATH("bus/pci/drivers/%s/new_id", name), "%s", "");
}

/* drivers/base/dd.c: driver_sysfs_add */
void sim_bind(const struct sim_tree *tree, const char *bdf, const char *driver)
{
	sim_link(tree, SIM_PATH(SIM_PCI "/%s/driver", bdf),
		 SIM_PATH("../../../bus/pci/drivers/%s", driver));
	sim_link(tree, SIM_PATH("bus/pci/drivers/%s/%s", driver, bdf),
		 SIM_PATH("../../../../" SIM_PCI "/%s", bdf));
}

void sim_unbind(const struct sim_tree *tree, const char *bdf)
{
	char target[SIM_PATH_MAX];

	if (!sim_readlink(tree, SIM_PATH(SIM_PCI "/%s/driver", bdf), target, sizeof(target)))
		return;
	sim_remove(tree, SIM_PATH("bus/pci/drivers/%s/%s", strrchr(target, '/') + 1, bdf));
	sim_remove(tree, SIM_PATH(SIM_PCI "/%s/driver", bdf));
}

static void add_function(const struct sim_tree *tree, const char *bdf, uint16_t device)
{
	sim_link(tree, SIM_PATH("bus/pci/devices/%s", bdf),
		 SIM_PATH("../../../" SIM_PCI "/%s", bdf));
	/*
	 * drivers/pci/pci-sysfs.c: pci_config_attr "0x%04x", numa_node "%d", driver_override "%s"
	 * of NULL
	 */
	sim_put(tree, SIM_PATH(SIM_PCI "/%s/vendor", bdf), "0x15b3");
	sim_put(tree, SIM_PATH(SIM_PCI "/%s/device", bdf), "0x%04x", device);
	sim_put(tree, SIM_PATH(SIM_PCI "/%s/numa_node", bdf), "-1");
	sim_put(tree, SIM_PATH(SIM_PCI "/%s/driver_override", bdf), "(null)");
}

/* drivers/infiniband/core/sysfs.c: node_guid_show, link_layer_show, show_port_pkey */
static void add_rdma(const struct sim_tree *tree, const struct sim_pf *pf)
{
	const char *dev = SIM_PATH(SIM_PCI "/%s/infiniband/%s", pf->bdf, pf->ibdev);
	uint64_t g = pf->node_guid;

	sim_put(tree, SIM_PATH("%s/node_guid", dev), "%04x:%04x:%04x:%04x", (unsigned int)(g >> 48),
		(unsigned int)(g >> 32) & 0xffff, (unsigned int)(g >> 16) & 0xffff,
		(unsigned int)g & 0xffff);
	for (unsigned int p = 1; p <= pf->n_ports; p++) {
		sim_put(tree, SIM_PATH("%s/ports/%u/link_layer", dev, p), "InfiniBand");
		sim_put(tree, SIM_PATH("%s/ports/%u/pkeys/0", dev, p), "0xffff");
	}
	sim_link(tree, SIM_PATH("%s/device", dev), SIM_PATH("../../../%s", pf->bdf));
	sim_link(tree, SIM_PATH("class/infiniband/%s", pf->ibdev), SIM_PATH("../../%s", dev));
}

void sim_add_pf(const struct sim_tree *tree, const struct sim_pf *pf)
{
	add_function(tree, pf->bdf, pf->device);
	if (pf->total_vfs > 0) {
		/* drivers/pci/iov.c */
		sim_put(tree, SIM_PATH(SIM_PCI "/%s/sriov_totalvfs", pf->bdf), "%u", pf->total_vfs);
		sim_put(tree, SIM_PATH(SIM_PCI "/%s/sriov_numvfs", pf->bdf), "0");
		sim_put(tree, SIM_PATH(SIM_PCI "/%s/sriov_drivers_autoprobe", pf->bdf), "1");
	}
	if (pf->driver[0] != '\0')
		sim_bind(tree, pf->bdf, pf->driver);
	if (pf->ibdev[0] != '\0')
		add_rdma(tree, pf);
}

void sim_add_vf(const struct sim_tree *tree, const char *pf, unsigned int index, const char *vf,
		int group)
{
	add_function(tree, vf, 0x1004);
	sim_link(tree, SIM_PATH(SIM_PCI "/%s/physfn", vf), SIM_PATH("../%s", pf));
	sim_link(tree, SIM_PATH(SIM_PCI "/%s/virtfn%u", pf, index), SIM_PATH("../%s", vf));
	if (group < 0)
		return;
	/* drivers/iommu/iommu.c: iommu_group_alloc, iommu_group_add_device */
	sim_link(tree, SIM_PATH(SIM_PCI "/%s/iommu_group", vf),
		 SIM_PATH("../../../kernel/iommu_groups/%d", group));
	sim_link(tree, SIM_PATH("kernel/iommu_groups/%d/devices/%s", group, vf),
		 SIM_PATH("../../../../" SIM_PCI "/%s", vf));
}

char *sim_vf_bdf(char buf[static VHCA_BDF_STRLEN], const char *pf, unsigned int index)
{
	struct vhca_bdf bdf;
	unsigned int devfn;

	assert(vhca_bdf_parse(pf, &bdf) == 0);
	devfn = bdf.dev * 8u + bdf.fn + 1 + index;
	bdf.bus = (uint8_t)(bdf.bus + devfn / 256);
	bdf.dev = (uint8_t)(devfn / 8 % 32);
	bdf.fn = (uint8_t)(devfn % 8);
	return vhca_bdf_format(buf, bdf);
}

/* net/core/net-sysfs.c: fmt_dec, fmt_hex; ulp/ipoib/ipoib_main.c: dev_id is the port, from 0 */
void sim_add_netdev(const struct sim_tree *tree, const char *pf, const char *name,
		    unsigned int type, unsigned int ifindex)
{
	const char *dev = SIM_PATH(SIM_PCI "/%s/net/%s", pf, name);

	sim_put(tree, SIM_PATH("%s/type", dev), "%u", type);
	sim_put(tree, SIM_PATH("%s/ifindex", dev), "%u", ifindex);
	sim_put(tree, SIM_PATH("%s/dev_id", dev), "0x0");
	sim_link(tree, SIM_PATH("%s/device", dev), SIM_PATH("../../../%s", pf));
	sim_link(tree, SIM_PATH("class/net/%s", name), SIM_PATH("../../%s", dev));
}

/* show_vf_node, show_vf_port, policy_show */
void sim_add_ofed_vf(const struct sim_tree *tree, const char *pf, unsigned int index)
{
	const char *vf = SIM_PATH(SIM_PCI "/%s/sriov/%u", pf, index);

	sim_put(tree, SIM_PATH("%s/node", vf), "00:00:00:00:00:00:00:00");
	sim_put(tree, SIM_PATH("%s/port", vf), "00:00:00:00:00:00:00:00");
	sim_put(tree, SIM_PATH("%s/policy", vf), "Down");
}

/* ---- iov, drivers/infiniband/hw/mlx4/sysfs.c ---- */

/* get_name */
char *sim_iov_name(char buf[static 32], const char *pf, unsigned int slave)
{
	snprintf(buf, 32, "%.8s%.2u.%u", pf, slave / 8, slave % 8);
	return buf;
}

static unsigned int n_pkeys_of(const struct sim_pf *pf)
{
	return pf->n_pkeys > 0 ? pf->n_pkeys : SIM_PKEYS;
}

/* show_admin_alias_guid, show_port_gid, show_phys_port_pkey */
static void add_iov_port(const struct sim_tree *tree, const struct sim_pf *pf, const char *port)
{
	for (unsigned int n = 0; n < SIM_GUIDS; n++) {
		/* mlx4_set_random_admin_guid: locally administered; entry 0 is the port's own */
		sim_put(tree, SIM_PATH("%s/admin_guids/%u", port, n), "%" PRIx64,
			n == 0 ? UINT64_C(0x2c90300a1b2c3) : UINT64_C(0x0214050000000000) + n);
		sim_put(tree, SIM_PATH("%s/gids/%u", port, n), "fe80:0000:0000:0000:%s",
			n == 0 ? "0002:c903:00a1:b2c3" : "0000:0000:0000:0000");
	}
	for (unsigned int n = 0; n < n_pkeys_of(pf); n++)
		sim_put(tree, SIM_PATH("%s/pkeys/%u", port, n), "0x%04x", n == 0 ? 0xffffu : 0);
}

/* add_vf_smi_entries: not for the master. mlx4_core holds the values: they outlive mlx4_ib. */
static void add_smi(const struct sim_tree *tree, const char *port)
{
	sim_put(tree, SIM_PATH("%s/enable_smi_admin", port), "0");
	sim_put(tree, SIM_PATH("%s/smi_enabled", port), "0");
}

/* show_port_gid_idx; show_port_pkey with the map of mlx4/main.c: init_pkeys */
static void add_iov_function(const struct sim_tree *tree, const struct sim_pf *pf, const char *port,
			     unsigned int slave)
{
	sim_put(tree, SIM_PATH("%s/gid_idx/0", port), "%u", slave);
	for (unsigned int n = 0; n < n_pkeys_of(pf); n++) {
		const char *path = SIM_PATH("%s/pkey_idx/%u", port, n);

		if (slave == 0 || n == 0)
			sim_put(tree, path, "%u", n);
		else
			sim_put(tree, path, "none");
	}
}

void sim_reset_maps(const struct sim_tree *tree, const struct sim_pf *pf, unsigned int n_vfs)
{
	const char *iov = SIM_PATH(SIM_PCI "/%s/infiniband/%s/iov", pf->bdf, pf->ibdev);
	char name[32];

	for (unsigned int p = 1; p <= pf->n_ports; p++) {
		for (unsigned int slave = 0; slave <= n_vfs; slave++)
			add_iov_function(tree, pf,
					 SIM_PATH("%s/%s/ports/%u", iov,
						  sim_iov_name(name, pf->bdf, slave), p),
					 slave);
	}
}

void sim_add_iov(const struct sim_tree *tree, const struct sim_pf *pf, unsigned int n_vfs)
{
	const char *iov = SIM_PATH(SIM_PCI "/%s/infiniband/%s/iov", pf->bdf, pf->ibdev);
	char name[32];

	for (unsigned int p = 1; p <= pf->n_ports; p++) {
		add_iov_port(tree, pf, SIM_PATH("%s/ports/%u", iov, p));
		for (unsigned int slave = 1; slave <= n_vfs; slave++)
			add_smi(tree, SIM_PATH("%s/%s/ports/%u", iov,
					       sim_iov_name(name, pf->bdf, slave), p));
	}
	sim_reset_maps(tree, pf, n_vfs);
}
