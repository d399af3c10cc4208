/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_HOST_HOST_H
#define VHCA_AGENT_HOST_HOST_H
/*
 * The hardware side of the engine: udev says that something changed, a scan on its own strand reads
 * the inventory, one strand per PF enables VFs and carries out effects, libibverbs watches the
 * ports. Nothing here decides: results go to the engine.
 */
#include "agent/vf/engine.h"
#include "common/loop/strand.h"

struct vhca_host;

struct vhca_host_args {
	struct vhca_loop *loop;
	struct vhca_sysfs *sys; /* borrowed */
	const char *dev_root;	/* "/dev", or a test directory */
	struct vhca_engine *engine;
	uint32_t poll_ms;
	bool watch; /* udev monitor and verbs; tests of the engine do without */
};

/* Starts watching and asks for the first scan. */
int vhca_host_new(const struct vhca_host_args *args, struct vhca_host **ret,
		  struct vhca_error *err);
/* Waits a bounded time for running jobs. Accepts NULL, returns NULL. */
struct vhca_host *vhca_host_free(struct vhca_host *host);

/* Reads the inventory soon (bursts of events are one scan). */
void vhca_host_rescan(struct vhca_host *host);
/* Starts one of PROBE, PREPARE, PROGRAM, READ, KICK, SCRUB for the VF. */
void vhca_host_effect(struct vhca_host *host, struct vhca_vf *vf, enum vhca_effect effect);
/* Since when the PF's strand has been busy with one job; 0 = idle (vhca_now_ms() scale). */
uint64_t vhca_host_busy_since(const struct vhca_host *host, struct vhca_bdf pf);

#endif
