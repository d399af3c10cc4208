/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/domain_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Empty, with room for so many host devices. */
struct vhca_dom_info *vhca_dom_info_new(unsigned int n_hostdevs)
{
	struct vhca_dom_info *info =
		calloc(1, sizeof(*info) + n_hostdevs * sizeof(*info->hostdevs));

	if (info)
		info->hostdevs = (struct vhca_dom_hostdev *)(info + 1);
	return info;
}

struct vhca_dom_info *vhca_dom_info_unreadable(const struct vhca_uuid *uuid, const char *name,
					       const struct vhca_error *why)
{
	struct vhca_dom_info *info = vhca_dom_info_new(0);

	if (!info)
		return NULL;
	info->uuid = *uuid;
	(void)snprintf(info->name, sizeof(info->name), "%s", name);
	info->unreadable = *why;
	return info;
}

struct vhca_dom_info *vhca_dom_info_dup(const struct vhca_dom_info *info)
{
	struct vhca_dom_info *copy = vhca_dom_info_new(info->n_hostdevs);
	struct vhca_dom_hostdev *hostdevs = copy ? copy->hostdevs : NULL;

	if (!copy)
		return NULL;
	*copy = *info;
	copy->hostdevs = hostdevs;
	for (unsigned int i = 0; i < info->n_hostdevs; i++)
		hostdevs[i] = info->hostdevs[i];
	return copy;
}

const struct vhca_vf_request *vhca_dom_request(const struct vhca_dom_info *info, const char *name)
{
	for (unsigned int i = 0; i < info->n_requests; i++)
		if (strcmp(info->requests[i].name, name) == 0)
			return &info->requests[i];
	return NULL;
}
