/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command channel of a hypervisor: one connection is one request. An emulated core needs 0.3
 * s for a shell that asks one program one thing, so what cases ask hundreds of times starts no
 * program here.
 *
 * A request is a line "VERB LENGTH", LENGTH bytes, and for `run` the script's standard input.
 *   run    a bash script; what it prints, then "\nrc=N\n"
 *   read   patterns of glob(7), one a line; for each file a line "PATH\0LENGTH" or
 *          "PATH\0-ERRNO" and its content
 *   links  the same, with the targets of symbolic links
 *   write  a line "MODE PATH", then the content; then "\nrc=0\n", or a sentence and "\nrc=1\n"
 *   relay  "unix PATH" or "tcp ADDRESS PORT"; from then on both ways what either side says
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 2222, LINE = 64, READ_MAX = 64 << 20, CHUNK = 1 << 16 };

struct buffer {
	char *data;
	size_t len;
};

static void buffer_grow(struct buffer *b, const char *data, size_t len)
{
	b->data = realloc(b->data, b->len + len + 1);
	if (!b->data)
		exit(1);
	memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

static void send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			exit(1);
		data += n;
		len -= (size_t)n;
	}
}

__attribute__((format(printf, 2, 3))) static void say(int fd, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	int len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	send_all(fd, text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1);
}

/* Everything that can be read without waiting; -errno if nothing can. */
static int read_file(int fd, struct buffer *to)
{
	static char chunk[CHUNK];

	while (to->len < READ_MAX) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			buffer_grow(to, chunk, (size_t)n);
		else if (n == 0 || errno == EAGAIN)
			return 0;
		else if (errno != EINTR &&
			 errno != EPIPE) /* EPIPE: /dev/kmsg has overwritten a record */
			return to->len ? 0 : -errno;
	}
	return 0;
}

static int read_path(const char *path, struct buffer *to)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = read_file(fd, to);
	close(fd);
	return rc;
}

static int read_target(const char *path, struct buffer *to)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target));
	if (n < 0)
		return -errno;
	buffer_grow(to, target, (size_t)n);
	return 0;
}

static void add_path(struct buffer *answer, const char *path,
		     int (*get)(const char *, struct buffer *))
{
	struct buffer content = {};
	int rc = get(path, &content);
	char size[LINE];

	buffer_grow(answer, path, strlen(path) + 1);
	buffer_grow(answer, size,
		    (size_t)snprintf(size, sizeof(size), "%lld\n",
				     rc ? (long long)rc : (long long)content.len));
	if (!rc && content.len)
		buffer_grow(answer, content.data, content.len);
	free(content.data);
}

/* All in one: each packet costs an emulated interrupt. */
static void answer_paths(int fd, char *patterns, int (*get)(const char *, struct buffer *))
{
	struct buffer answer = {};

	for (char *rest = patterns, *pattern; (pattern = strsep(&rest, "\n"));) {
		glob_t found;
		if (!*pattern || glob(pattern, GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_path(&answer, found.gl_pathv[i], get);
		globfree(&found);
	}
	if (answer.len)
		send_all(fd, answer.data, answer.len);
	free(answer.data);
}

static bool make_folders(char *path)
{
	for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		bool there = !mkdir(path, 0755) || errno == EEXIST;
		*slash = '/';
		if (!there)
			return false;
	}
	return true;
}

/* A file that is there is written, not replaced: sysfs and debugfs know no other way. */
static int write_path(char *path, mode_t mode, const char *content, size_t len)
{
	if (!make_folders(path))
		return errno;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return errno;
	ssize_t n = write(fd, content, len);
	int rc = n < 0 ? errno : (size_t)n < len ? ENOSPC : 0;
	if (!rc && fchmod(fd, mode) && errno != EPERM)
		rc = errno;
	if (close(fd) && !rc)
		rc = errno;
	return rc;
}

static void answer_write(int fd, struct buffer *body)
{
	char *end = memchr(body->data, '\n', body->len), *path = NULL;
	mode_t mode = end ? (mode_t)strtoul(body->data, &path, 8) : 0;

	if (!end || *path != ' ')
		exit(1);
	*end = '\0';
	int rc = write_path(path + 1, mode, end + 1, body->len - (size_t)(end + 1 - body->data));
	if (rc)
		say(fd, "%s: %s", path + 1, strerror(rc));
	say(fd, "\nrc=%d\n", rc ? 1 : 0);
}

static void answer_run(int fd, const char *script)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (!pid) {
		for (int to = 0; to <= 2; to++)
			dup2(fd, to);
		/* Not in its command line, where `pgrep -f` would find it. */
		setenv("RIG_SCRIPT", script, 1);
		execl("/bin/bash", "bash", "-c", "eval \"unset RIG_SCRIPT; $RIG_SCRIPT\"",
		      (char *)NULL);
		_exit(127);
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	say(fd, "\nrc=%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	/* What the script has left in the background has the socket, too. */
	shutdown(fd, SHUT_WR);
}

static int connect_unix(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	return fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)) ? fd : -1;
}

static int connect_tcp(const char *address, unsigned port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && inet_pton(AF_INET, address, &to.sin_addr) == 1 &&
			       !connect(fd, (struct sockaddr *)&to, sizeof(to))
		       ? fd
		       : -1;
}

/* One direction, until its source ends. */
static bool pass_on(int from, int to)
{
	static char chunk[CHUNK];
	ssize_t n = read(from, chunk, sizeof(chunk));

	if (n > 0)
		send_all(to, chunk, (size_t)n);
	else
		shutdown(to, SHUT_WR);
	return n > 0;
}

static void answer_relay(int fd, const char *target)
{
	char address[108];
	unsigned port;
	int to = -1;

	if (sscanf(target, "unix %107s", address) == 1)
		to = connect_unix(address);
	else if (sscanf(target, "tcp %107s %u", address, &port) == 2)
		to = connect_tcp(address, port);
	if (to < 0)
		exit(1);
	struct pollfd ends[] = {{.fd = fd, .events = POLLIN}, {.fd = to, .events = POLLIN}};
	while ((ends[0].fd >= 0 || ends[1].fd >= 0) && (poll(ends, 2, -1) > 0 || errno == EINTR)) {
		if (ends[0].fd >= 0 && ends[0].revents && !pass_on(fd, to))
			ends[0].fd = -1;
		if (ends[1].fd >= 0 && ends[1].revents && !pass_on(to, fd))
			return;
	}
}

/* The line, byte by byte: what follows belongs to others. */
static size_t read_head(int fd, char verb[LINE])
{
	char line[LINE];
	size_t n = 0, len = 0;

	while (n < sizeof(line) - 1 && read(fd, &line[n], 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	if (sscanf(line, "%15s %zu", verb, &len) != 2 || len > READ_MAX)
		exit(1);
	return len;
}

static struct buffer read_body(int fd, size_t len)
{
	struct buffer body = {.data = calloc(1, len + 1)};

	while (body.data && body.len < len) {
		ssize_t n = read(fd, body.data + body.len, len - body.len);
		if (n <= 0)
			exit(1);
		body.len += (size_t)n;
	}
	return body;
}

static void answer(int fd)
{
	char verb[LINE];
	struct buffer body = read_body(fd, read_head(fd, verb));

	if (!strcmp(verb, "run"))
		answer_run(fd, body.data);
	else if (!strcmp(verb, "read"))
		answer_paths(fd, body.data, read_path);
	else if (!strcmp(verb, "links"))
		answer_paths(fd, body.data, read_target);
	else if (!strcmp(verb, "write"))
		answer_write(fd, &body);
	else if (!strcmp(verb, "relay"))
		answer_relay(fd, body.data);
	free(body.data);
}

static int listen_on(unsigned port)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&own, sizeof(own)) || listen(fd, SOMAXCONN)) {
		perror("rig channel");
		exit(1);
	}
	return fd;
}

int main(void)
{
	int door = listen_on(PORT);

	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid = fd < 0 ? -1 : fork();
		if (!pid) {
			signal(SIGCHLD, SIG_DFL);
			answer(fd);
			return 0;
		}
		if (fd >= 0)
			close(fd);
	}
}
