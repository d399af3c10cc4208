/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/common/http/echo_server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/json.h"

static void on_echo(void *ctx, struct vhca_http_request *req)
{
	struct json_object *reply = json_object_new_object();

	((struct echo_server *)ctx)->n_echo++;
	vhca_json_add_string(reply, "method", vhca_http_method(req));
	vhca_json_add_string(reply, "path", vhca_http_path(req));
	vhca_json_add_string(reply, "p0", vhca_http_param(req, 0));
	vhca_json_add_string(reply, "p1", vhca_http_param(req, 1));
	vhca_json_add_string(reply, "p9", vhca_http_param(req, 9));
	vhca_json_add_string(reply, "state", vhca_http_query(req, "state"));
	vhca_json_add_string(reply, "key", vhca_http_header(req, "idempotency-key"));
	vhca_json_add(reply, "body", json_object_get(vhca_http_body(req)));
	vhca_http_reply(req, 200, reply);
}

static void on_empty(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply(req, 204, NULL);
}

static void count_cancel(void *arg)
{
	(*(unsigned int *)arg)++;
}

static void on_late(void *ctx, struct vhca_http_request *req)
{
	struct echo_server *f = ctx;

	f->late[f->n_late++] = req;
	vhca_http_on_cancel(req, count_cancel, &f->n_cancelled);
}

static void on_error(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)ctx;
	(void)vhca_error_set(&err, VHCA_ERR_CONFLICT, "vf_busy", 0, "0000:01:00.1: in use");
	vhca_error_hint(&err, "detach it first");
	vhca_http_reply_error(req, &err);
}

/* What has failed, perhaps in the middle. */
static void on_failure(void *ctx, struct vhca_http_request *req)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)ctx;
	(void)vhca_error_set(&err, VHCA_ERR_INTERNAL, "disk_full", 0, "half of it is written");
	vhca_http_reply_error(req, &err);
}

static void on_big(void *ctx, struct vhca_http_request *req)
{
	struct json_object *reply = json_object_new_object();
	char *text = malloc(2000001);

	(void)ctx;
	assert_non_null(text);
	memset(text, 'x', 2000000);
	text[2000000] = '\0';
	vhca_json_add_string(reply, "big", text);
	free(text);
	vhca_http_reply(req, 200, reply);
}

static void on_text(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply_text(req, 200, "text/plain; version=0.0.4", "vhcad_vfs 4\n");
}

static void on_document(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply_document(req, "{\"openapi\":\"3.1.0\"}");
}

const struct vhca_http_route echo_server_routes[] = {
	{"GET", "/v1/echo", VHCA_CALLER_NOBODY, on_echo, "state key"},
	{"PUT", "/v1/echo", VHCA_CALLER_NOBODY, on_echo},
	{"POST", "/v1/domains/{}/vfs/{}", VHCA_CALLER_NOBODY, on_echo, "state key"},
	{"GET", "/v1/empty", VHCA_CALLER_NOBODY, on_empty},
	{"GET", "/v1/late", VHCA_CALLER_NOBODY, on_late, "wait"},
	{"POST", "/v1/late", VHCA_CALLER_NOBODY, on_late},
	{"DELETE", "/v1/error", VHCA_CALLER_NOBODY, on_error},
	{"DELETE", "/v1/failure", VHCA_CALLER_NOBODY, on_failure},
	{"GET", "/v1/big", VHCA_CALLER_NOBODY, on_big},
	{"GET", "/metrics", VHCA_CALLER_NOBODY, on_text},
	{"GET", "/openapi.json", VHCA_CALLER_NOBODY, on_document},
	{.method = NULL},
};

struct vhca_http_server *echo_server_listen(struct echo_server *f, const char *spec)
{
	static const struct vhca_http_limits limits = {
		.body_max = 1024, .connections_max = 16, .head_ms = 1000, .idle_timeout_s = 1};
	struct vhca_http_server *srv = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_http_server_new(spec, 0660, &limits, echo_server_routes, f, &srv, &err) < 0)
		fail_msg("%s", err.msg);
	return srv;
}

int echo_server_setup(void **state)
{
	struct echo_server *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vhca-http-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/s.sock", f->dir);
	(void)snprintf(f->listen, sizeof(f->listen), "unix:%s", f->path);
	f->srv = echo_server_listen(f, f->listen);
	*state = f;
	return 0;
}

int echo_server_teardown(void **state)
{
	struct echo_server *f = *state;

	f->srv = vhca_http_server_free(f->srv);
	assert_int_equal(access(f->path, F_OK), -1); /* the socket is removed */
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

void echo_server_run(const struct echo_server *f, int ms)
{
	struct pollfd p = {.fd = vhca_http_server_fd(f->srv), .events = POLLIN};
	int timeout = vhca_http_server_timeout_ms(f->srv);

	if (timeout < 0 || timeout > ms)
		timeout = ms;
	assert_true(poll(&p, 1, timeout) >= 0);
	vhca_http_server_run(f->srv);
}

int echo_server_dial(const struct echo_server *f)
{
	int fd = vhca_connect_unix(f->path, vhca_now_ms() + 20000);

	assert_true(fd >= 0);
	return fd;
}

void echo_server_send(int fd, const char *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

ssize_t echo_server_drain(const struct echo_server *f, int fd, char *buf, size_t size)
{
	uint64_t deadline = vhca_now_ms() + 20000;
	size_t len = 0;
	ssize_t n;

	while (vhca_now_ms() < deadline) {
		n = recv(fd, buf + len, size - 1 - len, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno == ECONNRESET)) {
			buf[len] = '\0';
			return (ssize_t)len;
		}
		if (n > 0)
			len += (size_t)n;
		else
			echo_server_run(f, 10);
	}
	return -1;
}

int echo_server_ask(const struct echo_server *f, const char *head, const char *body, char **ret)
{
	VHCA_AUTO_CLOSE int fd = echo_server_dial(f);
	char *reply = malloc(ECHO_REPLY_MAX), text[4096];
	unsigned int status;
	int n;

	assert_non_null(reply);
	n = snprintf(text, sizeof(text), "%s\r\nHost: x\r\nConnection: close\r\n", head);
	if (body)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "Content-Length: %zu\r\n",
			      strlen(body));
	n += snprintf(text + n, sizeof(text) - (size_t)n, "\r\n%s", body ? body : "");
	assert_in_range(n, 1, sizeof(text) - 1);
	echo_server_send(fd, text, (size_t)n);
	assert_true(echo_server_drain(f, fd, reply, ECHO_REPLY_MAX) > 0);
	assert_int_equal(strncmp(reply, "HTTP/1.1 ", 9), 0);
	status = (unsigned int)strtoul(reply + 9, NULL, 10);
	if (ret)
		*ret = reply;
	else
		free(reply);
	return (int)status;
}

struct json_object *echo_server_body(const char *reply)
{
	const char *text = strstr(reply, "\r\n\r\n");
	struct json_object *obj = NULL;

	assert_non_null(text);
	assert_int_equal(vhca_json_parse(text + 4, strlen(text + 4), &obj, NULL), 0);
	return obj;
}

int echo_server_start_late(struct echo_server *f)
{
	static const char text[] =
		"GET /v1/late?wait=30 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	unsigned int before = f->n_late;
	int fd = echo_server_dial(f);

	echo_server_send(fd, text, sizeof(text) - 1);
	for (int i = 0; i < 100 && f->n_late == before; i++)
		echo_server_run(f, 10);
	assert_int_equal(f->n_late, before + 1);
	return fd;
}
