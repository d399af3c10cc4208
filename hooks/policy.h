/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HOOKS_POLICY_H
#define VHCA_HOOKS_POLICY_H
/*
 * What the hook does, as one table: the operation chooses the rule, what is known about the domain
 * and the agent chooses the column. Only a non-zero exit has an effect in libvirt, and for
 * `reconnect` and `started` it kills a running guest: those can never refuse.
 */
#include <stdbool.h>

enum vhca_hook_case {
	VHCA_HOOK_NOT_OURS, /* nothing of ours in the metadata, no VF of ours among the host
			       devices */
	VHCA_HOOK_ANSWERED, /* ours, and the agent answered */
	VHCA_HOOK_SILENT,   /* ours, and the agent is absent, late, or talks nonsense */
	VHCA_HOOK_CASES
};

enum vhca_hook_act {
	VHCA_HOOK_PASS,
	VHCA_HOOK_AGENT_DECIDES, /* only for VHCA_HOOK_ANSWERED */
	VHCA_HOOK_REFUSE_IF_VF,	 /* refuse if a VF of ours is among the host devices; a mere request
				    is attached later */
	VHCA_HOOK_REFUSE_IF_AWAY, /* refuse if the metadata says that VFs left for a migration: only
				     the agent can bring them back */
};

/* What was found in the domain that a refusal can rest on. */
struct vhca_hook_found {
	bool has_vf;   /* a VF of ours among the host devices, or that cannot be ruled out */
	bool has_away; /* the marker of a migration in the metadata */
};

struct vhca_hook_rule {
	const char *op;	   /* NULL = any */
	const char *subop; /* NULL = any */
	enum vhca_hook_act act[VHCA_HOOK_CASES];
};

/* The rule for an operation. Never NULL: what is not listed passes. */
const struct vhca_hook_rule *vhca_hook_rule(const char *op, const char *subop);

/* True if the agent's answer matters; otherwise it is only told. */
bool vhca_hook_rule_waits(const struct vhca_hook_rule *rule);

/* True if libvirt must be refused. agent_passes counts only for VHCA_HOOK_ANSWERED. */
bool vhca_hook_rule_refuses(const struct vhca_hook_rule *rule, enum vhca_hook_case which,
			    bool agent_passes, struct vhca_hook_found found);

#endif
