/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_HOST_MEMORY_H
#define VHCA_AGENT_HOST_MEMORY_H
/*
 * How much memory this host has for a guest that is to come, read on a worker: /proc/meminfo, or
 * the kernel's pool of huge pages.
 */
#include "agent/state/guest_memory.h"
#include "common/loop/strand.h"
#include "common/sysfs/sysfs.h"

struct vhca_host_memory;

/* sys and meminfo (a path; NULL = the kernel's) are borrowed. */
int vhca_host_memory_new(struct vhca_loop *loop, struct vhca_sysfs *sys, const char *meminfo,
			 struct vhca_host_memory **ret);
/*
 * Who still waits is told VHCA_ERR_UNAVAILABLE "shutting_down" from here. Accepts NULL, returns
 * NULL.
 */
struct vhca_host_memory *vhca_host_memory_free(struct vhca_host_memory *hm);

/* Called exactly once, never from inside vhca_host_memory_ask(); err is NULL on success. */
typedef void (*vhca_host_memory_fn)(void *arg, const struct vhca_memory_room *room,
				    const struct vhca_error *err);
/* What there is of the guest's kind of pages. A negative errno: fn is not called. */
int vhca_host_memory_ask(struct vhca_host_memory *hm, const struct vhca_guest_memory *guest,
			 vhca_host_memory_fn fn, void *arg);

/*
 * The same at once (blocking). Huge pages that are promised to somebody already do not count; those
 * that the kernel may make when they are asked for do.
 */
int vhca_host_memory_read(struct vhca_sysfs *sys, const char *meminfo,
			  const struct vhca_guest_memory *guest, struct vhca_memory_room *ret,
			  struct vhca_error *err);

#endif
