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

#endif
