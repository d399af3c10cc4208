/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_EXPLAIN_FINDING_H
#define VHCA_AGENT_EXPLAIN_FINDING_H
/* What a check looks at, and how it says what it found. */
#include "agent/explain/explain.h"

/* One walk. */
struct explain_look {
	const struct vhca_explain *ex;
	const struct vhca_vf *vf;
	const struct vhca_hca *hca;
	const struct vhca_port_state *port; /* port->port == 0: not reported yet */
	const struct vhca_claim *claim;	    /* may be NULL */
	const struct vhca_domain *user;	    /* has the VF in its live XML; may be NULL */
};

/* The sentence, and the way out. */
void explain_say(struct vhca_finding *f, enum vhca_finding_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void explain_fix(struct vhca_finding *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool explain_is_mlx4(const struct explain_look *l); /* else mlx5 */

#endif
