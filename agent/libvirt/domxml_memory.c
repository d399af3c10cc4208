/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much memory a guest has, and of which pages. */
#include <string.h>

#include "agent/libvirt/domxml_parts.h"

/* libvirt writes KiB whatever the unit was at definition. */
static bool is_in_kib(const xmlNode *node)
{
	DOMXML_AUTO_STRING unit = domxml_attribute(node, "unit");

	return !unit || strcmp((const char *)unit, "KiB") == 0;
}

/* False if it is not a number of KiB. No such element is 0. */
static bool read_kib(const xmlNode *parent, const char *name, uint64_t *ret)
{
	const xmlNode *node = domxml_child_element(parent, name);
	DOMXML_AUTO_STRING text = node ? xmlNodeGetContent(node) : NULL;

	if (!text)
		return true;
	return is_in_kib(node) &&
	       vhca_parse_u64((const char *)text, 10, UINT64_MAX / 1024, ret) == 0;
}

static unsigned int count_elements(const xmlNode *parent, const char *name)
{
	unsigned int n = 0;

	DOMXML_FOREACH_CHILD (c, parent)
		n += domxml_is_element(c, name);
	return n;
}

/* The size of all <page>s, 0 if they differ. */
static uint32_t common_page_kib(const xmlNode *hugepages)
{
	uint32_t common = 0;

	DOMXML_FOREACH_CHILD (c, hugepages) {
		uint32_t kib = 0;

		if (!domxml_is_element(c, "page"))
			continue;
		if (!is_in_kib(c) || domxml_attribute_u32(c, "size", UINT32_MAX, &kib) < 0 ||
		    (common && common != kib))
			return 0;
		common = kib;
	}
	return common;
}

/*
 * A <page> with a nodeset is for these NUMA nodes of the guest alone, and no two are for the same.
 * So as many of them as nodes are for all.
 */
static bool pages_cover_guest(const xmlNode *root, const xmlNode *hugepages)
{
	const xmlNode *numa = domxml_child_element(domxml_child_element(root, "cpu"), "numa");
	DOMXML_AUTO_STRING nodeset =
		domxml_attribute(domxml_child_element(hugepages, "page"), "nodeset");
	unsigned int n = count_elements(hugepages, "page");

	return nodeset ? n == count_elements(numa, "cell") : n == 1;
}

static void read_pages(const xmlNode *root, struct vhca_guest_memory *ret)
{
	const xmlNode *huge =
		domxml_child_element(domxml_child_element(root, "memoryBacking"), "hugepages");

	if (!huge)
		return;
	ret->pages = VHCA_PAGES_HUGE;
	if (!count_elements(huge, "page"))
		return; /* of the host's default size */
	ret->page_kib = common_page_kib(huge);
	if (!ret->page_kib || !pages_cover_guest(root, huge)) {
		ret->pages = VHCA_PAGES_MIXED;
		ret->page_kib = 0;
	}
}

const char *domxml_read_memory(const xmlNode *root, struct vhca_guest_memory *ret)
{
	const xmlNode *pinned =
		domxml_child_element(domxml_child_element(root, "numatune"), "memory");
	DOMXML_AUTO_STRING nodeset = pinned ? domxml_attribute(pinned, "nodeset") : NULL;

	if (!read_kib(root, "memory", &ret->kib))
		return "<memory>: not a number of KiB";
	/* A limit that cannot be read is libvirt's matter: it must not hide the domain's VFs. */
	if (!read_kib(domxml_child_element(root, "memtune"), "hard_limit", &ret->hard_limit_kib))
		ret->hard_limit_kib = 0;
	read_pages(root, ret);
	ret->is_pinned = nodeset && vhca_parse_u32((const char *)nodeset, 10, VHCA_NUMA_NODE_MAX,
						   &ret->node) == 0;
	return NULL;
}
