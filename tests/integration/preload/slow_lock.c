/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded into OpenSM, whose lock is kept by somebody, as in a computation of ways through a
 * large fabric, for as long as there is a file $VHCA_SLOW_LOCK.held. Another one asks for that,
 * which is renamed to it when he has the lock:
 *
 * $VHCA_SLOW_LOCK.opensm: OpenSM has taken it to change its tables, the next time that it does so.
 * $VHCA_SLOW_LOCK.before: somebody takes it before the plugin's threads do so the next time, shared
 * or exclusively, when they have done it as many times as stand there.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 1000000

typedef int (*lock_fn)(pthread_rwlock_t *lock);
typedef int (*timed_fn)(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until);

static const char *path_of(const char *end, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s%s", getenv("VHCA_SLOW_LOCK"), end);
	return buf;
}

/* NULL = unknown. */
static const char *object_of(const void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) ? info.dli_fname : NULL;
}

static void wait_while_there(const char *path)
{
	while (access(path, F_OK) == 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

/* The lock is held. */
static void keep(const char *asked)
{
	char path[256], held[256];

	if (rename(path_of(asked, path, sizeof(path)), path_of(".held", held, sizeof(held))) == 0)
		wait_while_there(held);
}

/* ---- before the plugin ---- */

static void *take(void *lock)
{
	lock_fn next;

	*(void **)&next = dlsym(RTLD_NEXT, "pthread_rwlock_wrlock");
	(void)next(lock);
	keep(".before");
	(void)pthread_rwlock_unlock(lock);
	return NULL;
}

/* They block all signals, OpenSM's own threads only those that it handles. */
static bool is_plugins_thread(void)
{
	sigset_t blocked;

	return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGURG);
}

/* False if it is not this one before which it is taken. */
static bool count_down(void)
{
	char path[256];
	FILE *f = fopen(path_of(".before", path, sizeof(path)), "r+e");
	long left = -1;

	if (!f)
		return false;
	if (fscanf(f, "%ld", &left) == 1 && left > 0) {
		rewind(f);
		(void)fprintf(f, "%4ld", left - 1);
	}
	(void)fclose(f);
	return left == 0;
}

static void before_plugin(pthread_rwlock_t *lock)
{
	pthread_t thread;
	char path[256];

	if (!is_plugins_thread() || !count_down() || pthread_create(&thread, NULL, take, lock) != 0)
		return;
	(void)pthread_detach(thread);
	wait_while_there(path_of(".before", path, sizeof(path)));
}

/* ---- the calls ---- */

static bool is_opensms(const void *caller)
{
	const char *object = object_of(caller);

	return object && !strstr(object, ".so");
}

static bool is_of_both(const void *caller)
{
	const char *object = object_of(caller);

	return object && (!strstr(object, ".so") || strstr(object, "libvhcasm.so"));
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	const void *caller = __builtin_return_address(0);
	lock_fn next;
	int r;

	*(void **)&next = dlsym(RTLD_NEXT, "pthread_rwlock_wrlock");
	if (is_of_both(caller))
		before_plugin(lock);
	r = next(lock);
	if (r == 0 && is_opensms(caller))
		keep(".opensm");
	return r;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	lock_fn next;

	*(void **)&next = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
	if (is_of_both(__builtin_return_address(0)))
		before_plugin(lock);
	return next(lock);
}

static int take_timed(const char *name, const void *caller, pthread_rwlock_t *lock, clockid_t clock,
		      const struct timespec *until)
{
	timed_fn next;

	*(void **)&next = dlsym(RTLD_NEXT, name);
	if (is_of_both(caller))
		before_plugin(lock);
	return next(lock, clock, until);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock,
			       const struct timespec *until)
{
	return take_timed("pthread_rwlock_clockwrlock", __builtin_return_address(0), lock, clock,
			  until);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock,
			       const struct timespec *until)
{
	return take_timed("pthread_rwlock_clockrdlock", __builtin_return_address(0), lock, clock,
			  until);
}
