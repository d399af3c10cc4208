/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_OSM_GUID_TABLES_H
#define VHCA_OPENSM_OSM_GUID_TABLES_H
/* The tables in which OpenSM keeps the aliases of a port, by their index in its GUIDInfo. */

struct osm_opensm;
struct osm_physp;

#define VHCA_OSM_GUIDS_IN_BLOCK 8 /* GUIDInfo; a table is allocated in whole blocks */

/*
 * Gives every port that can hold aliases its GUID table, as large as its GUIDCap is now. Stock
 * OpenSM makes it with the port's first alias, and until then answers a Delete with the request's
 * own all-ones. mlx4 does not take that for done: the Delete stays pending, and as soon as another
 * entry of the block is to be set, both go round without a pause and the Set never gets its turn
 * (alias_GUID.c:set_required_record). Takes OpenSM's lock: not from callbacks that hold it.
 */
void vhca_osm_open_guid_tables(struct osm_opensm *osm);

/* The port has another GUIDCap: stock OpenSM goes on to write up to that one, past the end of a
 * table that was made for a smaller one. The caller holds OpenSM's lock exclusively. */
void vhca_osm_guid_table_fit(struct osm_physp *physp);

#endif
