/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What of a domain's XML decides whether libvirt copies the domain to another host. */
#include <errno.h>
#include <string.h>

#include "agent/libvirt/domxml_parts.h"

static bool is_shmem_of_others(const xmlNode *node)
{
	return domxml_is_element(node, "shmem") && !domxml_attribute_is(node, "role", "master");
}

static bool is_disk(const xmlNode *node)
{
	return domxml_is_element(node, "disk");
}

static bool is_transient_disk(const xmlNode *node)
{
	return is_disk(node) && domxml_child_element(node, "transient");
}

static bool is_nvme_disk(const xmlNode *node)
{
	return is_disk(node) && domxml_attribute_is(node, "type", "nvme");
}

static const struct obstacle {
	bool (*is)(const xmlNode *node);
	const char *words;
} obstacles[] = {
	{is_shmem_of_others, "a <shmem> whose role is not master"},
	{is_transient_disk, "a <transient/> disk"},
	{is_nvme_disk, "a disk that is an NVMe device of this host"},
};

static int check_device(const xmlNode *node, const char *domain, struct vhca_error *err)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(obstacles); i++) {
		if (!obstacles[i].is(node))
			continue;
		(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "not_migratable", 0,
				     "domain %s has %s, which libvirt copies to no other host",
				     domain, obstacles[i].words);
		vhca_error_hint(err, "shut it down here and start it there");
		return -EBUSY;
	}
	return 0;
}

/* What does not fit is no disk that anybody could be asked about: it is left out. */
static void add_disk(const xmlNode *node, struct vhca_dom_copy *copy)
{
	struct vhca_dom_disk *disk = &copy->disks[copy->n_disks];
	DOMXML_AUTO_STRING target = domxml_attribute(domxml_child_element(node, "target"), "dev");
	DOMXML_AUTO_STRING file = domxml_attribute(domxml_child_element(node, "source"), "file");

	if (!target || vhca_strcpy(disk->target, sizeof(disk->target), (const char *)target) < 0)
		return;
	if (file && !domxml_child_element(node, "readonly"))
		(void)vhca_strcpy(disk->file, sizeof(disk->file), (const char *)file);
	copy->n_disks++;
}

int domxml_read_copy(const xmlNode *root, const char *domain, struct vhca_dom_copy **ret,
		     struct vhca_error *err)
{
	const xmlNode *devices = domxml_child_element(root, "devices");
	VHCA_AUTO_FREE struct vhca_dom_copy *copy = NULL;
	unsigned int n = domxml_count_children(devices, is_disk, VHCA_DOM_DISKS_MAX);

	copy = calloc(1, sizeof(*copy) + n * sizeof(copy->disks[0]));
	if (!copy)
		return vhca_error_no_memory(err, "domain XML");
	DOMXML_FOREACH_CHILD (c, devices) {
		int r = check_device(c, domain, err);

		if (r < 0)
			return r;
		if (is_disk(c) && copy->n_disks < n)
			add_disk(c, copy);
	}
	*ret = vhca_steal_ptr(&copy);
	return 0;
}
