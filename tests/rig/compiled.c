/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In a hypervisor, in front of apparmor_parser: a guest's profile that was compiled before is
 * loaded as it came out then. libvirt has one loaded six times between a guest's start and its
 * end (docs/design/0012-suite.md has the cost); the rules are Debian's own, and what the kernel
 * gets is the same. Everything else goes to the real program as it is.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REAL	 "/usr/lib/rig/apparmor_parser"
#define PROFILES "/etc/apparmor.d/libvirt/libvirt-"
#define CACHE	 "/var/cache/rig-profiles"

enum { PATH_SIZE = 512 };

/* FNV-1a over a file; what it includes from the distribution never changes here. */
static int hash_file(const char *path, uint64_t *hash)
{
	FILE *file = fopen(path, "re");
	int c;

	if (!file)
		return -1;
	while ((c = getc(file)) != EOF)
		*hash = (*hash ^ (uint64_t)c) * UINT64_C(0x100000001b3);
	fclose(file);
	return 0;
}

static int run(const char *const argv[])
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		execv(REAL, (char *const *)argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : 1;
}

/* Where the profile lies compiled, "" if it does not. */
static void compile(const char *profile, char ret[PATH_SIZE])
{
	char files[PATH_SIZE], fresh[PATH_SIZE];
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	snprintf(files, sizeof(files), "%s.files", profile);
	if (hash_file(profile, &hash) || hash_file(files, &hash)) {
		ret[0] = '\0';
		return;
	}
	snprintf(ret, PATH_SIZE, CACHE "/%016" PRIx64, hash);
	if (!access(ret, R_OK))
		return;
	mkdir(CACHE, 0700);
	snprintf(fresh, sizeof(fresh), CACHE "/%d.new", (int)getpid());
	if (run((const char *const[]){"apparmor_parser", "-Q", "-K", "-o", fresh, profile, NULL}) ||
	    rename(fresh, ret))
		ret[0] = '\0';
}

/* The kernel needs its name only; the real program compiles it for that, too. */
static int forget(const char *profile)
{
	const char *name = strrchr(profile, '/') + 1;
	FILE *file = fopen("/sys/kernel/security/apparmor/.remove", "we");

	if (!file)
		return -1;
	int rc = fputs(name, file) < 0;
	return fclose(file) || rc ? -1 : 0;
}

int main(int argc, char *argv[])
{
	bool ours = argc == 3 && !strncmp(argv[2], PROFILES, strlen(PROFILES));
	char compiled[PATH_SIZE] = "";

	if (ours && !strcmp(argv[1], "-R") && !forget(argv[2]))
		return 0;
	if (ours && (!strcmp(argv[1], "-r") || !strcmp(argv[1], "-a")))
		compile(argv[2], compiled);
	if (compiled[0] &&
	    !run((const char *const[]){"apparmor_parser", "-r", "-B", compiled, NULL}))
		return 0;
	execv(REAL, argv);
	return 1;
}
