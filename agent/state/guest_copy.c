/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/guest_copy.h"

/* QEMU's downtime-limit: what can be sent in so long is sent while the guest stands still. */
#define DOWNTIME_S 0.3
/* After so many passes it is no matter of time any more. */
#define PASSES_MAX 200

/*
 * Pages that are written to again count once, so of the memory M a guest that writes to R MiB/s has
 * written to M(1 - exp(-Rt/M)) after t. R is what makes that the dirty rate for a second. Both by
 * Pade approximants: x is below 1 in a pass of a copy that ends, and the part less than 0.1 % off.
 */
uint64_t vhca_guest_copy_ms(const struct vhca_guest_copy *copy)
{
	double memory = (double)copy->memory_kib / 1024, bandwidth = (double)copy->bandwidth_mib;
	double dirty = copy->dirty_is_known ? (double)copy->dirty_mib / memory : 0;
	double rate, left = memory, sent = 0;

	if (dirty > 1)
		dirty = 1;
	rate = memory * dirty * (6 - dirty) / (6 - 4 * dirty);
	if (rate >= bandwidth)
		return VHCA_COPY_NEVER;
	for (unsigned int pass = 0; pass < PASSES_MAX && left > bandwidth * DOWNTIME_S; pass++) {
		double x = rate * left / bandwidth / memory;

		sent += left;
		left = memory * x / (1 + x / 2 + x * x / 12);
	}
	return (uint64_t)((sent + left) / bandwidth * 1000);
}
