/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/qga_call.h"

#include "agent/libvirt/call.h"
#include "agent/libvirt/error.h"
#include "agent/libvirt/session.h"
#include "common/base/cleanup.h"
#include "common/base/role.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <libvirt/libvirt-qemu.h>

#define ANSWER_SECONDS 5

static int ask_guest(virDomainPtr dom, const struct vhca_qga_ask *ask, struct vhca_qga_answer *ret,
		     struct vhca_error *err)
{
	VHCA_AUTO_FREE char *command = vhca_qga_command(ask);
	VHCA_AUTO_FREE char *answer = NULL;
	char what[128];
	int r;

	if (!command)
		return vhca_error_no_memory(err, "guest agent");
	/* Before the call: every function of libvirt forgets the last error, even this one. */
	(void)snprintf(what, sizeof(what), "%.60s", virDomainGetName(dom));
	answer = virDomainQemuAgentCommand(dom, command, ANSWER_SECONDS, 0);
	if (!answer)
		return vhca_virt_agent_error(err, what);
	r = vhca_qga_read(ask, answer, ret, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", what);
	return r;
}

int vhca_virt_call_qga(const char *uri, const struct vhca_uuid *uuid,
		       const struct vhca_qga_ask *ask, struct vhca_qga_answer *ret,
		       struct vhca_error *err)
{
	VHCA_AUTO_CONNECTION conn = NULL;
	VHCA_AUTO_DOMAIN dom = NULL;
	int r;

	vhca_may_block("libvirt: guest agent");
	r = vhca_virt_connect(uri, &conn, err);
	if (r == 0)
		r = vhca_virt_call_lookup(conn, uuid, &dom, err);
	return r < 0 ? r : ask_guest(dom, ask, ret, err);
}
