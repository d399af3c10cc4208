/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_CHANGED_PORTS_H
#define VHCA_OPENSM_BINDINGS_CHANGED_PORTS_H
/*
 * The ports of whose keys OpenSM does not know the newest yet. To ask that of the whole subnet
 * would say no as long as anything is reported anywhere. A change is put down, then it is in the
 * partition file of some generation (publisher.h), then OpenSM has read that.
 */
#include <stdbool.h>
#include <stdint.h>

#include "opensm/bindings/guid_map.h"

struct vhca_osm_changed_ports {
	struct vhca_osm_guid_map ports; /* owned */
	uint64_t unknown;		/* any port may have changed: until then; 0 = none */
	uint64_t read;			/* generation that OpenSM has read */
};

/* The port needs other keys than before. */
void vhca_osm_changed_ports_add(struct vhca_osm_changed_ports *c, uint64_t port_guid);
/* Nobody knows which ports do. */
void vhca_osm_changed_ports_add_all(struct vhca_osm_changed_ports *c);
/* All that has been added is in the file of this generation. */
void vhca_osm_changed_ports_written(struct vhca_osm_changed_ports *c, uint64_t generation);
/* OpenSM has read that file. */
void vhca_osm_changed_ports_read(struct vhca_osm_changed_ports *c, uint64_t generation);
bool vhca_osm_changed_ports_has(const struct vhca_osm_changed_ports *c, uint64_t port_guid);
/* Releases everything. */
void vhca_osm_changed_ports_done(struct vhca_osm_changed_ports *c);

#endif
