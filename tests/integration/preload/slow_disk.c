/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded into OpenSM: as long as there is a file that $VHCA_SLOW_DISK names, each fsync() takes
 * as many milliseconds as stand in it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long delay_ms(void)
{
	const char *path = getenv("VHCA_SLOW_DISK");
	FILE *f = path ? fopen(path, "re") : NULL;
	char text[16] = "";

	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	(void)fclose(f);
	return strtol(text, NULL, 10);
}

int fsync(int fd)
{
	int (*next)(int) = NULL;
	long ms = delay_ms();
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	*(void **)&next = dlsym(RTLD_NEXT, "fsync");
	(void)nanosleep(&t, NULL);
	return next(fd);
}
