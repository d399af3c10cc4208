/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_CPUS_H
#define VHCA_BASE_CPUS_H
/* Sets of the host's CPUs. */
#include <stdbool.h>
#include <stdint.h>

#define VHCA_CPUS_MAX 8192 /* Linux: NR_CPUS of the largest kernels */

struct vhca_cpus {
	uint64_t bits[VHCA_CPUS_MAX / 64];
};

/*
 * "0-3,8" as the kernel and libvirt write it; "^2" takes out again what stands before it
 * (libvirt's). "" is none. -EINVAL or -ERANGE leaves *ret alone.
 */
int vhca_cpus_parse(const char *text, struct vhca_cpus *ret);
void vhca_cpus_join(struct vhca_cpus *set, const struct vhca_cpus *more);
bool vhca_cpus_is_empty(const struct vhca_cpus *set);
/* All CPUs of set are among those of whole. */
bool vhca_cpus_are_within(const struct vhca_cpus *set, const struct vhca_cpus *whole);

#endif
