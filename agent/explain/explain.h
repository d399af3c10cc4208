/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_EXPLAIN_EXPLAIN_H
#define VHCA_AGENT_EXPLAIN_EXPLAIN_H
/*
 * Why is a guest's port Down? Walks everything that the VF needs, from the firmware up to the
 * guest, and says one sentence about each. Pure: it reads what the agent knows in memory, asks
 * nobody, writes nothing, and so answers while an adapter hangs.
 *
 * The first thing that is wrong is the verdict: whatever stands further up depends on it.
 * docs/design/0005-explain.md
 */
#include "agent/state/model.h"
#include "conf/conf.h"

enum vhca_finding_status {
	VHCA_FINDING_OK,
	VHCA_FINDING_UNKNOWN, /* cannot be seen from here, or not yet */
	VHCA_FINDING_WARNING, /* works for now, passes by itself, or may be meant so */
	VHCA_FINDING_WRONG,
};
const char *vhca_finding_status_to_string(enum vhca_finding_status status); /* "ok" */

struct vhca_finding {
	const char *step; /* static: "firmware", "physical port", ... */
	enum vhca_finding_status status;
	char text[2 * VHCA_REASON_MAX]; /* one sentence */
	char fix[VHCA_REASON_MAX];	/* what to type or to do; "" = nothing */
};

/* What the walk looks at; all borrowed. */
struct vhca_explain {
	struct vhca_model *model;
	const struct vhca_conf *conf;
	const struct vhca_sm_ops *sm;
	bool sm_reachable; /* false: its last exchange failed */
	bool virt_connected;
	bool virt_synced; /* the domains of the model are all that run */
	bool drained;
	struct vhca_error disk; /* why nothing can be journaled; kind NONE = it can */
	/* what of the host's beginning is still to come, or the disk; kind NONE = nothing */
	struct vhca_error beginning;
	struct vhca_error ports; /* which adapter's driver is still starting; kind NONE = none */
	uint64_t busy_ms;	 /* how long the VF's adapter has been at one job; 0 = idle */
};

#define VHCA_EXPLAIN_STEPS 11
/* Fills ret[], in the order of the walk. */
void vhca_explain_vf(const struct vhca_explain *ex, const struct vhca_vf *vf,
		     struct vhca_finding ret[static VHCA_EXPLAIN_STEPS]);

#define VHCA_EXPLAIN_REQUESTS (VHCA_DOM_VFS_MAX + 1)
/*
 * What the domain's metadata asks for and whether it has it; returns how many. dom NULL: it does
 * not run here.
 */
unsigned int vhca_explain_requests(const struct vhca_explain *ex, const struct vhca_domain *dom,
				   struct vhca_finding ret[static VHCA_EXPLAIN_REQUESTS]);

/* The first of the worst status; NULL if all are ok. */
const struct vhca_finding *vhca_explain_verdict(const struct vhca_finding *findings,
						unsigned int n);

#endif
