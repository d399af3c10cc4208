/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_COND_H
#define VHCA_BASE_COND_H
#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Initialises a condition variable on CLOCK_MONOTONIC, so that a step of the wall clock wakes and
 * delays nobody. Returns 0 or a negative errno. */
int vhca_cond_init(pthread_cond_t *cond);
/* That clock, ms from now, for pthread_cond_timedwait(). */
struct timespec vhca_cond_deadline(uint32_t ms);

#endif
