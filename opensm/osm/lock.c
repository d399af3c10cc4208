/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/lock.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <complib/cl_passivelock.h>
#include <opensm/osm_opensm.h>

#define MEANWHILE_NS 5000000

typedef int (*timed_fn)(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until);

static _Thread_local struct {
	void (*fn)(void *ctx);
	void *ctx;
} meanwhile;

/* The thread sanitizer of gcc 12 has to be told of these, else all that they guard is a race. */
#ifdef __SANITIZE_THREAD__
extern void AnnotateRWLockAcquired(const char *file, int line, const volatile void *lock,
				   long is_exclusive);
#define TELL_SANITIZER(lock, is_exclusive) \
	AnnotateRWLockAcquired(__FILE__, __LINE__, lock, is_exclusive)
#else
#define TELL_SANITIZER(lock, is_exclusive)
#endif

/* Not by trying now and then: who is in the queue gets it when it is free, also from readers that
 * take turns. */
static void wait_for(struct osm_opensm *osm, timed_fn lock)
{
	struct timespec until;

	for (;;) {
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += MEANWHILE_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (lock(&osm->lock.lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
			break;
		meanwhile.fn(meanwhile.ctx);
	}
	TELL_SANITIZER(&osm->lock.lock, lock == pthread_rwlock_clockwrlock);
}

void vhca_osm_lock_shared(struct osm_opensm *osm)
{
	if (meanwhile.fn)
		wait_for(osm, pthread_rwlock_clockrdlock);
	else
		cl_plock_acquire(&osm->lock);
}

void vhca_osm_lock_exclusive(struct osm_opensm *osm)
{
	if (meanwhile.fn)
		wait_for(osm, pthread_rwlock_clockwrlock);
	else
		cl_plock_excl_acquire(&osm->lock);
}

bool vhca_osm_lock_try_shared(struct osm_opensm *osm)
{
	return pthread_rwlock_tryrdlock(&osm->lock.lock) == 0;
}

void vhca_osm_unlock(struct osm_opensm *osm)
{
	cl_plock_release(&osm->lock);
}

void vhca_osm_lock_meanwhile(void (*fn)(void *ctx), void *ctx)
{
	meanwhile.fn = fn;
	meanwhile.ctx = ctx;
}
