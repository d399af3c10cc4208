/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/lids/idle.h"

#include <errno.h>
#include <stdlib.h>

/* A line and a row begin with their GUID. */
static int by_guid(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct vhca_osm_idle_lid judge(const struct vhca_osm_lid_line *line,
				      const struct vhca_osm_idle_lid *old,
				      const struct vhca_osm_lid_claims *claims, uint64_t begin)
{
	struct vhca_osm_idle_lid row = {
		.guid = line->guid, .lid = line->lid, .pf_guid = line->pf_guid};
	enum vhca_osm_lid_claim claim = claims->find(claims->ctx, line->guid);
	bool gone = claim == VHCA_OSM_LID_WITHDRAWN;

	if (!line->here)
		row.pf_guid = old ? old->pf_guid : 0;
	if (claim == VHCA_OSM_LID_UNCLAIMED && row.pf_guid)
		gone = claims->has_guests(claims->ctx, row.pf_guid);
	if (gone && !line->here && !line->taken)
		row.since = old && old->since ? old->since : begin;
	return row;
}

int vhca_osm_idle_lids_look(struct vhca_osm_idle_lids *t, struct vhca_osm_lid_line *lines, size_t n,
			    const struct vhca_osm_lid_claims *claims, uint64_t begin)
{
	struct vhca_osm_idle_lids fresh = {.rows = calloc(n + 1, sizeof(*fresh.rows))};

	if (!fresh.rows)
		return -ENOMEM;
	if (n > 0)
		qsort(lines, n, sizeof(*lines), by_guid);
	for (size_t i = 0; i < n; i++) {
		const struct vhca_osm_idle_lid *old =
			t->n ? bsearch(&lines[i].guid, t->rows, t->n, sizeof(*old), by_guid) : NULL;
		struct vhca_osm_idle_lid row = judge(&lines[i], old, claims, begin);

		if (row.since || row.pf_guid)
			fresh.rows[fresh.n++] = row;
	}
	free(t->rows);
	*t = fresh;
	return 0;
}

uint64_t vhca_osm_idle_lids_deadline(const struct vhca_osm_idle_lids *t, uint64_t grace)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < t->n; i++)
		if (t->rows[i].since && t->rows[i].since + grace < first)
			first = t->rows[i].since + grace;
	return first;
}

void vhca_osm_idle_lids_done(struct vhca_osm_idle_lids *t)
{
	free(t->rows);
	*t = (struct vhca_osm_idle_lids){.n = 0};
}
