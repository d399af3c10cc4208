/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_LIDS_FABRIC_H
#define VHCA_OPENSM_LIDS_FABRIC_H
/*
 * The switches of a subnet, their cables and their forwarding tables, as plain arrays: what moves
 * are planned on. Pure memory; opensm/osm/fabric.c fills it from OpenSM's tables.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VHCA_OSM_NO_SWITCH UINT32_MAX
#define VHCA_OSM_NO_PATH   255 /* OSM_NO_PATH: the switch drops */
#define VHCA_OSM_LFT_BLOCK 64  /* LIDs in one SubnSet(LinearForwardingTable) */

struct vhca_osm_switch {
	uint64_t guid;
	const uint8_t *lft; /* exit port by LID, as the SM wants it to be; borrowed */
	uint32_t lft_size;
	uint8_t n_ports;
	bool has_hosts;	 /* end ports: traffic begins here */
	uint32_t *peers; /* [n_ports + 1]: the switch behind each port, else VHCA_OSM_NO_SWITCH */
};

struct vhca_osm_fabric {
	size_t n;
	struct vhca_osm_switch *switches;
	size_t n_links, links_used;
	uint32_t *links; /* what peers point into */
};

/* The place of an end port: at this port of this switch. */
struct vhca_osm_place {
	uint32_t sw;
	uint8_t port;
};

/* A place, and how far every switch is from it. */
struct vhca_osm_goal {
	struct vhca_osm_place place;
	const uint16_t *distance; /* see vhca_osm_fabric_distances(); borrowed */
};

/* Room for n switches that have n_ports external ports together. 0 or -ENOMEM. */
int vhca_osm_fabric_init(struct vhca_osm_fabric *f, size_t n, size_t n_ports);
void vhca_osm_fabric_done(struct vhca_osm_fabric *f);
/* The next switch, without cables and without a table. Not more than there is room for. */
struct vhca_osm_switch *vhca_osm_fabric_add(struct vhca_osm_fabric *f, uint64_t guid,
					    uint8_t n_ports);

/* Exit port of a LID; VHCA_OSM_NO_PATH beyond the table. */
uint8_t vhca_osm_switch_entry(const struct vhca_osm_switch *sw, uint16_t lid);

/* The switch behind a port, VHCA_OSM_NO_SWITCH if there is none. */
uint32_t vhca_osm_fabric_behind(const struct vhca_osm_fabric *f, uint32_t sw, uint8_t port);

/*
 * A hypervisor that is a switch of its own belongs to the leaf that all its cables lead to; any
 * other switch to itself.
 */
uint32_t vhca_osm_fabric_leaf(const struct vhca_osm_fabric *f, uint32_t sw);

/*
 * Hops from each switch to `to`, UINT16_MAX where there is no way. ret has f->n elements. 0 or
 * -ENOMEM.
 */
int vhca_osm_fabric_distances(const struct vhca_osm_fabric *f, uint32_t to, uint16_t *ret);
/* Does `port` of `sw` lie on a shortest way to the goal? */
bool vhca_osm_fabric_is_shortest(const struct vhca_osm_fabric *f, const struct vhca_osm_goal *goal,
				 uint32_t sw, uint8_t port);
/*
 * Does what is sent by these exit ports (one a switch) arrive from every switch that does not drop
 * it? 1, 0 or -ENOMEM.
 */
int vhca_osm_fabric_reaches(const struct vhca_osm_fabric *f, const uint8_t *ports,
			    const struct vhca_osm_place *to);

#endif
