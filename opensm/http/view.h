/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_VIEW_H
#define VHCA_OPENSM_HTTP_VIEW_H
/* A binding compared with the subnet as OpenSM sees it at this moment. */
#include <stddef.h>
#include <stdint.h>

#include "opensm/bindings/subnet.h"
#include "opensm/bindings/table.h"

#define VHCA_OSM_FINDINGS_MAX 6
#define VHCA_OSM_FINDING_LEN  256

enum vhca_osm_state {
	VHCA_OSM_PENDING,   /* the SA does not know the GUID at this port and index (yet) */
	VHCA_OSM_GRANTED,   /* it does */
	VHCA_OSM_ELSEWHERE, /* it knows the GUID at another port */
	VHCA_OSM_WITHDRAWN, /* tombstone */
};

struct vhca_osm_view {
	enum vhca_osm_state state;
	uint16_t lid; /* the port's LID as the SM knows it, 0 = unknown */
	size_t n_findings;
	char findings[VHCA_OSM_FINDINGS_MAX][VHCA_OSM_FINDING_LEN]; /* one sentence each */
};

/* Asks the subnet (several short locks, no I/O) and fills ret. */
void vhca_osm_view_get(const struct vhca_osm_subnet *subnet, const struct vhca_osm_binding *b,
		       struct vhca_osm_view *ret);
/* "granted", ... Never NULL. */
const char *vhca_osm_state_to_string(enum vhca_osm_state state);

#endif
