// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"

#define BACKLOG	  4096 /* a storm of agents; the kernel cuts it to net.core.somaxconn */
#define HOST_SIZE 64   /* an IPv6 address with scope */

VHCA_DEFINE_CLEANUP(struct addrinfo, freeaddrinfo)

/* ---- unix sockets ---- */

/* Is somebody listening there? Only "connection refused" proves that nobody is. */
static int probe(const struct sockaddr_un *addr)
{
	VHCA_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		return -EADDRINUSE;
	return errno == ECONNREFUSED || errno == ENOENT ? 0 : -EADDRINUSE;
}

static int remove_stale(const struct sockaddr_un *addr, struct vhca_error *err)
{
	struct stat st;
	int r;

	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0
				       : vhca_error_set(err, VHCA_ERR_DENIED, "listen_denied",
							errno, "unix:%s", addr->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "listen_in_use", EEXIST,
				      "unix:%s: is not a socket", addr->sun_path);
	r = probe(addr);
	if (r < 0) {
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, "listen_in_use", -r, "unix:%s",
				   addr->sun_path);
		vhca_error_hint(err, "another instance listens there; stop it first");
		return r;
	}
	if (unlink(addr->sun_path) < 0 && errno != ENOENT)
		return vhca_error_set(err, VHCA_ERR_DENIED, "listen_denied", errno,
				      "unix:%s: remove the stale socket", addr->sun_path);
	return 0;
}

/*
 * Nobody can connect before listen(), so the mode is right from the first moment on. fchmod()
 * before bind() gives the file at most that mode at birth without touching the process-wide umask;
 * chmod() then lifts what the umask took away.
 */
static int bind_unix(int fd, const struct sockaddr_un *addr, mode_t mode, struct vhca_listener *l)
{
	struct stat st;

	if (fchmod(fd, mode) < 0 || bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return -errno;
	if (chmod(addr->sun_path, mode) < 0 || lstat(addr->sun_path, &st) < 0)
		return -errno;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

static int listen_unix(const char *path, mode_t mode, struct vhca_listener *ret,
		       struct vhca_error *err)
{
	VHCA_AUTO_CLOSE int fd = -1;
	VHCA_AUTO_FREE char *copy = NULL;
	struct vhca_listener l = VHCA_LISTENER_NULL;
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int r;

	if (*path != '/' || vhca_strcpy(addr.sun_path, sizeof(addr.sun_path), path) < 0)
		return vhca_error_set(
			err, VHCA_ERR_INVALID, "bad_listen", EINVAL,
			"unix:%s: an absolute path of at most %zu characters is needed", path,
			sizeof(addr.sun_path) - 1);
	r = remove_stale(&addr, err);
	if (r < 0)
		return r;
	copy = strdup(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || !copy)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "listen", errno, "unix:%s: socket",
				      path);
	r = bind_unix(fd, &addr, mode, &l);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_DENIED, "listen_denied", -r, "unix:%s: bind",
				      path);
	l.fd = vhca_steal_fd(&fd);
	l.path = vhca_steal_ptr(&copy);
	*ret = l;
	return 0;
}

/* ---- TCP ---- */

/* Splits "ADDRESS:PORT" or "[v6]:PORT". */
static int split_host_port(const char *spec, char host[static HOST_SIZE], const char **ret_port)
{
	bool bracket = *spec == '[';
	const char *start = spec + bracket;
	const char *end = bracket ? strchr(start, ']') : strchr(start, ':');
	const char *colon = end ? end + bracket : NULL;

	if (!colon || *colon != ':' || strchr(colon + 1, ':') || end == start ||
	    (size_t)(end - start) >= HOST_SIZE)
		return -EINVAL;
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = '\0';
	*ret_port = colon + 1;
	return 0;
}

/* Numeric only: name resolution could block, and would make the address depend on more than the
 * configuration. */
static int resolve(const char *spec, struct addrinfo **ret)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	char host[HOST_SIZE];
	const char *port;
	uint32_t number;

	if (split_host_port(spec, host, &port) < 0 ||
	    vhca_parse_u32(port, 10, UINT16_MAX, &number) < 0)
		return -EINVAL;
	return getaddrinfo(host, port, &hints, ret) == 0 ? 0 : -EINVAL;
}

static uint16_t bound_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr = {.any.sa_family = AF_UNSPEC};
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.any, &len) < 0)
		return 0;
	return ntohs(addr.any.sa_family == AF_INET6 ? addr.v6.sin6_port : addr.v4.sin_port);
}

/* The address may come later, as at boot: nobody waits for the network. */
static int bind_early(int fd, const struct addrinfo *ai, const char *spec)
{
	bool six = ai->ai_family == AF_INET6;
	int one = 1;

	if (setsockopt(fd, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_FREEBIND : IP_FREEBIND, &one,
		       sizeof(one)) < 0 ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) < 0)
		return -errno;
	vhca_log_notice("%s: this host does not have that address yet", spec);
	return 0;
}

static int bind_tcp(int fd, const struct addrinfo *ai, const char *spec)
{
	int one = 1, r;

	/* Without it a restart would fail while old connections are in TIME_WAIT. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (ai->ai_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -errno;
	r = bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 ? -errno : 0;
	if (r == -EADDRNOTAVAIL)
		r = bind_early(fd, ai, spec);
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	return r;
}

static int listen_tcp(const char *spec, struct vhca_listener *ret, struct vhca_error *err)
{
	VHCA_CLEANUP(freeaddrinfop) struct addrinfo *ai = NULL;
	VHCA_AUTO_CLOSE int fd = -1;
	int r;

	if (resolve(spec, &ai) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_listen", EINVAL,
				      "%s: unix:/PATH, ADDRESS:PORT or [V6ADDRESS]:PORT is needed",
				      spec);
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? -errno : bind_tcp(fd, ai, spec);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "listen_in_use", -r, "%s: bind",
				      spec);
	*ret = (struct vhca_listener){.port = bound_port(fd), .fd = fd};
	(void)vhca_steal_fd(&fd); /* ret's */
	return 0;
}

int vhca_listen(const char *spec, mode_t sock_mode, struct vhca_listener *ret,
		struct vhca_error *err)
{
	static const char unix_prefix[] = "unix:";
	size_t len = sizeof(unix_prefix) - 1;

	if (strncmp(spec, unix_prefix, len) == 0)
		return listen_unix(spec + len, sock_mode, ret, err);
	return listen_tcp(spec, ret, err);
}

void vhca_listener_done(struct vhca_listener *l)
{
	struct stat st;

	if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		(void)unlink(l->path); /* a socket left behind is replaced by the next start */
	free(l->path);
	l->path = NULL;
}
