/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Credit loops: on fabrics made here, with ways that go up and then down, no move and no new
 * computation closes one. What a loop is, is found here in another way than by the product: by
 * going from channel to channel.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/lids/plan.h"
#include "tests/unit/unit.h"

#define SWITCHES_MAX 12
#define CABLES_MAX   6 /* of a switch; behind them are its hosts */
#define HOSTS	     3
#define PORTS	     (CABLES_MAX + HOSTS)
#define LIDS	     (SWITCHES_MAX * HOSTS + 1)
#define NO	     VHCA_OSM_NO_SWITCH

struct net {
	struct vhca_osm_fabric f;
	uint32_t n, root;
	uint8_t lft[SWITCHES_MAX][LIDS];
	struct vhca_osm_place at[LIDS]; /* by LID */
	bool kept[LIDS];
	unsigned int seed;
	size_t across; /* skyline moves across leaves */
};

static uint32_t *peers_of(const struct net *n, uint32_t sw)
{
	return n->f.switches[sw].peers;
}

static uint8_t port_to(const struct net *n, uint32_t from, uint32_t to)
{
	for (uint8_t p = 1; p <= CABLES_MAX; p++)
		if (peers_of(n, from)[p] == to)
			return p;
	return 0;
}

static bool connect(struct net *n, uint32_t a, uint32_t b)
{
	uint8_t p = port_to(n, a, NO), q = port_to(n, b, NO);

	if (a == b || !p || !q || port_to(n, a, b))
		return false;
	peers_of(n, a)[p] = b;
	peers_of(n, b)[q] = a;
	return true;
}

static uint16_t n_lids(const struct net *n)
{
	return (uint16_t)(n->n * HOSTS);
}

static struct net *net_new(uint32_t switches, unsigned int seed)
{
	struct net *n = calloc(1, sizeof(*n));

	assert_non_null(n);
	n->n = switches;
	n->seed = seed;
	assert_int_equal(vhca_osm_fabric_init(&n->f, switches, (size_t)switches * PORTS), 0);
	for (uint32_t s = 0; s < switches; s++) {
		struct vhca_osm_switch *sw = vhca_osm_fabric_add(&n->f, 100 + s, PORTS);

		(void)memset(n->lft[s], VHCA_OSM_NO_PATH, LIDS);
		sw->lft = n->lft[s];
		sw->lft_size = LIDS;
		sw->has_hosts = true;
	}
	for (uint16_t lid = 1; lid <= n_lids(n); lid++)
		n->at[lid] = (struct vhca_osm_place){(uint32_t)(lid - 1) / HOSTS,
						     (uint8_t)(CABLES_MAX + 1 + (lid - 1) % HOSTS)};
	return n;
}

static void net_free(struct net *n)
{
	vhca_osm_fabric_done(&n->f);
	free(n);
}
VHCA_DEFINE_CLEANUP(struct net, net_free)

static uint32_t draw(struct net *n, uint32_t below)
{
	return (uint32_t)rand_r(&n->seed) % below;
}

/* ---- up, then down ---- */

/* Is b above a? Nearer to the root; of two that are as near, the one with the lower index. */
static bool is_up(const uint16_t *rank, uint32_t a, uint32_t b)
{
	return rank[b] < rank[a] || (rank[b] == rank[a] && b < a);
}

/* One of the neighbours above, or below, from which the least cost comes; 0 = there is none. */
static uint8_t choose_port(struct net *n, const uint16_t *rank, uint32_t s, bool up,
			   const uint32_t *cost)
{
	uint8_t best = 0, start = (uint8_t)draw(n, CABLES_MAX);

	for (uint8_t i = 0; i < CABLES_MAX; i++) {
		uint8_t p = (uint8_t)((start + i) % CABLES_MAX + 1);
		uint32_t peer = peers_of(n, s)[p];

		if (peer == NO || is_up(rank, s, peer) != up || cost[peer] == UINT32_MAX)
			continue;
		if (!best || cost[peer] < cost[peers_of(n, s)[best]])
			best = p;
	}
	return best;
}

/*
 * Who gets there by going down does so, all others go up first: by a table for each switch, no way
 * goes up after it has gone down. They are not all the shortest ones.
 */
static void route_lid(struct net *n, const uint16_t *rank, uint16_t lid)
{
	uint32_t cost[SWITCHES_MAX], to = n->at[lid].sw;

	for (uint32_t s = 0; s < n->n; s++) {
		cost[s] = s == to ? 0 : UINT32_MAX;
		n->lft[s][lid] = s == to ? n->at[lid].port : VHCA_OSM_NO_PATH;
	}
	for (int up = 0; up < 2; up++)
		for (bool more = true; more;) {
			more = false;
			for (uint32_t s = 0; s < n->n; s++) {
				uint8_t p = cost[s] == UINT32_MAX
						    ? choose_port(n, rank, s, up, cost)
						    : 0;

				if (!p)
					continue;
				cost[s] = cost[peers_of(n, s)[p]] + 1;
				n->lft[s][lid] = p;
				more = true;
			}
		}
}

static void route(struct net *n)
{
	uint16_t rank[SWITCHES_MAX];

	assert_int_equal(vhca_osm_fabric_distances(&n->f, n->root, rank), 0);
	for (uint16_t lid = 1; lid <= n_lids(n); lid++)
		route_lid(n, rank, lid);
}

/* ---- loops ---- */

#define CHANNELS (SWITCHES_MAX * (PORTS + 1))

struct search {
	bool depends[CHANNELS][CHANNELS];
	uint8_t seen[CHANNELS]; /* 1 = above us, 2 = leads into no loop */
};

static size_t channel(uint32_t sw, uint8_t port)
{
	return (size_t)sw * (PORTS + 1) + port;
}

static bool is_in_loop(struct search *s, size_t c)
{
	bool loop = s->seen[c] == 1;

	if (s->seen[c])
		return loop;
	s->seen[c] = 1;
	for (size_t d = 0; d < CHANNELS && !loop; d++)
		loop = s->depends[c][d] && is_in_loop(s, d);
	s->seen[c] = 2;
	return loop;
}

/* Also that each LID arrives from everywhere. */
static bool has_loop(const struct net *n)
{
	struct search *s = calloc(1, sizeof(*s));
	bool loop = false;

	assert_non_null(s);
	for (uint16_t lid = 1; lid <= n_lids(n); lid++)
		for (uint32_t from = 0; from < n->n; from++) {
			size_t last = 0;
			uint32_t at = from;

			for (uint32_t hops = 0; at != n->at[lid].sw; hops++) {
				uint8_t port = n->lft[at][lid];
				size_t c = channel(at, port);

				assert_true(hops < n->n);
				assert_true(port >= 1 && port <= CABLES_MAX);
				s->depends[last][c] = last != 0;
				last = c;
				at = peers_of(n, at)[port];
			}
			assert_int_equal(n->lft[at][lid], n->at[lid].port);
		}
	for (size_t c = 1; c < CHANNELS && !loop; c++)
		loop = is_in_loop(s, c);
	free(s);
	return loop;
}

/* ---- what is done ---- */

static enum vhca_osm_move_mode move(struct net *n, uint16_t a, uint16_t b,
				    enum vhca_osm_move_mode mode,
				    struct vhca_osm_channels *channels)
{
	const struct vhca_osm_swap swap = {.lid = {a, b}, .at = {n->at[a], n->at[b]}, .mode = mode};
	struct vhca_osm_lid_plan p;

	assert_int_equal(vhca_osm_lid_plan(&n->f, &swap, channels, &p), 0);
	mode = p.mode;
	for (size_t c = 0; c < p.n; c++) {
		n->lft[p.changes[c].sw][a] = p.changes[c].port[0];
		n->lft[p.changes[c].sw][b] = p.changes[c].port[1];
	}
	vhca_osm_lid_plan_done(&p);
	n->at[a] = swap.at[1];
	n->at[b] = swap.at[0];
	n->across += mode == VHCA_OSM_SKYLINE && n->at[a].sw != n->at[b].sw;
	n->kept[a] = n->kept[b] = n->kept[a] || n->kept[b] || mode == VHCA_OSM_SKYLINE;
	return mode;
}

static void move_any(struct net *n, struct vhca_osm_channels *channels)
{
	uint16_t a = (uint16_t)(draw(n, n_lids(n)) + 1), b;
	bool inside = draw(n, 3) == 0;

	do
		b = (uint16_t)(draw(n, n_lids(n)) + 1);
	while (inside && n->at[b].sw != n->at[a].sw);
	if (a != b)
		(void)move(n, a, b, (enum vhca_osm_move_mode)draw(n, 3), channels);
}

/* The engine computes anew, and what is kept is put on top. */
static void sweep(struct net *n)
{
	struct vhca_osm_channels channels = {.known = false};
	uint8_t old[SWITCHES_MAX][LIDS], now[SWITCHES_MAX], want[SWITCHES_MAX];
	uint16_t distance[SWITCHES_MAX];

	(void)memcpy(old, n->lft, sizeof(old));
	route(n);
	assert_false(has_loop(n));
	assert_int_equal(vhca_osm_channels_number(&channels, &n->f), 0);
	for (uint16_t lid = 1; lid <= n_lids(n); lid++) {
		const struct vhca_osm_goal goal = {n->at[lid], distance};

		if (!n->kept[lid])
			continue;
		assert_int_equal(vhca_osm_fabric_distances(&n->f, goal.place.sw, distance), 0);
		for (uint32_t s = 0; s < n->n; s++)
			now[s] = old[s][lid];
		n->kept[lid] = vhca_osm_lid_keep(&n->f, lid, &goal, &channels, now, want) == 1;
		for (uint32_t s = 0; s < n->n; s++)
			n->lft[s][lid] = want[s];
	}
	vhca_osm_channels_done(&channels);
}

/* ---- cases ---- */

/*
 * 0-1-2-3-4-0, the root is 0; between 2 and 3, which are as far from it, 2 is the upper one. All go
 * up and then down, so nothing goes from 4 by 3 to 2, nor from 2 by 3 to 4: the ways from 4 to 2 go
 * by 0. A LID that moves from 3 to 2 could keep the entry of 4 that leads to 3: down, and then up.
 */
static void a_ring_of_five_stays_open(void **state)
{
	size_t across = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 200; seed++) {
		VHCA_CLEANUP(net_freep) struct net *n = net_new(5, seed);
		struct vhca_osm_channels channels = {.known = false};

		for (uint32_t s = 0; s < 5; s++)
			assert_true(connect(n, s, (s + 1) % 5));
		route(n);
		assert_false(has_loop(n));
		for (int i = 0; i < 20; i++) {
			move_any(n, &channels);
			assert_false(has_loop(n));
		}
		vhca_osm_channels_done(&channels);
		across += n->across;
	}
	assert_true(across > 100); /* there are some that close nothing */
}

static void any_cable(struct net *n, bool gone)
{
	uint32_t a = draw(n, n->n);
	uint8_t p = (uint8_t)(draw(n, CABLES_MAX) + 1);
	uint32_t b = peers_of(n, a)[p];
	uint16_t distance[SWITCHES_MAX];

	if (!gone) {
		(void)connect(n, a, draw(n, n->n));
		return;
	}
	if (b == NO)
		return;
	peers_of(n, a)[p] = NO;
	peers_of(n, b)[port_to(n, b, a)] = NO;
	assert_int_equal(vhca_osm_fabric_distances(&n->f, 0, distance), 0);
	for (uint32_t s = 0; s < n->n; s++)
		if (distance[s] == UINT16_MAX) { /* the last one */
			assert_true(connect(n, a, b));
			return;
		}
}

/* A tree and some more cables, moves, cables that come and go, and other roots. */
static void no_fabric_gets_a_loop(void **state)
{
	size_t across = 0, kept = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 150; seed++) {
		VHCA_CLEANUP(net_freep)
		struct net *n = net_new(4 + seed % (SWITCHES_MAX - 3), seed);

		for (uint32_t s = 1; s < n->n; s++)
			while (!connect(n, s, draw(n, s)))
				;
		for (uint32_t i = 0; i < n->n; i++)
			any_cable(n, false);
		route(n);
		assert_false(has_loop(n));
		for (int round = 0; round < 6; round++) {
			struct vhca_osm_channels channels = {.known = false};

			for (int i = 0; i < 12; i++) {
				move_any(n, &channels);
				assert_false(has_loop(n));
			}
			vhca_osm_channels_done(&channels);
			if (round % 2)
				any_cable(n, draw(n, 2) > 0);
			if (round == 3)
				n->root = draw(n, n->n);
			sweep(n);
			assert_false(has_loop(n));
			for (uint16_t lid = 1; lid <= n_lids(n); lid++)
				kept += n->kept[lid];
		}
		across += n->across;
	}
	assert_true(across > 500);
	assert_true(kept > 500);
}

/* Leaves 0 and 1 below the spines 2 and 3, which have no hosts. */
static void in_a_fat_tree_all_may_be_mixed(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new(4, 1);
	struct vhca_osm_channels channels = {.known = false};

	(void)state;
	for (uint32_t spine = 2; spine < 4; spine++) {
		n->f.switches[spine].has_hosts = false;
		assert_true(connect(n, 0, spine) && connect(n, 1, spine));
	}
	n->root = 2;
	route(n);
	assert_int_equal(move(n, 1, 4, VHCA_OSM_SKYLINE, &channels), VHCA_OSM_SKYLINE);
	assert_non_null(channels.number);
	assert_false(has_loop(n));
	vhca_osm_channels_done(&channels);
}

/* Always to the right around a ring: the engine itself has closed a loop, as minhop may. */
static void where_there_is_a_loop_nothing_is_mixed(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new(4, 1);
	struct vhca_osm_channels channels = {.known = false};

	(void)state;
	for (uint32_t s = 0; s < 4; s++)
		assert_true(connect(n, s, (s + 1) % 4));
	for (uint16_t lid = 1; lid <= n_lids(n); lid++)
		for (uint32_t s = 0; s < 4; s++)
			n->lft[s][lid] =
				s == n->at[lid].sw ? n->at[lid].port : port_to(n, s, (s + 1) % 4);
	assert_true(has_loop(n));
	assert_int_equal(move(n, 1, 4, VHCA_OSM_SKYLINE, &channels), VHCA_OSM_DETERMINISTIC);
	assert_true(channels.known);
	assert_null(channels.number);
	vhca_osm_channels_done(&channels);
}

/* Two LIDs at switch 0 of a ring: from 1, the first goes all the way around, the other directly. */
static void inside_a_leaf_nothing_is_mixed(void **state)
{
	VHCA_CLEANUP(net_freep) struct net *n = net_new(4, 1);
	struct vhca_osm_channels channels = {.known = false};
	uint8_t around;

	(void)state;
	for (uint32_t s = 0; s < 4; s++)
		assert_true(connect(n, s, (s + 1) % 4));
	route(n);
	for (uint32_t s = 1; s < 4; s++)
		n->lft[s][1] = port_to(n, s, (s + 1) % 4);
	n->lft[1][2] = port_to(n, 1, 0);
	around = n->lft[1][1];
	assert_int_equal(move(n, 1, 2, VHCA_OSM_SKYLINE, &channels), VHCA_OSM_SKYLINE);
	assert_int_equal(n->lft[1][1], around);
	assert_int_equal(n->lft[1][2], port_to(n, 1, 0));
	assert_false(channels.known); /* it takes long, and was not needed */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_of_five_stays_open),
		cmocka_unit_test(no_fabric_gets_a_loop),
		cmocka_unit_test(in_a_fat_tree_all_may_be_mixed),
		cmocka_unit_test(where_there_is_a_loop_nothing_is_mixed),
		cmocka_unit_test(inside_a_leaf_nothing_is_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
