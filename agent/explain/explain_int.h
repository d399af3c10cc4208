/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_EXPLAIN_EXPLAIN_INT_H
#define VHCA_AGENT_EXPLAIN_EXPLAIN_INT_H
/*
 * Shared by explain.c (the walk; adapter, identity, guest) and fabric.c (port, SM,
 * partitions).
 */
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

/* ---- fabric.c: one check each ---- */
void explain_port(const struct explain_look *l, struct vhca_finding *f);
void explain_sm(const struct explain_look *l, struct vhca_finding *f);
void explain_partition(const struct explain_look *l, struct vhca_finding *f);
void explain_table(const struct explain_look *l, struct vhca_finding *f);

#endif
