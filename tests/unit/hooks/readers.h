/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_HOOKS_READERS_H
#define VHCA_TESTS_UNIT_HOOKS_READERS_H
/*
 * The hook's scanner misses nothing that the agent's XML parser finds: otherwise a domain would
 * pass the hook as none of ours and then be treated as ours. The reverse is harmless: the agent is
 * asked and knows better.
 */
#include "agent/libvirt/domxml.h"
#include "hooks/scan.h"

/* Whether the agent found something in our namespace, good or bad. */
bool agent_has_request(const struct vhca_dom_info *info);

/* Of one document: what the agent found and a complete scan did not; NULL = nothing. */
const char *scan_missed(const struct vhca_scan *scan, const struct vhca_dom_info *info);

#endif
