/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/guid_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Index of the first record with a key >= key. */
static size_t lower_bound(const struct vhca_osm_guid_map *map, uint64_t key)
{
	size_t low = 0, high = map->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (*map->items[mid] < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void *vhca_osm_guid_map_find(const struct vhca_osm_guid_map *map, uint64_t key)
{
	size_t i = lower_bound(map, key);

	return i < map->n && *map->items[i] == key ? map->items[i] : NULL;
}

size_t vhca_osm_guid_map_after(const struct vhca_osm_guid_map *map, uint64_t after)
{
	return after == UINT64_MAX ? map->n : lower_bound(map, after + 1);
}

int vhca_osm_guid_map_add(struct vhca_osm_guid_map *map, void *record)
{
	uint64_t *item = record;
	size_t i = lower_bound(map, *item);

	if (map->n == map->capacity) {
		size_t capacity = map->capacity ? map->capacity * 2 : 64;
		uint64_t **items = reallocarray(map->items, capacity, sizeof(*items));

		if (!items)
			return -ENOMEM;
		map->items = items;
		map->capacity = capacity;
	}
	memmove(&map->items[i + 1], &map->items[i], (map->n - i) * sizeof(*map->items));
	map->items[i] = item;
	map->n++;
	return 0;
}

void *vhca_osm_guid_map_remove(struct vhca_osm_guid_map *map, uint64_t key)
{
	size_t i = lower_bound(map, key);
	void *record;

	if (i == map->n || *map->items[i] != key)
		return NULL;
	record = map->items[i];
	map->n--;
	memmove(&map->items[i], &map->items[i + 1], (map->n - i) * sizeof(*map->items));
	return record;
}

void vhca_osm_guid_map_done(struct vhca_osm_guid_map *map, void (*fn)(void *record))
{
	for (size_t i = 0; i < map->n; i++)
		fn(map->items[i]);
	free(map->items);
	*map = (struct vhca_osm_guid_map){0};
}
