/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_CALL_H
#define VHCA_AGENT_LIBVIRT_CALL_H
/*
 * The libvirt calls themselves: blocking, on a strand, never on the state thread. Contracts:
 * agent/libvirt/virt.h.
 */
#include <libvirt/libvirt.h>

#include "agent/libvirt/domxml.h"
#include "agent/libvirt/qga.h"
#include "common/base/cleanup.h"

struct vhca_dom_list {
	struct vhca_dom_info **info;
	unsigned int n;
};
/* Frees what the list holds, not the list. */
void vhca_dom_list_done(struct vhca_dom_list *list);

/* Of one domain: the handle that the others need. */
int virt_call_lookup(virConnectPtr conn, const struct vhca_uuid *uuid, virDomainPtr *ret,
		     struct vhca_error *err);
/*
 * libvirt holds the domain for a migration: its guest does not run here yet (for post-copy: not
 * with all of its memory), or nobody knows whether it does.
 */
bool virt_state_is_held(int state, int reason);
void virt_domain_free_cleanup(virDomainPtr *p);
#define VHCA_AUTO_DOMAIN VHCA_CLEANUP(virt_domain_free_cleanup) virDomainPtr

/* All active domains or an error: a list with holes would be taken for the truth. One that
 * cannot be read is in it, unreadable. */
int virt_call_list(virConnectPtr conn, struct vhca_dom_list *ret, struct vhca_error *err);
/* Caller frees *ret. */
int virt_call_info(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_dom_info **ret,
		   struct vhca_error *err);
/*
 * *ret_called_us: when libvirt was told to, unless it was there already (vhca_now_us()); may be
 * NULL.
 */
int virt_call_attach(virConnectPtr conn, const struct vhca_uuid *uuid,
		     const struct vhca_dom_hostdev *dev, uint64_t *ret_called_us,
		     struct vhca_error *err);
int virt_call_detach(virConnectPtr conn, const struct vhca_uuid *uuid, const char *alias,
		     struct vhca_error *err);

/*
 * To a guest's QEMU guest agent, on a connection of its own (uri): a guest that does not answer
 * holds libvirt's call for up to 10 s (its synchronisation, then the command), and libvirtd serves
 * five calls of one client at a time.
 */
int virt_call_qga(const char *uri, const struct vhca_uuid *uuid, const struct vhca_qga_ask *ask,
		  struct vhca_qga_answer *ret, struct vhca_error *err);

#endif
