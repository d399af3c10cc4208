/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_DISK_H
#define VHCA_OPENSM_DISK_H
/*
 * A thread that waits for the disk instead of the plugin's own, which waits for it and serves what
 * needs no disk meanwhile. Nothing else is done at the same time: who has a file written goes on
 * when it is.
 */
#include <pthread.h>
#include <stdbool.h>

#include "common/base/file.h"

struct vhca_osm_disk {
	pthread_t thread;
	pthread_mutex_t lock; /* what is below */
	pthread_cond_t asked;
	vhca_disk_fn fn; /* NULL = nothing to do */
	void *arg;
	int result;
	bool stop;
	int done_fd; /* an eventfd: readable when fn has returned */
	/* Returns when done_fd is readable. */
	void (*meanwhile)(void *ctx, int done_fd);
	void *ctx;
};

/* In the thread that has files written, which is the only one: 0 or -errno (all as without it). */
int vhca_osm_disk_open(struct vhca_osm_disk *d, void (*meanwhile)(void *ctx, int done_fd),
		       void *ctx);
/* In the same. Does nothing if it was not opened. */
void vhca_osm_disk_close(struct vhca_osm_disk *d);

#endif
