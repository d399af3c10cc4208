/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a guest's vCPUs may run. */
#include "agent/libvirt/domxml_parts.h"

static bool add_set(const xmlNode *node, struct vhca_cpus *set)
{
	DOMXML_AUTO_STRING text = domxml_attribute(node, "cpuset");
	struct vhca_cpus more;

	if (!text || vhca_cpus_parse((const char *)text, &more) < 0)
		return false;
	vhca_cpus_join(set, &more);
	return true;
}

void domxml_read_cpus(const xmlNode *root, struct vhca_cpus *ret)
{
	const xmlNode *tune = domxml_child_element(root, "cputune");
	const xmlNode *vcpu = domxml_child_element(root, "vcpu");
	DOMXML_AUTO_STRING text = vcpu ? xmlNodeGetContent(vcpu) : NULL;
	struct vhca_cpus set = {{0}};
	uint32_t n, pinned = 0;

	*ret = (struct vhca_cpus){{0}};
	if (!text || vhca_parse_u32((const char *)text, 10, VHCA_CPUS_MAX, &n) < 0)
		return;
	DOMXML_FOREACH_CHILD (c, tune) {
		if (!domxml_is_element(c, "vcpupin"))
			continue;
		if (!add_set(c, &set))
			return;
		pinned++;
	}
	/* The others run where <vcpu cpuset=...> says. */
	if (n && (pinned >= n || add_set(vcpu, &set)))
		*ret = set;
}
