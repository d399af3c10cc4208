/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/mlx4_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

#define AUTO_DIR  VHCA_CLEANUP(vhca_sysfs_closedirp)
#define PORTS_MAX 2
#define PATH_LEN  128

/* ---- the VF's directory ---- */

struct search {
	const struct vhca_identity_at *at;
	struct vhca_mlx4_fn *fn;
};

static int on_function(void *ctx, const char *name)
{
	struct search *s = ctx;
	char attr[PATH_LEN];
	uint64_t slave;
	int r;

	/* "ports" stands beside the functions. */
	if (strcmp(name, "ports") == 0 || strlen(name) >= sizeof(s->fn->name))
		return 0;
	snprintf(attr, sizeof(attr), "iov/%s/ports/%u/gid_idx/0", name, s->at->port);
	r = vhca_sysfs_read_u64(s->fn->dev, attr, 10, VHCA_PKEY_TABLE_MAX - 1, &slave);
	if (r == -ENOENT)
		return 0; /* a single-port VF of the other port */
	if (r < 0)
		return r;
	/* Slave 0 is the PF, VF k is slave k+1 (mlx4/sysfs.c: register_pkey_tree). */
	if (slave != s->at->vf_index + 1u)
		return 0;
	s->fn->gid_index = (uint16_t)slave;
	return vhca_strcpy(s->fn->name, sizeof(s->fn->name), name) < 0 ? -E2BIG : 1;
}

int vhca_mlx4_open(const struct vhca_identity_at *at, struct vhca_mlx4_fn *ret)
{
	AUTO_DIR struct vhca_sysfs_dir *dev = NULL;
	struct vhca_mlx4_fn fn = {0};
	struct search search = {.at = at, .fn = &fn};
	char path[PATH_LEN];
	int r, n;

	n = snprintf(path, sizeof(path), "bus/pci/devices/%s/infiniband/%s", VHCA_BDF_STR(at->pf),
		     at->ibdev);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	if (at->ibdev[0] == '\0')
		return -ENOENT;
	r = vhca_sysfs_opendir(at->sys, path, &dev);
	if (r < 0)
		return r;
	if (!vhca_sysfs_exists(dev, "iov"))
		return -EAGAIN;
	fn.dev = dev;
	r = vhca_sysfs_list(dev, "iov", on_function, &search);
	if (r < 0)
		return r;
	if (r == 0)
		return -ENXIO;
	fn.dev = vhca_steal_ptr(&dev);
	*ret = fn;
	return 0;
}

void vhca_mlx4_close(struct vhca_mlx4_fn *fn)
{
	fn->dev = vhca_sysfs_closedir(fn->dev);
}

/* ---- ports ---- */

static int is_ib_port(const struct vhca_mlx4_fn *fn, unsigned int port)
{
	char attr[PATH_LEN], layer[32];
	int r;

	snprintf(attr, sizeof(attr), "ports/%u/link_layer", port);
	r = vhca_sysfs_read(fn->dev, attr, layer, sizeof(layer));
	if (r < 0)
		return r;
	return strcmp(layer, "InfiniBand") == 0;
}

static int on_port(void *ctx, const char *name)
{
	unsigned int *mask = ctx;
	uint32_t port;
	int r = vhca_parse_u32(name, 10, PORTS_MAX, &port);

	if (r < 0 || port == 0)
		return -EBADMSG;
	*mask |= 1u << (port - 1);
	return 0;
}

int vhca_mlx4_ib_ports(const struct vhca_mlx4_fn *fn, unsigned int *ret_mask)
{
	unsigned int mask = 0;
	char attr[PATH_LEN];
	int r;

	snprintf(attr, sizeof(attr), "iov/%s/ports", fn->name);
	r = vhca_sysfs_list(fn->dev, attr, on_port, &mask);
	if (r < 0)
		return r;
	for (unsigned int port = 1; port <= PORTS_MAX; port++) {
		if ((mask & 1u << (port - 1)) == 0)
			continue;
		r = is_ib_port(fn, port);
		if (r < 0)
			return r;
		if (r == 0)
			mask &= ~(1u << (port - 1));
	}
	*ret_mask = mask;
	return 0;
}

/* ---- tables ---- */

static int on_entry(void *ctx, const char *name)
{
	unsigned int *n = ctx;
	uint32_t i;

	if (vhca_parse_u32(name, 10, VHCA_PKEY_TABLE_MAX - 1, &i) < 0)
		return -EBADMSG;
	(*n)++;
	return 0;
}

/* Counted first, so that an entry which vanishes with its device is an error and not the end of a shorter table. */
static int table_size(const struct vhca_mlx4_fn *fn, const char *attr, unsigned int *ret)
{
	unsigned int n = 0;
	int r = vhca_sysfs_list(fn->dev, attr, on_entry, &n);

	if (r < 0)
		return r;
	if (n == 0)
		return -EBADMSG;
	*ret = n;
	return 0;
}

int vhca_mlx4_read_pkey(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int physical,
			uint16_t *ret)
{
	char attr[PATH_LEN];
	uint64_t pkey;
	int r;

	/* "0x%04x" (show_phys_port_pkey) */
	snprintf(attr, sizeof(attr), "iov/ports/%u/pkeys/%u", port, physical);
	r = vhca_sysfs_read_u64(fn->dev, attr, 16, UINT16_MAX, &pkey);
	if (r < 0)
		return r;
	*ret = (uint16_t)pkey;
	return 0;
}

int vhca_mlx4_read_table(const struct vhca_mlx4_fn *fn, uint8_t port,
			 uint16_t ret[static VHCA_PKEY_TABLE_MAX], unsigned int *ret_n)
{
	unsigned int n;
	char attr[PATH_LEN];
	int r;

	snprintf(attr, sizeof(attr), "iov/ports/%u/pkeys", port);
	r = table_size(fn, attr, &n);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < n; i++) {
		r = vhca_mlx4_read_pkey(fn, port, i, &ret[i]);
		if (r < 0)
			return r;
	}
	*ret_n = n;
	return 0;
}

int vhca_mlx4_read_index(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt,
			 int16_t *ret)
{
	char attr[PATH_LEN], text[16];
	uint32_t physical;
	int r;

	/* "none" or "%d" (show_port_pkey) */
	snprintf(attr, sizeof(attr), "iov/%s/ports/%u/pkey_idx/%u", fn->name, port, virt);
	r = vhca_sysfs_read(fn->dev, attr, text, sizeof(text));
	if (r < 0)
		return r;
	if (strcmp(text, "none") == 0) {
		*ret = VHCA_PKEY_UNMAPPED;
		return 0;
	}
	if (vhca_parse_u32(text, 10, VHCA_PKEY_TABLE_MAX - 1, &physical) < 0)
		return -EBADMSG;
	*ret = (int16_t)physical;
	return 0;
}

int vhca_mlx4_read_map(const struct vhca_mlx4_fn *fn, uint8_t port,
		       int16_t ret[static VHCA_PKEY_TABLE_MAX], unsigned int *ret_n)
{
	unsigned int n;
	char attr[PATH_LEN];
	int r;

	snprintf(attr, sizeof(attr), "iov/%s/ports/%u/pkey_idx", fn->name, port);
	r = table_size(fn, attr, &n);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < n; i++) {
		r = vhca_mlx4_read_index(fn, port, i, &ret[i]);
		if (r < 0)
			return r;
	}
	*ret_n = n;
	return 0;
}

int vhca_mlx4_write_index(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt,
			  int16_t physical)
{
	char attr[PATH_LEN], text[16] = "none";

	/* The kernel reads %i: plain decimal, because 010 would be octal. */
	if (physical != VHCA_PKEY_UNMAPPED)
		snprintf(text, sizeof(text), "%d", physical);
	snprintf(attr, sizeof(attr), "iov/%s/ports/%u/pkey_idx/%u", fn->name, port, virt);
	return vhca_sysfs_write(fn->dev, attr, text);
}

/* ---- GUIDs ---- */

int vhca_mlx4_read_admin_guid(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret)
{
	char attr[PATH_LEN];

	/* "%llx", no 0x and no padding (show_admin_alias_guid) */
	snprintf(attr, sizeof(attr), "iov/ports/%u/admin_guids/%u", port, fn->gid_index);
	return vhca_sysfs_read_u64(fn->dev, attr, 16, UINT64_MAX, ret);
}

int vhca_mlx4_write_admin_guid(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t guid)
{
	char attr[PATH_LEN], text[24];

	/* Never entry 0, the port's own GUID (the driver would swallow the write and say "success"): the search for the
	 * function only finds slaves from 1 on. */
	snprintf(text, sizeof(text), "%" PRIx64, guid);
	snprintf(attr, sizeof(attr), "iov/ports/%u/admin_guids/%u", port, fn->gid_index);
	return vhca_sysfs_write(fn->dev, attr, text);
}

int vhca_mlx4_read_granted(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret)
{
	char attr[PATH_LEN], text[64];
	uint64_t prefix;
	int r;

	snprintf(attr, sizeof(attr), "iov/ports/%u/gids/%u", port, fn->gid_index);
	r = vhca_sysfs_read(fn->dev, attr, text, sizeof(text));
	if (r < 0)
		return r;
	return vhca_gid_parse(text, &prefix, ret) < 0 ? -EBADMSG : 0;
}
