/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Planning on fabrics made here: what a plan changes, what it costs, and that every LID arrives
 * from everywhere after it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/lids/plan.h"
#include "tests/unit/unit.h"

/* A fat-tree of two levels: leaf l has hosts at ports 1.., spine s at port HOSTS + 1 + s. */
#define LEAVES	 4
#define SPINES	 3
#define HOSTS	 20 /* two blocks of LIDs, and moves inside a leaf that touch both */
#define SWITCHES (LEAVES + SPINES)
#define LIDS	 128
#define N_LIDS	 (LEAVES * HOSTS)

struct net {
	struct vhca_osm_fabric f;
	uint8_t lft[SWITCHES][LIDS];
	struct vhca_osm_place at[LIDS]; /* by LID */
};

static uint8_t engine(uint32_t sw, uint16_t lid, const struct vhca_osm_place *at)
{
	if (sw >= LEAVES)
		return (uint8_t)(at->sw + 1);
	return at->sw == sw ? at->port : (uint8_t)(HOSTS + 1 + lid % SPINES);
}

static void route(struct net *n)
{
	for (uint32_t s = 0; s < SWITCHES; s++)
		for (uint16_t lid = 1; lid <= N_LIDS; lid++)
			n->lft[s][lid] = engine(s, lid, &n->at[lid]);
}

static struct net *net_new(void)
{
	struct net *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	assert_int_equal(vhca_osm_fabric_init(&n->f, SWITCHES, 256), 0);
	for (uint32_t s = 0; s < SWITCHES; s++) {
		struct vhca_osm_switch *sw =
			vhca_osm_fabric_add(&n->f, 100 + s, s < LEAVES ? HOSTS + SPINES : LEAVES);

		for (uint32_t p = 0; p < (s < LEAVES ? SPINES : LEAVES); p++)
			sw->peers[s < LEAVES ? HOSTS + 1 + p : p + 1] = s < LEAVES ? LEAVES + p : p;
		(void)memset(n->lft[s], VHCA_OSM_NO_PATH, LIDS);
		sw->lft = n->lft[s];
		sw->lft_size = LIDS;
		sw->has_hosts = s < LEAVES;
	}
	for (uint16_t lid = 1; lid <= N_LIDS; lid++)
		n->at[lid] = (struct vhca_osm_place){(uint32_t)(lid - 1) % LEAVES,
						     (uint8_t)((lid - 1) / LEAVES + 1)};
	route(n);
	return n;
}

static void net_free(struct net *n)
{
	vhca_osm_fabric_done(&n->f);
	free(n);
}
VHCA_DEFINE_CLEANUP(struct net, net_free)

static void assert_all_arrive(const struct net *n)
{
	for (uint16_t lid = 1; lid <= N_LIDS; lid++) {
		uint8_t ports[SWITCHES];

		for (size_t s = 0; s < SWITCHES; s++)
			ports[s] = n->lft[s][lid];
		assert_int_equal(vhca_osm_fabric_reaches(&n->f, ports, &n->at[lid]), 1);
	}
}

static size_t blocks_that_differ(const struct net *n, uint8_t (*old)[LIDS])
{
	size_t count = 0;

	for (size_t s = 0; s < SWITCHES; s++)
		for (size_t b = 0; b < LIDS; b += VHCA_OSM_LFT_BLOCK)
			count += memcmp(&n->lft[s][b], &old[s][b], VHCA_OSM_LFT_BLOCK) != 0;
	return count;
}

/* Plans, applies, and checks the plan's figures against the tables. Returns the mode taken. */
static enum vhca_osm_move_mode move(struct net *n, uint16_t a, uint16_t b,
				    enum vhca_osm_move_mode mode, size_t *ret_switches,
				    size_t *ret_blocks)
{
	const struct vhca_osm_swap swap = {.lid = {a, b}, .at = {n->at[a], n->at[b]}, .mode = mode};
	const struct vhca_osm_place at = n->at[a];
	struct vhca_osm_channels channels = {.known = false};
	struct vhca_osm_lid_plan p;
	uint8_t old[SWITCHES][LIDS];
	enum vhca_osm_move_mode taken;

	(void)memcpy(old, n->lft, sizeof(old));
	assert_int_equal(vhca_osm_lid_plan(&n->f, &swap, &channels, &p), 0);
	vhca_osm_channels_done(&channels);
	for (size_t c = 0; c < p.n; c++) {
		n->lft[p.changes[c].sw][a] = p.changes[c].port[0];
		n->lft[p.changes[c].sw][b] = p.changes[c].port[1];
	}
	n->at[a] = n->at[b];
	n->at[b] = at;
	assert_int_equal(p.n_blocks, blocks_that_differ(n, old));
	*ret_switches = p.n;
	*ret_blocks = p.n_blocks;
	taken = p.mode;
	vhca_osm_lid_plan_done(&p);
	return taken;
}

/* LIDs 1, 5, 9 ... are at leaf 0, and 1..63 in the first block. */
static void inside_a_leaf_one_switch_changes(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	size_t switches, blocks;

	(void)state;
	assert_int_equal(move(n, 1, 5, VHCA_OSM_AUTO, &switches, &blocks), VHCA_OSM_SKYLINE);
	assert_int_equal(switches, 1);
	assert_int_equal(blocks, 1);
	assert_int_equal(move(n, 5, 77, VHCA_OSM_AUTO, &switches, &blocks), VHCA_OSM_SKYLINE);
	assert_int_equal(switches, 1);
	assert_int_equal(blocks, 2);
	assert_all_arrive(n);
}

static void deterministic_changes_all_that_differ(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	size_t switches, blocks;

	(void)state;
	/* leaf 0 to leaf 1, other spine, other block: every switch, two blocks each */
	assert_int_equal(move(n, 1, 78, VHCA_OSM_AUTO, &switches, &blocks), VHCA_OSM_DETERMINISTIC);
	assert_int_equal(switches, SWITCHES - (1 % SPINES == 78 % SPINES ? 2 : 0));
	assert_int_equal(blocks, 2 * switches);
	assert_all_arrive(n);
	/* inside a leaf: the other leaves, too, where the spine is another */
	assert_int_equal(move(n, 5, 9, VHCA_OSM_DETERMINISTIC, &switches, &blocks),
			 VHCA_OSM_DETERMINISTIC);
	assert_int_equal(switches, LEAVES);
	assert_int_equal(blocks, LEAVES);
	assert_all_arrive(n);
}

static void deterministic_and_back_is_as_before(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	uint8_t old[SWITCHES][LIDS];
	size_t switches, blocks;

	(void)state;
	(void)memcpy(old, n->lft, sizeof(old));
	(void)move(n, 3, 70, VHCA_OSM_DETERMINISTIC, &switches, &blocks);
	assert_true(blocks > 0);
	(void)move(n, 3, 70, VHCA_OSM_DETERMINISTIC, &switches, &blocks);
	assert_memory_equal(n->lft, old, sizeof(old));
}

static void skyline_costs_no_more(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	VHCA_CLEANUP(net_freep) struct net *other = net_new();
	size_t sky, det, blocks;

	(void)state;
	assert_int_equal(move(n, 2, 7, VHCA_OSM_SKYLINE, &sky, &blocks), VHCA_OSM_SKYLINE);
	(void)move(other, 2, 7, VHCA_OSM_DETERMINISTIC, &det, &blocks);
	assert_true(sky < det);
	assert_all_arrive(n);
}

static int keep(const struct vhca_osm_fabric *f, uint16_t lid, const struct vhca_osm_place *place,
		const uint8_t *now, uint8_t *ret)
{
	VHCA_AUTO_FREE uint16_t *distance = calloc(f->n, sizeof(*distance));
	const struct vhca_osm_goal goal = {*place, distance};
	struct vhca_osm_channels channels = {.known = false};
	int r;

	assert_non_null(distance);
	assert_int_equal(vhca_osm_fabric_distances(f, place->sw, distance), 0);
	assert_int_equal(vhca_osm_channels_number(&channels, f), 0);
	r = vhca_osm_lid_keep(f, lid, &goal, &channels, now, ret);
	vhca_osm_channels_done(&channels);
	return r;
}

static void many_moves_of_all_kinds(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	size_t switches, blocks;
	unsigned int seed = 7;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		uint16_t a = (uint16_t)(rand_r(&seed) % N_LIDS + 1);
		uint16_t b = (uint16_t)(rand_r(&seed) % N_LIDS + 1);

		if (a == b)
			continue;
		(void)move(n, a, b, (enum vhca_osm_move_mode)(rand_r(&seed) % 3), &switches,
			   &blocks);
		assert_true(blocks <= 2 * SWITCHES);
		if (i % 20 == 0)
			assert_all_arrive(n);
	}
	assert_all_arrive(n);
}

/*
 * A ring 0-1-2-3 with hosts at port 3. LID 2 (at 2) goes the long way from 1: 1 -> 0 -> 3 -> 2. LID
 * 1 (at 1) comes from 0 directly. Moved to switch 2 by the skyline rule, 0 would keep "to 1", and 1
 * would take "to 0".
 */
static void ways_that_are_not_shortest_make_no_loop(void **state)
{
	static const uint32_t peers[4][3] = {
		{VHCA_OSM_NO_SWITCH, 1, 3},
		{VHCA_OSM_NO_SWITCH, 0, 2},
		{VHCA_OSM_NO_SWITCH, 1, 3},
		{VHCA_OSM_NO_SWITCH, 0, 2},
	};
	/* LID 1 at switch 1, LID 2 at switch 2 */
	static const uint8_t lft[4][3] = {{255, 1, 2}, {255, 3, 1}, {255, 1, 3}, {255, 1, 2}};
	struct vhca_osm_swap swap = {
		.lid = {1, 2}, .at = {{1, 3}, {2, 3}}, .mode = VHCA_OSM_SKYLINE};
	struct vhca_osm_channels channels = {.known = false};
	struct vhca_osm_lid_plan p;
	struct vhca_osm_fabric f;
	const uint8_t now[4] = {1, 1, 3, 2}; /* what a skyline move would have left */
	uint8_t want[4];

	(void)state;
	assert_int_equal(vhca_osm_fabric_init(&f, 4, 12), 0);
	for (size_t s = 0; s < 4; s++) {
		struct vhca_osm_switch *sw = vhca_osm_fabric_add(&f, s + 1, 3);

		(void)memcpy(sw->peers, peers[s], sizeof(peers[s]));
		sw->lft = lft[s];
		sw->lft_size = 3;
	}
	assert_int_equal(vhca_osm_lid_plan(&f, &swap, &channels, &p), 0);
	assert_int_equal(p.mode, VHCA_OSM_DETERMINISTIC);
	assert_int_equal(p.n, 4);
	vhca_osm_lid_plan_done(&p);
	/*
	 * the same after a sweep: LID 2 is at switch 2, and what 0 has would loop with the engine's
	 * 1
	 */
	assert_int_equal(keep(&f, 2, &swap.at[1], now, want), 0);
	for (size_t s = 0; s < 4; s++)
		assert_int_equal(want[s], lft[s][2]);
	vhca_osm_fabric_done(&f);
}

#define NO VHCA_OSM_NO_SWITCH

/*
 * Leaves 0 and 5 below the spines 3 and 4; 1 and 2 are hypervisors at leaf 0, 6 is one at leaf 5.
 * LIDs 1, 2, 3 are at their ports 2.
 */
static void hypervisors_at_one_leaf_are_inside_it(void **state)
{
	static const uint32_t peers[7][5] = {
		{NO, 1, 2, 3, 4},   {NO, 0, NO, NO, NO}, {NO, 0, NO, NO, NO}, {NO, 0, 5, NO, NO},
		{NO, 0, 5, NO, NO}, {NO, 6, NO, 3, 4},	 {NO, 5, NO, NO, NO}};
	static const uint8_t lft[7][4] = {{255, 1, 2, 3}, {255, 2, 1, 1}, {255, 1, 2, 1},
					  {255, 1, 1, 2}, {255, 1, 1, 2}, {255, 3, 4, 1},
					  {255, 1, 1, 2}};
	struct vhca_osm_swap swap = {.lid = {1, 2}, .at = {{1, 2}, {2, 2}}, .mode = VHCA_OSM_AUTO};
	struct vhca_osm_channels channels = {.known = false};
	struct vhca_osm_lid_plan p;
	struct vhca_osm_fabric f;

	(void)state;
	assert_int_equal(vhca_osm_fabric_init(&f, 7, 28), 0);
	for (size_t s = 0; s < 7; s++) {
		struct vhca_osm_switch *sw = vhca_osm_fabric_add(&f, s + 1, 4);

		(void)memcpy(sw->peers, peers[s], sizeof(peers[s]));
		sw->lft = lft[s];
		sw->lft_size = 4;
	}
	assert_int_equal(vhca_osm_lid_plan(&f, &swap, &channels, &p), 0);
	assert_int_equal(p.mode, VHCA_OSM_SKYLINE);
	assert_int_equal(p.n_blocks, 3); /* leaf 5 keeps its ways by the other spine */
	vhca_osm_lid_plan_done(&p);
	swap.lid[1] = 3;
	swap.at[1].sw = 6;
	assert_int_equal(vhca_osm_lid_plan(&f, &swap, &channels, &p), 0);
	assert_int_equal(p.mode, VHCA_OSM_DETERMINISTIC);
	vhca_osm_lid_plan_done(&p);
	vhca_osm_fabric_done(&f);
}

static void kept_entries_survive_the_engine(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	size_t switches, blocks;
	uint8_t now[SWITCHES], want[SWITCHES];

	(void)state;
	(void)move(n, 1, 5, VHCA_OSM_SKYLINE, &switches, &blocks);
	for (size_t s = 0; s < SWITCHES; s++)
		now[s] = n->lft[s][1];
	/* an engine that orders its paths by port, not by LID: another spine now */
	for (uint32_t s = 0; s < SWITCHES; s++)
		n->lft[s][1] = engine(s, 5, &n->at[1]);
	assert_int_equal(keep(&n->f, 1, &n->at[1], now, want), 1);
	assert_memory_equal(want, now, sizeof(now));
	/*
	 * the cable that leaf 3 used for it is gone: there the engine's, elsewhere what they have
	 */
	n->f.switches[3].peers[now[3]] = VHCA_OSM_NO_SWITCH;
	assert_int_not_equal(n->lft[3][1], now[3]);
	assert_int_equal(keep(&n->f, 1, &n->at[1], now, want), 1);
	assert_int_equal(want[3], n->lft[3][1]);
	assert_memory_equal(want, now, 3);
}

/*
 * Plans a copy, applies it, and checks that nothing else would have to change, and what it costs.
 */
static size_t copy(struct net *n, const struct vhca_osm_copy *copy)
{
	uint8_t old[SWITCHES][LIDS], want[SWITCHES];
	struct vhca_osm_lid_plan p;
	size_t changes;

	(void)memcpy(old, n->lft, sizeof(old));
	vhca_osm_lid_copy(&n->f, copy, want);
	assert_int_equal(vhca_osm_lid_copy_plan(&n->f, copy, &p), 0);
	for (size_t c = 0; c < p.n; c++)
		n->lft[p.changes[c].sw][copy->lid] = p.changes[c].port[0];
	for (size_t s = 0; s < SWITCHES; s++)
		assert_int_equal(n->lft[s][copy->lid], want[s]);
	assert_int_equal(p.n_blocks, blocks_that_differ(n, old));
	assert_int_equal(p.n, p.n_blocks);
	changes = p.n;
	vhca_osm_lid_plan_done(&p);
	return changes;
}

#define NEW_LID (N_LIDS + 3)

static void a_copy_has_the_same_ways(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	struct vhca_osm_copy to = {.lid = NEW_LID, .from = 1, .sw = n->at[1].sw};
	size_t differ = 0;

	(void)state;
	assert_int_equal(copy(n, &to), SWITCHES);
	assert_int_equal(copy(n, &to), 0);
	for (size_t s = 0; s < SWITCHES; s++)
		assert_int_equal(n->lft[s][NEW_LID], n->lft[s][1]);
	/*
	 * another place with the same spine: what differs between the two that it copies, and no
	 * more
	 */
	for (size_t s = 0; s < SWITCHES; s++)
		differ += n->lft[s][1] != n->lft[s][1 + SPINES * LEAVES];
	to.from = 1 + SPINES * LEAVES; /* at the same leaf */
	assert_int_equal(differ, 1);
	assert_int_equal(copy(n, &to), differ);
	/* freed: dropped everywhere, and nobody else is */
	to.from = 0;
	assert_int_equal(copy(n, &to), SWITCHES);
	assert_int_equal(n->lft[0][NEW_LID], VHCA_OSM_NO_PATH);
	assert_all_arrive(n);
}

static void its_own_port_is_one_entry_at_its_hypervisor(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();
	struct vhca_osm_copy to = {.lid = NEW_LID, .from = 1, .sw = n->at[1].sw};

	(void)state;
	(void)copy(n, &to);
	to.own = HOSTS;
	assert_int_equal(copy(n, &to), 1);
	assert_int_equal(n->lft[to.sw][NEW_LID], HOSTS);
	assert_int_equal(n->lft[to.sw][1], n->at[1].port);
}

static void a_lid_beyond_a_table_is_dropped_there(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new();

	(void)state;
	assert_int_equal(vhca_osm_switch_entry(&n->f.switches[0], LIDS), VHCA_OSM_NO_PATH);
	assert_int_equal(vhca_osm_switch_entry(&n->f.switches[0], 1), 1);
}

static void modes_have_names(void **state)
{
	enum vhca_osm_move_mode mode;

	(void)state;
	for (int i = VHCA_OSM_AUTO; i <= VHCA_OSM_SKYLINE; i++) {
		assert_int_equal(
			vhca_osm_move_mode_parse(
				vhca_osm_move_mode_to_string((enum vhca_osm_move_mode)i), &mode),
			0);
		assert_int_equal(mode, i);
	}
	assert_true(vhca_osm_move_mode_parse("best", &mode) < 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(inside_a_leaf_one_switch_changes),
		cmocka_unit_test(deterministic_changes_all_that_differ),
		cmocka_unit_test(deterministic_and_back_is_as_before),
		cmocka_unit_test(skyline_costs_no_more),
		cmocka_unit_test(many_moves_of_all_kinds),
		cmocka_unit_test(ways_that_are_not_shortest_make_no_loop),
		cmocka_unit_test(hypervisors_at_one_leaf_are_inside_it),
		cmocka_unit_test(kept_entries_survive_the_engine),
		cmocka_unit_test(a_copy_has_the_same_ways),
		cmocka_unit_test(its_own_port_is_one_entry_at_its_hypervisor),
		cmocka_unit_test(a_lid_beyond_a_table_is_dropped_there),
		cmocka_unit_test(modes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
