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

#endif
