/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/role.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/log.h"

static _Thread_local bool is_state_thread;
static atomic_uint violations;

void vhca_role_set_state_thread(void)
{
	is_state_thread = true;
}

void vhca_may_block(const char *what)
{
	if (!is_state_thread)
		return;
	(void)atomic_fetch_add(&violations, 1);
	vhca_log_error("%s: blocking call on the state thread; this is a bug", what);
	if (VHCA_FAULT_POINTS)
		abort();
}

unsigned int vhca_role_violations(void)
{
	return atomic_load(&violations);
}
