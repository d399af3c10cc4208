// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/http_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"

/* ---- server ---- */

struct vhca_http_loop_server {
	struct vhca_http_server *srv;
	struct vhca_watch *watch;
	struct vhca_timer *timer;
};

VHCA_DEFINE_CLEANUP(struct vhca_http_loop_server, vhca_http_loop_detach)

static void run_server(struct vhca_http_loop_server *a)
{
	int ms;

	vhca_http_server_run(a->srv);
	ms = vhca_http_server_timeout_ms(a->srv);
	if (ms < 0)
		vhca_timer_stop(a->timer);
	else
		vhca_timer_arm_ms(a->timer, (uint64_t)ms);
}

static void on_server_ready(void *arg, uint32_t revents)
{
	(void)revents;
	run_server(arg);
}

static void on_server_timeout(void *arg)
{
	run_server(arg);
}

int vhca_http_loop_attach(struct vhca_loop *loop, struct vhca_http_server *srv,
			  struct vhca_http_loop_server **ret)
{
	VHCA_CLEANUP(vhca_http_loop_detachp) struct vhca_http_loop_server *a = NULL;
	int r;

	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->srv = srv;
	r = vhca_timer_new(loop, "http server timeout", on_server_timeout, a, &a->timer);
	if (r < 0)
		return r;
	r = vhca_watch_new(loop, "http server", vhca_http_server_fd(srv), EPOLLIN, on_server_ready,
			   a, &a->watch);
	if (r < 0)
		return r;
	*ret = vhca_steal_ptr(&a);
	return 0;
}

struct vhca_http_loop_server *vhca_http_loop_detach(struct vhca_http_loop_server *a)
{
	if (!a)
		return NULL;
	(void)vhca_watch_free(a->watch);
	(void)vhca_timer_free(a->timer);
	free(a);
	return NULL;
}

void vhca_http_loop_kick(struct vhca_http_loop_server *a)
{
	vhca_timer_arm_ms(a->timer, 0); /* not at once: the caller may be inside of the server */
}

/* ---- client ---- */

struct fd_watch {
	LIST_ENTRY(fd_watch) entry;
	struct vhca_http_loop_client *client;
	int fd;
	struct vhca_watch *watch;
};

struct vhca_http_loop_client {
	struct vhca_loop *loop;
	struct vhca_http_multi *multi;
	struct vhca_timer *timer;
	LIST_HEAD(, fd_watch) watches; /* some tens at most */
};

VHCA_DEFINE_CLEANUP(struct vhca_http_loop_client, vhca_http_loop_client_free)

static void on_client_ready(void *arg, uint32_t revents)
{
	const struct fd_watch *w = arg;

	vhca_http_multi_ready(w->client->multi, w->fd, revents); /* may free w */
}

static void on_client_timeout(void *arg)
{
	vhca_http_multi_timeout(((struct vhca_http_loop_client *)arg)->multi);
}

static void forget(struct fd_watch *w)
{
	LIST_REMOVE(w, entry);
	(void)vhca_watch_free(w->watch);
	free(w);
}

static int add_watch(struct vhca_http_loop_client *c, int fd, uint32_t events)
{
	VHCA_AUTO_FREE struct fd_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->client = c;
	w->fd = fd;
	r = vhca_watch_new(c->loop, "http client", fd, events, on_client_ready, w, &w->watch);
	if (r < 0)
		return r;
	LIST_INSERT_HEAD(&c->watches, w, entry);
	(void)vhca_steal_ptr(&w); /* the list's */
	return 0;
}

static void watch(void *ctx, int fd, uint32_t events)
{
	struct vhca_http_loop_client *c = ctx;
	struct fd_watch *w;
	int r = 0;

	LIST_FOREACH (w, &c->watches, entry)
		if (w->fd == fd)
			break;
	if (w && events)
		r = vhca_watch_set_events(w->watch, events);
	else if (w)
		forget(w);
	else if (events)
		r = add_watch(c, fd, events);
	if (r < 0) /* the request ends with its time-out */
		vhca_log_error("http client: a socket cannot be watched: error %d", -r);
}

static void timer(void *ctx, long ms)
{
	struct vhca_http_loop_client *c = ctx;

	if (ms < 0)
		vhca_timer_stop(c->timer);
	else
		vhca_timer_arm_ms(c->timer, (uint64_t)ms);
}

int vhca_http_loop_client_new(struct vhca_loop *loop, struct vhca_http_loop_client **ret)
{
	static const struct vhca_http_multi_ops ops = {.watch = watch, .timer = timer};
	VHCA_CLEANUP(vhca_http_loop_client_freep) struct vhca_http_loop_client *c = NULL;
	int r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->loop = loop;
	LIST_INIT(&c->watches);
	r = vhca_timer_new(loop, "http client timeout", on_client_timeout, c, &c->timer);
	if (r < 0)
		return r;
	r = vhca_http_multi_new(&ops, c, &c->multi);
	if (r < 0)
		return r;
	*ret = vhca_steal_ptr(&c);
	return 0;
}

struct vhca_http_multi *vhca_http_loop_client_multi(struct vhca_http_loop_client *c)
{
	return c->multi;
}

struct vhca_http_loop_client *vhca_http_loop_client_free(struct vhca_http_loop_client *c)
{
	struct fd_watch *w;

	if (!c)
		return NULL;
	(void)vhca_http_multi_free(
		c->multi); /* takes its own watches back, as long as they are known here */
	while ((w = LIST_FIRST(&c->watches)) != NULL)
		forget(w);
	(void)vhca_timer_free(c->timer);
	free(c);
	return NULL;
}
