/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_QGA_CALL_H
#define VHCA_AGENT_LIBVIRT_QGA_CALL_H
/*
 * Calls to a guest's QEMU guest agent through libvirt: blocking, on a strand of their own.
 * Contract: agent/libvirt/virt.h.
 */
#include "agent/libvirt/qga.h"

/*
 * On a connection of its own (uri): a guest that does not answer holds libvirt's call for up to 10
 * s (its synchronisation, then the command), and libvirtd serves five calls of one client at a
 * time.
 */
int vhca_virt_call_qga(const char *uri, const struct vhca_uuid *uuid,
		       const struct vhca_qga_ask *ask, struct vhca_qga_answer *ret,
		       struct vhca_error *err);

#endif
