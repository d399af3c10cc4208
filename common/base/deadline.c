/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ends at a deadline: the descriptor half of file.h, whatever the peer does, and waits. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/cond.h"
#include "common/base/file.h"
#include "common/base/role.h"
#include "common/base/text.h"

uint32_t vhca_left_ms(uint64_t deadline)
{
	uint64_t now = vhca_now_ms();

	if (now >= deadline)
		return 0;
	return deadline - now > INT_MAX ? INT_MAX : (uint32_t)(deadline - now);
}

static int wait_for(int fd, short events, uint64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		int n = poll(&p, 1, (int)vhca_left_ms(deadline));

		if (n > 0)
			return 0; /* errors and hang-ups show in the call that follows */
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static bool is_transient(int errnum)
{
	return errnum == EAGAIN || errnum == EINTR;
}

int vhca_read_deadline(int fd, void *buf, size_t len, uint64_t deadline)
{
	char *p = buf;

	vhca_may_block("read with deadline");
	while (len) {
		int r = wait_for(fd, POLLIN, deadline);
		ssize_t n;

		if (r < 0)
			return r;
		n = recv(fd, p, len, MSG_DONTWAIT);
		if (n < 0 && is_transient(errno))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int vhca_write_deadline(int fd, const void *buf, size_t len, uint64_t deadline)
{
	const char *p = buf;

	vhca_may_block("write with deadline");
	while (len) {
		int r = wait_for(fd, POLLOUT, deadline);
		ssize_t n;

		if (r < 0)
			return r;
		n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && is_transient(errno))
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A unix socket with a full backlog answers EAGAIN at once and cannot be polled for room: try again
 * until the deadline. */
static int connect_until(int fd, const struct sockaddr_un *addr, uint64_t deadline)
{
	const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};

	while (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
		if (!is_transient(errno))
			return -errno;
		if (!vhca_left_ms(deadline))
			return -ETIMEDOUT;
		(void)nanosleep(&pause, NULL); /* woken early: merely tries earlier */
	}
	return 0;
}

int vhca_connect_unix(const char *path, uint64_t deadline)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	VHCA_AUTO_CLOSE int fd = -1;
	int r;

	vhca_may_block("connect");
	if (vhca_strcpy(addr.sun_path, sizeof(addr.sun_path), path) < 0)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = connect_until(fd, &addr, deadline);
	return r < 0 ? r : vhca_steal_fd(&fd);
}

int vhca_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int r;

	r = pthread_condattr_init(&attr);
	if (r != 0)
		return -r;
	r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (r == 0)
		r = pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
	return -r;
}

struct timespec vhca_cond_deadline(uint32_t ms)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail: a valid clock and pointer */
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += (long)(ms % 1000) * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	return ts;
}
