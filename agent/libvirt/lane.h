/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_LANE_H
#define VHCA_AGENT_LIBVIRT_LANE_H
/*
 * The strands of domains: up to four for each, made when there is a call and given back after the
 * last one, so that a migration of minutes delays neither its own cancellation nor other domains.
 */
#include <sys/queue.h>

#include "common/base/text.h"
#include "common/loop/strand.h"

enum virt_lane_kind {
	VHCA_LANE_NONE,	   /* of no domain: the query strand */
	VHCA_LANE_DEVICES, /* changes to the domain: each waits up to 30 s for a job's end */
	VHCA_LANE_MIGRATE, /* as long as the copy takes */
	VHCA_LANE_JOB,	   /* looks at the job, or ends it, or whether there can be one: short */
	VHCA_LANE_QGA,	   /* asks the guest's agent: 10 s if that is silent */
};

struct virt_lane {
	LIST_ENTRY(virt_lane) link;
	struct vhca_uuid uuid;
	enum virt_lane_kind kind;
	struct vhca_strand *strand;
	unsigned int n_calls; /* the user counts them, and drops the lane after the last one */
};
LIST_HEAD(virt_lanes, virt_lane);

/* Finds or makes it; NULL without memory. */
struct virt_lane *virt_lane_get(struct virt_lanes *lanes, struct vhca_loop *loop,
				const struct vhca_uuid *uuid, enum virt_lane_kind kind);
/* Frees an idle lane: nobody waits. */
void virt_lane_drop(struct virt_lane *lane);
/* Frees all; false if a call still hangs at the deadline (vhca_now_ms() scale). See
 * vhca_strand_free(). */
bool virt_lanes_free(struct virt_lanes *lanes, uint64_t deadline_ms);

#endif
