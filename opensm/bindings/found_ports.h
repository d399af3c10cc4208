/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_FOUND_PORTS_H
#define VHCA_OPENSM_BINDINGS_FOUND_PORTS_H
/*
 * What OpenSM's discovery shows at the ports, and no report has said.
 *
 * Ports of vGUIDs. Where a port of the subnet has a vGUID as its own GUID (a virtual port behind a
 * switch that is the hypervisor), the binding's keys are needed there and not at the HCA's port.
 * Such a port comes after the first report: OpenSM's sweeps find it. When it goes for a while, the
 * keys wait for it: its HCA's port never gets them back as long as the binding stays there.
 *
 * Keys of ports. A subnet manager that has just become master does not know why a port has a key
 * (port_keys.h: inherited).
 */
#include <stddef.h>

#include "opensm/bindings/base_file.h"
#include "opensm/bindings/partitions.h"
#include "opensm/bindings/subnet.h"
#include "opensm/bindings/table.h"

/* What a report means: a copy of `want`, which shares its keys. */
struct vhca_osm_binding vhca_osm_own_port_of(const struct vhca_osm_subnet *subnet,
					     const struct vhca_osm_table *t,
					     const struct vhca_osm_binding *want);
/*
 * Moves the keys of bindings whose vGUID a sweep has found as a port. What does not fit (logged)
 * stays where it is. A port that was given up (reports.h) and is there again is as any other.
 */
void vhca_osm_own_ports_found(const struct vhca_osm_subnet *subnet, struct vhca_osm_table *t);
/*
 * Marks the keys that ports have now as inherited, but those of the base file and those that nobody
 * may ask for. Returns how many ports do not keep theirs, for want of memory.
 */
size_t vhca_osm_found_keys_inherit(const struct vhca_osm_subnet *subnet,
				   const struct vhca_osm_policy *policy,
				   const struct vhca_osm_base *base, struct vhca_osm_table *t);

#endif
