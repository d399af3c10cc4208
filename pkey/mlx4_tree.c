/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/mlx4_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

#define AUTO_DIR VHCA_CLEANUP(vhca_sysfs_closedirp)
#define PATH_LEN 128

/* ---- what stays open ---- */

/* What an entry of a port's table showed to a call that began at ms. */
struct seen {
	bool valid;
	uint16_t pkey;
	uint64_t ms;
};

struct vhca_identity_kept {
	struct vhca_bdf pf;
	/* by port - 1 */
	struct vhca_mlx4_table pkeys[VHCA_MLX4_PORTS];
	struct seen seen[VHCA_MLX4_PORTS][VHCA_PKEY_TABLE_MAX];
};

static void close_table(struct vhca_mlx4_table *t)
{
	for (unsigned int i = 0; i < VHCA_PKEY_TABLE_MAX; i++)
		t->file[i] = vhca_sysfs_file_close(t->file[i]);
	t->dir = vhca_sysfs_closedir(t->dir);
}

static void close_tables(struct vhca_mlx4_table tables[static VHCA_MLX4_PORTS])
{
	for (unsigned int p = 0; p < VHCA_MLX4_PORTS; p++)
		close_table(&tables[p]);
}

struct vhca_identity_kept *vhca_identity_kept_new(struct vhca_bdf pf)
{
	struct vhca_identity_kept *kept = calloc(1, sizeof(*kept));

	if (kept)
		kept->pf = pf;
	return kept;
}

struct vhca_identity_kept *vhca_identity_kept_free(struct vhca_identity_kept *kept)
{
	if (kept)
		close_tables(kept->pkeys);
	free(kept);
	return NULL;
}

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

/*
 * The name that the driver gives its slaves (get_name()) is tried first: with 126 VFs a search
 * looks at 63 functions on average.
 */
static int find_function(struct search *s)
{
	unsigned int slave = s->at->vf_index + 1u;
	char name[sizeof(s->fn->name)];
	int r;

	(void)snprintf(name, sizeof(name), "%.8s%.2u.%u", VHCA_BDF_STR(s->at->pf), slave / 8,
		       slave % 8);
	r = on_function(s, name);
	return r == 0 ? vhca_sysfs_list(s->fn->dev, "iov", on_function, s) : r;
}

int vhca_mlx4_open(const struct vhca_identity_at *at, bool writable, struct vhca_mlx4_fn *ret)
{
	AUTO_DIR struct vhca_sysfs_dir *dev = NULL;
	struct vhca_mlx4_fn fn = {.writable = writable, .since_ms = vhca_now_ms()};
	struct search search = {.at = at, .fn = &fn};
	char path[PATH_LEN];
	int r, n;

	n = snprintf(path, sizeof(path), "bus/pci/devices/%s/infiniband/%s", VHCA_BDF_STR(at->pf),
		     at->ibdev);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	if (at->ibdev[0] == '\0')
		return -ENOENT;
	/* Another adapter's table must never be taken for this one's. */
	if (at->kept && vhca_bdf_cmp(at->kept->pf, at->pf) == 0)
		fn.kept = at->kept;
	r = vhca_sysfs_opendir(at->sys, path, &dev);
	if (r < 0)
		return r;
	if (!vhca_sysfs_exists(dev, "iov"))
		return -EAGAIN;
	fn.dev = dev;
	r = find_function(&search);
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
	close_tables(fn->maps);
	close_tables(fn->own_pkeys);
	for (unsigned int p = 0; p < VHCA_MLX4_PORTS; p++)
		fn->admin_guid[p] = vhca_sysfs_file_close(fn->admin_guid[p]);
	fn->dev = vhca_sysfs_closedir(fn->dev);
}

/* ---- ports ---- */

static int on_port(void *ctx, const char *name)
{
	unsigned int *mask = ctx;
	uint32_t port;
	int r = vhca_parse_u32(name, 10, VHCA_MLX4_PORTS, &port);

	if (r < 0 || port == 0)
		return -EBADMSG;
	*mask |= 1u << (port - 1);
	return 0;
}

int vhca_mlx4_ib_ports(const struct vhca_mlx4_fn *fn, unsigned int *ret_mask)
{
	char attr[PATH_LEN], layer[32];
	unsigned int mask = 0;
	int r;

	snprintf(attr, sizeof(attr), "iov/%s/ports", fn->name);
	r = vhca_sysfs_list(fn->dev, attr, on_port, &mask);
	if (r < 0)
		return r;
	for (unsigned int port = 1; port <= VHCA_MLX4_PORTS; port++) {
		if ((mask & 1u << (port - 1)) == 0)
			continue;
		snprintf(attr, sizeof(attr), "ports/%u/link_layer", port);
		r = vhca_sysfs_read(fn->dev, attr, layer, sizeof(layer));
		if (r < 0)
			return r;
		if (strcmp(layer, "InfiniBand") != 0)
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

/*
 * Counted, so that an entry which vanishes with its device is an error and not the end of a shorter
 * table.
 */
static int count_entries(struct vhca_mlx4_table *t, unsigned int *ret)
{
	unsigned int n = 0;
	int r = vhca_sysfs_list(t->dir, "", on_entry, &n);

	if (r < 0)
		return r;
	if (n == 0)
		return -EBADMSG;
	*ret = n;
	return 0;
}

static int open_entry(struct vhca_mlx4_table *t, unsigned int i, bool writable)
{
	char name[16];

	if (i >= VHCA_PKEY_TABLE_MAX)
		return -ERANGE;
	if (t->file[i])
		return 0;
	snprintf(name, sizeof(name), "%u", i);
	return vhca_sysfs_file_open(t->dir, name, writable, &t->file[i]);
}

static struct vhca_mlx4_table *pkeys_of(struct vhca_mlx4_fn *fn, uint8_t port)
{
	return fn->kept ? &fn->kept->pkeys[port - 1] : &fn->own_pkeys[port - 1];
}

static int open_pkeys(struct vhca_mlx4_fn *fn, uint8_t port)
{
	struct vhca_mlx4_table *t = pkeys_of(fn, port);
	char path[PATH_LEN];

	if (t->dir)
		return 0;
	snprintf(path, sizeof(path), "iov/ports/%u/pkeys", port);
	return vhca_sysfs_subdir(fn->dev, path, &t->dir);
}

static int count_pkeys(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int *ret)
{
	int r = open_pkeys(fn, port);

	return r < 0 ? r : count_entries(pkeys_of(fn, port), ret);
}

/*
 * True if the table had been opened before this call: what fails with it may be of a device that
 * has gone meanwhile.
 */
static bool was_kept(struct vhca_mlx4_fn *fn, uint8_t port)
{
	return fn->kept && pkeys_of(fn, port)->dir;
}

/* Of a device that has gone; its successor begins anew. */
static void close_pkeys(struct vhca_mlx4_fn *fn, uint8_t port)
{
	close_table(pkeys_of(fn, port));
	if (fn->kept)
		memset(fn->kept->seen[port - 1], 0, sizeof(fn->kept->seen[port - 1]));
}

int vhca_mlx4_table_size(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int *ret)
{
	bool again = was_kept(fn, port);
	int r = count_pkeys(fn, port, ret);

	if (r == 0 || !again)
		return r;
	close_pkeys(fn, port);
	return count_pkeys(fn, port, ret);
}

static int read_entry(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int i, char *buf, size_t size)
{
	struct vhca_mlx4_table *t = pkeys_of(fn, port);
	int r = open_pkeys(fn, port);

	if (r == 0)
		r = open_entry(t, i, false);
	return r < 0 ? r : vhca_sysfs_file_read(t->file[i], buf, size);
}

int vhca_mlx4_read_pkey(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int physical, uint16_t *ret)
{
	bool again = was_kept(fn, port);
	char text[16];
	uint64_t pkey;
	int r = read_entry(fn, port, physical, text, sizeof(text));

	if (r < 0 && again) {
		close_pkeys(fn, port);
		r = read_entry(fn, port, physical, text, sizeof(text));
	}
	if (r < 0)
		return r;
	/* "0x%04x" (show_phys_port_pkey) */
	if (vhca_parse_u64(text, 16, UINT16_MAX, &pkey) < 0)
		return -EBADMSG;
	*ret = (uint16_t)pkey;
	if (fn->kept)
		fn->kept->seen[port - 1][physical] = (struct seen){true, *ret, fn->since_ms};
	return 0;
}

bool vhca_mlx4_seen_pkey(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int physical,
			 uint16_t *ret)
{
	const struct seen *seen = fn->kept ? &fn->kept->seen[port - 1][physical] : NULL;

	if (!seen || !seen->valid || fn->since_ms - seen->ms > VHCA_MLX4_SEEN_MS)
		return false;
	*ret = seen->pkey;
	return true;
}

static int open_map(struct vhca_mlx4_fn *fn, uint8_t port)
{
	struct vhca_mlx4_table *t = &fn->maps[port - 1];
	char path[PATH_LEN];

	if (t->dir)
		return 0;
	snprintf(path, sizeof(path), "iov/%s/ports/%u/pkey_idx", fn->name, port);
	return vhca_sysfs_subdir(fn->dev, path, &t->dir);
}

int vhca_mlx4_map_size(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int *ret)
{
	int r = open_map(fn, port);

	return r < 0 ? r : count_entries(&fn->maps[port - 1], ret);
}

static int open_index(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt,
		      struct vhca_sysfs_file **ret)
{
	struct vhca_mlx4_table *t = &fn->maps[port - 1];
	int r = open_map(fn, port);

	if (r == 0)
		r = open_entry(t, virt, fn->writable);
	if (r == 0)
		*ret = t->file[virt];
	return r;
}

int vhca_mlx4_read_index(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt, int16_t *ret)
{
	struct vhca_sysfs_file *file = NULL;
	char text[16];
	uint32_t physical;
	int r = open_index(fn, port, virt, &file);

	/* "none" or "%d" (show_port_pkey) */
	if (r == 0)
		r = vhca_sysfs_file_read(file, text, sizeof(text));
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

int vhca_mlx4_write_index(struct vhca_mlx4_fn *fn, uint8_t port, unsigned int virt,
			  int16_t physical)
{
	struct vhca_sysfs_file *file = NULL;
	char text[16] = "none";
	int r = open_index(fn, port, virt, &file);

	/* The kernel reads %i: plain decimal, because 010 would be octal. */
	if (physical != VHCA_PKEY_UNMAPPED)
		snprintf(text, sizeof(text), "%d", physical);
	return r < 0 ? r : vhca_sysfs_file_write(file, text);
}

/* ---- SMPs ---- */

static char *smi_attr(const struct vhca_mlx4_fn *fn, uint8_t port, char buf[static PATH_LEN])
{
	(void)snprintf(buf, PATH_LEN, "iov/%s/ports/%u/enable_smi_admin", fn->name, port);
	return buf;
}

int vhca_mlx4_read_smi(const struct vhca_mlx4_fn *fn, uint8_t port, bool *ret)
{
	char attr[PATH_LEN];
	uint64_t value;
	/* "%d" of 0 or 1 (sysfs_show_enable_smi_admin) */
	int r = vhca_sysfs_read_u64(fn->dev, smi_attr(fn, port, attr), 10, 1, &value);

	if (r < 0)
		return r;
	*ret = value != 0;
	return 0;
}

int vhca_mlx4_forbid_smi(const struct vhca_mlx4_fn *fn, uint8_t port)
{
	char attr[PATH_LEN];

	return vhca_sysfs_write(fn->dev, smi_attr(fn, port, attr), "0");
}

/* ---- GUIDs ---- */

static int open_admin_guid(struct vhca_mlx4_fn *fn, uint8_t port, struct vhca_sysfs_file **ret)
{
	struct vhca_sysfs_file **file = &fn->admin_guid[port - 1];
	char attr[PATH_LEN];
	int r = 0;

	snprintf(attr, sizeof(attr), "iov/ports/%u/admin_guids/%u", port, fn->gid_index);
	if (!*file)
		r = vhca_sysfs_file_open(fn->dev, attr, fn->writable, file);
	*ret = *file;
	return r;
}

int vhca_mlx4_read_admin_guid(struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret)
{
	struct vhca_sysfs_file *file;
	char text[32];
	int r = open_admin_guid(fn, port, &file);

	if (r == 0)
		r = vhca_sysfs_file_read(file, text, sizeof(text));
	if (r < 0)
		return r;
	/* "%llx", no 0x and no padding (show_admin_alias_guid) */
	return vhca_parse_u64(text, 16, UINT64_MAX, ret) < 0 ? -EBADMSG : 0;
}

int vhca_mlx4_write_admin_guid(struct vhca_mlx4_fn *fn, uint8_t port, uint64_t guid)
{
	struct vhca_sysfs_file *file;
	char text[24];
	int r = open_admin_guid(fn, port, &file);

	/*
	 * Never entry 0, the port's own GUID (the driver would swallow the write and say
	 * "success"): the search for the function only finds slaves from 1 on.
	 */
	snprintf(text, sizeof(text), "%" PRIx64, guid);
	return r < 0 ? r : vhca_sysfs_file_write(file, text);
}

static int read_gid(const struct vhca_mlx4_fn *fn, uint8_t port, unsigned int index, uint64_t *ret)
{
	char attr[PATH_LEN], text[64];
	uint64_t prefix;
	int r;

	snprintf(attr, sizeof(attr), "iov/ports/%u/gids/%u", port, index);
	r = vhca_sysfs_read(fn->dev, attr, text, sizeof(text));
	if (r < 0)
		return r;
	return vhca_gid_parse(text, &prefix, ret) < 0 ? -EBADMSG : 0;
}

int vhca_mlx4_read_granted(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret)
{
	return read_gid(fn, port, fn->gid_index, ret);
}

int vhca_mlx4_read_port_guid(const struct vhca_mlx4_fn *fn, uint8_t port, uint64_t *ret)
{
	return read_gid(fn, port, 0, ret);
}
