/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_LOOP_THREAD_H
#define VHCA_LOOP_THREAD_H
#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Starts a thread with all signals blocked, so that signals reach the loop only. name is cut to 15
 * characters. ret NULL = detached. Returns 0 or a negative errno. */
int vhca_thread_start(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg);

/* Initialises a condition variable on CLOCK_MONOTONIC, so that a step of the wall clock wakes and
 * delays nobody. */
int vhca_cond_init(pthread_cond_t *cond);
/* That clock, ms from now, for pthread_cond_timedwait(). */
struct timespec vhca_cond_deadline(uint32_t ms);

#endif
