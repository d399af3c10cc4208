/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hooks/policy.h"

#include <string.h>

static const struct vhca_hook_rule rules[] = {
	/* op, subop		    not ours	     ours, agent answered      ours, agent silent */
	{"prepare", "begin", {VHCA_HOOK_PASS, VHCA_HOOK_AGENT_DECIDES, VHCA_HOOK_REFUSE_IF_VF}},
	{"start", "begin", {VHCA_HOOK_PASS, VHCA_HOOK_AGENT_DECIDES, VHCA_HOOK_REFUSE_IF_VF}},
	{"migrate", "begin", {VHCA_HOOK_PASS, VHCA_HOOK_AGENT_DECIDES, VHCA_HOOK_REFUSE_IF_AWAY}},
	{"restore", "begin", {VHCA_HOOK_PASS, VHCA_HOOK_AGENT_DECIDES, VHCA_HOOK_REFUSE_IF_AWAY}},
	/* started, stopped, release, attach, reconnect, and what a later libvirt may add */
	{NULL, NULL, {VHCA_HOOK_PASS, VHCA_HOOK_PASS, VHCA_HOOK_PASS}},
};

static bool matches(const char *pattern, const char *word)
{
	return !pattern || strcmp(pattern, word) == 0;
}

const struct vhca_hook_rule *vhca_hook_rule(const char *op, const char *subop)
{
	const struct vhca_hook_rule *rule = rules;

	while (!matches(rule->op, op) || !matches(rule->subop, subop))
		rule++; /* the last one matches all */
	return rule;
}

bool vhca_hook_rule_waits(const struct vhca_hook_rule *rule)
{
	return rule->act[VHCA_HOOK_ANSWERED] == VHCA_HOOK_AGENT_DECIDES;
}

bool vhca_hook_rule_refuses(const struct vhca_hook_rule *rule, enum vhca_hook_case which,
			    bool agent_passes, struct vhca_hook_found found)
{
	switch (rule->act[which]) {
	case VHCA_HOOK_AGENT_DECIDES:
		return !agent_passes;
	case VHCA_HOOK_REFUSE_IF_VF:
		return found.has_vf;
	case VHCA_HOOK_REFUSE_IF_AWAY:
		return found.has_away;
	case VHCA_HOOK_PASS:
		break;
	}
	return false;
}
