/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/changed_ports.h"

#include <stdlib.h>

#define NOT_WRITTEN UINT64_MAX

struct changed_port {
	uint64_t guid; /* key; must stay first */
	uint64_t generation;
};

static struct changed_port *at(const struct vhca_osm_changed_ports *c, size_t i)
{
	return (void *)c->ports.items[i];
}

void vhca_osm_changed_ports_add(struct vhca_osm_changed_ports *c, uint64_t port_guid)
{
	struct changed_port *p = vhca_osm_guid_map_find(&c->ports, port_guid);

	if (p) {
		p->generation = NOT_WRITTEN;
		return;
	}
	p = calloc(1, sizeof(*p));
	if (p) {
		*p = (struct changed_port){.guid = port_guid, .generation = NOT_WRITTEN};
		if (vhca_osm_guid_map_add(&c->ports, p) == 0)
			return;
		free(p);
	}
	vhca_osm_changed_ports_add_all(c); /* out of memory */
}

void vhca_osm_changed_ports_add_all(struct vhca_osm_changed_ports *c)
{
	c->unknown = NOT_WRITTEN;
}

static void drop_read(struct vhca_osm_changed_ports *c)
{
	for (size_t i = c->ports.n; i-- > 0;) /* from the end: those that go leave no gap */
		if (at(c, i)->generation <= c->read)
			free(vhca_osm_guid_map_remove(&c->ports, at(c, i)->guid));
	if (c->unknown <= c->read)
		c->unknown = 0;
}

void vhca_osm_changed_ports_written(struct vhca_osm_changed_ports *c, uint64_t generation)
{
	for (size_t i = 0; i < c->ports.n; i++)
		if (at(c, i)->generation == NOT_WRITTEN)
			at(c, i)->generation = generation;
	if (c->unknown == NOT_WRITTEN)
		c->unknown = generation;
	drop_read(c); /* the file may be the same as before */
}

void vhca_osm_changed_ports_read(struct vhca_osm_changed_ports *c, uint64_t generation)
{
	if (c->read == generation)
		return;
	c->read = generation;
	drop_read(c);
}

bool vhca_osm_changed_ports_has(const struct vhca_osm_changed_ports *c, uint64_t port_guid)
{
	return c->unknown || vhca_osm_guid_map_find(&c->ports, port_guid);
}

void vhca_osm_changed_ports_done(struct vhca_osm_changed_ports *c)
{
	vhca_osm_guid_map_done(&c->ports, free);
}
