/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_DOMXML_NODE_H
#define VHCA_AGENT_LIBVIRT_DOMXML_NODE_H
/* Access to libxml2's tree, shared by the readers of domain XML. */
#include "agent/libvirt/domxml.h"
#include "common/base/cleanup.h"

#include <libxml/tree.h>

/* For DOMXML_AUTO_STRING. */
void domxml_string_freep(xmlChar **p);
#define DOMXML_AUTO_STRING VHCA_CLEANUP(domxml_string_freep) xmlChar *

/* An element of that name outside of any namespace, as all of libvirt's own are. */
bool domxml_is_element(const xmlNode *node, const char *name);
/* The first such child; NULL if there is none, or parent is NULL. */
xmlNode *domxml_child_element(const xmlNode *parent, const char *name);
/* Caller frees it with xmlFree(); NULL without such an attribute. */
xmlChar *domxml_attribute(const xmlNode *node, const char *name);
bool domxml_attribute_is(const xmlNode *node, const char *name, const char *value);
/* -ENOENT without such an attribute. */
int domxml_attribute_u32(const xmlNode *node, const char *name, uint32_t max, uint32_t *ret);

/* <memory>, <memoryBacking> and <memtune> of a domain. NULL, or what is wrong with them. */
const char *domxml_memory(const xmlNode *root, struct vhca_guest_memory *ret);
/* <vcpu> and <cputune>: the host's CPUs on which its vCPUs may run; none, if one may run on any. */
void domxml_cpus(const xmlNode *root, struct vhca_cpus *ret);

#endif
