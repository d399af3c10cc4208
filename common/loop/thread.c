// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/loop/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"

struct start {
	char name[16]; /* the kernel's limit, TASK_COMM_LEN */
	void *(*fn)(void *arg);
	void *arg;
};

static void *named_thread(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	(void)pthread_setname_np(pthread_self(), start.name); /* only a help for ps and gdb */
	return start.fn(start.arg);
}

static int create_quiet(pthread_t *ret, const pthread_attr_t *attr, struct start *start)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (r != 0)
		return -r;
	r = pthread_create(ret, attr, named_thread, start);
	(void)pthread_sigmask(SIG_SETMASK, &old,
			      NULL); /* cannot fail with a mask it returned itself */
	return -r;
}

int vhca_thread_start(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg)
{
	VHCA_AUTO_FREE struct start *start = NULL;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	start = malloc(sizeof(*start));
	if (!start)
		return -ENOMEM;
	*start = (struct start){.fn = fn, .arg = arg};
	(void)snprintf(start->name, sizeof(start->name), "%s", name);
	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	if (!ret)
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = create_quiet(ret ? ret : &thread, &attr, start);
	(void)pthread_attr_destroy(&attr);
	if (r == 0)
		(void)vhca_steal_ptr(&start); /* the thread's */
	return r;
}
