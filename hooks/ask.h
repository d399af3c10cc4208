/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HOOKS_ASK_H
#define VHCA_HOOKS_ASK_H
/* One exchange with the agent over hook.sock. */
#include <stdint.h>

#include "common/base/hook_message.h"

/* Sends req and, unless ret_reply is NULL, waits for the answer; all before the deadline
 * (vhca_now_ms() scale). Returns 0 or a negative errno: of connect(2), -ETIMEDOUT, -ECONNRESET, or
 * -EBADMSG/-EMSGSIZE for an answer that is none. */
int vhca_hook_ask(const char *socket_path, const struct vhca_hook_request *req, uint64_t deadline,
		  struct vhca_hook_reply *ret_reply);

#endif
