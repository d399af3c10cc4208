/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_DOMXML_NODE_H
#define VHCA_AGENT_LIBVIRT_DOMXML_NODE_H
/* Access to libxml2's tree, shared by the readers of domain XML. */
#include <libxml/tree.h>

#include "agent/libvirt/domxml.h"
#include "common/base/cleanup.h"

/* For DOMXML_AUTO_STRING. */
void domxml_string_freep(xmlChar **p);
#define DOMXML_AUTO_STRING VHCA_CLEANUP(domxml_string_freep) xmlChar *

/* None of a parent that is NULL. */
#define DOMXML_FOREACH_CHILD(child, parent)                                              \
	for (const xmlNode *child = (parent) ? (parent)->children : NULL; child != NULL; \
	     child = child->next)

/* An element of that name outside of any namespace, as all of libvirt's own are. */
bool domxml_is_element(const xmlNode *node, const char *name);
/* The first such child; NULL if there is none, or parent is NULL. */
xmlNode *domxml_child_element(const xmlNode *parent, const char *name);
/* Children of which that is true, at most max. */
unsigned int domxml_count_children(const xmlNode *parent, bool (*is)(const xmlNode *child),
				   unsigned int max);
/* Caller frees it with xmlFree(); NULL without such an attribute. */
xmlChar *domxml_attribute(const xmlNode *node, const char *name);
bool domxml_attribute_is(const xmlNode *node, const char *name, const char *value);
/* -ENOENT without such an attribute. */
int domxml_attribute_u32(const xmlNode *node, const char *name, uint32_t max, uint32_t *ret);

/* Attributes of an <address>; -EINVAL if it is none. */
int domxml_read_pci_address(const xmlNode *node, struct vhca_bdf *ret);
/* The device's place in the guest; NULL if it has none, or none on PCI. */
const xmlNode *domxml_guest_address(const xmlNode *device);

#endif
