/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_LOOP_LOOP_PRIVATE_H
#define VHCA_LOOP_LOOP_PRIVATE_H
/* What the files of this folder share about the loop. */
#include <pthread.h>
#include <stdint.h>

#include "common/loop/loop.h"
#include "common/loop/post.h"

struct sd_event_source;
struct signal_source;

struct vhca_loop {
	struct sd_event *event;
	/* State thread only; slow: beyond VHCA_LOOP_WARN_US. */
	uint64_t max_callback_us, slow_callbacks;
	struct signal_source *signals;

	int post_fd; /* eventfd, readable exactly while the queue is not empty */
	struct sd_event_source *post_source;
	pthread_mutex_t lock; /* guards the queue and post_fd's counter */
	struct vhca_post *head, **tail;
};

/* budget.c: CPU time of the calling thread. Not wall time: on a busy host a callback is not slow
 * because it had to wait. */
uint64_t vhca_loop_cpu_us(void);
/* Accounts a callback that used us of CPU time; warns with its name when that was too much. */
void vhca_loop_account(struct vhca_loop *loop, const char *name, uint64_t us);
/* The budget of one callback: above it other users of the state thread, such as the qemu hook,
 * would notice. */
#define VHCA_LOOP_WARN_US 50000
/* post.c: readies the queue of posts, and drops what is still queued. */
int vhca_loop_init_posts(struct vhca_loop *loop);
void vhca_loop_drop_posts(struct vhca_loop *loop);
/* source.c: frees the callbacks of vhca_loop_on_signal(). */
void vhca_loop_free_signals(struct vhca_loop *loop);

#endif
