/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_VIRT_HOST_H
#define VHCA_TESTS_VIRT_HOST_H
/*
 * One of several hosts on this machine, as far as libvirt is concerned: a libvirtd that takes
 * itself for another host, the adapter connected to it, an operator, and a guest that can be
 * migrated to the next. Needs a sandbox (sandbox.h), because the guests are no children of ours.
 * Failures fail the running test.
 */
#include <libvirt/libvirt.h>

#include "agent/libvirt/virt.h"
#include "tests/integration/libvirtd.h"

#define VIRT_HOST_QEMU	  "/usr/bin/qemu-system-x86_64"
#define VIRT_HOST_GUEST	  "6b3e0f5c-1111-4222-8333-0123456789ab" /* its UUID; its name is vm1 */
#define VIRT_HOST_WAIT_MS 60000

struct virt_host {
	struct libvirtd daemon;
	char uri[192];
	struct vhca_loop *loop;
	struct vhca_virt *virt;
	virConnectPtr conn; /* the operator's */
	unsigned int n_events;
	struct vhca_virt_event_data events[64];
};

/* Returns when the adapter is connected. */
void virt_host_open(struct virt_host *host, struct vhca_loop *loop, const char *host_uuid);
void virt_host_close(struct virt_host *host);

/* SIGKILL; guests go on. */
void virt_host_lose_libvirtd(struct virt_host *host);
void virt_host_restart_libvirtd(struct virt_host *host);
void virt_host_wait_event(const struct virt_host *host, enum vhca_virt_event event, int detail);

/* The hook refuses incoming guests, in these words. NULL: it does not. It keeps what it reads. */
void virt_host_refuse(const struct virt_host *host, const char *words);
/* It lets an incoming guest wait until it is told otherwise. */
void virt_host_hook_waits(const struct virt_host *host, bool waits);
/* The domain XML that the hook got last for an operation; the caller frees it. */
char *virt_host_hook_input(const struct virt_host *host, const char *operation);

/* A 1 MiB image in the host's directory, which no other host has; its path in buf. */
void virt_host_make_image(const struct virt_host *host, const char *name, char buf[static 128]);
/* A guest with 32 MiB of memory in use, and with these devices. Returns when it has filled it. */
void virt_host_start_with(const struct virt_host *host, bool persistent, const char *devices);
void virt_host_start_guest(const struct virt_host *host, bool persistent);
virDomainPtr virt_host_find_guest(const struct virt_host *host); /* NULL: not here */
void virt_host_remove_guest(const struct virt_host *host);
/* At 1 MiB/s the copy takes half a minute. */
void virt_host_limit_copy(const struct virt_host *host, unsigned long mib_per_s);

#endif
