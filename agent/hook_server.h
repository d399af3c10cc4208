/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_HOOK_SERVER_H
#define VHCA_AGENT_HOOK_SERVER_H
/*
 * Serves the qemu hook: one request and one reply per connection on run_dir/hook.sock, answered
 * from memory. libvirt holds locks while its hook waits, so nothing here may depend on libvirt;
 * only what decide() has begun is waited for, and not for long.
 */
#include "common/base/error.h"
#include "common/base/hook_message.h"
#include "common/loop/loop.h"

struct vhca_hookd;

#define VHCA_HOOKD_CONNECTIONS_MAX 32
#define VHCA_HOOKD_TIMEOUT_MS	   2000 /* the hook itself waits no longer */

#define VHCA_HOOKD_HOLD_MS  1200 /* ...and asks for 1500 */
#define VHCA_HOOKD_PAUSE_MS 10

/*
 * decide() answers at once, from memory: 0 = pass, or a negative errno with err = refuse.
 * -EINPROGRESS: it is asked again until VHCA_HOOKD_HOLD_MS are over, and refuses then.
 */
typedef int (*vhca_hookd_fn)(void *arg, const struct vhca_hook_request *req,
			     struct vhca_error *err);

/* Listens at path (mode 0600). arg is for decide(). */
int vhca_hookd_new(struct vhca_loop *loop, const char *path, vhca_hookd_fn decide, void *arg,
		   struct vhca_hookd **ret, struct vhca_error *err);
/* Removes the socket: refused at once is better than a time-out. Accepts NULL, returns NULL. */
struct vhca_hookd *vhca_hookd_free(struct vhca_hookd *h);

#endif
