/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded into OpenSM: while there is a file that $VHCA_SLOW_LOCK names, OpenSM keeps its lock
 * for as many milliseconds as stand there when it has taken it next to change its tables; once, as
 * in a computation of ways through a large fabric.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool is_of_opensm(void *caller)
{
	Dl_info info;

	return dladdr(caller, &info) && info.dli_fname && !strstr(info.dli_fname, ".so");
}

static long take_delay_ms(void)
{
	const char *path = getenv("VHCA_SLOW_LOCK");
	FILE *f = path ? fopen(path, "re") : NULL;
	char text[16] = "";

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	(void)fclose(f);
	return unlink(path) == 0 ? strtol(text, NULL, 10) : 0;
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	int (*next)(pthread_rwlock_t * lock) = NULL;
	struct timespec t;
	long ms = 0;
	int r;

	*(void **)&next = dlsym(RTLD_NEXT, "pthread_rwlock_wrlock");
	r = next(lock);
	if (r == 0 && is_of_opensm(__builtin_return_address(0)))
		ms = take_delay_ms();
	t = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	(void)nanosleep(&t, NULL);
	return r;
}
