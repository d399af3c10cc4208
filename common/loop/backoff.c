// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/loop/loop.h"

uint32_t vhca_backoff_next(struct vhca_backoff *b)
{
	uint32_t delay = b->next_ms ? b->next_ms : b->first_ms;

	if (delay > b->cap_ms)
		delay = b->cap_ms;
	b->next_ms = delay > b->cap_ms / 2 ? b->cap_ms : delay * 2;
	return delay;
}

void vhca_backoff_reset(struct vhca_backoff *b)
{
	b->next_ms = 0;
}
