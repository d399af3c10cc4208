/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VIRT_H
#define VHCA_AGENT_VIRT_H
/*
 * libvirt, off the state thread. libvirt's own event loop runs in a thread that only copies events
 * and posts them; calls run on strands, one per domain. Two connections: one for events and
 * queries, one for attach and detach. The connection is re-opened with back-off (0.5 s .. 10 s);
 * after each (re)connect the owner gets VHCA_VIRT_CONNECTED and must reconcile: events of the gap
 * are lost.
 */
#include "agent/domxml.h"
#include "common/base/error.h"
#include "common/loop/loop.h"

struct vhca_virt;

enum vhca_virt_event {
	VHCA_VIRT_CONNECTED,
	VHCA_VIRT_DISCONNECTED,
	VHCA_VIRT_STARTED,	    /* lifecycle STARTED, any detail but MIGRATED */
	VHCA_VIRT_STARTED_MIGRATED, /* incoming migration: guest not running here yet */
	VHCA_VIRT_RESUMED,	    /* detail in `detail` (virDomainEventResumedDetailType) */
	VHCA_VIRT_SUSPENDED,	    /* detail likewise */
	VHCA_VIRT_STOPPED,	    /* detail likewise: MIGRATED, DESTROYED, ... */
	VHCA_VIRT_DEVICE_ADDED,	    /* alias */
	VHCA_VIRT_DEVICE_REMOVED,   /* alias */
	VHCA_VIRT_REMOVAL_FAILED,   /* alias */
	VHCA_VIRT_METADATA,	    /* our metadata element changed */
	VHCA_VIRT_OTHER,	    /* defined, undefined, ...: look again if interested */
};
struct vhca_virt_event_data {
	enum vhca_virt_event event;
	struct vhca_uuid uuid; /* zero for CONNECTED and DISCONNECTED */
	char name[128];
	int detail;
	char alias[80];
};
typedef void (*vhca_virt_event_fn)(void *arg, const struct vhca_virt_event_data *data);

/* Does the event end a migration into this host, one way or the other? RESUMED does (but for post-copy, whose memory is still
 * coming); a guest that was paused before says SUSPENDED/PAUSED instead; STOPPED ends the attempt. */
bool vhca_virt_ends_incoming(const struct vhca_virt_event_data *data);

/* Starts connecting. uri: "qemu:///system". Never fails for an absent libvirtd. */
int vhca_virt_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
		  struct vhca_virt **ret);
/* Waits at most 2 s for libvirtd. done() of calls still out is called from here, with -ECANCELED "shutting_down" if they were not
 * begun; that of a call that hangs in libvirtd is never called. */
struct vhca_virt *vhca_virt_free(struct vhca_virt *virt);
bool vhca_virt_connected(const struct vhca_virt *virt);

/*
 * ---- asynchronous calls: done() on the state thread, exactly once, not from inside the call ----
 * (but at once, with "too_many_calls", when memory or the strand's queue is exhausted, or while vhca_virt_free() runs). err is
 * never NULL; its kind is VHCA_ERR_NONE on success. Codes of every call: "libvirt_unreachable" (-ENOTCONN), "libvirt_denied",
 * "domain_gone" (-ENOENT), "bad_domain_xml", and "libvirt" for all that agent/virt_error.c does not know.
 */

/* All active domains, parsed. info is borrowed during done(). On failure n = 0 and err says why: never a list with holes. */
typedef void (*vhca_virt_list_fn)(void *arg, int rc, struct vhca_dom_info *const *info,
				  unsigned int n, const struct vhca_error *err);
void vhca_virt_list(struct vhca_virt *virt, vhca_virt_list_fn done, void *arg);

/* Live XML of one domain. NULL info with rc = -ENOENT: not active here. request_err: see
 * vhca_domxml_parse(). */
typedef void (*vhca_virt_info_fn)(void *arg, int rc, const struct vhca_dom_info *info,
				  const struct vhca_error *request_err,
				  const struct vhca_error *err);
void vhca_virt_info(struct vhca_virt *virt, const struct vhca_uuid *uuid, vhca_virt_info_fn done,
		    void *arg);

typedef void (*vhca_virt_done_fn)(void *arg, int rc, const struct vhca_error *err);
/* virDomainAttachDeviceFlags(LIVE). Success also if the alias is already attached with this host address. Codes also:
 * "no_root_port", "vf_in_use", "vf_not_bound", "alias_in_use", "no_passthrough"; "job_held" (retry later). */
void vhca_virt_attach(struct vhca_virt *virt, const struct vhca_uuid *uuid, struct vhca_bdf host,
		      const char *vf_name, const struct vhca_bdf *guest, vhca_virt_done_fn done,
		      void *arg);
/* virDomainDetachDeviceAlias: rc 0 only means that the request was accepted; truth is DEVICE_REMOVED or the live XML.
 * -ENOENT: "no_such_alias" (already gone) or "domain_gone". "guest_busy", "job_held": retry later. */
void vhca_virt_detach(struct vhca_virt *virt, const struct vhca_uuid *uuid, const char *alias,
		      vhca_virt_done_fn done, void *arg);

#endif
