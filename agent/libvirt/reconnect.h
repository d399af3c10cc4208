/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_RECONNECT_H
#define VHCA_AGENT_LIBVIRT_RECONNECT_H
/* Keeps a session with libvirtd: opens one, and another whenever it is lost, at growing intervals.
 * For the state thread, but for _session(). */
#include "agent/libvirt/session.h"
#include "common/loop/loop.h"

struct virt_reconnect;

/* fn hears of CONNECTED, DISCONNECTED, and of all that happens in between. -ENOMEM or the errno of
 * a thread that could not start; no libvirtd is no error. */
int virt_reconnect_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
		       struct virt_reconnect **ret);
/* After this fn is not called any more. */
void virt_reconnect_mute(struct virt_reconnect *c);
/* Ends everything, and waits for it until the deadline (vhca_now_ms()). false: something hangs in
 * libvirt, and *c must not be freed. */
bool virt_reconnect_end(struct virt_reconnect *c, uint64_t deadline_ms);
void virt_reconnect_free(struct virt_reconnect *c); /* after _end() */

/* Between CONNECTED and DISCONNECTED. */
bool virt_reconnect_is_up(const struct virt_reconnect *c);
/* As given to _new(). */
const char *virt_reconnect_uri(const struct virt_reconnect *c);
/* Any thread. The session of the moment, a reference of the caller's; NULL: none. */
struct virt_session *virt_reconnect_session(struct virt_reconnect *c);

#endif
