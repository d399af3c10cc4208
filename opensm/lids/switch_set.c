/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/switch_set.h"

#include <errno.h>
#include <stdlib.h>

int vhca_osm_switch_set_init(struct vhca_osm_switch_set *set, size_t n)
{
	*set = (struct vhca_osm_switch_set){.guids = calloc(n + 1, sizeof(*set->guids))};
	return set->guids ? 0 : -ENOMEM;
}

void vhca_osm_switch_set_done(struct vhca_osm_switch_set *set)
{
	free(set->guids);
	*set = (struct vhca_osm_switch_set){0};
}

void vhca_osm_switch_set_add(struct vhca_osm_switch_set *set, uint64_t guid)
{
	set->guids[set->n++] = guid;
}

static int by_guid(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void vhca_osm_switch_set_sort(struct vhca_osm_switch_set *set)
{
	qsort(set->guids, set->n, sizeof(*set->guids), by_guid);
}

bool vhca_osm_switch_set_has(const struct vhca_osm_switch_set *set, uint64_t guid)
{
	return set->n && bsearch(&guid, set->guids, set->n, sizeof(guid), by_guid);
}

bool vhca_osm_switch_set_meets(const struct vhca_osm_switch_set *a,
			       const struct vhca_osm_switch_set *b)
{
	size_t i = 0, j = 0;

	while (i < a->n && j < b->n) {
		if (a->guids[i] == b->guids[j])
			return true;
		if (a->guids[i] < b->guids[j])
			i++;
		else
			j++;
	}
	return false;
}
