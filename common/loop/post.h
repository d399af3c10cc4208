/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_LOOP_POST_H
#define VHCA_LOOP_POST_H
/*
 * The allocation-free form of vhca_loop_post(), for results that must not get lost: the node is
 * part of the caller's job, so that handing the result over cannot fail.
 */
#include <stdbool.h>

#include "common/loop/loop.h"

struct vhca_post {
	struct vhca_post *next; /* the loop's */
	const char *
		name; /* for diagnostics, NULL = the address of fn; must live as long as the node */
	void (*fn)(void *arg); /* runs on the loop thread; may free the node */
	void *arg;
	void (*drop)(void *arg); /* instead of fn when the loop is freed first; may be NULL */
};

/* Queues the node from any thread. It belongs to the loop until fn or drop is called. */
void vhca_loop_post_node(struct vhca_loop *loop, struct vhca_post *post);
/* Takes a node back: false if it is not queued (any more). On the loop thread only; linear in the
 * length of the queue. */
bool vhca_loop_unpost(struct vhca_loop *loop, const struct vhca_post *post);

#endif
