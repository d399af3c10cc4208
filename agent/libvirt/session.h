/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_SESSION_H
#define VHCA_AGENT_LIBVIRT_SESSION_H
/*
 * One life of the two connections to libvirtd. libvirtd serves at most five calls of one client at
 * a time, so calls that can hang on a guest (attach, detach) have a connection of their own and
 * cannot starve queries. Reference-counted across threads: a call in a worker keeps its session
 * alive although the owner has given it up. All functions here may block.
 */
#include <libvirt/libvirt.h>

#include "agent/libvirt/event.h"

/* Opens one connection with keepalives turned on. */
int virt_connect(const char *uri, virConnectPtr *ret, struct vhca_error *err);
void virt_connection_freep(virConnectPtr *p);
#define VHCA_AUTO_CONNECTION VHCA_CLEANUP(virt_connection_freep) virConnectPtr

struct virt_session;

/* Connects, turns keepalives on and registers for events; they go to sink (borrowed; the session
 * takes references). */
int virt_session_open(const char *uri, struct virt_sink *sink, struct virt_session **ret,
		      struct vhca_error *err);
struct virt_session *virt_session_ref(struct virt_session *s);
void virt_session_unref(struct virt_session *s); /* the last one closes; accepts NULL */
/* The same in a thread of its own, for shutdown: waits at most wait_ms for it. */
void virt_session_unref_bounded(struct virt_session *s, uint32_t wait_ms);

/*
 * A migration has a connection of its own, and opening it takes time: opens one ahead, unless the
 * domain has one or VIRT_SPARES are there. Failure is no error: the migration opens its own.
 */
#define VIRT_SPARES 4
void virt_session_open_spare(struct virt_session *s, const struct vhca_uuid *domain,
			     const char *uri);
/* The domain's if it still lives, which the caller closes; NULL if there is none. */
virConnectPtr virt_session_take_spare(struct virt_session *s, const struct vhca_uuid *domain);

virConnectPtr virt_session_query(const struct virt_session *s);	 /* events, lists, XML */
virConnectPtr virt_session_action(const struct virt_session *s); /* attach, detach */

#endif
