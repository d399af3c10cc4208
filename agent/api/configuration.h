/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_CONFIGURATION_H
#define VHCA_AGENT_API_CONFIGURATION_H
/*
 * The configuration and the files of its certificates and tokens, read again: off the state thread,
 * taken as a whole or refused. systemd is told that it begins and ends.
 */
#include "agent/api/credentials.h"
#include "common/loop/loop.h"
#include "conf/conf.h"

struct vhca_reload;

struct vhca_reload_args {
	struct vhca_loop *loop;
	const char *path;
	struct vhca_conf *conf;		      /* parts keep a pointer to it: its contents change */
	struct vhca_credentials *credentials; /* the same */
	void (*apply)(void *ctx);	      /* after that; on the state thread, as conf */
	void *ctx;
};

/* What args points to is borrowed. */
int vhca_reload_new(const struct vhca_reload_args *args, struct vhca_reload **ret);
/* Drops what is under way (shutting_down): call it while those who wait can still be told.
 * Accepts NULL, returns NULL. */
struct vhca_reload *vhca_reload_free(struct vhca_reload *rl);

/* The agent has told systemd that it is ready: a reload before would say so too early, and says
 * nothing. */
void vhca_reload_started(struct vhca_reload *rl);
/* Calls fn(arg, err), unless it is NULL, on the state thread: with err NULL when the new
 * configuration is in force. A negative errno with err set, and no call, if it cannot begin. */
int vhca_reload_begin(struct vhca_reload *rl, void (*fn)(void *arg, const struct vhca_error *err),
		      void *arg, struct vhca_error *err);

#endif
