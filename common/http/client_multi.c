// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/client.h"
#include "common/http/transfer.h"

/* More requests than this wait for a connection inside curl; their time is running all the same. */
#define CONNECTIONS_MAX 64L

struct request {
	TAILQ_ENTRY(request) entry;
	struct vhca_http_transfer transfer;
	vhca_http_done_fn done;
	void *arg;
};

struct vhca_http_multi {
	CURLM *curl; /* NULL: it has no connections */
	const struct vhca_http_multi_ops *ops;
	void *ctx;
	TAILQ_HEAD(, request) requests;
	unsigned int n_requests;
	uint64_t renewed_ms; /* older connections are not used; 0 = all are */
	bool closing;	     /* inside of close_connections() */
	bool delivering;     /* inside of a done() */
	bool freed;	     /* by that done(): the memory goes when it returns */
};

VHCA_DEFINE_CLEANUP(struct vhca_http_multi, vhca_http_multi_free)

/* ---- callbacks of curl ---- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *fd_arg)
{
	struct vhca_http_multi *m = arg;
	uint32_t events = 0;

	(void)easy;
	(void)fd_arg;
	if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
		events |= EPOLLIN;
	if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
		events |= EPOLLOUT;
	if (!m->closing || !events)
		m->ops->watch(m->ctx, fd, events);
	return 0;
}

static int on_timer(CURLM *curl, long ms, void *arg)
{
	struct vhca_http_multi *m = arg;

	(void)curl;
	if (!m->closing)
		m->ops->timer(m->ctx, ms);
	return 0;
}

/* ---- connections ---- */

static int open_connections(struct vhca_http_multi *m)
{
	CURLM *curl = curl_multi_init();

	if (!curl || curl_multi_setopt(curl, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
	    curl_multi_setopt(curl, CURLMOPT_SOCKETDATA, m) != CURLM_OK ||
	    curl_multi_setopt(curl, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
	    curl_multi_setopt(curl, CURLMOPT_TIMERDATA, m) != CURLM_OK ||
	    curl_multi_setopt(curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, CONNECTIONS_MAX) != CURLM_OK) {
		(void)curl_multi_cleanup(curl);
		return -ENOMEM;
	}
	m->curl = curl;
	return 0;
}

/*
 * curl 8.12 and later take leave of each TLS server, and would have its socket watched for that: in
 * a loop that may have ended. Nobody waits for it.
 */
static void close_connections(struct vhca_http_multi *m)
{
	m->closing = true;
	(void)curl_multi_cleanup(m->curl); /* fails only for a handle that is none */
	m->closing = false;
	m->curl = NULL;
}

/*
 * curl looks at idle connections only when it has a request: one that its server has closed would
 * be a socket of this process until then.
 */
static void close_when_idle(struct vhca_http_multi *m)
{
	if (m->n_requests == 0 && m->curl)
		m->ops->timer(m->ctx, VHCA_HTTP_MULTI_IDLE_MS);
}

/* ---- life ---- */

int vhca_http_multi_new(const struct vhca_http_multi_ops *ops, void *ctx,
			struct vhca_http_multi **ret)
{
	VHCA_CLEANUP(vhca_http_multi_freep) struct vhca_http_multi *m = NULL;

	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	TAILQ_INIT(&m->requests);
	m->ops = ops;
	m->ctx = ctx;
	*ret = vhca_steal_ptr(&m);
	return 0;
}

static void detach(struct vhca_http_multi *m, struct request *req)
{
	TAILQ_REMOVE(&m->requests, req, entry);
	m->n_requests--;
	(void)curl_multi_remove_handle(m->curl, req->transfer.easy); /* it was added */
}

static void free_request(struct request *req)
{
	vhca_http_transfer_done(&req->transfer);
	free(req);
}

void vhca_http_multi_cancel(struct vhca_http_multi *m, const void *arg)
{
	struct request *req = TAILQ_FIRST(&m->requests), *next;

	for (; req; req = next) {
		next = TAILQ_NEXT(req, entry);
		if (req->arg != arg)
			continue;
		detach(m, req);
		free_request(req);
	}
	close_when_idle(m);
}

struct vhca_http_multi *vhca_http_multi_free(struct vhca_http_multi *m)
{
	struct request *req;

	if (!m)
		return NULL;
	while ((req = TAILQ_FIRST(&m->requests)) != NULL) {
		detach(m, req);
		free_request(req);
	}
	close_connections(m);
	m->freed = true;
	if (!m->delivering)
		free(m);
	return NULL;
}

void vhca_http_multi_renew(struct vhca_http_multi *m)
{
	m->renewed_ms = vhca_now_ms();
	if (m->n_requests == 0)
		close_connections(m);
}

/* curl counts the age of a connection in whole seconds. */
static bool leave_old(const struct vhca_http_multi *m, CURL *easy)
{
	uint64_t s = (vhca_now_ms() - m->renewed_ms) / 1000;

	if (!m->renewed_ms)
		return true;
	if (s < 2)
		return curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
	return curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, (long)(s - 1)) == CURLE_OK;
}

int vhca_http_multi_start(struct vhca_http_multi *m, const struct vhca_http_call_args *args,
			  vhca_http_done_fn done, void *arg)
{
	VHCA_AUTO_FREE struct request *req = NULL;
	int r;

	if (m->freed)
		return -ESHUTDOWN;
	if (m->n_requests >= VHCA_HTTP_MULTI_MAX)
		return -EAGAIN;
	r = m->curl ? 0 : open_connections(m);
	if (r < 0)
		return r;
	req = calloc(1, sizeof(*req));
	if (!req)
		return -ENOMEM;
	r = vhca_http_transfer_init(&req->transfer, args);
	if (r < 0)
		return r;
	req->done = done;
	req->arg = arg;
	if (!leave_old(m, req->transfer.easy) ||
	    curl_easy_setopt(req->transfer.easy, CURLOPT_PRIVATE, req) != CURLE_OK ||
	    curl_multi_add_handle(m->curl, req->transfer.easy) != CURLM_OK) {
		vhca_http_transfer_done(&req->transfer);
		return -ENOMEM;
	}
	m->n_requests++;
	TAILQ_INSERT_TAIL(&m->requests, req, entry);
	(void)vhca_steal_ptr(&req); /* the list's */
	return 0;
}

/* ---- results ---- */

static void deliver(struct vhca_http_multi *m, struct request *req, CURLcode code)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_http_result res;
	int r;

	detach(m, req);
	r = vhca_http_transfer_result(&req->transfer, code, &res, &err);
	m->delivering = true;
	req->done(req->arg, r, &res, &err);
	m->delivering = false;
	vhca_http_result_done(&res);
	free_request(req);
}

static struct request *next_finished(struct vhca_http_multi *m, CURLcode *ret_code)
{
	const CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(m->curl, &left)) != NULL) {
		char *req = NULL;

		if (msg->msg != CURLMSG_DONE)
			continue;
		*ret_code = msg->data.result;
		if (curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &req) == CURLE_OK)
			return (void *)req;
	}
	return NULL;
}

static void act(struct vhca_http_multi *m, curl_socket_t fd, int events)
{
	struct request *req;
	CURLcode code = CURLE_OK;
	int running;

	(void)curl_multi_socket_action(m->curl, fd, events,
				       &running); /* failures show per request */
	while (!m->freed && (req = next_finished(m, &code)) != NULL)
		deliver(m, req, code);
	if (m->freed)
		free(m);
	else
		close_when_idle(m);
}

void vhca_http_multi_ready(struct vhca_http_multi *m, int fd, uint32_t revents)
{
	int events = 0;

	if (revents & EPOLLIN)
		events |= CURL_CSELECT_IN;
	if (revents & EPOLLOUT)
		events |= CURL_CSELECT_OUT;
	if (revents & (EPOLLERR | EPOLLHUP))
		events |= CURL_CSELECT_ERR;
	act(m, fd, events);
}

void vhca_http_multi_timeout(struct vhca_http_multi *m)
{
	if (m->n_requests == 0)
		close_connections(m);
	else
		act(m, CURL_SOCKET_TIMEOUT, 0);
}
