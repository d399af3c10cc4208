/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A post that brings its own data. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/loop/loop.h"

struct copy {
	void (*fn)(void *arg);
	_Alignas(max_align_t) unsigned char data[];
};

static void on_copy(void *arg)
{
	VHCA_AUTO_FREE struct copy *copy = arg;

	copy->fn(copy->data);
}

void vhca_loop_post_copy(struct vhca_loop *loop, void (*fn)(void *arg), void *data, size_t size)
{
	struct copy *copy = malloc(sizeof(*copy) + size);

	if (!copy) {
		fn(data);
		return;
	}
	copy->fn = fn;
	(void)memcpy(copy->data, data, size);
	if (vhca_loop_post(loop, on_copy, copy, free) < 0)
		on_copy(copy);
}
