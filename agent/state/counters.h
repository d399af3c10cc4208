/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_COUNTERS_H
#define VHCA_AGENT_STATE_COUNTERS_H
/* What the agent counts of its own work since it was started (docs/design/0021-metrics.md). Of the
 * state thread, which adds where the thing happens. */
#include "common/base/histogram.h"

struct vhca_counters {
	uint64_t grants, grants_lost;
	uint64_t drifts;      /* an identity that somebody else had changed */
	uint64_t quarantines; /* VFs that became quarantined */
	uint64_t ports_refused;
	struct vhca_histogram program, attach; /* of those effects that were done */
	struct vhca_histogram unplug;	       /* from detaching to gone from its guest */
	/* Of a migration: how long its guest was without VFs on this host's account. */
	struct vhca_histogram blackout_source, blackout_destination;
};

#endif
