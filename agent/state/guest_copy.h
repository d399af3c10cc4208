/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_GUEST_COPY_H
#define VHCA_AGENT_STATE_GUEST_COPY_H
/*
 * How long libvirt will take to copy a guest: the time that it would be without its VFs, but for
 * what the agents do, and what the destination needs to pin its memory
 * (agent/state/guest_memory.h).
 */
#include <stdbool.h>
#include <stdint.h>

#define VHCA_COPY_NEVER UINT64_MAX

/* MiB/s. */
struct vhca_guest_copy {
	uint64_t memory_kib;
	uint64_t bandwidth_mib; /* not 0 */
	bool dirty_is_known;
	uint64_t dirty_mib; /* that the guest writes, each page counted once in a second */
};

/*
 * In ms. VHCA_COPY_NEVER: the guest writes faster than it is copied. Unless dirty_is_known it is
 * the time of the first pass: nobody can be copied in less, but for pages of zeros.
 */
uint64_t vhca_guest_copy_ms(const struct vhca_guest_copy *copy);

#endif
