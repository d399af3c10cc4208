/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks whether a strand is busy while it begins and ends a job. */
#include <stdio.h>
#include <time.h>

#include "common/loop/loop.h"
#include "common/loop/strand.h"

static void work(void *arg)
{
	(void)arg;
	(void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void done(void *arg)
{
	*(bool *)arg = true;
}

int main(void)
{
	struct vhca_strand *strand = NULL;
	struct vhca_loop *loop = NULL;
	unsigned int busy = 0;
	bool over = false;

	if (vhca_loop_new(&loop) < 0 || vhca_strand_new(loop, "planted", &strand) < 0 ||
	    vhca_strand_submit(strand, work, done, &over) < 0)
		return 2;
	while (!over) {
		busy += vhca_strand_busy_since(strand) != 0;
		(void)vhca_loop_once(loop, 1);
	}
	(void)vhca_strand_free(strand, 1000);
	vhca_loop_free(loop);
	printf("seen at work %s\n", busy ? "yes" : "no");
	return 0;
}
