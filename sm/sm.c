/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sm/sm.h"

#include <string.h>

#include "common/base/cleanup.h"

bool vhca_sm_binding_is_move(const struct vhca_sm_binding *b)
{
	return b->bound && b->moved && b->from_port_guid != 0;
}

static const struct vhca_sm_ops *const back_ends[] = {&vhca_sm_vhcasm, &vhca_sm_none};

const struct vhca_sm_ops *vhca_sm_find(const char *name)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(back_ends); i++)
		if (strcmp(back_ends[i]->name, name) == 0)
			return back_ends[i];
	return NULL;
}
