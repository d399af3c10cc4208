/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/hook_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"

struct conn {
	TAILQ_ENTRY(conn) link;
	struct vhca_hookd *h;
	int fd;
	struct vhca_watch *watch;
	struct vhca_timer *timer;
	struct vhca_hook_request req;
	uint64_t held_until_ms; /* vhca_now_ms(); 0 = it is not held */
	size_t have;
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
};

struct vhca_hookd {
	struct vhca_loop *loop;
	vhca_hookd_fn decide;
	void *arg;
	int fd;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct vhca_watch *watch;
	unsigned int n_conns;
	TAILQ_HEAD(, conn) conns;
};

static void close_conn(struct conn *c)
{
	TAILQ_REMOVE(&c->h->conns, c, link);
	c->h->n_conns--;
	vhca_watch_free(c->watch);
	vhca_timer_free(c->timer);
	(void)close(c->fd); /* nothing is owed to the hook any more */
	free(c);
}

static void answer(struct conn *c, int rc, const struct vhca_error *err)
{
	struct vhca_hook_reply reply = {.pass = rc == 0};
	uint8_t frame[VHCA_HOOK_FRAME_MAX];
	size_t len = 0;

	if (!reply.pass) {
		(void)snprintf(reply.reason, sizeof(reply.reason), "%s", err->msg);
		vhca_log_warning("%s: hook %s refused: %s", c->req.name, c->req.op, err->msg);
	}
	if (vhca_hook_reply_encode(&reply, frame, sizeof(frame), &len) < 0)
		return;
	/* A reply is smaller than any socket buffer; a hook that has gone needs none. */
	(void)!send(c->fd, frame, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* What decide() has begun is waited for; a hook that has gone meanwhile needs no answer. */
static void ask(struct conn *c)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int rc = c->h->decide(c->h->arg, &c->req, &err);

	if (rc == -EINPROGRESS && vhca_now_ms() < c->held_until_ms) {
		vhca_timer_arm_ms(c->timer, VHCA_HOOKD_PAUSE_MS);
		return;
	}
	answer(c, rc, &err);
	close_conn(c);
}

static void on_timeout(void *arg)
{
	struct conn *c = arg;

	if (c->held_until_ms)
		ask(c);
	else
		close_conn(c);
}

/* 1 = whole frame there, 0 = more to come, negative = not our protocol. */
static int frame_complete(const struct conn *c, size_t *ret_payload)
{
	if (c->have < VHCA_HOOK_HEAD_LEN)
		return 0;
	if (vhca_hook_payload_len(c->frame, ret_payload) < 0)
		return -EBADMSG;
	return c->have >= VHCA_HOOK_HEAD_LEN + *ret_payload;
}

static void on_conn(void *arg, uint32_t revents)
{
	struct conn *c = arg;
	size_t payload = 0;
	ssize_t n = recv(c->fd, c->frame + c->have, sizeof(c->frame) - c->have, MSG_DONTWAIT);
	int r;

	(void)revents;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_conn(c);
		return;
	}
	c->have += (size_t)n;
	r = frame_complete(c, &payload);
	if (r == 0)
		return;
	if (r > 0 &&
	    vhca_hook_request_parse(c->frame + VHCA_HOOK_HEAD_LEN, payload, &c->req) == 0) {
		vhca_watch_free(c->watch);
		c->watch = NULL;
		c->held_until_ms = vhca_now_ms() + VHCA_HOOKD_HOLD_MS;
		ask(c);
		return;
	}
	if (r > 0)
		vhca_log_warning("hook: a message that cannot be read");
	close_conn(c);
}

static int add_conn(struct vhca_hookd *h, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->h = h;
	c->fd = fd;
	TAILQ_INSERT_TAIL(&h->conns, c, link);
	h->n_conns++;
	r = vhca_timer_new(h->loop, "hook", on_timeout, c, &c->timer);
	if (r == 0)
		r = vhca_watch_new(h->loop, "hook", fd, EPOLLIN, on_conn, c, &c->watch);
	if (r < 0) {
		close_conn(c);
		return 0; /* the descriptor is closed already */
	}
	vhca_timer_arm_ms(c->timer, VHCA_HOOKD_TIMEOUT_MS);
	return 0;
}

static void on_accept(void *arg, uint32_t revents)
{
	struct vhca_hookd *h = arg;
	int fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)revents;
	if (fd < 0)
		return;
	if (h->n_conns >= VHCA_HOOKD_CONNECTIONS_MAX || add_conn(h, fd) < 0)
		(void)close(fd); /* the hook falls back to its policy */
}

static int listen_on(struct vhca_hookd *h, const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int r = vhca_strcpy(sa.sun_path, sizeof(sa.sun_path), path);

	if (r < 0 || vhca_strcpy(h->path, sizeof(h->path), path) < 0)
		return -ENAMETOOLONG;
	h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd < 0)
		return -errno;
	(void)unlink(path); /* left by an earlier run; the API socket proves that we are alone */
	if (bind(h->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || chmod(path, 0600) < 0 ||
	    listen(h->fd, 16) < 0)
		return -errno;
	return 0;
}

int vhca_hookd_new(struct vhca_loop *loop, const char *path, vhca_hookd_fn decide, void *arg,
		   struct vhca_hookd **ret, struct vhca_error *err)
{
	struct vhca_hookd *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return vhca_error_no_memory(err, "hook socket");
	*h = (struct vhca_hookd){.loop = loop, .decide = decide, .arg = arg, .fd = -1};
	TAILQ_INIT(&h->conns);
	r = listen_on(h, path);
	if (r == 0)
		r = vhca_watch_new(loop, "hook accept", h->fd, EPOLLIN, on_accept, h, &h->watch);
	if (r < 0) {
		vhca_hookd_free(h);
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "hook_socket", -r,
				      "%s: cannot listen", path);
	}
	*ret = h;
	return 0;
}

struct vhca_hookd *vhca_hookd_free(struct vhca_hookd *h)
{
	if (!h)
		return NULL;
	while (TAILQ_FIRST(&h->conns))
		close_conn(TAILQ_FIRST(&h->conns));
	vhca_watch_free(h->watch);
	if (h->fd >= 0) {
		(void)close(h->fd);
		(void)unlink(h->path); /* refused at once is better than a time-out for the hook */
	}
	free(h);
	return NULL;
}
