/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_LOOP_STRAND_H
#define VHCA_LOOP_STRAND_H
/*
 * Strands run blocking work off the state thread. A strand is a queue whose jobs run one after the
 * other, in order; two strands never wait for each other (one per PF for sysfs, one per domain for
 * libvirt). A strand owns a thread only while it has work, plus a short idle time; one that hangs
 * in the kernel hangs alone.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/loop/loop.h"

struct vhca_strand;

/* name: copied, at most 31 characters, e.g. "pf 0000:03:00.0". */
int vhca_strand_new(struct vhca_loop *loop, const char *name, struct vhca_strand **ret);

/*
 * Queues a job: work(arg) runs in the strand's thread, then done(arg) on the state thread, exactly
 * once each. arg is the caller's, normally a heap struct with copies in and results out that done()
 * frees; the two never run at the same time. Returns -EAGAIN when VHCA_STRAND_MAX_JOBS are queued,
 * -ESHUTDOWN after free; nothing runs then.
 */
#define VHCA_STRAND_MAX_JOBS 1024
int vhca_strand_submit(struct vhca_strand *strand, void (*work)(void *arg), void (*done)(void *arg),
		       void *arg);

/* When the running job was started (vhca_now_ms() scale), 0 when idle: "busy since". */
uint64_t vhca_strand_busy_since(const struct vhca_strand *strand);

/*
 * Refuses new jobs and waits at most wait_ms for the running one; then calls, from here and in
 * order, the done() that are still due: those of finished jobs not yet delivered, and those of jobs
 * not yet started, whose work() never runs. Returns false if the running job still hangs: its arg
 * is leaked on purpose, its done() never runs, its thread cleans up if it ever comes back. Free all
 * strands before the loop. Accepts NULL.
 */
bool vhca_strand_free(struct vhca_strand *strand, uint32_t wait_ms);

#endif
