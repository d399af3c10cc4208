/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_EXPLAIN_READINESS_H
#define VHCA_AGENT_EXPLAIN_READINESS_H
/*
 * Why the host gives guests no VFs, or may soon not: one finding a reason, from memory. The host is
 * not ready while one that blocks is there; the others are only listed. docs/design/0016-api.md has
 * the table.
 */
#include "agent/explain/explain.h"

enum vhca_readiness {
	/* These block. */
	VHCA_READINESS_DISK,
	VHCA_READINESS_INVENTORY,
	VHCA_READINESS_VFS_NOT_MADE,
	VHCA_READINESS_VFS_UNBOUND,
	/* These do not. */
	VHCA_READINESS_PORTS_UNREAD,
	VHCA_READINESS_HCA_ABSENT,
	VHCA_READINESS_HCA_PROBLEM,
	VHCA_READINESS_PORT_DOWN,
	VHCA_READINESS_QUARANTINED,
	VHCA_READINESS_LIBVIRT,
	VHCA_READINESS_DOMAINS_UNREAD,
	VHCA_READINESS_DOMAIN_UNREADABLE,
	VHCA_READINESS_MEMORY,
	VHCA_READINESS_SM,
	VHCA_READINESS_SM_REFUSED,
	VHCA_READINESS_SM_HOLDS_BACK,
	VHCA_READINESS_DRAINED,
	VHCA_READINESS_COUNT
};

/* Fills ret[]: the step of each is its code, its status OK where that is not so. */
void vhca_explain_readiness(const struct vhca_explain *ex,
			    struct vhca_finding ret[static VHCA_READINESS_COUNT]);
bool vhca_readiness_blocks(enum vhca_readiness reason);

#endif
