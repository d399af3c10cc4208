/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_EVICTION_H
#define VHCA_OPENSM_BINDINGS_EVICTION_H
/*
 * When a vGUID's alias is taken away from where the SA has it. The driver at the new place asks the
 * SA for the alias itself, and the SA declines that as long as the alias stands elsewhere: usually
 * because the former owner's host died, or never asked the SA to delete it. So the alias goes from
 * there. It is never re-pointed to the new place: then the driver's own request would be declined
 * as well.
 *
 * An alias is evicted if it stands at another port or index than the report says, and
 *  - the report has a higher epoch than the one known before: who had it then has lost it, wherever
 *    that is; or
 *  - the report names the port where it stands as the one that it came from.
 * So a report without a known epoch before it (an SM that lost its state), and one that is
 * repeated, evicts nobody else: the alias may stand at a newer owner, whose report is under way.
 *
 * The former owner's late SA Delete does no harm after that. It names an index of its own port's
 * GUID table, the SA looks up there which GUID that is, and after an eviction that entry is empty:
 * the SA answers with success and does nothing.
 */
#include <stdbool.h>
#include <stdint.h>

#include "opensm/bindings/subnet.h"
#include "opensm/bindings/table.h"

struct vhca_osm_eviction {
	bool evicts;		  /* will be, or was evicted */
	struct vhca_osm_alias at; /* from there */
	unsigned int smps;	  /* GUIDInfo blocks that OpenSM writes */
};

/* What want means for its alias. t: the table before want is put. from_port: where the report
 * says that it came from, 0 = not said. */
void vhca_osm_eviction_plan(const struct vhca_osm_subnet_ops *ops, void *ctx,
			    const struct vhca_osm_table *t, const struct vhca_osm_binding *want,
			    uint64_t from_port, struct vhca_osm_eviction *ret);
/* Does what was planned; ev then says what was done. */
void vhca_osm_eviction_run(const struct vhca_osm_subnet_ops *ops, void *ctx, uint64_t vguid,
			   struct vhca_osm_eviction *ev);

#endif
