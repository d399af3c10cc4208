/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OPENSM_SUBNET_H
#define VHCA_OPENSM_OPENSM_SUBNET_H
/* The subnet as OpenSM's own tables show it: the real operations of subnet.h. This and plugin.c are the only files that know OpenSM. */
#include "opensm/subnet.h"

struct osm_opensm;

/* ctx of the operations. */
struct vhca_osm_opensm {
	struct osm_opensm *osm; /* borrowed */
};

extern const struct vhca_osm_subnet_ops vhca_osm_opensm_ops;

/*
 * Gives every port that can hold aliases its GUID table. Stock OpenSM makes it with the port's first alias, and until then answers a
 * Delete with the request's own all-ones. mlx4 does not take that for done: the Delete stays pending, and as soon as another entry of
 * the block is to be set, both go round without a pause and the Set never gets its turn (alias_GUID.c:set_required_record).
 * Takes OpenSM's lock: not from callbacks that hold it.
 */
void vhca_osm_open_guid_tables(struct osm_opensm *osm);

#endif
