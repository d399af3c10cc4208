/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vhca-qemu-hook: libvirt runs it as `vhcad DOMAIN OP SUBOP EXTRA` with the domain's XML on stdin,
 * holds the domain's lock until it exits, and has no time-out. So: no libvirt call, no
 * configuration file, a deadline on everything, and exit 0 whenever the domain is none of ours.
 * stdout stays empty (libvirt would take it for XML); stdin may hold passwords and is never logged.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/hook_message.h"
#include "hooks/ask.h"
#include "hooks/policy.h"
#include "hooks/scan.h"
#include "hooks/vfs.h"

/* The directories come from meson.build; tests build this file with others. */
#define SOCKET_PATH   VHCA_HOOK_RUN_DIR "/hook.sock"
#define VFS_PATH      VHCA_HOOK_RUN_DIR "/vfs"
#define KEPT_VFS_PATH VHCA_HOOK_STATE_DIR "/vfs"

/*
 * The first three count from the start of the process, which has 2 s. libvirt writes stdin in one
 * go: most of STDIN_MS is for a machine in trouble, and what is left then is enough for an agent
 * that answers from memory. TELL_MS is for an exchange without an answer: an agent that does not
 * accept must not delay a shutdown.
 */
#define STDIN_MS    1400u
#define ANSWER_MS   1700u
#define BACKSTOP_MS 1800u /* for what no deadline covers: see on_backstop() */
#define ASK_MS	    1500u
#define TELL_MS	    250u

#define STDIN_MAX (16u * 1024 * 1024)

/*
 * Exit status should the backstop fire now: 1 while what the policy refuses cannot be ruled out.
 * Written before, read in, the handler.
 */
static volatile sig_atomic_t backstop_status;

struct run {
	uint64_t start; /* vhca_now_ms() scale */
	const struct vhca_hook_rule *rule;
	struct vhca_hook_request req;
	bool has_vf; /* one of ours is among the host devices, or that cannot be ruled out */
	struct vhca_bdf vf;
	const char *vfs_path; /* the list that counts */
	const char *unseen; /* why it may be one that the request does not name; NULL = it is not */
	int vfs_error;	    /* negative errno why not */
};

static void write_stderr(const char *text, size_t len)
{
	if (write(STDERR_FILENO, text, len) < 0)
		return; /* nobody listens; the exit status says it */
}

/*
 * Whatever hangs, a page fault or a file that does not open: the domain's lock is not held for it.
 */
static _Noreturn void on_backstop(int signo)
{
	static const char text[] =
		"vhcad: the hook ran into its deadline; see 'systemctl status vhcad'\n";

	(void)signo;
	if (backstop_status)
		write_stderr(text, sizeof(text) - 1);
	_exit(backstop_status);
}

static void arm_backstop(void)
{
	const struct sigaction action = {.sa_handler = on_backstop};
	const struct itimerval timer = {
		.it_value = {.tv_sec = BACKSTOP_MS / 1000, .tv_usec = BACKSTOP_MS % 1000 * 1000},
	};

	(void)sigaction(SIGALRM, &action, NULL); /* neither fails with these arguments */
	(void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- stdin ---- */

/* The next piece of stdin: its length, 0 at the end, on an error, or when the deadline has passed.
 */
static size_t read_piece(char *buf, size_t size, uint64_t deadline)
{
	struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
	uint32_t left_ms = vhca_left_ms(deadline);
	ssize_t n;

	if (!left_ms || poll(&pfd, 1, (int)left_ms) <= 0)
		return 0;
	n = read(STDIN_FILENO, buf, size);
	return n > 0 ? (size_t)n : 0;
}

static void scan_stdin(struct vhca_scan *scan, uint64_t deadline)
{
	/* The size of a pipe. On the stack all its pages would be touched at each run, by
	 * -fstack-clash-protection. */
	static char buf[64 * 1024];
	size_t total = 0, n;

	vhca_scan_init(scan);
	while (total < STDIN_MAX && (n = read_piece(buf, sizeof(buf), deadline)) > 0) {
		total += n;
		if (!vhca_scan_feed(scan, buf, n))
			break; /* libvirt does not mind that the rest is not read */
	}
}

/* ---- the request ---- */

/* A word that is too long is cut: it matches nothing, and the name is for people (the UUID is the
 * key). */
static void copy_arg(char *dst, size_t size, const char *src)
{
	size_t n = strnlen(src, size - 1);

	memcpy(dst, src, n);
	dst[n] = '\0';
}

static void fill_request(struct vhca_hook_request *req, char **argv, const struct vhca_scan *scan)
{
	copy_arg(req->name, sizeof(req->name), argv[1]);
	copy_arg(req->op, sizeof(req->op), argv[2]);
	copy_arg(req->subop, sizeof(req->subop), argv[3]);
	copy_arg(req->extra, sizeof(req->extra), argv[4] ? argv[4] : "-");
	req->has_uuid = scan->has_uuid;
	req->uuid = scan->uuid;
	req->has_request = scan->has_request;
	req->has_away = scan->has_away;
	req->away = scan->away;
	req->incomplete = !vhca_scan_is_complete(scan);
	req->n_hostdevs = scan->n_hostdevs;
	memcpy(req->hostdevs, scan->hostdevs, sizeof(req->hostdevs));
}

/* The exit status, should no answer come. */
static bool refuses_silent(const struct run *run, bool has_vf)
{
	const struct vhca_hook_found found = {.has_vf = has_vf, .has_away = run->req.has_away};

	return vhca_hook_rule_refuses(run->rule, VHCA_HOOK_SILENT, false, found);
}

#define STRING_OF(n) #n
#define STRING(n)    STRING_OF(n)

static const char *why_unseen(const struct vhca_scan *scan)
{
	if (vhca_scan_is_complete(scan))
		return NULL;
	if (scan->overflow)
		return "it has more than " STRING(VHCA_HOOK_HOSTDEVS_MAX);
	return "its XML could not be read to its end (16 MiB, " STRING(
		VHCA_SCAN_DEPTH_MAX) " levels, " STRING(VHCA_SCAN_PREFIXES_MAX) " prefixes)";
}

/*
 * The agent writes both lists. After a boot /run is empty until it has come: then that of the life
 * before counts, because the VFs have their addresses again, and nobody has proven them. Until the
 * XML is read, each host device that the list names can be in it.
 */
static void choose_list(struct run *run)
{
	struct stat st;

	/* A disk that hangs is no proof that the list is empty. */
	backstop_status = refuses_silent(run, true);
	run->vfs_path = access(VFS_PATH, F_OK) < 0 && errno == ENOENT ? KEPT_VFS_PATH : VFS_PATH;
	backstop_status = refuses_silent(run, stat(run->vfs_path, &st) == 0 ? st.st_size > 0
									    : errno != ENOENT);
}

/*
 * A list that exists but cannot be used rules out no host device, nor does XML that was not read to
 * its end, nor a request without room for all of them: an unproven VF in a guest is the worse
 * mistake.
 */
static void find_vf(struct run *run, const char *unseen)
{
	unsigned int n = run->req.n_hostdevs;
	int r;

	backstop_status = refuses_silent(run, n > 0 || unseen);
	r = n ? vhca_hook_vfs_find(run->vfs_path, run->req.hostdevs, n, &run->vf) : 0;
	if (r == 0 && unseen) {
		r = vhca_hook_vfs_any(run->vfs_path);
		run->unseen = r != 0 ? unseen : NULL;
	}
	run->has_vf = r != 0;
	run->vfs_error = r < 0 ? r : 0;
	if (r < 0 && n)
		run->vf = run->req.hostdevs[0];
	backstop_status = refuses_silent(run, run->has_vf);
}

/* ---- the verdict ---- */

/* The one line that reaches whoever asked libvirt: it names the domain, the reason and the way out.
 */
static int refuse(const struct run *run, const char *reason)
{
	char line[2048];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, line, sizeof(line) - 1);
	vhca_strbuf_add(&sb, "vhcad: domain %s: %s refused: %s", run->req.name, run->req.op,
			reason);
	vhca_blot_controls(line);
	line[sb.len] = '\n';
	write_stderr(line, sb.len + 1);
	(void)signal(SIGALRM, SIG_IGN); /* all is said, and libvirt shows each line */
	return 1;
}

static void explain_vf(const struct run *run, int error, struct vhca_strbuf *sb)
{
	if (run->unseen)
		vhca_strbuf_add(sb,
				"whether an InfiniBand VF of vhcad is among its host devices is "
				"unknown: %s",
				run->unseen);
	else if (run->vfs_error)
		vhca_strbuf_add(
			sb,
			"whether host device %s is an InfiniBand VF of vhcad is unknown (%s: %s)",
			VHCA_BDF_STR(run->vf), run->vfs_path, strerror(-run->vfs_error));
	else
		vhca_strbuf_add(sb, "host device %s is an InfiniBand VF of vhcad",
				VHCA_BDF_STR(run->vf));
	vhca_strbuf_add(sb,
			", and the agent that must vouch for it does not answer (%s: %s); see "
			"'systemctl status vhcad', "
			"start it, or remove the hostdev from the domain",
			SOCKET_PATH, strerror(-error));
}

static int refuse_silent(const struct run *run, int error)
{
	char reason[512];
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, reason, sizeof(reason));
	if (run->rule->act[VHCA_HOOK_SILENT] == VHCA_HOOK_REFUSE_IF_AWAY)
		vhca_strbuf_add(
			&sb,
			"its InfiniBand VFs were taken out for migration %s, and the agent that "
			"must put them in again here does not answer (%s: %s); see 'systemctl "
			"status vhcad', start it, and try again",
			VHCA_UUID_STR(&run->req.away), SOCKET_PATH, strerror(-error));
	else
		explain_vf(run, error, &sb);
	return refuse(run, reason);
}

static int decide(struct run *run)
{
	const struct vhca_hook_found found = {.has_vf = run->has_vf, .has_away = run->req.has_away};
	bool ours = run->req.has_request || found.has_vf || found.has_away;
	bool waits = vhca_hook_rule_waits(run->rule);
	uint64_t deadline = vhca_now_ms() + (waits ? ASK_MS : TELL_MS);
	struct vhca_hook_reply reply = {.pass = true};
	enum vhca_hook_case which = VHCA_HOOK_NOT_OURS;
	int r = 0;

	if (deadline > run->start + ANSWER_MS)
		deadline = run->start + ANSWER_MS;
	if (ours) {
		r = vhca_hook_ask(SOCKET_PATH, &run->req, deadline, waits ? &reply : NULL);
		which = r < 0 ? VHCA_HOOK_SILENT : VHCA_HOOK_ANSWERED;
	}
	if (!vhca_hook_rule_refuses(run->rule, which, reply.pass, found))
		return 0;
	return which == VHCA_HOOK_SILENT ? refuse_silent(run, r) : refuse(run, reply.reason);
}

int main(int argc, char **argv)
{
	static const char usage[] =
		"libvirt runs this as 'vhcad DOMAIN OPERATION SUB-OPERATION EXTRA' with the "
		"domain's XML on stdin; see vhca-qemu-hook(7)\n";
	struct run run = {.start = vhca_now_ms()};
	struct vhca_scan scan;

	if (argc < 4) {
		write_stderr(usage, sizeof(usage) - 1);
		return 0; /* whatever libvirt meant, a refusal could kill a guest */
	}
	(void)signal(SIGPIPE, SIG_IGN); /* a closing agent is an error number */
	arm_backstop();
	run.rule = vhca_hook_rule(argv[2], argv[3]);
	choose_list(&run);
	scan_stdin(&scan, run.start + STDIN_MS);
	fill_request(&run.req, argv, &scan);
	find_vf(&run, why_unseen(&scan));
	return decide(&run);
}
