// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/server.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/server_private.h"

VHCA_DEFINE_CLEANUP(struct vhca_http_server, vhca_http_server_free)

/* The body of a refused request is read and thrown away up to this many times the limit; beyond
 * that the connection is cut. */
#define DISCARD_FACTOR 16

static const struct vhca_http_limits default_limits = {
	.body_max = 65536,
	.connections_max = 128,
	.connection_memory = 32768,
	.handshake_ms = 5000,
	.head_ms = 10000,
	.body_ms = 10000,
	.answer_ms = 30000,
	.idle_timeout_s = 30,
};

/* ---- callbacks of libmicrohttpd ---- */

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	(void)cls;
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	vhca_log_debug("http: %s", text);
}

/* Escapes are decoded segment by segment in route.c, where "%2f" does not become a separator. */
static size_t keep_escapes(void *cls, struct MHD_Connection *conn, char *s)
{
	(void)cls;
	(void)conn;
	return strlen(s);
}

static void enter_phase(struct vhca_http_server *srv, struct MHD_Connection *conn,
			enum vhca_http_phase phase)
{
	struct vhca_http_peer *peer = vhca_http_peer_of(conn);

	if (peer)
		vhca_http_door_begin(&srv->door, &peer->visit, phase);
}

static enum MHD_Result queue_reply(struct vhca_http_request *req)
{
	struct MHD_Response *response = vhca_steal_ptr(&req->response);
	const struct vhca_http_peer *peer = vhca_http_peer_of(req->conn);
	enum MHD_Result r;

	/* Those who wait to be accepted get their turn. It fails only without memory. */
	if (vhca_http_door_is_crowded(&req->srv->door, &peer->visit))
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	enter_phase(req->srv, req->conn, VHCA_HTTP_ANSWER);
	r = MHD_queue_response(req->conn, req->status, response);
	MHD_destroy_response(response); /* drops our reference only */
	return r;
}

static bool announces_over(const struct vhca_http_request *req, uint64_t limit)
{
	const char *text = vhca_http_header(req, "Content-Length");
	uint64_t len;

	return text && vhca_parse_u64(text, 10, limit, &len) < 0;
}

static enum MHD_Result refuse(struct vhca_http_request *req, const struct vhca_error *err)
{
	req->dispatched = true;
	req->received = req->srv->body_max + 1; /* what comes now is counted, not kept */
	if (err->kind != VHCA_ERR_NONE)
		vhca_http_reply_problem(req, err, NULL);
	else
		vhca_http_dispatch(req);
	if (!req->response)
		return MHD_NO;
	/*
	 * A refusal follows the body: a connection that is closed under a client that still sends
	 * takes the answer with it. A client that waits for leave to send, or has more than is
	 * read, gets it at once.
	 */
	if (vhca_http_header(req, "Expect") ||
	    announces_over(req, (uint64_t)req->srv->body_max * DISCARD_FACTOR))
		return queue_reply(req);
	return MHD_YES;
}

static enum MHD_Result begin(struct vhca_http_server *srv, struct MHD_Connection *conn,
			     const char *method, const char *path, struct vhca_http_request **ret)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_http_request *req;

	if (!vhca_http_peer_of(conn))
		return MHD_NO;
	enter_phase(srv, conn, VHCA_HTTP_BODY);
	req = *ret = vhca_http_request_new(srv, conn, method, path);
	if (!req)
		return MHD_NO;
	if (vhca_http_auth_check(req, &err) < 0)
		return refuse(req, &err);
	if (vhca_http_caller_find(req) < 0)
		return MHD_NO;
	return announces_over(req, srv->body_max) ? refuse(req, &err) : MHD_YES;
}

/* The request is complete, or its connection was resumed. */
static enum MHD_Result proceed(struct vhca_http_request *req)
{
	if (!req->dispatched) {
		req->dispatched = true;
		enter_phase(req->srv, req->conn, VHCA_HTTP_HANDLED);
		vhca_http_dispatch(req);
	}
	if (req->gone)
		return MHD_NO;
	if (req->response)
		return queue_reply(req);
	if (req->replied) /* out of memory for the answer */
		return MHD_NO;
	return vhca_http_request_suspend(req) < 0 ? MHD_NO : MHD_YES;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *path,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_len, void **con_cls)
{
	struct vhca_http_request *req = *con_cls;
	enum MHD_Result r = MHD_NO;

	(void)version;
	if (!req) {
		r = begin(cls, conn, method, path, &req);
		*con_cls = req;
		return r;
	}
	if (!*upload_len)
		return proceed(req);
	if (vhca_http_request_add_text(req, upload, *upload_len) == 0 &&
	    req->received / DISCARD_FACTOR <= req->srv->body_max)
		r = MHD_YES;
	*upload_len = 0;
	return r;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **con_cls,
			 enum MHD_RequestTerminationCode code)
{
	struct vhca_http_peer *peer = vhca_http_peer_of(conn);
	struct vhca_http_request *req = *con_cls;
	struct vhca_http_server *srv = cls;

	(void)code;
	if (!req)
		return;
	if (peer) {
		vhca_http_door_begin(&srv->door, &peer->visit, VHCA_HTTP_IDLE);
		vhca_http_door_taken(&srv->door, &peer->visit);
	}
	*con_cls = NULL;
	if (req->dispatched && !req->replied)
		vhca_http_request_cancel(req);
	req->conn = NULL;
	if (req->replied || !req->dispatched)
		vhca_http_request_free(req);
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **socket_cls,
			  enum MHD_ConnectionNotificationCode code)
{
	struct vhca_http_server *srv = cls;
	struct vhca_http_peer *peer;

	if (code != MHD_CONNECTION_NOTIFY_STARTED) {
		*socket_cls = vhca_http_peer_free(srv, *socket_cls);
		return;
	}
	*socket_cls = peer = vhca_http_peer_new(srv, conn);
	if (peer && peer->visit.session)
		vhca_http_peer_put(peer, &srv->shaking);
}

/* ---- handshakes in turn ---- */

/*
 * What libmicrohttpd itself waits for. 1.0 waits for EPOLLRDHUP, too, which never comes without
 * EPOLLIN.
 */
#define DAEMON_EVENTS (EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLET)

static int wait_for(struct vhca_http_server *srv, const struct vhca_http_peer *peer,
		    uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = peer->conn};

	return epoll_ctl(srv->daemon_fd, EPOLL_CTL_MOD, peer->visit.fd, &event);
}

/*
 * The answer to a client's hello costs a millisecond, and libmicrohttpd gives it to all whose hello
 * has come, one after the other: whatever else the thread has to do would wait for the crowd. So
 * they are held, and each run takes one of strangers and one of those who have passed before; and
 * again until the handshake is over, for what has come need not be all of a hello.
 *
 * A handshake that has begun libmicrohttpd tries in each run, and wants to be run at once, whether
 * more has come or not. Suspended, it does not; one that has not begun it would not resume. It is
 * documented that only its callbacks may suspend; between two runs, and by the thread that runs it,
 * 0.9.75 and 1.0.1 do the same, and a handshake knows no callback.
 */
static void hold_shaking(struct vhca_http_server *srv)
{
	struct vhca_http_peer *peer;

	while ((peer = TAILQ_FIRST(&srv->shaking))) {
		const struct vhca_http_source *source = peer->visit.source;
		struct epoll_event event = {.data.ptr = peer};
		const int *fd = &srv->hello_fds[source && source->known];

		vhca_http_peer_put(peer, NULL);
		event.events = vhca_http_auth_awaits(peer->visit.session);
		if (!event.events || epoll_ctl(*fd, EPOLL_CTL_ADD, peer->visit.fd, &event) < 0)
			continue; /* it is over; or answered with the crowd */
		peer->held_by = fd;
		event.events = 0; /* but a hang-up, which is reported always */
		(void)epoll_ctl(srv->gone_fd, EPOLL_CTL_ADD, peer->visit.fd, &event);
		vhca_http_peer_put(peer, &srv->held);
		if (peer->begun)
			MHD_suspend_connection(peer->conn);
		else
			(void)wait_for(srv, peer, 0);
	}
}

static void release(struct vhca_http_server *srv, struct vhca_http_peer *peer)
{
	vhca_http_peer_let_go(srv, peer);
	vhca_http_peer_put(peer, &srv->shaking);
	if (peer->begun)
		MHD_resume_connection(peer->conn);
	else
		(void)wait_for(srv, peer, DAEMON_EVENTS); /* it is there */
	peer->begun = true;
}

/*
 * Who was ended, or has reset, hangs up at libmicrohttpd, too, whatever that waits for; what he had
 * said could be read still, and would be answered at once. So it is thrown away first.
 */
static void take_next(struct vhca_http_server *srv)
{
	struct epoll_event event;

	while (epoll_wait(srv->gone_fd, &event, 1, 0) == 1) {
		const struct vhca_http_peer *peer = event.data.ptr;

		(void)recv(peer->visit.fd, NULL, INT_MAX, MSG_TRUNC | MSG_DONTWAIT);
		release(srv, event.data.ptr);
	}
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(srv->hello_fds); i++)
		if (epoll_wait(srv->hello_fds[i], &event, 1, 0) == 1)
			release(srv, event.data.ptr);
}

/* ---- life ---- */

static struct vhca_http_limits effective(const struct vhca_http_limits *limits)
{
	struct vhca_http_limits l = limits ? *limits : default_limits;

	l.body_max = l.body_max ? l.body_max : default_limits.body_max;
	l.connections_max = l.connections_max ? l.connections_max : default_limits.connections_max;
	l.connection_memory =
		l.connection_memory ? l.connection_memory : default_limits.connection_memory;
	l.source_max = l.source_max ? l.source_max : (l.connections_max + 1) / 2;
	l.strangers_max = l.strangers_max ? l.strangers_max : (l.connections_max + 1) / 2;
	l.handshake_ms = l.handshake_ms ? l.handshake_ms : default_limits.handshake_ms;
	l.head_ms = l.head_ms ? l.head_ms : default_limits.head_ms;
	l.body_ms = l.body_ms ? l.body_ms : default_limits.body_ms;
	l.answer_ms = l.answer_ms ? l.answer_ms : default_limits.answer_ms;
	l.idle_timeout_s = l.idle_timeout_s ? l.idle_timeout_s : default_limits.idle_timeout_s;
	return l;
}

static struct MHD_Daemon *start(struct vhca_http_server *srv, const struct vhca_http_limits *limits)
{
	struct MHD_OptionItem tls[VHCA_HTTP_AUTH_OPTIONS];

	vhca_http_auth_options(srv->auth, srv->authority, tls);
	return MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
			vhca_http_auth_flags(srv->auth),
		0, NULL, NULL, on_request, srv, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
		MHD_OPTION_LISTEN_SOCKET, srv->listener.fd, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, srv, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, srv, MHD_OPTION_CONNECTION_LIMIT,
		limits->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		limits->connection_memory, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

/* libmicrohttpd's epoll descriptor goes into ours. */
static int nest_epoll(struct vhca_http_server *srv)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(srv->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	int *const held[] = {&srv->hello_fds[0], &srv->hello_fds[1], &srv->gone_fd};

	srv->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!info || srv->epoll_fd < 0 ||
	    epoll_ctl(srv->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &event) < 0)
		return -errno;
	srv->daemon_fd = info->epoll_fd;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(held); i++) {
		*held[i] = epoll_create1(EPOLL_CLOEXEC);
		if (*held[i] < 0 || epoll_ctl(srv->epoll_fd, EPOLL_CTL_ADD, *held[i], &event) < 0)
			return -errno;
	}
	return 0;
}

int vhca_http_server_new(const char *listen, mode_t sock_mode,
			 const struct vhca_http_limits *limits,
			 const struct vhca_http_route *routes, void *ctx,
			 struct vhca_http_server **ret, struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_http_server_freep) struct vhca_http_server *srv = NULL;
	struct vhca_http_limits l = effective(limits);
	int r;

	r = vhca_http_auth_serves(l.auth, listen, err);
	if (r < 0)
		return r;
	srv = calloc(1, sizeof(*srv));
	if (!srv)
		return vhca_error_no_memory(err, listen);
	*srv = (struct vhca_http_server){
		.listener = VHCA_LISTENER_NULL,
		.routes = routes,
		.ctx = ctx,
		.body_max = l.body_max,
		.admit = l.admit,
		.auth = l.auth,
		.rules = l.rules,
		.answers = l.answers,
		.epoll_fd = -1,
		.hello_fds = {-1, -1},
		.gone_fd = -1,
	};
	TAILQ_INIT(&srv->requests);
	TAILQ_INIT(&srv->shaking);
	TAILQ_INIT(&srv->held);
	vhca_http_door_init(&srv->door, &l);
	if (l.auth && l.auth->authority.text) {
		srv->authority = strdup(l.auth->authority.text);
		if (!srv->authority)
			return vhca_error_no_memory(err, listen);
	}
	r = vhca_listen(listen, sock_mode, &srv->listener, err);
	if (r < 0)
		return r;
	srv->daemon =
		start(srv, &l); /* owns the listening descriptor from here on, even if it fails */
	if (!srv->daemon)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "listen", EIO, "%s: HTTP server",
				      listen);
	r = nest_epoll(srv);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "listen", -r, "%s: epoll", listen);
	*ret = vhca_steal_ptr(&srv);
	return 0;
}

static struct vhca_http_request *first_waiting(struct vhca_http_server *srv)
{
	struct vhca_http_request *req;

	TAILQ_FOREACH (req, &srv->requests, entry)
		if (req->dispatched && !req->replied && !req->gone)
			return req;
	return NULL;
}

struct vhca_http_server *vhca_http_server_free(struct vhca_http_server *srv)
{
	struct vhca_http_request *req;

	if (!srv)
		return NULL;
	while ((req = first_waiting(srv)) !=
	       NULL) /* a cancelled owner may reply to others: look anew */
		vhca_http_request_cancel(req);
	while (!TAILQ_EMPTY(&srv->held)) /* libmicrohttpd does not stop with what is suspended */
		release(srv, TAILQ_FIRST(&srv->held));
	if (srv->daemon)
		MHD_stop_daemon(srv->daemon);
	while ((req = TAILQ_FIRST(&srv->requests)) != NULL)
		vhca_http_request_free(req);
	if (srv->epoll_fd >= 0)
		(void)close(srv->epoll_fd); /* an epoll descriptor has nothing to lose */
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(srv->hello_fds); i++)
		vhca_close_cleanup(&srv->hello_fds[i]);
	vhca_close_cleanup(&srv->gone_fd);
	vhca_listener_done(&srv->listener);
	vhca_http_audit_sweep(srv, UINT64_MAX);
	vhca_http_door_done(&srv->door);
	free(srv->authority);
	free(srv);
	return NULL;
}

int vhca_http_server_fd(const struct vhca_http_server *srv)
{
	return srv->epoll_fd;
}

void vhca_http_server_stats(const struct vhca_http_server *srv, struct vhca_http_stats *ret)
{
	*ret = srv->door.stats;
}

uint16_t vhca_http_server_port(const struct vhca_http_server *srv)
{
	return srv->listener.port;
}

int vhca_http_server_timeout_ms(const struct vhca_http_server *srv)
{
	int audit = vhca_ratelimit_timeout_ms(&srv->refusals, vhca_now_ms());
	int door = vhca_http_door_timeout_ms(&srv->door);
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(srv->daemon, &ms) == MHD_YES && ms == 0)
		return 0; /* it has something to do; its own time-outs are not used */
	return audit < 0 || (door >= 0 && door < audit) ? door : audit;
}

/* Which of the suspended connections have lost their client? */
static void find_gone(struct vhca_http_server *srv)
{
	struct epoll_event events[32];
	int n = epoll_wait(srv->epoll_fd, events, VHCA_ARRAY_SIZE(events), 0);

	for (int i = 0; i < n; i++) {
		struct vhca_http_request *req = events[i].data.ptr;

		/* Requests are freed by libmicrohttpd's completion only, so the pointer is valid;
		 * but an on_cancel may have replied to it since. */
		if (req && req->suspended)
			vhca_http_request_cancel(req);
	}
}

void vhca_http_server_run(struct vhca_http_server *srv)
{
	const struct vhca_http_auth *before;

	find_gone(srv);
	vhca_http_door_sweep(&srv->door);
	vhca_http_audit_sweep(srv, vhca_now_ms());
	take_next(srv);
	/* A handler's answer may run this server inside of another one. */
	before = vhca_http_auth_run(srv->auth);
	if (MHD_run(srv->daemon) != MHD_YES)
		vhca_log_error("http: the server failed to run; it was started in a wrong mode");
	(void)vhca_http_auth_run(before);
	hold_shaking(srv);
}
