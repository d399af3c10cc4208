/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_QGA_H
#define VHCA_AGENT_LIBVIRT_QGA_H
/*
 * What the QEMU guest agent of a domain is told, and what it answers: pure text. The answers are a
 * tenant's: bounded, strictly read, and never repeated. Why the slot is powered off, and not the
 * device removed: docs/design/0011-unresponsive-guests.md.
 */
#include "agent/state/domain_info.h"
#include "agent/state/guest_answer.h"

#define VHCA_QGA_ANSWER_MAX 4096 /* ours take 100 bytes */

/*
 * Begin to take the device at path from the guest (pid 0), or tell how far the program is that does
 * so.
 */
struct vhca_qga_ask {
	uint64_t pid;
	struct vhca_dom_path path;
};

/* The command as JSON; caller frees it. NULL: out of memory, or path.n is 0 or beyond its limit. */
char *vhca_qga_command(const struct vhca_qga_ask *ask);

/*
 * Reads libvirt's answer to that command; *ret is written only on success. Errors:
 * "bad_guest_answer".
 */
int vhca_qga_read(const struct vhca_qga_ask *ask, const char *answer, struct vhca_qga_answer *ret,
		  struct vhca_error *err);

#endif
