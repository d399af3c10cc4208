/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * identity_cost PF IBDEV VFS VFS2 KEYS ROUNDS: what it costs to program the mlx4 identities of all
 * VFs of an adapter (VFS on port 1, then VFS2 on port 2), beside the bare writes. The ports' P_Key
 * tables must hold 0xffff at index 0 and 0x8000 + i at the indices i = 1 to KEYS - 1. Prints "NAME
 * MICROSECONDS WRITES READS OPENS" for
 *
 *   program  every VF gets a GUID and KEYS P_Keys, from nothing
 *   again    the same once more
 *   scrub    back to nothing
 *   bare     the writes of `program` and nothing else, by paths made beforehand: open, write, close
 *   cheapest the same again with each directory opened once, so that open() has one name to look up
 *
 * The time is the sum of each VF's shortest in all rounds: a busy machine only adds. Counts are of
 * one round. No rounds: only takes all identities away.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/sysfs/sysfs.h"
#include "pkey/identity.h"
#include "pkey/mlx4_tree.h"

#define VFS_MAX	 126
#define PATH_LEN 160

/* One write as a program would do it that knows everything beforehand. */
struct bare_write {
	char path[PATH_LEN];
	const char *name; /* its last component */
	char text[24];
	int dir; /* its directory, opened */
};

struct cost {
	struct vhca_identity_at at;
	uint32_t vfs, of_port1;
	struct vhca_identity want;
	struct bare_write *writes;
	size_t n_writes;
	struct vhca_error err;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void go_to(struct cost *c, uint32_t vf)
{
	c->at.vf_index = (uint16_t)vf;
	c->at.port = vf < c->of_port1 ? 1 : 2;
	c->want.guid = 0x02c9ab00c0570001 + vf;
}

/* ---- by the product ---- */

static int program(struct cost *c)
{
	struct vhca_identity_state state;
	unsigned int missing;
	int r = vhca_identity_mlx4.program(&c->at, &c->want, &missing, &state, &c->err);

	return r == 0 && missing ? -ENOKEY : r;
}

static int scrub(struct cost *c)
{
	return vhca_identity_mlx4.scrub(&c->at, &c->err);
}

/* ---- by nobody ---- */

static int write_one(int fd, const struct bare_write *w)
{
	size_t len = strlen(w->text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, w->text, len);
	(void)close(fd);
	return n == (ssize_t)len ? 0 : -EIO;
}

static const struct bare_write *writes_of_vf(const struct cost *c)
{
	return c->writes + (size_t)c->at.vf_index * (c->want.n_pkeys + 1u);
}

static int bare(struct cost *c)
{
	const struct bare_write *w = writes_of_vf(c);
	int r = 0;

	for (unsigned int i = 0; i <= c->want.n_pkeys && r == 0; i++)
		r = write_one(open(w[i].path, O_WRONLY | O_CLOEXEC), &w[i]);
	return r;
}

static int cheapest(struct cost *c)
{
	const struct bare_write *w = writes_of_vf(c);
	int r = 0;

	for (unsigned int i = 0; i <= c->want.n_pkeys && r == 0; i++)
		r = write_one(openat(w[i].dir, w[i].name, O_WRONLY | O_CLOEXEC), &w[i]);
	return r;
}

/* directory: below the RDMA device. Takes the descriptor of the last write if it is the same. */
static int add_write(struct cost *c, const char *directory, unsigned int entry)
{
	struct bare_write *w = &c->writes[c->n_writes];
	int n = snprintf(w->path, sizeof(w->path), "%s/class/infiniband/%s/%s",
			 vhca_sysfs_default_root(), c->at.ibdev, directory);

	if (n < 0 || (size_t)n + 8 > sizeof(w->path))
		return -ENAMETOOLONG;
	if (c->n_writes && strncmp(w->path, w[-1].path, (size_t)n) == 0 && w[-1].path[n] == '/')
		w->dir = w[-1].dir;
	else
		w->dir = open(w->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(w->path + n, sizeof(w->path) - (size_t)n, "/%u", entry);
	w->name = w->path + n + 1;
	c->n_writes++;
	return w->dir < 0 ? -errno : 0;
}

/* In the order of vhca_identity_mlx4.program. */
static int plan_writes(struct cost *c)
{
	struct vhca_mlx4_fn fn;
	char directory[96];
	int r = vhca_mlx4_open(&c->at, false, &fn);

	if (r < 0)
		return r;
	(void)snprintf(c->writes[c->n_writes].text, sizeof(c->writes->text), "%" PRIx64 "\n",
		       c->want.guid);
	(void)snprintf(directory, sizeof(directory), "iov/ports/%u/admin_guids", c->at.port);
	r = add_write(c, directory, fn.gid_index);
	(void)snprintf(directory, sizeof(directory), "iov/%s/ports/%u/pkey_idx", fn.name,
		       c->at.port);
	for (unsigned int i = 0; i < c->want.n_pkeys && r == 0; i++) {
		(void)snprintf(c->writes[c->n_writes].text, sizeof(c->writes->text), "%u\n", i);
		r = add_write(c, directory, i);
	}
	vhca_mlx4_close(&fn);
	return r;
}

/* ---- measuring ---- */

struct pass {
	const char *name; /* NULL: not told */
	int (*act)(struct cost *c);
	uint64_t best_us[VFS_MAX];
	uint64_t writes, reads, opens;
};

static int measure(struct cost *c, struct pass *p)
{
	const struct vhca_sysfs *sys = c->at.sys;
	uint64_t writes = vhca_sysfs_writes(sys), reads = vhca_sysfs_reads(sys),
		 opens = vhca_sysfs_opens(sys);
	int r = 0;

	for (uint32_t vf = 0; vf < c->vfs && r == 0; vf++) {
		uint64_t took, started;

		go_to(c, vf);
		started = now_us();
		r = p->act(c);
		took = now_us() - started;
		if (!p->best_us[vf] || took < p->best_us[vf])
			p->best_us[vf] = took;
	}
	p->writes = vhca_sysfs_writes(sys) - writes;
	p->reads = vhca_sysfs_reads(sys) - reads;
	p->opens = vhca_sysfs_opens(sys) - opens;
	if (r < 0)
		(void)fprintf(stderr, "%s: %d %s\n", p->name ? p->name : "scrub", r, c->err.msg);
	return r;
}

static void tell(const struct cost *c, const struct pass *p)
{
	uint64_t sum = 0;

	for (uint32_t vf = 0; vf < c->vfs; vf++)
		sum += p->best_us[vf];
	if (p->name)
		printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", p->name, sum,
		       p->writes, p->reads, p->opens);
}

static int run(struct cost *c, uint32_t rounds)
{
	struct pass passes[] = {{"program", program}, {"again", program}, {"scrub", scrub},
				{"bare", bare},	      {NULL, scrub},	  {"cheapest", cheapest},
				{NULL, scrub}};
	int r = 0;

	for (uint32_t vf = 0; vf < c->vfs && r == 0; vf++) {
		go_to(c, vf);
		r = scrub(c);
		if (r == 0)
			r = plan_writes(c);
	}
	for (uint32_t round = 0; round < rounds; round++) {
		for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(passes) && r == 0; i++)
			r = measure(c, &passes[i]);
	}
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(passes) && r == 0 && rounds; i++)
		tell(c, &passes[i]);
	return r;
}

int main(int argc, char **argv)
{
	struct cost c = {.at = {.n_ports = 2}, .err = VHCA_ERROR_INIT};
	uint32_t of_port2, keys, rounds;
	int r;

	if (argc != 7 || vhca_bdf_parse(argv[1], &c.at.pf) < 0 ||
	    vhca_parse_u32(argv[3], 10, VFS_MAX, &c.of_port1) < 0 ||
	    vhca_parse_u32(argv[4], 10, VFS_MAX - c.of_port1, &of_port2) < 0 ||
	    vhca_parse_u32(argv[5], 10, VHCA_VF_PKEYS_MAX, &keys) < 0 ||
	    vhca_parse_u32(argv[6], 10, 100, &rounds) < 0 ||
	    vhca_sysfs_open(vhca_sysfs_default_root(), &c.at.sys) < 0)
		return 2;
	c.at.ibdev = argv[2];
	c.vfs = c.of_port1 + of_port2;
	c.want.n_pkeys = (uint8_t)keys;
	for (unsigned int i = 0; i < keys; i++)
		c.want.pkeys[i] = (uint16_t)(i ? 0x8000 + i : 0xffff);
	/* As the agent's strand of a PF has it. */
	c.at.kept = vhca_identity_kept_new(c.at.pf);
	c.writes = calloc((size_t)c.vfs * (keys + 1), sizeof(*c.writes));
	r = c.writes ? run(&c, rounds) : -ENOMEM;
	free(c.writes);
	vhca_identity_kept_free(c.at.kept);
	vhca_sysfs_close(c.at.sys);
	return r < 0;
}
