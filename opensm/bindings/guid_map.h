/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_GUID_MAP_H
#define VHCA_OPENSM_BINDINGS_GUID_MAP_H
/*
 * A sorted array of pointers to records that begin with their GUID. Ordered iteration by index is
 * what the API's paging and the reproducible files need; with the limits of table.h the memmove of
 * an insertion costs less than the fsync that follows it.
 */
#include <stddef.h>
#include <stdint.h>

struct vhca_osm_guid_map {
	uint64_t **items; /* each points to a record whose first member is its key */
	size_t n, capacity;
};

/* The record with this key (borrowed), or NULL. */
void *vhca_osm_guid_map_find(const struct vhca_osm_guid_map *map, uint64_t key);
/* Index of the first record with a key > after (pass "nothing yet" as 0: no record has key 0). */
size_t vhca_osm_guid_map_after(const struct vhca_osm_guid_map *map, uint64_t after);
/*
 * Adds a record whose key must not be in the map; the map borrows it. -ENOMEM leaves the map as it
 * was.
 */
int vhca_osm_guid_map_add(struct vhca_osm_guid_map *map, void *record);
/* Removes the record with this key and returns it (NULL if there is none); the caller owns it. */
void *vhca_osm_guid_map_remove(struct vhca_osm_guid_map *map, uint64_t key);
/* Calls fn for every record, then releases the array. */
void vhca_osm_guid_map_done(struct vhca_osm_guid_map *map, void (*fn)(void *record));

#endif
