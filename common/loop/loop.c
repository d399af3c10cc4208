// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/loop/loop.h"

#include <errno.h>
#include <stdlib.h>

#include <systemd/sd-event.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/role.h"
#include "common/loop/loop_private.h"

VHCA_DEFINE_CLEANUP(struct vhca_loop, vhca_loop_free)

int vhca_loop_new(struct vhca_loop **ret)
{
	VHCA_CLEANUP(vhca_loop_freep) struct vhca_loop *loop = NULL;
	int r;

	loop = calloc(1, sizeof(*loop));
	if (!loop)
		return -ENOMEM;
	loop->post_fd = -1;
	r = sd_event_new(&loop->event);
	if (r < 0)
		return r;
	r = vhca_loop_init_posts(loop);
	if (r < 0)
		return r;
	*ret = vhca_steal_ptr(&loop);
	return 0;
}

struct vhca_loop *vhca_loop_free(struct vhca_loop *loop)
{
	if (!loop)
		return NULL;
	if (loop->tail)
		vhca_loop_drop_posts(loop);
	vhca_loop_free_signals(loop);
	(void)sd_event_unref(loop->event);
	free(loop);
	return NULL;
}

int vhca_loop_run(struct vhca_loop *loop)
{
	vhca_role_set_state_thread();
	return sd_event_loop(loop->event);
}

int vhca_loop_once(struct vhca_loop *loop, int timeout_ms)
{
	return sd_event_run(loop->event, timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000);
}

void vhca_loop_exit(struct vhca_loop *loop, int code)
{
	int r = sd_event_exit(loop->event, code);

	if (r < 0)
		vhca_log_error("loop: exit request refused: error %d", -r);
}

struct sd_event *vhca_loop_event(struct vhca_loop *loop)
{
	return loop->event;
}

uint64_t vhca_loop_max_callback_us(const struct vhca_loop *loop)
{
	return loop->max_callback_us;
}

uint64_t vhca_loop_slow_callbacks(const struct vhca_loop *loop)
{
	return loop->slow_callbacks;
}
