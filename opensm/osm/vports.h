/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_VPORTS_H
#define VHCA_OPENSM_OSM_VPORTS_H
/*
 * Virtual ports in OpenSM's tables: a hypervisor is a switch, its HCA's own port (the PF) is at one
 * of its ports, and the vport with number n at the n-th port after that. OpenSM knows a vport as it
 * knows every end port: by its GUID.
 *
 * When the hypervisors have exchanged the GUIDs of two vports, OpenSM's objects stay what they are,
 * with GUID, LID, groups and keys; only what belongs to the place goes to the other one. So nothing
 * that is found by GUID or by LID has to be found anew.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct _cl_list_item;
struct osm_mcm_port;
struct osm_node;
struct osm_opensm;
struct osm_port;
struct osm_subn;

/*
 * The end port at that place; NULL if there is none, or the HCA is not in the subnet. The caller
 * holds OpenSM's lock.
 */
struct osm_port *vhca_osm_vport_at(const struct osm_subn *subn, uint64_t hca_port_guid,
				   uint16_t vport);
/* Whether the port is at such a place of the HCA. The caller holds the lock. */
bool vhca_osm_vport_is_of(const struct osm_subn *subn, uint64_t port_guid, uint64_t hca_port_guid);
/* The HCA's port whose vport it is; 0 = it is none. The caller holds the lock. */
uint64_t vhca_osm_vport_pf(const struct osm_port *port);
/* The membership of a port that stands in its list of them: cl_item_obj() without its typeof. */
const struct osm_mcm_port *vhca_osm_member_of(const struct _cl_list_item *item);
/* How many switches it has cables to; 2 stands for more, too. */
unsigned int vhca_osm_switch_leaves(const struct osm_node *node);

/*
 * Ports that no vport can be: switches, and HCAs that are not at a vport's place, which is at a
 * hypervisor, a switch with cables to one other, after an HCA's own. Of a leaf with one spine all
 * but the first port look like vports. As it was at the end of a sweep: in the middle of one
 * OpenSM's cables are not all there.
 */
struct vhca_osm_physical {
	uint64_t *guids; /* in OpenSM's order, in network order each; NULL = no sweep has ended */
	size_t n;
};
/* A sweep has ended. The caller holds the lock exclusively. */
void vhca_osm_physical_note(const struct osm_subn *subn, struct vhca_osm_physical *p);
/* Before the first: by what there is. The caller holds the lock. */
bool vhca_osm_physical_has(const struct osm_subn *subn, const struct vhca_osm_physical *p,
			   uint64_t port_guid);
void vhca_osm_physical_done(struct vhca_osm_physical *p);

/*
 * Both are plugged in at switches. Their LIDs are unconfirmed after it, the trees of groups that
 * one of them is a member of are asked for anew, and what OpenSM knows of the P_Key tables is what
 * is at the new places: it has to be told to write what they shall have. The caller holds OpenSM's
 * lock exclusively.
 */
void vhca_osm_vports_exchange(struct osm_opensm *osm, struct osm_port *const port[2]);

/* Groups whose trees an exchange changes. The caller holds the lock. */
size_t vhca_osm_vports_groups(struct osm_port *const port[2]);

#endif
