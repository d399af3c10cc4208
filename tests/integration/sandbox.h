/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SANDBOX_H
#define VHCA_TESTS_SANDBOX_H
/*
 * Namespaces for a test whose daemons start daemons of their own (libvirtd its QEMUs): nothing
 * outlives the test, however it ends, and no mount is seen outside. As root, or with user
 * namespaces as anybody.
 */

/*
 * Goes on in a child, in mount and process namespaces of its own; the caller waits for it and exits
 * with its status. Before threads, output and files. Returns 0, or what is not possible here: the
 * test then skips.
 */
const char *sandbox_enter(void);

/*
 * Gives the calling process, one that was forked for it, another /etc: the directory dir with the
 * files in it that the C library looks for. Returns 0 or a negative errno.
 */
int sandbox_etc(const char *dir);

#endif
