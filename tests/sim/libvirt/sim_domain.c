/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/libvirt/sim_domain.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

void sim_domain_init(struct vhca_dom_info *info, unsigned int i)
{
	memset(info, 0, sizeof(*info));
	info->uuid.b[0] = 0xd0;
	info->uuid.b[15] = (uint8_t)i;
	(void)snprintf(info->name, sizeof(info->name), "vm%u", i);
	info->root_ports = SIM_DOMAIN_ROOT_PORTS;
}

void sim_domain_ask(struct vhca_dom_info *info, const char *name, const char *partition)
{
	struct vhca_vf_request *req = &info->requests[info->n_requests++];

	*req = (struct vhca_vf_request){.numa = -1};
	(void)snprintf(req->name, sizeof(req->name), "%s", name);
	(void)snprintf(req->fabric, sizeof(req->fabric), "default");
	(void)snprintf(req->partition, sizeof(req->partition), "%s", partition);
}

static void count_root_ports(struct vhca_dom_info *info)
{
	info->free_root_ports =
		info->root_ports > info->n_hostdevs ? info->root_ports - info->n_hostdevs : 0;
}

void sim_live_init(struct sim_live *live, const struct vhca_dom_info *info)
{
	live->info = *info;
	live->info.hostdevs = live->hostdevs;
	live->info.n_hostdevs = 0;
	count_root_ports(&live->info);
}

struct vhca_dom_hostdev *sim_live_add(struct sim_live *live, struct vhca_bdf host,
				      struct vhca_bdf guest, const char *name)
{
	struct vhca_dom_hostdev *dev = &live->hostdevs[live->info.n_hostdevs++];

	assert(live->info.n_hostdevs <= SIM_DOMAIN_HOSTDEVS);
	*dev = (struct vhca_dom_hostdev){.host = host, .has_guest_addr = true, .guest = guest};
	if (*name)
		(void)snprintf(dev->alias, sizeof(dev->alias), "%s%s", VHCA_ALIAS_PREFIX, name);
	count_root_ports(&live->info);
	return dev;
}

int sim_virt_lost(struct vhca_error *err)
{
	return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "libvirt_unreachable", ENOTCONN,
			      "End of file while reading data");
}

int sim_virt_gone(struct vhca_error *err)
{
	return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "domain_gone", 0, "no such domain");
}

int sim_virt_failed(struct vhca_error *err, const char *why)
{
	return vhca_error_set(err, VHCA_ERR_CONFLICT, "migration_failed", 0, "%s", why);
}
