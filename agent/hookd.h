/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_HOOKD_H
#define VHCA_AGENT_HOOKD_H
/*
 * Serves the qemu hook: one request and one reply per connection on run_dir/hook.sock, answered from memory at once. libvirt
 * holds locks while its hook waits, so nothing here may depend on libvirt, the store or the hardware.
 */
#include "agent/engine.h"

struct vhca_hookd;

#define VHCA_HOOKD_CONNECTIONS_MAX 32
#define VHCA_HOOKD_TIMEOUT_MS	   2000 /* the hook itself waits no longer */

/* told() hears of every request after it was answered: the domain may have changed. */
int vhca_hookd_new(struct vhca_loop *loop, const char *path, struct vhca_engine *engine,
		   void (*told)(void *arg, const struct vhca_hook_request *req), void *arg,
		   struct vhca_hookd **ret, struct vhca_error *err);
struct vhca_hookd *vhca_hookd_free(struct vhca_hookd *h);

#endif
