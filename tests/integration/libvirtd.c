/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/integration/libvirtd.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "tests/integration/sandbox.h"
#include "tests/unit/unit.h"

#define NOBODY	65534
#define WAIT_MS 60000

void libvirtd_init(struct libvirtd *d)
{
	*d = (struct libvirtd){.dir = "/tmp/vhca-virt-XXXXXX"};
	assert_non_null(mkdtemp(d->dir));
	if (geteuid() == 0)
		assert_int_equal(chown(d->dir, NOBODY, NOBODY), 0);
	(void)snprintf(d->socket, sizeof(d->socket), "%s/libvirt/libvirt-sock", d->dir);
}

void libvirtd_write(const struct libvirtd *d, const char *name, const void *data, size_t len,
		    mode_t mode)
{
	char path[192];

	/* Directories one by one: they are the daemon's user's as well. */
	for (const char *p = strchr(name, '/'); p; p = strchr(p + 1, '/')) {
		(void)snprintf(path, sizeof(path), "%s/%.*s", d->dir, (int)(p - name), name);
		assert_int_equal(vhca_mkdir_p(path, 0755), 0);
		if (geteuid() == 0)
			assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/%s", d->dir, name);
	assert_int_equal(vhca_write_file_atomic(path, data, len, mode), 0);
}

/*
 * As root libvirtd would be the system's; as anybody else it keeps to the directories in its
 * environment.
 */
static _Noreturn void exec_daemon(const struct libvirtd *d)
{
	int log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		_exit(127);
	if (d->own_etc && sandbox_etc("etc") < 0)
		_exit(127);
	if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
		_exit(127);
	(void)prctl(PR_SET_PDEATHSIG, d->death_signal ? d->death_signal : SIGKILL);
	(void)setenv("HOME", d->dir, 1);
	(void)setenv("XDG_RUNTIME_DIR", d->dir, 1);
	(void)setenv("XDG_CONFIG_HOME", d->dir, 1);
	(void)setenv("XDG_CACHE_HOME", d->dir, 1);
	(void)execl(LIBVIRTD_PATH, LIBVIRTD_PATH, (char *)NULL);
	_exit(127);
}

void libvirtd_start(struct libvirtd *d)
{
	uint64_t deadline = vhca_now_ms() + WAIT_MS;
	int fd;

	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		if (chdir(d->dir) < 0)
			_exit(127);
		exec_daemon(d);
	}
	do {
		fd = vhca_connect_unix(d->socket, vhca_now_ms() + 1000);
		if (fd < 0)
			(void)usleep(20000);
	} while (fd < 0 && vhca_now_ms() < deadline);
	assert_true(fd >= 0);
	(void)close(fd);
}

void libvirtd_kill(struct libvirtd *d)
{
	assert_int_equal(kill(d->pid, SIGKILL), 0);
	assert_int_equal(waitpid(d->pid, NULL, 0), d->pid);
	d->pid = 0;
	(void)unlink(d->socket);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void libvirtd_done(struct libvirtd *d)
{
	if (d->pid > 0)
		libvirtd_kill(d);
	(void)nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
