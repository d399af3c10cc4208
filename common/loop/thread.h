/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_LOOP_THREAD_H
#define VHCA_LOOP_THREAD_H
#include <pthread.h>

/* Starts a thread with all signals blocked, so that signals reach the loop only. name is cut to 15
 * characters. ret NULL = detached. Returns 0 or a negative errno. */
int vhca_thread_start(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg);

#endif
