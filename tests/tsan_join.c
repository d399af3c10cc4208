/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gcc 12's thread sanitizer does not know pthread_clockjoin_np(): the thread stays open in its
 * books, and it ends the program when the kernel gives the same id once more. In programs that are
 * built with it this stands in front, and joins by a function that it knows.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

static const struct timespec step = {.tv_nsec = 1000000};

static int is_over(clockid_t clock, const struct timespec *until)
{
	struct timespec now;

	return clock_gettime(clock, &now) < 0 || now.tv_sec > until->tv_sec ||
	       (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

int pthread_clockjoin_np(pthread_t thread, void **ret, clockid_t clock,
			 const struct timespec *until)
{
	int r;

	while ((r = pthread_tryjoin_np(thread, ret)) == EBUSY) {
		if (is_over(clock, until))
			return ETIMEDOUT;
		(void)nanosleep(&step, NULL);
	}
	return r;
}
