// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <time.h>

#include "common/base/log.h"
#include "common/loop/loop_private.h"

uint64_t vhca_loop_cpu_us(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void vhca_loop_account(struct vhca_loop *loop, const char *name, uint64_t us)
{
	if (us > loop->max_callback_us)
		loop->max_callback_us = us;
	if (us <= VHCA_LOOP_WARN_US)
		return;
	loop->slow_callbacks++;
	vhca_log_warning("loop: callback \"%s\" used %" PRIu64 " ms of CPU time", name, us / 1000);
}
