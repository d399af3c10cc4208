/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_ERROR_H
#define VHCA_AGENT_LIBVIRT_ERROR_H
/*
 * What an error of libvirt means to us. Its codes are too coarse: INTERNAL_ERROR carries whatever
 * QEMU said, so the text decides there. The texts are those of libvirt 9.0 to 11.3 and QEMU 7.2
 * to 10.0; libvirtd speaks the C locale.
 */
#include <stdbool.h>

#include <libvirt/libvirt.h>

#include "common/base/error.h"

struct virt_class {
	int code;	     /* virErrorNumber; -1 = any */
	const char *text[2]; /* all of them occur in the message; NULL = no condition */
	enum vhca_err kind;
	const char *word; /* vhca_error.code: "domain_gone", "vf_in_use", ..., "libvirt" if we do
			     not know it */
	int errnum;	  /* what the call returns, negated */
	bool retryable;	  /* the same call may work later without anybody changing anything */
	const char *hint; /* NULL = none */
};

/* Never NULL. */
const struct virt_class *virt_classify(int code, const char *message);

/* The last error of this thread says that there is no job to abort. */
bool virt_has_no_job(void);

/* Fills err from the calling thread's last libvirt error; "what: message". Returns the class's
 * -errnum. */
int virt_error(struct vhca_error *err, const char *what);

/* The same for a call on conn: of words that nobody knows, those on a connection that is lost
 * mean that nobody has answered. */
int virt_call_error(struct vhca_error *err, const char *what, virConnectPtr conn);

/* As virt_classify() for an error of virDomainMigrateToURI3, where "cannot connect" speaks
 * of the peer and an unknown domain need not be ours. Never NULL. */
const struct virt_class *virt_classify_migration(int code, const char *message);

/*
 * As virt_error(), for a migration on conn; tells the loss of conn itself from the peer's. Of
 * a hook's refusal it keeps what the hook said.
 */
int virt_migrate_error(struct vhca_error *err, const char *what, virConnectPtr conn);

/*
 * As virt_error(), for virDomainQemuAgentCommand(). Codes also: "guest_agent_refused" (the guest's
 * agent answered with an error), "no_guest_agent" (the domain has no channel for one),
 * "guest_agent_silent" (not connected, or no answer). Part of libvirt's message is the guest's: it
 * is cut, and all but printable ASCII replaced.
 */
int virt_agent_error(struct vhca_error *err, const char *what);

#endif
