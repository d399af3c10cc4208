/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * identity_cost PF IBDEV VFS KEYS: what it costs to program the mlx4 identities of all VFs of an adapter, beside the bare writes.
 * The port's P_Key table must hold 0x8000 + i at the indices i = 1 to KEYS. Prints "NAME MICROSECONDS WRITES" for
 *
 *   program  every VF gets a GUID and KEYS P_Keys, from nothing
 *   again    the same once more
 *   scrub    back to nothing
 *   bare     the writes of `program`, by values known beforehand, nothing read
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/sysfs/sysfs.h"
#include "pkey/identity.h"
#include "pkey/mlx4_tree.h"

#define VFS_MAX 126

struct cost {
	struct vhca_identity_at at;
	uint32_t vfs;
	struct vhca_identity want;
	struct vhca_mlx4_fn fns[VFS_MAX];
	struct vhca_error err;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static int program(struct cost *c)
{
	struct vhca_identity_state state;
	unsigned int missing;

	return vhca_identity_mlx4.program(&c->at, &c->want, &missing, &state, &c->err);
}

static int scrub(struct cost *c)
{
	return vhca_identity_mlx4.scrub(&c->at, &c->err);
}

static int bare(struct cost *c)
{
	const struct vhca_mlx4_fn *fn = &c->fns[c->at.vf_index];
	int r = vhca_mlx4_write_admin_guid(fn, 1, c->want.guid);

	for (unsigned int i = 0; i < c->want.n_pkeys && r == 0; i++)
		r = vhca_mlx4_write_index(fn, 1, i, (int16_t)(i + 1));
	return r;
}

static int measure(struct cost *c, const char *name, int (*act)(struct cost *c))
{
	uint64_t writes = vhca_sysfs_writes(c->at.sys), started = now_us();
	int r = 0;

	for (uint32_t vf = 0; vf < c->vfs && r == 0; vf++) {
		c->at.vf_index = (uint16_t)vf;
		c->want.guid = 0x02c9ab00c0570001 + vf;
		r = act(c);
	}
	if (r < 0)
		(void)fprintf(stderr, "%s: %d %s\n", name, r, c->err.msg);
	else
		printf("%s %" PRIu64 " %" PRIu64 "\n", name, now_us() - started,
		       vhca_sysfs_writes(c->at.sys) - writes);
	return r;
}

static int open_all(struct cost *c)
{
	int r = 0;

	for (uint32_t vf = 0; vf < c->vfs && r == 0; vf++) {
		c->at.vf_index = (uint16_t)vf;
		r = vhca_mlx4_open(&c->at, &c->fns[vf]);
	}
	return r;
}

static int run(struct cost *c)
{
	static const struct {
		const char *name;
		int (*act)(struct cost *c);
	} passes[] = {{"program", program}, {"again", program}, {"scrub", scrub}, {"bare", bare}};
	int r = open_all(c);

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(passes) && r == 0; i++)
		r = measure(c, passes[i].name, passes[i].act);
	for (uint32_t vf = 0; vf < c->vfs; vf++)
		vhca_mlx4_close(&c->fns[vf]);
	return r;
}

int main(int argc, char **argv)
{
	struct cost c = {.at = {.port = 1, .n_ports = 1}, .err = VHCA_ERROR_INIT};
	uint32_t keys;
	int r;

	if (argc != 5 || vhca_bdf_parse(argv[1], &c.at.pf) < 0 ||
	    vhca_parse_u32(argv[3], 10, VFS_MAX, &c.vfs) < 0 ||
	    vhca_parse_u32(argv[4], 10, VHCA_VF_PKEYS_MAX, &keys) < 0 ||
	    vhca_sysfs_open(vhca_sysfs_default_root(), &c.at.sys) < 0)
		return 2;
	c.at.ibdev = argv[2];
	c.want.n_pkeys = (uint8_t)keys;
	for (unsigned int i = 0; i < keys; i++)
		c.want.pkeys[i] = (uint16_t)(0x8001 + i);
	r = run(&c);
	vhca_sysfs_close(c.at.sys);
	return r < 0;
}
