/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_VIRT_H
#define VHCA_AGENT_LIBVIRT_VIRT_H
/*
 * libvirt, off the state thread. libvirt's own event loop runs in a thread that only copies events
 * and posts them; calls run on strands, up to four per domain. Two connections: one for events and
 * queries, one for attach and detach; each migration has one of its own. The connection is
 * re-opened with back-off (0.5 s .. 10 s); after each (re)connect the owner gets
 * VHCA_VIRT_CONNECTED and must reconcile: events of the gap are lost.
 */
#include "agent/libvirt/domxml.h"
#include "agent/libvirt/qga.h"
#include "common/base/error.h"
#include "common/loop/loop.h"
#include "conf/conf.h"

struct vhca_virt;

enum vhca_virt_event {
	VHCA_VIRT_CONNECTED,
	VHCA_VIRT_DISCONNECTED,
	VHCA_VIRT_STARTED,	    /* lifecycle STARTED, any detail but MIGRATED */
	VHCA_VIRT_STARTED_MIGRATED, /* incoming migration: guest not running here yet */
	VHCA_VIRT_RESUMED,	    /* detail in `detail` (virDomainEventResumedDetailType) */
	VHCA_VIRT_RESUMED_MIGRATED, /* incoming migration: the guest runs here, and nowhere else */
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
	uint64_t at_us; /* libvirt told it then (vhca_now_us()) */
};
typedef void (*vhca_virt_event_fn)(void *arg, const struct vhca_virt_event_data *data);

/* Starts connecting. uri: "qemu:///system". Never fails for an absent libvirtd. */
int vhca_virt_new(struct vhca_loop *loop, const char *uri, vhca_virt_event_fn fn, void *arg,
		  struct vhca_virt **ret);
/*
 * Waits at most 2 s for libvirtd. done() of calls still out is called from here, with -ECANCELED
 * "shutting_down" if they were not begun; that of a call that hangs in libvirtd is never called. A
 * migration under way is such a call: libvirtd goes on with it without us, and vhca_virt_job() of
 * the next life tells how far it is.
 */
struct vhca_virt *vhca_virt_free(struct vhca_virt *virt);
bool vhca_virt_connected(const struct vhca_virt *virt);

/*
 * ---- asynchronous calls: done() on the state thread, exactly once, not from inside the call ----
 * (but at once, with "too_many_calls", when memory or the strand's queue is exhausted, or while
 * vhca_virt_free() runs). err is never NULL; its kind is VHCA_ERR_NONE on success. Codes of every
 * call: "libvirt_unreachable" (-ENOTCONN), "libvirt_denied", "domain_gone" (-ENOENT),
 * "bad_domain_xml", and "libvirt" for all that agent/libvirt/error.c does not know.
 */

/* All active domains, parsed, or with the reason why they could not be (info->unreadable). info
 * is borrowed during done(). On failure n = 0 and err says why: never a list with holes. */
typedef void (*vhca_virt_list_fn)(void *arg, int rc, struct vhca_dom_info *const *info,
				  unsigned int n, const struct vhca_error *err);
void vhca_virt_list(struct vhca_virt *virt, vhca_virt_list_fn done, void *arg);

/* Live XML of one domain, which may be unreadable. NULL info with rc = -ENOENT: not active here;
 * -ESRCH: nor defined. request_err: see vhca_domxml_parse(). */
typedef void (*vhca_virt_info_fn)(void *arg, int rc, const struct vhca_dom_info *info,
				  const struct vhca_error *request_err,
				  const struct vhca_error *err);
void vhca_virt_info(struct vhca_virt *virt, const struct vhca_uuid *uuid, vhca_virt_info_fn done,
		    void *arg);

typedef void (*vhca_virt_done_fn)(void *arg, int rc, const struct vhca_error *err);
/*
 * Inside done() of an attach or a migration: when libvirt's own function was called
 * (vhca_now_us()); 0 = it was not.
 */
uint64_t vhca_virt_called_us(const struct vhca_virt *virt);
/* Inside done() of a check that measures. */
struct vhca_virt_dirty {
	bool is_known;
	uint64_t mib; /* MiB/s that the guest writes */
};
struct vhca_virt_dirty vhca_virt_dirty(const struct vhca_virt *virt);
/*
 * virDomainAttachDeviceFlags(LIVE). Success also if the alias is already attached with this host
 * address. Codes also: "no_root_port", "vf_in_use", "vf_not_bound", "alias_in_use",
 * "no_passthrough"; "job_held" (retry later).
 */
void vhca_virt_attach(struct vhca_virt *virt, const struct vhca_uuid *uuid, struct vhca_bdf host,
		      const char *vf_name, const struct vhca_bdf *guest, vhca_virt_done_fn done,
		      void *arg);
/*
 * virDomainDetachDeviceAlias: rc 0 only means that the request was accepted; truth is
 * DEVICE_REMOVED or the live XML. -ENOENT: "no_such_alias" (already gone) or "domain_gone".
 * "guest_busy", "job_held": retry later.
 */
void vhca_virt_detach(struct vhca_virt *virt, const struct vhca_uuid *uuid, const char *alias,
		      vhca_virt_done_fn done, void *arg);

/*
 * virDomainQemuAgentCommand: begins a program in the guest, or asks how far it is
 * (agent/libvirt/qga.h). Bounded to some 10 s. Its answer is the guest's and proves nothing. Codes
 * also: "no_guest_agent", "guest_agent_silent", "guest_agent_refused", "bad_guest_answer". answer
 * is never NULL, and counts when rc is 0.
 */
typedef void (*vhca_virt_qga_fn)(void *arg, int rc, const struct vhca_qga_answer *answer,
				 const struct vhca_error *err);
void vhca_virt_qga(struct vhca_virt *virt, const struct vhca_uuid *uuid,
		   const struct vhca_qga_ask *ask, vhca_virt_qga_fn done, void *arg);

/*
 * ---- migration ----
 * Calls for one domain do not wait for each other across: attach, detach, marker | migrate | job,
 * abort | guest agent.
 */

/* virDomainMigrateToURI3, peer to peer and live; PERSIST_DEST | UNDEFINE_SOURCE exactly if the
 * domain is persistent here. dest_uri: the peer's libvirtd as this host's libvirtd reaches it;
 * migrate_uri: where the memory goes ("tcp://192.168.77.2"), NULL or "" = libvirt chooses. how:
 * its time-out is the caller's matter (vhca_virt_abort_job()). done(): 0 = the guest runs (or is
 * paused as before) at the destination and is gone here. Codes also: "migration_failed",
 * "migration_cancelled" (-ECANCELED), "hook_refused" (-EACCES; with the hook's words),
 * "peer_unreachable" (-EHOSTUNREACH), "job_held", "bad_uri". After a failure the guest mostly
 * runs on here, but not surely ("libvirt_unreachable": libvirtd may even go on): ask
 * vhca_virt_job() before deciding anything. */
void vhca_virt_migrate(struct vhca_virt *virt, const struct vhca_uuid *uuid, const char *dest_uri,
		       const char *migrate_uri, const struct vhca_conf_copy *how,
		       vhca_virt_done_fn done, void *arg);

/* Whether libvirt would copy the domain to another host, once `ours` (host addresses of VFs,
 * VHCA_DOM_VFS_MAX at most) have left it. Changes nothing. measures: and how much the guest writes
 * (vhca_virt_dirty()), which takes a second, and is waited for for 10 s at most. Codes also:
 * "job_held", "has_snapshots", "foreign_hostdev", "block_job", "disk_not_shared",
 * "not_migratable". */
void vhca_virt_check(struct vhca_virt *virt, const struct vhca_uuid *uuid,
		     const struct vhca_bdf *ours, unsigned int n_ours, bool measures,
		     vhca_virt_done_fn done, void *arg);

/*
 * One is coming soon: connects for it ahead. Not any more: closes that again, if no migration has
 * taken it.
 */
void vhca_virt_expect_migration(struct vhca_virt *virt, const struct vhca_uuid *uuid,
				bool expected);

/*
 * virDomainAbortJob. -ENOENT no such domain; success also if there is no job: a migration that
 * libvirtd has not begun yet is not caught, so repeat it until the migration's done().
 * "not_abortable": too late, or not ours to abort (an incoming one).
 */
void vhca_virt_abort_job(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			 vhca_virt_done_fn done, void *arg);

/*
 * Where the domain stands, for recovery and progress. The figures are of the memory copy, 0 without
 * one.
 */
struct vhca_virt_job {
	bool active;
	bool migrating_out;
	bool held;	   /* paused by libvirt for a migration whose end it does not know */
	int state, reason; /* virDomainState, its reason */
	uint64_t total_bytes, processed_bytes, remaining_bytes;
};
/* active = false with rc 0: not active here. job is never NULL. */
typedef void (*vhca_virt_job_fn)(void *arg, int rc, const struct vhca_virt_job *job,
				 const struct vhca_error *err);
void vhca_virt_job(struct vhca_virt *virt, const struct vhca_uuid *uuid, vhca_virt_job_fn done,
		   void *arg);

/*
 * The marker that travels with the guest, in its live metadata: <vhca:away
 * xmlns:vhca="urn:vhcad:away:1" migration="ID"/>. migration NULL removes it (success if there is
 * none). autostart: it says autostart="yes" if libvirt starts the domain with the host; when it is
 * removed, libvirt is told to do so.
 */
void vhca_virt_set_marker(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			  const struct vhca_uuid *migration, bool autostart, vhca_virt_done_fn done,
			  void *arg);

/* The domain does not start with the host any more; success also if it never did. */
void vhca_virt_no_start(struct vhca_virt *virt, const struct vhca_uuid *uuid,
			vhca_virt_done_fn done, void *arg);

#endif
