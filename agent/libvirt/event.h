/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_EVENT_H
#define VHCA_AGENT_LIBVIRT_EVENT_H
/*
 * libvirt's event loop and the way of an event from its thread to the state thread.
 *
 * A sink belongs to one connection attempt. libvirt's callbacks hold references to it, post copies
 * of what they get, and make no libvirt call: they run in the thread that also answers keepalives.
 * Once muted, nothing is posted and what is on its way is dropped, so that neither a closed
 * connection nor a freed owner hears late events.
 */

#include <libvirt/libvirt.h>

#include "agent/libvirt/virt.h"

/* Starts libvirt's default event loop in a thread of its own, once per process and for good. Must
 * come before the first virConnectOpen(). Returns 0 or a negative errno. */
int virt_event_start(void);

struct virt_sink;
/* fn is called on the state thread; VHCA_VIRT_DISCONNECTED when the connection is lost. */
int virt_sink_new(struct vhca_loop *loop, vhca_virt_event_fn fn, void *arg, struct virt_sink **ret);
struct virt_sink *virt_sink_ref(struct virt_sink *sink);
void virt_sink_unref(struct virt_sink *sink); /* accepts NULL */
void virt_sink_mute(struct virt_sink *sink);  /* state thread; accepts NULL */

/* ---- on a worker: these call libvirt ---- */
#define VIRT_EVENT_IDS 5
struct virt_registration {
	int ids[VIRT_EVENT_IDS]; /* callback ids, -1 = not registered */
};
/* All events that the agent needs, or none and an error. */
int virt_sink_register(struct virt_sink *sink, virConnectPtr conn, struct virt_registration *ret,
		       struct vhca_error *err);
void virt_sink_deregister(virConnectPtr conn, struct virt_registration *reg);
/* Reports the loss of conn. A driver without remote side (test:///) cannot lose it: no error then.
 */
int virt_sink_watch_close(struct virt_sink *sink, virConnectPtr conn, struct vhca_error *err);
void virt_sink_unwatch_close(virConnectPtr conn);

/* What a lifecycle event of libvirt is to us. */
enum vhca_virt_event virt_lifecycle(int event, int detail);

#endif
