// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What it takes to number the channels of a subnet: bench_channels PODS RUNS, for
 * bench_channels.py, which judges. The plugin does that under OpenSM's lock, at the first skyline
 * plan across leaves after a computation of ways, and in each computation while LIDs are kept. A
 * fat-tree of three levels with PODS pods of 18 leaves and 18 spines, 36 ports a switch and 18
 * hosts a leaf (36 pods: the paper's 11664 nodes), in which each LID goes up by its own number.
 * Beside it reading all tables once, LID by LID, and what else a plan takes: deterministic, which
 * asks for no numbers, and skyline across leaves, once they are there. Prints each series' median,
 * in us of processor time: on a machine that does other things the clock says little.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/text.h"
#include "opensm/lids/plan.h"

#define HALF	 18 /* of a switch's ports */
#define PODS_MAX (2 * HALF)
#define RUNS_MAX 1000

struct tree {
	struct vhca_osm_fabric f;
	uint32_t pods, hosts;
	uint8_t *lft; /* of all switches */
	uint32_t lft_size;
};

static uint32_t leaf_of(uint32_t pod, uint32_t leaf)
{
	return pod * 2 * HALF + leaf;
}

static uint32_t spine_of(uint32_t pod, uint32_t spine)
{
	return pod * 2 * HALF + HALF + spine;
}

static uint32_t core_of(const struct tree *t, uint32_t spine, uint32_t up)
{
	return t->pods * 2 * HALF + spine * HALF + up;
}

static void connect(struct tree *t, uint32_t a, uint32_t a_port, uint32_t b, uint32_t b_port)
{
	t->f.switches[a].peers[a_port] = b;
	t->f.switches[b].peers[b_port] = a;
}

/* Host n is in pod n / (HALF * HALF), at leaf n / HALF, and has LID n + 1. */
static uint8_t route(const struct tree *t, uint32_t sw, uint32_t host)
{
	uint32_t pod = host / (HALF * HALF), leaf = host / HALF % HALF, at = sw % (2 * HALF);

	if (sw >= t->pods * 2 * HALF)
		return (uint8_t)(pod + 1);
	if (sw == leaf_of(pod, leaf))
		return (uint8_t)(host % HALF + 1);
	if (at < HALF)
		return (uint8_t)(HALF + 1 + host % HALF);
	return (uint8_t)(sw / (2 * HALF) == pod ? leaf + 1 : HALF + 1 + leaf);
}

static void wire(struct tree *t)
{
	for (uint32_t pod = 0; pod < t->pods; pod++)
		for (uint32_t spine = 0; spine < HALF; spine++)
			for (uint32_t i = 0; i < HALF; i++) {
				connect(t, leaf_of(pod, i), HALF + 1 + spine, spine_of(pod, spine),
					i + 1);
				connect(t, spine_of(pod, spine), HALF + 1 + i, core_of(t, spine, i),
					pod + 1);
			}
}

static int tree_init(struct tree *t, uint32_t pods)
{
	uint32_t n = pods * 2 * HALF + HALF * HALF;

	*t = (struct tree){.pods = pods, .hosts = pods * HALF * HALF};
	t->lft_size = t->hosts + 1;
	t->lft = calloc(n, t->lft_size);
	if (!t->lft || vhca_osm_fabric_init(&t->f, n, (size_t)n * 2 * HALF) < 0)
		return -1;
	for (uint32_t s = 0; s < n; s++) {
		struct vhca_osm_switch *sw = vhca_osm_fabric_add(&t->f, 100 + s, 2 * HALF);
		uint8_t *lft = t->lft + (size_t)s * t->lft_size;

		lft[0] = VHCA_OSM_NO_PATH;
		for (uint32_t host = 0; host < t->hosts; host++)
			lft[host + 1] = route(t, s, host);
		sw->lft = lft;
		sw->lft_size = t->lft_size;
		sw->has_hosts = s < pods * 2 * HALF && s % (2 * HALF) < HALF;
	}
	wire(t);
	return 0;
}

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void tell(const char *series, int64_t *us, size_t n)
{
	qsort(us, n, sizeof(*us), by_value);
	(void)printf("%s %lld\n", series, (long long)us[n / 2]);
}

/* The first host and the last one; mode is also the one that has to come out. */
static int64_t plan(const struct tree *t, enum vhca_osm_move_mode mode,
		    struct vhca_osm_channels *channels)
{
	const struct vhca_osm_swap swap = {.lid = {1, (uint16_t)t->hosts},
					   .at = {{0, 1}, {leaf_of(t->pods - 1, HALF - 1), HALF}},
					   .mode = mode};
	struct vhca_osm_lid_plan plan;
	int64_t start = now_us();

	if (vhca_osm_lid_plan(&t->f, &swap, channels, &plan) < 0 || plan.mode != mode)
		abort();
	vhca_osm_lid_plan_done(&plan);
	return now_us() - start;
}

static int64_t read_tables(const struct tree *t)
{
	int64_t start = now_us();
	uint64_t sum = 0;

	for (uint32_t lid = 1; lid < t->lft_size; lid++)
		for (size_t s = 0; s < t->f.n; s++)
			sum += vhca_osm_switch_entry(&t->f.switches[s], (uint16_t)lid);
	if (sum == 0)
		abort(); /* nor is it left out by the compiler */
	return now_us() - start;
}

int main(int argc, char **argv)
{
	static int64_t us[4][RUNS_MAX];
	struct vhca_osm_channels channels = {.known = false};
	uint32_t pods = 0, runs = 0;
	struct tree t;

	if (argc != 3 || vhca_parse_u32(argv[1], 10, PODS_MAX, &pods) < 0 || pods < 2 ||
	    vhca_parse_u32(argv[2], 10, RUNS_MAX, &runs) < 0 || !runs || tree_init(&t, pods) < 0)
		return 2;
	for (uint32_t i = 0; i < runs; i++) {
		int64_t start;

		vhca_osm_channels_done(&channels);
		us[0][i] = plan(&t, VHCA_OSM_DETERMINISTIC, &channels);
		start = now_us();
		if (vhca_osm_channels_number(&channels, &t.f) < 0 || !channels.number)
			return 1;
		us[1][i] = now_us() - start;
		us[2][i] = plan(&t, VHCA_OSM_SKYLINE, &channels);
		us[3][i] = read_tables(&t);
	}
	tell("deterministic", us[0], runs);
	tell("number", us[1], runs);
	tell("skyline", us[2], runs);
	tell("tables", us[3], runs);
	vhca_osm_channels_done(&channels);
	vhca_osm_fabric_done(&t.f);
	free(t.lft);
	return 0;
}
