/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/integration/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

static bool write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	bool ok = f && fputs(text, f) >= 0;

	return f && fclose(f) == 0 && ok;
}

/* Anybody else than root becomes himself in a user namespace, with the right to mount. */
static const char *become_mounter(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (uid == 0)
		return NULL;
	if (unshare(CLONE_NEWUSER) < 0)
		return "no user namespaces, and not root";
	(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (!write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/uid_map", map))
		return "cannot map the user into a namespace";
	(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return write_text("/proc/self/gid_map", map) ? NULL : "cannot map the group";
}

/*
 * Ends as child does, and reaps whatever else is left to this process: libvirtd waits for its QEMUs
 * to be gone.
 */
static _Noreturn void exit_as(pid_t child)
{
	pid_t pid;
	int status;

	do
		pid = waitpid(-1, &status, 0);
	while (pid != child && (pid > 0 || errno == EINTR));
	_exit(pid == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Goes on in a child that dies with this process, which only waits for it. */
static const char *go_on_in_child(void)
{
	pid_t child = fork();

	if (child < 0)
		return "cannot fork";
	if (child > 0)
		exit_as(child);
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? "cannot follow the parent" : NULL;
}

const char *sandbox_enter(void)
{
	const char *why = become_mounter();

	if (why)
		return why;
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
		return "no mount and process namespaces";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return "cannot make mounts private";
	/* The first process of the new namespace: when it ends, the kernel ends all others. */
	why = go_on_in_child();
	if (why)
		return why;
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return "cannot mount /proc";
	return go_on_in_child();
}

static int copy_into(const char *dir, const char *name)
{
	VHCA_AUTO_FREE char *text = NULL;
	char from[64], to[192];
	size_t len;
	int r;

	(void)snprintf(from, sizeof(from), "/etc/%s", name);
	(void)snprintf(to, sizeof(to), "%s/%s", dir, name);
	r = vhca_read_file(from, 1024 * 1024, &text, &len);
	return r < 0 ? r : vhca_write_file_atomic(to, text, len, 0644);
}

int sandbox_etc(const char *dir)
{
	static const char *const files[] = {"passwd", "group", "nsswitch.conf"};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(files); i++) {
		int r = copy_into(dir, files[i]);

		if (r < 0 && r != -ENOENT)
			return r;
	}
	if (unshare(CLONE_NEWNS) < 0 || mount(dir, "/etc", NULL, MS_BIND, NULL) < 0)
		return -errno;
	return 0;
}
