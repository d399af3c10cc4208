/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_SMPS_H
#define VHCA_OPENSM_OSM_SMPS_H
/*
 * What a move has changed in OpenSM's tables, and ports and switches have not acknowledged: how
 * much that is, and sending it. An answer brings the content back into OpenSM's copy, so what was
 * lost differs for as long as it is lost.
 *
 * The caller holds OpenSM's lock; exclusively if it sends.
 */
#include <stdbool.h>
#include <stddef.h>

#include "opensm/lids/lid_ops.h"

struct osm_opensm;
struct osm_port;

/*
 * Table blocks of the pair's LIDs at these switches, or at all (NULL). One that has gone has
 * nothing to acknowledge.
 */
size_t vhca_osm_smps_blocks(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			    const struct vhca_osm_switch_set *at, bool send);
/*
 * Of dynamic LIDs that go together, at the switches of their plans: fills blocks and ports of each,
 * and sends each block that differs once to a switch, if `all`, or else of those with `resend`.
 * Those that were refused are passed over. Returns how many blocks differ, each once.
 */
size_t vhca_osm_smps_together(struct osm_opensm *osm, struct vhca_osm_lid_part *parts, size_t n,
			      bool all);
/*
 * The same of tables in which the pair's LIDs are dropped. OpenSM's own tables do not know of it:
 * to it, what was drained differs.
 */
size_t vhca_osm_smps_undrained(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair,
			       const struct vhca_osm_switch_set *at, bool send);
/*
 * Everybody who asks is told the port's new LID from now on: the SA's peers, engines. What shows
 * that the port has not acknowledged it is the number of the port by which its PortInfo came, which
 * each answer brings, and which is 0 until then.
 */
void vhca_osm_smps_expect(struct osm_port *port);
/*
 * Ports of the pair that have not acknowledged their LID. One that has got another LID since, or
 * has gone, is none.
 */
size_t vhca_osm_smps_ports(struct osm_opensm *osm, const struct vhca_osm_lid_pair *pair, bool send);

#endif
