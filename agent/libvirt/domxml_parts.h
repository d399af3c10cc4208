/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_DOMXML_PARTS_H
#define VHCA_AGENT_LIBVIRT_DOMXML_PARTS_H
/* The readers of the parts of domain XML that have a file of their own, domxml_PART.c. */
#include "agent/libvirt/domxml_node.h"

/* <memory>, <memoryBacking> and <memtune> of a domain. NULL, or what is wrong with them. */
const char *domxml_read_memory(const xmlNode *root, struct vhca_guest_memory *ret);
/* <vcpu> and <cputune>: the host's CPUs on which its vCPUs may run; none, if one may run on any. */
void domxml_read_cpus(const xmlNode *root, struct vhca_cpus *ret);
/*
 * Fills root_ports and free_root_ports, and the paths of the host devices, which were read before.
 */
void domxml_read_buses(const xmlNode *devices, struct vhca_dom_info *info);
/* See vhca_domxml_copy(). */
int domxml_read_copy(const xmlNode *root, const char *domain, struct vhca_dom_copy **ret,
		     struct vhca_error *err);

#endif
