/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_PKEY_RTNL_H
#define VHCA_PKEY_RTNL_H
/*
 * Reading and setting one VF of a network device by rtnetlink. The only user of libnl. Calls block
 * while somebody else holds the kernel's rtnl lock. Formats: net/core/rtnetlink.c of Linux 6.1,
 * do_setvfinfo() and rtnl_fill_vfinfo().
 */
#include <stddef.h>

#include "pkey/vport.h"

/* How a request reaches the kernel. Tests bring their own kernel. */
struct vhca_rtnl {
	/*
	 * Sends one request and receives the one message that answers it: data, or NLMSG_ERROR (of
	 * which 0 is the acknowledgement). *ret_reply is for the caller to free.
	 */
	int (*call)(void *ctx, const void *request, size_t len, void **ret_reply, size_t *ret_len);
	void *ctx;
};
extern const struct vhca_rtnl vhca_rtnl_kernel;

/*
 * A VF of a network device; parent is the device's PCI function, which the kernel's answer must
 * name.
 */
struct vhca_rtnl_vf {
	uint32_t ifindex;
	uint32_t vf;
	struct vhca_bdf parent;
};
/*
 * -ENXIO: the device has no such VF; -ENODATA: its GUIDs cannot be read; -ESTALE: ifindex is
 * another device by now.
 */
int vhca_rtnl_get_vf(const struct vhca_rtnl *rtnl, const struct vhca_rtnl_vf *at,
		     struct vhca_vport *ret);
int vhca_rtnl_set_vf(const struct vhca_rtnl *rtnl, const struct vhca_rtnl_vf *at,
		     enum vhca_vport_attr attr, uint64_t value);

#endif
