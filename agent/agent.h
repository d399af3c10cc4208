/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_AGENT_H
#define VHCA_AGENT_AGENT_H
/* The composition root: makes the parts, joins them, runs the loop. */
#include <stdbool.h>

#include "common/base/error.h"

struct vhca_agent;

struct vhca_agent_args {
	const char *conf_path;
	const char *sysfs_root; /* NULL = the system's */
	const char *dev_root;	/* NULL = "/dev" */
	bool watch_hardware;	/* udev and verbs; false in tests on a simulated sysfs */
};

/* Those that come through the loop: before any thread, since it hands its mask on. */
int vhca_agent_block_signals(void);
/*
 * Blocking: opens the store, loads the journal, binds the sockets. vhca_agent_block_signals() must
 * have been called before any thread was started.
 */
int vhca_agent_new(const struct vhca_agent_args *args, struct vhca_agent **ret,
		   struct vhca_error *err);
/* Until SIGTERM or SIGINT; returns the exit status. */
int vhca_agent_run(struct vhca_agent *agent);
/* Restarting the agent never touches a running guest: nothing is detached or scrubbed here. */
struct vhca_agent *vhca_agent_free(struct vhca_agent *agent);

#endif
