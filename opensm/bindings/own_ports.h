/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_OWN_PORTS_H
#define VHCA_OPENSM_BINDINGS_OWN_PORTS_H
/*
 * Where a port of the subnet has a vGUID as its own GUID (a virtual port behind a switch that is
 * the hypervisor), the binding's keys are needed there and not at the HCA's port. Such a port comes
 * after the first report: OpenSM's sweeps find it. When it goes for a while, the keys wait for it:
 * its HCA's port never gets them back as long as the binding stays there.
 */
#include "opensm/bindings/subnet.h"
#include "opensm/bindings/table.h"

/* What a report means: a copy of `want`, which shares its keys. */
struct vhca_osm_binding vhca_osm_own_port_of(const struct vhca_osm_subnet_ops *ops, void *ctx,
					     const struct vhca_osm_table *t,
					     const struct vhca_osm_binding *want);
/*
 * Moves the keys of bindings whose vGUID a sweep has found as a port. What does not fit (logged)
 * stays where it is.
 */
void vhca_osm_own_ports_found(const struct vhca_osm_subnet_ops *ops, void *ctx,
			      struct vhca_osm_table *t);

#endif
