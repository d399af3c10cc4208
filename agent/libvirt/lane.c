/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/lane.h"

#include <stdio.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

static struct virt_lane *lane_new(struct virt_lanes *lanes, struct vhca_loop *loop,
				  const struct vhca_uuid *uuid, enum virt_lane_kind kind)
{
	static const char *const prefix[] = {[VHCA_LANE_DEVICES] = "dom",
					     [VHCA_LANE_MIGRATE] = "mig",
					     [VHCA_LANE_JOB] = "job",
					     [VHCA_LANE_QGA] = "qga"};
	VHCA_AUTO_FREE struct virt_lane *lane = calloc(1, sizeof(*lane));
	char name[32];

	if (!lane)
		return NULL;
	lane->uuid = *uuid;
	lane->kind = kind;
	(void)snprintf(name, sizeof(name), "%s %.27s", prefix[kind], VHCA_UUID_STR(uuid));
	if (vhca_strand_new(loop, name, &lane->strand) < 0)
		return NULL;
	LIST_INSERT_HEAD(lanes, lane, link);
	return vhca_steal_ptr(&lane);
}

struct virt_lane *virt_lane_get(struct virt_lanes *lanes, struct vhca_loop *loop,
				const struct vhca_uuid *uuid, enum virt_lane_kind kind)
{
	struct virt_lane *lane;

	LIST_FOREACH (lane, lanes, link)
		if (lane->kind == kind && vhca_uuid_equal(&lane->uuid, uuid))
			return lane;
	return lane_new(lanes, loop, uuid, kind);
}

void virt_lane_drop(struct virt_lane *lane)
{
	LIST_REMOVE(lane, link);
	(void)vhca_strand_free(lane->strand, 0); /* idle: nothing to wait for */
	free(lane);
}

bool virt_lanes_free(struct virt_lanes *lanes, uint64_t deadline_ms)
{
	struct virt_lane *lane;
	bool idle = true;

	while ((lane = LIST_FIRST(lanes)) != NULL) {
		idle &= vhca_strand_free(lane->strand, vhca_left_ms(deadline_ms));
		LIST_REMOVE(lane, link);
		free(lane);
	}
	return idle;
}
