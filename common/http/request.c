// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <gnutls/crypto.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/server_private.h"

#define TEXT_FIRST 1024

VHCA_DEFINE_CLEANUP(struct vhca_http_request, vhca_http_request_free)

struct vhca_http_request *vhca_http_request_new(struct vhca_http_server *srv,
						struct MHD_Connection *conn, const char *method,
						const char *path)
{
	VHCA_CLEANUP(vhca_http_request_freep) struct vhca_http_request *req = NULL;

	req = calloc(1, sizeof(*req));
	if (!req)
		return NULL;
	req->srv = srv;
	req->conn = conn;
	req->begun_us = vhca_now_us();
	TAILQ_INSERT_TAIL(&srv->requests, req, entry);
	/* A longer method is none of ours: it stays empty and matches no route. */
	(void)vhca_strcpy(req->method, sizeof(req->method), method);
	req->path = strdup(path);
	req->split = strdup(path);
	return req->path && req->split ? vhca_steal_ptr(&req) : NULL;
}

void vhca_http_request_free(struct vhca_http_request *req)
{
	if (!req)
		return;
	TAILQ_REMOVE(&req->srv->requests, req, entry);
	for (unsigned int i = 0; i < req->n_query; i++) {
		free(req->query[i][0]);
		free(req->query[i][1]);
	}
	if (req->response)
		MHD_destroy_response(req->response);
	if (req->kept)
		MHD_destroy_response(req->kept);
	free(req->keeper);
	(void)json_object_put(req->body);
	free(req->text);
	free(req->split);
	free(req->path);
	free(req);
}

static int grow(struct vhca_http_request *req, size_t need)
{
	size_t size = req->text_size ? req->text_size : TEXT_FIRST;
	char *text;

	while (size < need)
		size *= 2;
	if (size == req->text_size)
		return 0;
	text = realloc(req->text, size);
	if (!text)
		return -ENOMEM;
	req->text = text;
	req->text_size = size;
	return 0;
}

int vhca_http_request_add_text(struct vhca_http_request *req, const char *data, size_t len)
{
	req->received += len;
	if (req->received > req->srv->body_max)
		return 0;
	if (grow(req, req->received) < 0)
		return -ENOMEM;
	memcpy(req->text + req->text_len, data, len);
	req->text_len += len;
	return 0;
}

/* ---- suspension ---- */

/* -1 without a connection */
static int connection_fd(const struct vhca_http_request *req)
{
	const union MHD_ConnectionInfo *info;

	if (!req->conn)
		return -1;
	info = MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

int vhca_http_request_suspend(struct vhca_http_request *req)
{
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = req};

	if (epoll_ctl(req->srv->epoll_fd, EPOLL_CTL_ADD, connection_fd(req), &event) < 0) {
		vhca_log_error("http: a connection cannot be watched: error %d", errno);
		return -EIO;
	}
	req->suspended = true;
	MHD_suspend_connection(req->conn);
	return 0;
}

static void resume(struct vhca_http_request *req)
{
	if (!req->suspended)
		return;
	req->suspended = false;
	(void)epoll_ctl(req->srv->epoll_fd, EPOLL_CTL_DEL, connection_fd(req),
			NULL); /* it is there */
	MHD_resume_connection(req->conn);
}

void vhca_http_request_cancel(struct vhca_http_request *req)
{
	if (req->gone)
		return;
	req->gone = true;
	resume(req);
	if (req->on_cancel)
		req->on_cancel(req->cancel_arg);
}

void vhca_http_on_cancel(struct vhca_http_request *req, void (*fn)(void *arg), void *arg)
{
	req->on_cancel = fn;
	req->cancel_arg = arg;
}

static void count_answer(struct vhca_http_answers *answers, const struct vhca_http_request *req,
			 unsigned int status)
{
	unsigned int i = 0;

	while (i < VHCA_HTTP_STATUSES_MAX - 1 && answers->rows[i].status &&
	       answers->rows[i].status != status)
		i++;
	answers->rows[i].status = status;
	answers->rows[i].by_role[req->role]++;
	if (req->begun_us)
		vhca_histogram_add(&answers->times, vhca_now_us() - req->begun_us);
}

void vhca_http_reply_response(struct vhca_http_request *req, unsigned int status,
			      struct MHD_Response *response)
{
	if (req->replied) {
		vhca_log_error("http: %s %s: replied twice; this is a bug", req->method, req->path);
		if (response)
			MHD_destroy_response(response);
		return;
	}
	vhca_http_audit(req, status);
	if (req->srv->answers)
		count_answer(req->srv->answers, req, status);
	req->replied = true;
	req->status = status;
	req->response = response;
	if (req->conn)
		resume(req);
	else
		vhca_http_request_free(req);
}

/* ---- what a handler sees ---- */

void vhca_http_keep(struct vhca_http_request *req, vhca_http_keep_fn fn, void *arg)
{
	req->keep = fn;
	req->keeper = arg;
}

void *vhca_http_keeper(const struct vhca_http_request *req)
{
	return req->keeper;
}

int vhca_http_fingerprint(const struct vhca_http_request *req,
			  char ret[static VHCA_HTTP_FINGERPRINT_STRLEN])
{
	unsigned char digest[VHCA_HTTP_DIGEST_SIZE];
	gnutls_hash_hd_t hash;

	if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) < 0)
		return -ENOMEM;
	/* With their final 0, so that no end is another one's begin. */
	(void)gnutls_hash(hash, req->method, strlen(req->method) + 1);
	(void)gnutls_hash(hash, req->path, strlen(req->path) + 1);
	(void)gnutls_hash(hash, req->text_len ? req->text : "", req->text_len);
	gnutls_hash_deinit(hash, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

void vhca_http_do_not_time(struct vhca_http_request *req)
{
	req->begun_us = 0;
}

const char *vhca_http_method(const struct vhca_http_request *req)
{
	return req->method;
}

const char *vhca_http_path(const struct vhca_http_request *req)
{
	return req->path;
}

const char *vhca_http_caller(const struct vhca_http_request *req)
{
	return req->who;
}

enum vhca_caller_role vhca_http_role(const struct vhca_http_request *req)
{
	return req->role;
}

const char *vhca_http_param(const struct vhca_http_request *req, unsigned int i)
{
	return i < VHCA_HTTP_PARAMS_MAX && req->params[i] ? req->params[i] : "";
}

const char *vhca_http_query(const struct vhca_http_request *req, const char *key)
{
	for (unsigned int i = 0; i < req->n_query; i++)
		if (strcmp(req->query[i][0], key) == 0)
			return req->query[i][1];
	return NULL;
}

const char *vhca_http_header(const struct vhca_http_request *req, const char *name)
{
	return req->conn ? MHD_lookup_connection_value(req->conn, MHD_HEADER_KIND, name) : NULL;
}

struct json_object *vhca_http_body(const struct vhca_http_request *req)
{
	return req->body;
}
