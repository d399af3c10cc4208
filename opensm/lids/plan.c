/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

static const char *const mode_names[] = {[VHCA_OSM_AUTO] = "auto",
					 [VHCA_OSM_DETERMINISTIC] = "deterministic",
					 [VHCA_OSM_SKYLINE] = "skyline"};

const char *vhca_osm_move_mode_to_string(enum vhca_osm_move_mode mode)
{
	return mode_names[mode];
}

int vhca_osm_move_mode_parse(const char *text, enum vhca_osm_move_mode *ret)
{
	int i = vhca_word_find(mode_names, VHCA_ARRAY_SIZE(mode_names), text);

	if (i < 0)
		return i;
	*ret = (enum vhca_osm_move_mode)i;
	return 0;
}

/* The leaf that two places share, VHCA_OSM_NO_SWITCH if they do not. */
static uint32_t common_leaf(const struct vhca_osm_fabric *f, const struct vhca_osm_swap *swap)
{
	uint32_t a = swap->at[0].sw, b = swap->at[1].sw, leaf = vhca_osm_fabric_leaf(f, a);

	if (a == b)
		return a;
	return leaf == vhca_osm_fabric_leaf(f, b) ? leaf : VHCA_OSM_NO_SWITCH;
}

/*
 * Inside a leaf nothing is mixed: all others lead to it, and what is behind it, at a hypervisor, is
 * the end of each way. So there is no loop to look for.
 */
static void skyline_inside(const struct vhca_osm_fabric *f, const struct vhca_osm_swap *swap,
			   uint32_t leaf, int i, uint8_t *ret)
{
	for (uint32_t s = 0; s < f->n; s++) {
		bool changes = s == leaf || s == swap->at[0].sw || s == swap->at[1].sw;

		ret[s] = vhca_osm_switch_entry(&f->switches[s], swap->lid[changes ? 1 - i : i]);
	}
}

static int skyline_across(const struct vhca_osm_fabric *f, const struct vhca_osm_swap *swap, int i,
			  uint8_t *ret)
{
	const struct vhca_osm_place *to = &swap->at[1 - i];
	VHCA_AUTO_FREE uint16_t *distance = calloc(f->n, sizeof(*distance));
	const struct vhca_osm_goal goal = {*to, distance};

	if (!distance || vhca_osm_fabric_distances(f, to->sw, distance) < 0)
		return -ENOMEM;
	for (uint32_t s = 0; s < f->n; s++) {
		uint8_t old = vhca_osm_switch_entry(&f->switches[s], swap->lid[i]);

		ret[s] = vhca_osm_fabric_is_shortest(f, &goal, s, old)
				 ? old
				 : vhca_osm_switch_entry(&f->switches[s], swap->lid[1 - i]);
	}
	return 0;
}

/* ret: f->n ports for either LID. 1 if they may be used, 0 if not, -ENOMEM. */
static int skyline(const struct vhca_osm_fabric *f, const struct vhca_osm_swap *swap,
		   struct vhca_osm_channels *channels, uint8_t *ret)
{
	uint32_t leaf = common_leaf(f, swap);
	bool inside = leaf != VHCA_OSM_NO_SWITCH;
	int r = 1;

	for (int i = 0; i < 2 && r == 1; i++) {
		uint8_t *ports = ret + (size_t)i * f->n;

		if (inside)
			skyline_inside(f, swap, leaf, i, ports);
		else if (skyline_across(f, swap, i, ports) < 0)
			return -ENOMEM;
		r = vhca_osm_fabric_reaches(f, ports, &swap->at[1 - i]);
		if (r == 1 && !inside)
			r = vhca_osm_channels_climb(channels, f, ports);
	}
	return r;
}

static enum vhca_osm_move_mode choose(const struct vhca_osm_fabric *f,
				      const struct vhca_osm_swap *swap)
{
	if (swap->mode != VHCA_OSM_AUTO)
		return swap->mode;
	return common_leaf(f, swap) != VHCA_OSM_NO_SWITCH ? VHCA_OSM_SKYLINE
							  : VHCA_OSM_DETERMINISTIC;
}

/* Adds what differs on one switch. */
static void compare(const struct vhca_osm_fabric *f, const struct vhca_osm_swap *swap, uint32_t s,
		    const uint8_t port[static 2], struct vhca_osm_lid_plan *plan)
{
	const struct vhca_osm_switch *sw = &f->switches[s];
	bool first = port[0] != vhca_osm_switch_entry(sw, swap->lid[0]);
	bool second = port[1] != vhca_osm_switch_entry(sw, swap->lid[1]);
	bool one_block = swap->lid[0] / VHCA_OSM_LFT_BLOCK == swap->lid[1] / VHCA_OSM_LFT_BLOCK;

	if (!first && !second)
		return;
	plan->changes[plan->n++] =
		(struct vhca_osm_lft_change){.sw = s, .port = {port[0], port[1]}};
	plan->n_blocks += one_block ? 1 : (size_t)first + (size_t)second;
}

static int list_switches(const struct vhca_osm_fabric *f, struct vhca_osm_lid_plan *plan)
{
	if (vhca_osm_switch_set_init(&plan->switches, plan->n) < 0) {
		vhca_osm_lid_plan_done(plan);
		return -ENOMEM;
	}
	for (size_t c = 0; c < plan->n; c++)
		vhca_osm_switch_set_add(&plan->switches, f->switches[plan->changes[c].sw].guid);
	vhca_osm_switch_set_sort(&plan->switches);
	return 0;
}

int vhca_osm_lid_plan(const struct vhca_osm_fabric *f, const struct vhca_osm_swap *swap,
		      struct vhca_osm_channels *channels, struct vhca_osm_lid_plan *ret)
{
	VHCA_AUTO_FREE uint8_t *ports = calloc(f->n, 2);
	int r = 0;

	*ret = (struct vhca_osm_lid_plan){.mode = choose(f, swap)};
	ret->changes = calloc(f->n, sizeof(*ret->changes));
	if (ports && ret->changes)
		r = 1;
	if (r == 1 && ret->mode == VHCA_OSM_SKYLINE)
		r = skyline(f, swap, channels, ports);
	if (!ports || !ret->changes || r < 0) {
		vhca_osm_lid_plan_done(ret);
		return -ENOMEM;
	}
	if (r == 0)
		ret->mode = VHCA_OSM_DETERMINISTIC;
	for (size_t s = 0; s < f->n && ret->mode == VHCA_OSM_DETERMINISTIC; s++)
		for (size_t i = 0; i < 2; i++)
			ports[i * f->n + s] =
				vhca_osm_switch_entry(&f->switches[s], swap->lid[1 - i]);
	for (uint32_t s = 0; s < f->n; s++)
		compare(f, swap, s, (uint8_t[]){ports[s], ports[f->n + s]}, ret);
	return list_switches(f, ret);
}

void vhca_osm_lid_copy(const struct vhca_osm_fabric *f, const struct vhca_osm_copy *copy,
		       uint8_t *ret)
{
	for (uint32_t s = 0; s < f->n; s++)
		if (!copy->from)
			ret[s] = VHCA_OSM_NO_PATH;
		else if (copy->own && s == copy->sw)
			ret[s] = copy->own;
		else
			ret[s] = vhca_osm_switch_entry(&f->switches[s], copy->from);
}

int vhca_osm_lid_copy_plan(const struct vhca_osm_fabric *f, const struct vhca_osm_copy *copy,
			   struct vhca_osm_lid_plan *ret)
{
	const struct vhca_osm_swap lid = {.lid = {copy->lid, copy->lid}};
	VHCA_AUTO_FREE uint8_t *ports = calloc(f->n + 1, 1);

	*ret = (struct vhca_osm_lid_plan){.mode = VHCA_OSM_DETERMINISTIC};
	ret->changes = calloc(f->n + 1, sizeof(*ret->changes));
	if (!ports || !ret->changes) {
		vhca_osm_lid_plan_done(ret);
		return -ENOMEM;
	}
	vhca_osm_lid_copy(f, copy, ports);
	for (uint32_t s = 0; s < f->n; s++)
		compare(f, &lid, s, (uint8_t[]){ports[s], ports[s]}, ret);
	return list_switches(f, ret);
}

void vhca_osm_lid_plan_done(struct vhca_osm_lid_plan *plan)
{
	free(plan->changes);
	vhca_osm_switch_set_done(&plan->switches);
	*plan = (struct vhca_osm_lid_plan){0};
}

int vhca_osm_lid_keep(const struct vhca_osm_fabric *f, uint16_t lid,
		      const struct vhca_osm_goal *goal, struct vhca_osm_channels *channels,
		      const uint8_t *now, uint8_t *ret)
{
	int r;

	for (uint32_t s = 0; s < f->n; s++)
		ret[s] = vhca_osm_fabric_is_shortest(f, goal, s, now[s])
				 ? now[s]
				 : vhca_osm_switch_entry(&f->switches[s], lid);
	r = vhca_osm_fabric_reaches(f, ret, &goal->place);
	if (r == 1)
		r = vhca_osm_channels_climb(channels, f, ret);
	for (size_t s = 0; r == 0 && s < f->n; s++)
		ret[s] = vhca_osm_switch_entry(&f->switches[s], lid);
	return r;
}
