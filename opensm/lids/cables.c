/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/cables.h"

#include <errno.h>
#include <stdlib.h>

static int by_end(const void *a, const void *b)
{
	const struct vhca_osm_cable *x = a, *y = b;

	if (x->guid != y->guid)
		return x->guid < y->guid ? -1 : 1;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return (x->peer > y->peer) - (x->peer < y->peer);
}

/* Each by both of its ends. */
static int list(const struct vhca_osm_fabric *f, struct vhca_osm_cables *ret)
{
	*ret = (struct vhca_osm_cables){.rows = calloc(f->links_used + 1, sizeof(*ret->rows))};
	if (!ret->rows)
		return -ENOMEM;
	for (uint32_t s = 0; s < f->n; s++) {
		const struct vhca_osm_switch *sw = &f->switches[s];

		for (unsigned int p = 1; p <= sw->n_ports; p++) {
			uint32_t peer = sw->peers[p];

			if (peer == VHCA_OSM_NO_SWITCH || vhca_osm_fabric_leaf(f, s) != s ||
			    vhca_osm_fabric_leaf(f, peer) != peer)
				continue;
			ret->rows[ret->n++] = (struct vhca_osm_cable){
				.guid = sw->guid,
				.peer = f->switches[peer].guid,
				.port = (uint8_t)p,
			};
		}
	}
	qsort(ret->rows, ret->n, sizeof(*ret->rows), by_end);
	return 0;
}

int vhca_osm_cables_look(struct vhca_osm_cables *c, const struct vhca_osm_fabric *f)
{
	struct vhca_osm_cables now;
	int found_new = 0;

	if (list(f, &now) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < now.n && !found_new; i++)
		found_new = c->n == 0 ||
			    !bsearch(&now.rows[i], c->rows, c->n, sizeof(*c->rows), by_end);
	vhca_osm_cables_done(c);
	*c = now;
	return found_new;
}

void vhca_osm_cables_done(struct vhca_osm_cables *c)
{
	free(c->rows);
	*c = (struct vhca_osm_cables){0};
}
