/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"

int vhca_osm_fabric_init(struct vhca_osm_fabric *f, size_t n, size_t n_ports)
{
	*f = (struct vhca_osm_fabric){.n_links = n + n_ports};
	f->switches = calloc(n ? n : 1, sizeof(*f->switches));
	f->links = calloc(f->n_links ? f->n_links : 1, sizeof(*f->links));
	if (f->switches && f->links)
		return 0;
	vhca_osm_fabric_done(f);
	return -ENOMEM;
}

void vhca_osm_fabric_done(struct vhca_osm_fabric *f)
{
	free(f->switches);
	free(f->links);
	*f = (struct vhca_osm_fabric){0};
}

struct vhca_osm_switch *vhca_osm_fabric_add(struct vhca_osm_fabric *f, uint64_t guid,
					    uint8_t n_ports)
{
	struct vhca_osm_switch *sw = &f->switches[f->n];

	assert(f->links_used + n_ports + 1 <= f->n_links);
	*sw = (struct vhca_osm_switch){
		.guid = guid, .n_ports = n_ports, .peers = &f->links[f->links_used]};
	for (unsigned int p = 0; p <= n_ports; p++)
		sw->peers[p] = VHCA_OSM_NO_SWITCH;
	f->links_used += n_ports + 1U;
	f->n++;
	return sw;
}

uint8_t vhca_osm_switch_entry(const struct vhca_osm_switch *sw, uint16_t lid)
{
	return lid < sw->lft_size ? sw->lft[lid] : VHCA_OSM_NO_PATH;
}

int vhca_osm_fabric_distances(const struct vhca_osm_fabric *f, uint32_t to, uint16_t *ret)
{
	VHCA_AUTO_FREE uint32_t *queue = calloc(f->n, sizeof(*queue));
	size_t head = 0, tail = 0;

	if (!queue)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++)
		ret[i] = UINT16_MAX;
	ret[to] = 0;
	queue[tail++] = to;
	while (head < tail) {
		uint32_t at = queue[head++];
		const struct vhca_osm_switch *sw = &f->switches[at];

		for (unsigned int p = 1; p <= sw->n_ports; p++) {
			uint32_t peer = sw->peers[p];

			if (peer == VHCA_OSM_NO_SWITCH || ret[peer] != UINT16_MAX)
				continue;
			ret[peer] = (uint16_t)(ret[at] + 1);
			queue[tail++] = peer;
		}
	}
	return 0;
}

uint32_t vhca_osm_fabric_behind(const struct vhca_osm_fabric *f, uint32_t sw, uint8_t port)
{
	const struct vhca_osm_switch *s = &f->switches[sw];

	return port == 0 || port > s->n_ports ? VHCA_OSM_NO_SWITCH : s->peers[port];
}

uint32_t vhca_osm_fabric_leaf(const struct vhca_osm_fabric *f, uint32_t sw)
{
	const struct vhca_osm_switch *s = &f->switches[sw];
	uint32_t leaf = VHCA_OSM_NO_SWITCH;

	for (unsigned int p = 1; p <= s->n_ports; p++) {
		if (s->peers[p] == VHCA_OSM_NO_SWITCH || s->peers[p] == leaf)
			continue;
		if (leaf != VHCA_OSM_NO_SWITCH)
			return sw;
		leaf = s->peers[p];
	}
	return leaf == VHCA_OSM_NO_SWITCH ? sw : leaf;
}

bool vhca_osm_fabric_is_shortest(const struct vhca_osm_fabric *f, const struct vhca_osm_goal *goal,
				 uint32_t sw, uint8_t port)
{
	const uint16_t *distance = goal->distance;
	uint32_t next = vhca_osm_fabric_behind(f, sw, port);

	if (sw == goal->place.sw)
		return port == goal->place.port;
	return next != VHCA_OSM_NO_SWITCH && distance[sw] != UINT16_MAX &&
	       distance[next] + 1 == distance[sw];
}

enum mark { UNKNOWN, ON_THE_WAY, GOOD };

/* Follows the exit ports from `start` until it is known how that ends; remembers what it learnt. */
static bool walk(const struct vhca_osm_fabric *f, const uint8_t *ports,
		 const struct vhca_osm_place *to, uint32_t start, uint8_t *marks)
{
	uint32_t at = start;

	while (marks[at] == UNKNOWN) {
		uint32_t next = vhca_osm_fabric_behind(f, at, ports[at]);

		marks[at] = ON_THE_WAY;
		if (at == to->sw && ports[at] == to->port)
			marks[at] = GOOD;
		else if (next == VHCA_OSM_NO_SWITCH)
			return false;
		else
			at = next;
	}
	if (marks[at] == ON_THE_WAY) /* a loop */
		return false;
	for (at = start; marks[at] == ON_THE_WAY; at = vhca_osm_fabric_behind(f, at, ports[at]))
		marks[at] = GOOD;
	return true;
}

int vhca_osm_fabric_reaches(const struct vhca_osm_fabric *f, const uint8_t *ports,
			    const struct vhca_osm_place *to)
{
	VHCA_AUTO_FREE uint8_t *marks = calloc(f->n ? f->n : 1, 1);

	if (!marks)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n; i++)
		if (ports[i] != VHCA_OSM_NO_PATH && !walk(f, ports, to, i, marks))
			return 0;
	return 1;
}
