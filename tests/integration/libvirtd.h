/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_LIBVIRTD_H
#define VHCA_TESTS_LIBVIRTD_H
/*
 * A libvirtd of the test's own: a session daemon in a temporary directory, as user nobody when the
 * test is root. It dies with the test. Failures fail the running test.
 */
#include <stdbool.h>
#include <sys/types.h>

#define LIBVIRTD_PATH "/usr/sbin/libvirtd"

struct libvirtd {
	char dir[64], socket[128];
	pid_t pid;	  /* 0 = not running */
	int death_signal; /* what it gets when the test dies; 0 = SIGKILL */
	/* its /etc is etc in its directory: hooks are in etc/libvirt/hooks (sandbox.h) */
	bool own_etc;
};

void libvirtd_init(struct libvirtd *d); /* makes the directory, starts nothing */
/*
 * A file of its own below its directory, which is also its home: configuration in libvirt/, see
 * own_etc.
 */
void libvirtd_write(const struct libvirtd *d, const char *name, const void *data, size_t len,
		    mode_t mode);
void libvirtd_start(struct libvirtd *d); /* returns when it accepts connections */
void libvirtd_kill(struct libvirtd *d);
void libvirtd_done(struct libvirtd *d); /* kills it if it runs, removes the directory */

#endif
