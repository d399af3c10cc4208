/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes two locks in one order, and then in the other: the next run may stand still there. */
#include <pthread.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;

static void *back(void *arg)
{
	(void)pthread_mutex_lock(&b);
	(void)pthread_mutex_lock(&a);
	(void)pthread_mutex_unlock(&a);
	(void)pthread_mutex_unlock(&b);
	return arg;
}

int main(void)
{
	pthread_t thread;

	(void)pthread_mutex_lock(&a);
	(void)pthread_mutex_lock(&b);
	(void)pthread_mutex_unlock(&b);
	(void)pthread_mutex_unlock(&a);
	return pthread_create(&thread, NULL, back, NULL) || pthread_join(thread, NULL);
}
