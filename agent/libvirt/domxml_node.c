/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/domxml_node.h"

#include <errno.h>
#include <string.h>

void domxml_string_freep(xmlChar **p)
{
	if (*p)
		xmlFree(*p);
}

bool domxml_is_element(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !node->ns &&
	       strcmp((const char *)node->name, name) == 0;
}

xmlNode *domxml_child_element(const xmlNode *parent, const char *name)
{
	for (xmlNode *n = parent ? parent->children : NULL; n; n = n->next)
		if (domxml_is_element(n, name))
			return n;
	return NULL;
}

unsigned int domxml_count_children(const xmlNode *parent, bool (*is)(const xmlNode *child),
				   unsigned int max)
{
	unsigned int n = 0;

	DOMXML_FOREACH_CHILD (c, parent)
		if (n < max && is(c))
			n++;
	return n;
}

xmlChar *domxml_attribute(const xmlNode *node, const char *name)
{
	return xmlGetNoNsProp((xmlNode *)node, (const xmlChar *)name);
}

bool domxml_attribute_is(const xmlNode *node, const char *name, const char *value)
{
	DOMXML_AUTO_STRING have = domxml_attribute(node, name);

	return have && strcmp((const char *)have, value) == 0;
}

int domxml_attribute_u32(const xmlNode *node, const char *name, uint32_t max, uint32_t *ret)
{
	DOMXML_AUTO_STRING text = domxml_attribute(node, name);

	return text ? vhca_parse_u32((const char *)text, 0, max, ret) : -ENOENT;
}

int domxml_read_pci_address(const xmlNode *node, struct vhca_bdf *ret)
{
	uint32_t domain = 0, bus, slot, function;
	int r = domxml_attribute_u32(node, "domain", UINT16_MAX, &domain);

	if ((r < 0 && r != -ENOENT) || domxml_attribute_u32(node, "bus", 0xff, &bus) < 0 ||
	    domxml_attribute_u32(node, "slot", 0x1f, &slot) < 0 ||
	    domxml_attribute_u32(node, "function", 7, &function) < 0)
		return -EINVAL;
	*ret = (struct vhca_bdf){.domain = (uint16_t)domain,
				 .bus = (uint8_t)bus,
				 .dev = (uint8_t)slot,
				 .fn = (uint8_t)function};
	return 0;
}

const xmlNode *domxml_guest_address(const xmlNode *device)
{
	const xmlNode *address = domxml_child_element(device, "address");

	return address && domxml_attribute_is(address, "type", "pci") ? address : NULL;
}
