/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_DOMXML_INT_H
#define VHCA_AGENT_LIBVIRT_DOMXML_INT_H
/* Shared by domxml.c (requests, host devices), domxml_bus.c (the guest's PCI buses) and
 * domxml_copy.c. */
#include "agent/libvirt/domxml_node.h"

/* ---- domxml.c ---- */
/* The device's place in the guest; NULL if it has none, or none on PCI. */
const xmlNode *domxml_guest_address(const xmlNode *device);
/* Attributes of an <address>; -EINVAL if it is none. */
int domxml_read_pci_address(const xmlNode *node, struct vhca_bdf *ret);

/* ---- domxml_bus.c ---- */
/*
 * Fills root_ports and free_root_ports, and the paths of the host devices, which were read before.
 */
void domxml_read_buses(const xmlNode *devices, struct vhca_dom_info *info);

/* ---- domxml_copy.c ---- */
/* See vhca_domxml_copy(). */
int domxml_read_copy(const xmlNode *root, const char *domain, struct vhca_dom_copy **ret,
		     struct vhca_error *err);

#endif
