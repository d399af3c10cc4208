/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_CHECK_H
#define VHCA_AGENT_LIBVIRT_CHECK_H
/* Whether libvirt would copy a domain, before its VFs are touched: blocking, on a strand.
 * Contract: agent/libvirt/virt.h. */
#include <libvirt/libvirt.h>

#include "agent/libvirt/virt.h"

/* ours: the host addresses of the VFs that will have left the guest by then. */
int virt_call_check(virConnectPtr conn, const struct vhca_uuid *uuid, const struct vhca_bdf *ours,
		    unsigned int n_ours, struct vhca_error *err);

#define VIRT_DIRTY_POLL_MS 250
#define VIRT_DIRTY_WAIT_MS 10000

/*
 * Has QEMU look for a second at what the guest writes, *ret_mib in MiB/s. False: not known, after
 * VIRT_DIRTY_WAIT_MS or at once; that is no error.
 */
bool virt_call_dirty_rate(virConnectPtr conn, const struct vhca_uuid *uuid, uint64_t *ret_mib);

#endif
