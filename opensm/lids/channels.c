/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/channels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"

#define PORTS 256

/* Which channels depend on one: those that leave, by these ports, the switch that it leads to. */
struct dependents {
	uint64_t ports[PORTS / 64];
};

static size_t channel(const struct vhca_osm_fabric *f, uint32_t sw, uint8_t port)
{
	return (size_t)(f->switches[sw].peers - f->links) + port;
}

/* ---- the steps of a way ---- */

struct step {
	size_t from;  /* channel to ... */
	uint32_t sw;  /* ... this switch */
	uint8_t port; /* where it is left, towards another switch */
};

/* false: enough. */
typedef bool (*step_fn)(void *arg, const struct vhca_osm_fabric *f, const struct step *step);

/* Each step once, of the ways from all switches with end ports. seen: a byte for each switch. */
static bool follow(const struct vhca_osm_fabric *f, const uint8_t *ports, uint8_t *seen, step_fn fn,
		   void *arg)
{
	(void)memset(seen, 0, f->n);
	for (uint32_t s = 0; s < f->n; s++) {
		uint32_t at = s, next;

		if (!f->switches[s].has_hosts)
			continue;
		for (; !seen[at]; at = next) {
			struct step step = {.from = channel(f, at, ports[at])};

			seen[at] = 1;
			next = vhca_osm_fabric_behind(f, at, ports[at]);
			if (next == VHCA_OSM_NO_SWITCH)
				break;
			step.sw = next;
			step.port = ports[next];
			if (vhca_osm_fabric_behind(f, next, step.port) != VHCA_OSM_NO_SWITCH &&
			    !fn(arg, f, &step))
				return false;
		}
	}
	return true;
}

/* ---- numbering ---- */

static bool depend(void *arg, const struct vhca_osm_fabric *f, const struct step *step)
{
	struct dependents *d = arg;

	(void)f;
	d[step->from].ports[step->port / 64] |= 1ULL << step->port % 64;
	return true;
}

static int find_dependents(const struct vhca_osm_fabric *f, struct dependents *ret)
{
	VHCA_AUTO_FREE uint8_t *ports = calloc(f->n + 1, 2);
	uint32_t lids = 0;

	if (!ports)
		return -ENOMEM;
	for (size_t s = 0; s < f->n; s++)
		if (f->switches[s].lft_size > lids)
			lids = f->switches[s].lft_size;
	for (uint32_t lid = 1; lid < lids; lid++) {
		for (size_t s = 0; s < f->n; s++)
			ports[s] = vhca_osm_switch_entry(&f->switches[s], (uint16_t)lid);
		(void)follow(f, ports, ports + f->n, depend, ret);
	}
	return 0;
}

struct graph {
	const struct vhca_osm_fabric *f;
	const struct dependents *dependents;
	uint32_t *number;
	uint32_t *waits; /* for so many that have no number yet */
	uint32_t *queue; /* channels, in the order in which they are numbered */
	size_t queued;
};

/* What depends on a channel has a higher number; the last of those it waits for decides. */
static void number_dependents(struct graph *g, size_t from, bool count)
{
	uint32_t sw = g->f->links[from];

	for (unsigned int p = 1; sw != VHCA_OSM_NO_SWITCH && p <= g->f->switches[sw].n_ports; p++) {
		size_t to = channel(g->f, sw, (uint8_t)p);

		if (!(g->dependents[from].ports[p / 64] & 1ULL << p % 64))
			continue;
		if (count) {
			g->waits[to]++;
			continue;
		}
		if (g->number[to] <= g->number[from])
			g->number[to] = g->number[from] + 1;
		if (--g->waits[to] == 0)
			g->queue[g->queued++] = (uint32_t)to;
	}
}

/* Are all numbered? Those of a loop wait for each other. */
static bool number_all(struct graph *g)
{
	size_t n = g->f->links_used;

	for (size_t c = 0; c < n; c++)
		number_dependents(g, c, true);
	for (size_t c = 0; c < n; c++)
		if (g->waits[c] == 0)
			g->queue[g->queued++] = (uint32_t)c;
	for (size_t i = 0; i < g->queued; i++)
		number_dependents(g, g->queue[i], false);
	return g->queued == n;
}

int vhca_osm_channels_number(struct vhca_osm_channels *c, const struct vhca_osm_fabric *f)
{
	size_t n = f->links_used + 1;
	VHCA_AUTO_FREE struct dependents *dependents = NULL;
	VHCA_AUTO_FREE uint32_t *number = NULL, *waits = NULL, *queue = NULL;
	struct graph g = {.f = f};

	if (c->known)
		return 0;
	g.dependents = dependents = calloc(n, sizeof(*dependents));
	g.number = number = calloc(n, sizeof(*number));
	g.waits = waits = calloc(n, sizeof(*waits));
	g.queue = queue = calloc(n, sizeof(*queue));
	if (!dependents || !number || !waits || !queue || find_dependents(f, dependents) < 0)
		return -ENOMEM;
	c->known = true;
	if (number_all(&g))
		c->number = vhca_steal_ptr(&number);
	else
		vhca_log_notice(
			"the routing engine's ways close loops of channels: no LID moves by "
			"skyline across leaves, and none keeps its ways");
	return 0;
}

void vhca_osm_channels_done(struct vhca_osm_channels *c)
{
	free(c->number);
	*c = (struct vhca_osm_channels){0};
}

/* ---- ways that climb ---- */

static bool climbs(void *arg, const struct vhca_osm_fabric *f, const struct step *step)
{
	const struct vhca_osm_channels *c = arg;

	return c->number[step->from] < c->number[channel(f, step->sw, step->port)];
}

int vhca_osm_channels_climb(struct vhca_osm_channels *c, const struct vhca_osm_fabric *f,
			    const uint8_t *ports)
{
	VHCA_AUTO_FREE uint8_t *seen = calloc(f->n + 1, 1);

	if (!seen || vhca_osm_channels_number(c, f) < 0)
		return -ENOMEM;
	return c->number && follow(f, ports, seen, climbs, c);
}
