/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OPENSM_VPORTS_H
#define VHCA_OPENSM_OPENSM_VPORTS_H
/*
 * Virtual ports in OpenSM's tables: a hypervisor is a switch, its HCA's own port (the PF) is at one of its ports, and the vport with number
 * n at the n-th port after that. OpenSM knows a vport as it knows every end port: by its GUID.
 *
 * When the hypervisors have exchanged the GUIDs of two vports, OpenSM's objects stay what they are, with GUID, LID, groups and keys;
 * only what belongs to the place goes to the other one. So nothing that is found by GUID or by LID has to be found anew.
 */
#include <stdbool.h>
#include <stdint.h>

struct osm_opensm;
struct osm_port;
struct osm_subn;

/* The end port at that place; NULL if there is none, or the HCA is not in the subnet. The caller holds OpenSM's lock. */
struct osm_port *vhca_osm_vport_at(const struct osm_subn *subn, uint64_t hca_port_guid,
				   uint16_t vport);
/* Whether the port is at such a place of the HCA. The caller holds the lock. */
bool vhca_osm_vport_is_of(const struct osm_subn *subn, uint64_t port_guid, uint64_t hca_port_guid);
/* Both are plugged in at switches. Their LIDs are unconfirmed after it, their groups' trees are asked for anew, and what OpenSM knows of the
 * P_Key tables is what is at the new places: it has to be told to write what they shall have. The caller holds OpenSM's lock exclusively. */
void vhca_osm_vports_exchange(struct osm_opensm *osm, struct osm_port *const port[2]);

#endif
