/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_ROLE_H
#define VHCA_BASE_ROLE_H
/*
 * Loop discipline: the thread that owns the state must never block. Every function that can block
 * in the kernel or in an RPC (sysfs, libvirt, SQLite, fsync) starts with vhca_may_block("what"). On
 * the state thread this counts a violation and logs it; builds with -Dfault-points=true abort.
 */
void vhca_role_set_state_thread(void); /* the calling thread is the state thread from now on */
void vhca_may_block(const char *what);
unsigned int vhca_role_violations(void); /* number of violations so far; 0 in a correct program */

/*
 * Fault points. `vhca_fault("store.commit")` does nothing in production builds;
 * `vhca_fault_in("engine.move", "claimed")` is the same with what it is about, and can be armed as
 * "engine.move" or "engine.move/claimed". With -Dfault-points=true the environment variable
 * VHCA_FAULT="name=action[,name=action...]" arms points:
 *   kill        SIGKILL to this process when the point is reached
 *   stop        SIGSTOP to this process: whoever waits for that may do what it likes, and let it go on
 *   errno:N     the call returns -N once
 *   errno:N:K   the call returns -N at its K-th time (1 = first)
 *   delay:MS    sleeps MS milliseconds every time
 * VHCA_FAULT_FILE names a file that may hold one "name=action" at any time; it is removed when the
 * point is reached, so that the process that is started next does not meet it again.
 * Returns 0 or the armed negative errno. Text that is not understood aborts: a test must not pass
 * because it armed nothing.
 */
#include <stddef.h>

#include "config.h"
#if VHCA_FAULT_POINTS
int vhca_fault_in(const char *point, const char *what); /* what: may be NULL */
#else
static inline int vhca_fault_in(const char *point, const char *what)
{
	(void)point;
	(void)what;
	return 0;
}
#endif
static inline int vhca_fault(const char *point)
{
	return vhca_fault_in(point, NULL);
}

#endif
