/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_KEY_TABLES_H
#define VHCA_OPENSM_OSM_KEY_TABLES_H
/*
 * What OpenSM knows of the P_Key tables of ports, and when that is not so any more. A table is the
 * hardware's, and stays where it is when a vport's GUID goes to another place; OpenSM keeps what it
 * knows with the GUID, how many blocks it has too, and reads a table again only where a link comes
 * up. Whatever it does not know (no block) it writes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct osm_opensm;
struct osm_physp;
struct osm_subn;

/* Where the end ports were when a sweep began. */
struct vhca_osm_key_places {
	struct vhca_osm_key_place *of; /* NULL = not known */
	size_t n;
};

/*
 * How many blocks a table with room for so many keys has: PartitionCap, or a switch's
 * PartitionEnforcementCap.
 */
size_t vhca_osm_key_blocks(uint16_t capacity);

/* ---- the caller holds OpenSM's lock ---- */
/* Is the key in a port's table as OpenSM knows it, and as it wants it? pkey: network order. */
bool vhca_osm_key_table_has(const struct osm_physp *physp, uint16_t pkey);
bool vhca_osm_key_table_wants(const struct osm_physp *physp, uint16_t pkey);

/* ---- the caller holds OpenSM's lock exclusively ---- */
/* What this port, or a switch's, has is not known any more. */
void vhca_osm_key_table_forget(struct osm_physp *physp);
/* The same of one of its blocks. */
void vhca_osm_key_block_forget(const struct osm_subn *subn, struct osm_physp *physp,
			       uint16_t block);
/*
 * The two ports, each the only one of its node, exchange their places, and what is known of the
 * tables there.
 */
void vhca_osm_key_tables_exchange(struct osm_subn *subn, struct osm_physp *a, struct osm_physp *b);
/*
 * OpenSM goes by the index that it gave a key first, if the port has not got the key; were that
 * another one's index by now, each would take the place of the other for ever, and were it beyond
 * the table, the key would not come. Where what it remembers is not what the table shows, it
 * forgets it: keys that are there stay where they are.
 */
void vhca_osm_key_tables_settle(struct osm_opensm *osm);

/* ---- OpenSM's sweeper, which must not hold the lock ---- */
/*
 * Discovery begins. What is remembered already stays: the sweep before ended early, and has found
 * who knows what. Without memory, as if nothing were known.
 */
void vhca_osm_key_places_remember(struct osm_opensm *osm, struct vhca_osm_key_places *places);
/*
 * It has ended: of ports that were found at other places, OpenSM forgets the tables. Releases what
 * was remembered.
 */
void vhca_osm_key_places_compare(struct osm_opensm *osm, struct vhca_osm_key_places *places);
void vhca_osm_key_places_done(struct vhca_osm_key_places *places);

#endif
