/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Our models of mlx4 against tests/data/mlx4.script. The fourth, simhca, plays it on the rig
 * (tests/rig/cases/70_adapter.py).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/sim/host/hw.h"
#include "tests/sim/host/mlx4_script.h"
#include "tests/sim/host/world_int.h"
#include "tests/sim/kernel/sysfs_fixture.h"
#include "tests/unit/unit.h"

#define VFS 4

static const char *script(void)
{
	static char path[256];
	const char *source = getenv("VHCA_SOURCE_DIR");

	assert_non_null(source);
	(void)snprintf(path, sizeof(path), "%s/tests/data/mlx4.script", source);
	return path;
}

static unsigned int number(const char *word)
{
	return (unsigned int)strtoul(word, NULL, 0);
}

static bool is(const char *word, const char *text)
{
	return strcmp(word, text) == 0;
}

/* ---- fuse ---- */

struct fuse_model {
	struct sysfs_fixture base;
	unsigned int adapters; /* each section has its own */
	struct sim_pf pf;
	char bdf[VHCA_BDF_STRLEN], ibdev[16];
};

/* The script's PF, at whichever bus it is in this section. */
static void fuse_path(const struct fuse_model *f, const char *path, char buf[static 256])
{
	if (strncmp(path, MLX4_SCRIPT_PF, 8) == 0)
		(void)snprintf(buf, 256, "%s/bus/pci/devices/%s/infiniband/%s/iov/%.8s%s",
			       sysfs_sim_root(f->base.sim), f->bdf, f->ibdev, f->bdf, path + 8);
	else
		(void)snprintf(buf, 256, "%s/bus/pci/devices/%s/infiniband/%s/iov/%s",
			       sysfs_sim_root(f->base.sim), f->bdf, f->ibdev, path);
}

static void fuse_begin(void *ctx)
{
	struct fuse_model *f = ctx;

	(void)snprintf(f->bdf, sizeof(f->bdf), "0000:%02x:00.0", 3 + f->adapters);
	(void)snprintf(f->ibdev, sizeof(f->ibdev), "mlx4_%u", f->adapters++);
	f->pf = (struct sim_pf){.bdf = f->bdf,
				.driver = "mlx4_core",
				.ibdev = f->ibdev,
				.device = 0x1003,
				.total_vfs = VFS,
				.n_ports = 1};
	sysfs_sim_add_mlx4(f->base.sim, &f->pf, VFS);
}

static int fuse_read(void *ctx, const char *path, char *buf, size_t size)
{
	VHCA_AUTO_CLOSE int fd = -1;
	char full[256];
	ssize_t n;

	fuse_path(ctx, path, full);
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	assert_true(n > 0 && buf[n - 1] == '\n');
	buf[n - 1] = '\0';
	return 0;
}

static int fuse_write(void *ctx, const char *path, const char *text)
{
	VHCA_AUTO_CLOSE int fd = -1;
	char full[256], line[64];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	fuse_path(ctx, path, full);
	fd = open(full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, line, (size_t)n) < 0 ? -errno : 0;
}

static int fuse_event(void *ctx, char *const words[])
{
	struct fuse_model *f = ctx;
	struct sysfs_sim *sim = f->base.sim;

	if (is(words[0], "sm")) {
		sysfs_sim_set_auto_grant(sim, is(words[1], "on"));
		for (unsigned int i = 1; is(words[1], "on") && i <= VFS; i++)
			sysfs_sim_grant(sim, &f->pf, 1, i);
	} else if (is(words[0], "key")) {
		sysfs_sim_set_pkey(sim, &f->pf, number(words[1]), number(words[2]),
				   (uint16_t)number(words[3]));
	} else if (is(words[0], "reload")) {
		sysfs_sim_reload_mlx4(sim, &f->pf, VFS);
	} else if (is(words[0], "start") || is(words[0], "stop") || is(words[0], "flr")) {
		sysfs_sim_slave(sim, &f->pf, number(words[1]), is(words[0], "start"));
	} else {
		return -EINVAL;
	}
	return 0;
}

static void play(const struct mlx4_model *model, unsigned int most_skipped)
{
	struct mlx4_played played;

	mlx4_script_play(model, script(), &played);
	if (played.problem[0] != '\0')
		fail_msg("%s", played.problem);
	assert_true(played.lines > 150);
	assert_true(played.skipped <= most_skipped);
}

static void fuse_plays_the_script(void **state)
{
	struct fuse_model f = {.adapters = 0};
	const struct mlx4_model model = {"fuse",     fuse_begin, fuse_read, fuse_write,
					 fuse_event, NULL,	 &f};

	(void)state;
	if (!sysfs_fixture_begin(&f.base))
		skip();
	play(&model, 0);
	vhca_sysfs_close(f.base.sys);
	sysfs_sim_stop(f.base.sim);
}

/* ---- hw ---- */

static void hw_begin(void *ctx)
{
	hw_init(ctx, HW_MLX4, HW_KEYS, NULL);
}

static struct hw_dir hw_ibdev(const struct hw *hw)
{
	struct hw_dir dir;

	assert_int_equal(hw_opendir(hw, "bus/pci/devices/" HW_PF "/infiniband/mlx4_0", &dir), 0);
	return dir;
}

static const char *below_iov(const char *path, char buf[static 128])
{
	(void)snprintf(buf, 128, "iov/%s", path);
	return buf;
}

static int hw_model_read(void *ctx, const char *path, char *buf, size_t size)
{
	struct hw_dir dir = hw_ibdev(ctx);

	return hw_read(ctx, &dir, below_iov(path, (char[128]){0}), buf, size);
}

static int hw_model_write(void *ctx, const char *path, const char *text)
{
	struct hw_dir dir = hw_ibdev(ctx);

	return hw_write(ctx, &dir, below_iov(path, (char[128]){0}), text);
}

static int hw_model_event(void *ctx, char *const words[])
{
	struct hw *hw = ctx;

	if (is(words[0], "sm"))
		hw_sm(hw, is(words[1], "on"));
	else if (is(words[0], "key"))
		hw->pkeys[number(words[1]) - 1][number(words[2])] = (uint16_t)number(words[3]);
	else if (is(words[0], "reload"))
		hw_reset_maps(hw);
	else if (is(words[0], "start"))
		hw_guest_driver(hw, number(words[1]) - 1);
	else if (is(words[0], "stop") || is(words[0], "flr"))
		hw_close(hw, number(words[1]) - 1);
	else
		return -EINVAL;
	return 0;
}

static void hw_plays_the_script(void **state)
{
	static struct hw hw;
	const struct mlx4_model model = {
		"hw", hw_begin, hw_model_read, hw_model_write, hw_model_event, NULL, &hw};

	(void)state;
	play(&model, 0);
}

/* ---- world ---- */

static void world_begin(void *ctx)
{
	struct world *w = ctx;

	world_done(w);
	world_init(w);
}

static int world_map(const struct world *w, unsigned int fn, unsigned int virt, char *buf,
		     size_t size)
{
	struct vhca_effect_result res = {.rc = 0};

	assert_int_equal(world_vf_read(w, &w->vfs[fn - 1], 1, &res), 0);
	if (res.hw.map[virt] < 0)
		(void)snprintf(buf, size, "none");
	else
		(void)snprintf(buf, size, "%d", res.hw.map[virt]);
	return 0;
}

static int world_guid(const struct world *w, unsigned int fn, bool granted, char *buf, size_t size)
{
	struct vhca_effect_result res = {.rc = 0};
	uint64_t g;

	assert_int_equal(world_vf_read(w, &w->vfs[fn - 1], 1, &res), 0);
	g = res.hw.granted;
	if (granted)
		(void)snprintf(buf, size, "fe80:0000:0000:0000:%04x:%04x:%04x:%04x",
			       (unsigned int)(g >> 48), (unsigned int)(g >> 32) & 0xffff,
			       (unsigned int)(g >> 16) & 0xffff, (unsigned int)g & 0xffff);
	else
		(void)snprintf(buf, size, "%llx", (unsigned long long)res.hw.requested);
	return 0;
}

static int world_model_read(void *ctx, const char *path, char *buf, size_t size)
{
	const struct world *w = ctx;
	unsigned int fn, n;

	if (sscanf(path, "0000:03:00.%u/ports/1/pkey_idx/%u", &fn, &n) == 2)
		return world_map(w, fn, n, buf, size);
	if (sscanf(path, "0000:03:00.%u/ports/1/gid_idx/%u", &fn, &n) == 2) {
		(void)snprintf(buf, size, "%u", fn);
		return 0;
	}
	if (sscanf(path, "ports/1/admin_guids/%u", &n) == 1)
		return world_guid(w, n, false, buf, size);
	if (sscanf(path, "ports/1/gids/%u", &n) == 1)
		return world_guid(w, n, true, buf, size);
	if (sscanf(path, "ports/1/pkeys/%u", &n) != 1 || n >= WORLD_KEYS)
		return -ENOENT;
	(void)snprintf(buf, size, "0x%04x", w->port_pkeys[n]);
	return 0;
}

static int world_model_write(void *ctx, const char *path, const char *text)
{
	(void)ctx;
	(void)path;
	(void)text;
	return -ENOSYS;
}

static int world_model_give(void *ctx, const struct mlx4_identity *id)
{
	struct world *w = ctx;
	struct vhca_identity want = {.guid = id->guid, .n_pkeys = (uint8_t)id->n_keys};

	memcpy(want.pkeys, id->keys, sizeof(id->keys[0]) * id->n_keys);
	if (id->guid == UINT64_MAX)
		world_vf_scrub(w, &w->vfs[id->fn - 1]);
	else
		assert_int_equal(world_vf_program(w, &w->vfs[id->fn - 1], &want), 0);
	return 0;
}

static int world_model_event(void *ctx, char *const words[])
{
	struct world *w = ctx;

	if (is(words[0], "key"))
		w->port_pkeys[number(words[2])] = (uint16_t)number(words[3]);
	else if (is(words[0], "start"))
		w->vfs[number(words[1]) - 1].guest_driver = true;
	else if (is(words[0], "stop") || is(words[0], "flr"))
		world_vf_unplug(&w->vfs[number(words[1]) - 1]);
	else
		return -EINVAL;
	return 0;
}

static void world_plays_the_script(void **state)
{
	static struct world w;
	const struct mlx4_model model = {"world",
					 world_begin,
					 world_model_read,
					 world_model_write,
					 world_model_event,
					 world_model_give,
					 &w};

	(void)state;
	world_init(&w);
	play(&model, 150);
	world_done(&w);
}

/* ---- the script itself ---- */

struct liar {
	struct hw hw;
	unsigned int accesses, lie_at; /* counted from 1; 0 = never */
};

static void liar_begin(void *ctx)
{
	hw_begin(&((struct liar *)ctx)->hw);
}

static int liar_read(void *ctx, const char *path, char *buf, size_t size)
{
	struct liar *l = ctx;
	int r = hw_model_read(&l->hw, path, buf, size);

	if (++l->accesses != l->lie_at)
		return r;
	(void)snprintf(buf, size, "lie");
	return r < 0 ? 0 : -EIO;
}

static int liar_write(void *ctx, const char *path, const char *text)
{
	struct liar *l = ctx;
	int r = hw_model_write(&l->hw, path, text);

	return ++l->accesses != l->lie_at ? r : r < 0 ? 0 : -EIO;
}

static int liar_event(void *ctx, char *const words[])
{
	return hw_model_event(&((struct liar *)ctx)->hw, words);
}

/* An identity is many accesses of which not each is looked at; here it is none. */
static int liar_give(void *ctx, const struct mlx4_identity *id)
{
	struct liar *l = ctx;

	for (unsigned int i = 0; i < HW_KEYS; i++)
		l->hw.vfs[id->fn - 1].map[0][i] = i < id->n_keys ? (int16_t)(5 + i) : HW_NONE;
	return hw_model_write(&l->hw, "ports/1/admin_guids/1",
			      id->guid == UINT64_MAX ? "ffffffffffffffff" : "225c90000000001");
}

/* A model that answers wrong once, at whichever line, is found out. */
static void every_line_can_fail(void **state)
{
	static struct liar l;
	const struct mlx4_model model = {"hw",	     liar_begin, liar_read, liar_write,
					 liar_event, liar_give,	 &l};
	struct mlx4_played played;
	unsigned int n;

	(void)state;
	mlx4_script_play(&model, script(), &played);
	assert_string_equal(played.problem, "");
	n = l.accesses;
	assert_true(n > 120);
	for (unsigned int i = 1; i <= n; i++) {
		l = (struct liar){.lie_at = i};
		mlx4_script_play(&model, script(), &played);
		if (played.problem[0] == '\0')
			fail_msg("a lie at access %u goes unnoticed", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fuse_plays_the_script),
		cmocka_unit_test(hw_plays_the_script),
		cmocka_unit_test(world_plays_the_script),
		cmocka_unit_test(every_line_can_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
