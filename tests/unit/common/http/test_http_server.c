// SPDX-License-Identifier: LGPL-2.1-or-later
/* The server against a client that writes bytes, so that broken requests can be sent too. One
 * thread: the test pumps. */
#include "common/http/server.h"

#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/json.h"

#define REPLY_MAX (4 * 1024 * 1024)

struct fixture {
	char dir[64], path[96], listen[128];
	struct vhca_http_server *srv;
	struct vhca_http_request *late[8]; /* held by on_late(), in order of arrival */
	unsigned int n_late, n_cancelled, n_echo;
};

/* ---- handlers ---- */

static void on_echo(void *ctx, struct vhca_http_request *req)
{
	struct json_object *reply = json_object_new_object();

	((struct fixture *)ctx)->n_echo++;
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
	struct fixture *f = ctx;

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

static const struct vhca_http_route routes[] = {
	{"GET", "/v1/echo", VHCA_CALLER_NOBODY, on_echo, "state key"},
	{"PUT", "/v1/echo", VHCA_CALLER_NOBODY, on_echo},
	{"POST", "/v1/domains/{}/vfs/{}", VHCA_CALLER_NOBODY, on_echo, "state key"},
	{"GET", "/v1/empty", VHCA_CALLER_NOBODY, on_empty},
	{"GET", "/v1/late", VHCA_CALLER_NOBODY, on_late, "wait"},
	{"POST", "/v1/late", VHCA_CALLER_NOBODY, on_late},
	{"DELETE", "/v1/error", VHCA_CALLER_NOBODY, on_error},
	{"GET", "/v1/big", VHCA_CALLER_NOBODY, on_big},
	{"GET", "/metrics", VHCA_CALLER_NOBODY, on_text},
	{.method = NULL},
};

/* ---- fixture ---- */

static struct vhca_http_server *listen_on(struct fixture *f, const char *spec)
{
	static const struct vhca_http_limits limits = {
		.body_max = 1024, .connections_max = 16, .head_ms = 1000, .idle_timeout_s = 1};
	struct vhca_http_server *srv = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_http_server_new(spec, 0660, &limits, routes, f, &srv, &err) < 0)
		fail_msg("%s", err.msg);
	return srv;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vhca-http-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/s.sock", f->dir);
	(void)snprintf(f->listen, sizeof(f->listen), "unix:%s", f->path);
	f->srv = listen_on(f, f->listen);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->srv = vhca_http_server_free(f->srv);
	assert_int_equal(access(f->path, F_OK), -1); /* the socket is removed */
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* ---- client ---- */

static void pump(const struct fixture *f, int ms)
{
	struct pollfd p = {.fd = vhca_http_server_fd(f->srv), .events = POLLIN};
	int timeout = vhca_http_server_timeout_ms(f->srv);

	if (timeout < 0 || timeout > ms)
		timeout = ms;
	assert_true(poll(&p, 1, timeout) >= 0);
	vhca_http_server_run(f->srv);
}

static int dial(const struct fixture *f)
{
	int fd = vhca_connect_unix(f->path, vhca_now_ms() + 1000);

	assert_true(fd >= 0);
	return fd;
}

static void send_bytes(int fd, const char *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Reads to the end of the connection, at most 3 s; -1 if it does not end. */
static ssize_t drain(const struct fixture *f, int fd, char *buf, size_t size)
{
	uint64_t deadline = vhca_now_ms() + 3000;
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
			pump(f, 10);
	}
	return -1;
}

/* One request with "Connection: close"; returns the status, and the answer in *ret (caller frees).
 */
static int ask(const struct fixture *f, const char *head, const char *body, char **ret)
{
	VHCA_AUTO_CLOSE int fd = dial(f);
	char *reply = malloc(REPLY_MAX), text[4096];
	unsigned int status;
	int n;

	assert_non_null(reply);
	n = snprintf(text, sizeof(text), "%s\r\nHost: x\r\nConnection: close\r\n", head);
	if (body)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "Content-Length: %zu\r\n",
			      strlen(body));
	n += snprintf(text + n, sizeof(text) - (size_t)n, "\r\n%s", body ? body : "");
	assert_in_range(n, 1, sizeof(text) - 1);
	send_bytes(fd, text, (size_t)n);
	assert_true(drain(f, fd, reply, REPLY_MAX) > 0);
	assert_int_equal(strncmp(reply, "HTTP/1.1 ", 9), 0);
	status = (unsigned int)strtoul(reply + 9, NULL, 10);
	if (ret)
		*ret = reply;
	else
		free(reply);
	return (int)status;
}

static struct json_object *body_of(const char *reply)
{
	const char *text = strstr(reply, "\r\n\r\n");
	struct json_object *obj = NULL;

	assert_non_null(text);
	assert_int_equal(vhca_json_parse(text + 4, strlen(text + 4), &obj, NULL), 0);
	return obj;
}

static void assert_member(const char *reply, const char *key, const char *value)
{
	struct json_object *obj = body_of(reply);
	const char *s = NULL;

	assert_int_equal(vhca_json_opt_string(obj, key, &s, NULL), 0);
	assert_non_null(s);
	assert_string_equal(s, value);
	(void)json_object_put(obj);
}

/* ---- requests and answers ---- */

static void a_request_reaches_its_handler_whole(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;
	struct json_object *obj, *body;

	assert_int_equal(ask(*state,
			     "POST /v1/domains/vm%201/vfs/ib%2f0?state=a%20b+c HTTP/1.1\r\n"
			     "Content-Type: text/whatever\r\nIdempotency-Key: k1",
			     " {\"a\":[1]} ", &reply),
			 200);
	assert_non_null(strstr(reply, "Content-Type: application/json\r\n"));
	assert_member(reply, "method", "POST");
	assert_member(reply, "path", "/v1/domains/vm%201/vfs/ib%2f0");
	assert_member(reply, "p0", "vm 1");
	assert_member(reply, "p1", "ib/0");
	assert_member(reply, "p9", "");
	assert_member(reply, "state", "a b c");
	assert_member(reply, "key", "k1");
	obj = body_of(reply);
	assert_true(json_object_object_get_ex(obj, "body", &body));
	assert_string_equal(json_object_to_json_string_ext(body, 0), "{\"a\":[1]}");
	(void)json_object_put(obj);
}

static void chunked_bodies_are_bodies(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;

	assert_int_equal(
		ask(*state,
		    "PUT /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\nGET / HTTP/1.1",
		    NULL, &reply),
		200);
	assert_non_null(strstr(reply, "\"body\":{\"a\":1}"));
}

static void wrong_requests_get_problem_documents(void **state)
{
	static const struct {
		const char *head, *body;
		int status;
		const char *code;
	} table[] = {
		{"GET /v1/nothing HTTP/1.1", NULL, 404, "no_such_path"},
		{"GET /v1/echo/ HTTP/1.1", NULL, 404, "no_such_path"},
		{"POST /v1/domains//vfs/ib0 HTTP/1.1", NULL, 404, "no_such_path"},
		{"DELETE /v1/echo HTTP/1.1", NULL, 405, "method_not_allowed"},
		{"BREW /v1/echo HTTP/1.1", NULL, 405, "method_not_allowed"},
		{"AVERYLONGMETHODNAMEINDEED /v1/echo HTTP/1.1", NULL, 405, "method_not_allowed"},
		{"GET /v1/%zz HTTP/1.1", NULL, 400, "bad_request"},
		{"GET /v1/echo?state=%00 HTTP/1.1", NULL, 400, "bad_request"},
		{"GET /v1/echo?stat=1 HTTP/1.1", NULL, 400, "bad_request"},
		{"GET /v1/echo?state%20key=1 HTTP/1.1", NULL, 400, "bad_request"},
		{"GET /v1/echo?=1 HTTP/1.1", NULL, 400, "bad_request"},
		{"GET /v1/echo?state=1&key=2&state=1 HTTP/1.1", NULL, 400, "bad_request"},
		{"GET /v1/empty?state=1 HTTP/1.1", NULL, 400, "bad_request"},
		{"GET /v1/echo?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q HTTP/1.1", NULL, 400,
		 "bad_request"},
		{"PUT /v1/echo HTTP/1.1", "{\"a\":", 400, "bad_request"},
		{"PUT /v1/echo HTTP/1.1", "[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", 400,
		 "bad_request"},
		{"DELETE /v1/error HTTP/1.1", NULL, 409, "vf_busy"},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		VHCA_AUTO_FREE char *reply = NULL;

		assert_int_equal(ask(*state, table[i].head, table[i].body, &reply),
				 table[i].status);
		assert_non_null(strstr(reply, "Content-Type: application/problem+json\r\n"));
		assert_member(reply, "code", table[i].code);
	}
	assert_int_equal(((struct fixture *)*state)->n_echo, 0);
}

static void a_wrong_method_is_told_the_right_ones(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL, *bad_body = NULL;

	assert_int_equal(ask(*state, "DELETE /v1/echo HTTP/1.1", NULL, &reply), 405);
	assert_non_null(strstr(reply, "Allow: GET, HEAD, PUT\r\n"));
	assert_int_equal(ask(*state, "PUT /v1/echo HTTP/1.1", "x", &bad_body), 400);
	assert_null(strstr(bad_body, "Allow:"));
}

static void bodies_are_bounded(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL, *chunked = NULL;
	char body[1100], head[2048];

	memset(body, ' ', sizeof(body));
	memcpy(body, "{}", 2);
	body[1024] = '\0';
	assert_int_equal(ask(*state, "PUT /v1/echo HTTP/1.1", body, NULL), 200);
	body[1024] = ' ';
	body[1025] = '\0';
	assert_int_equal(ask(*state, "PUT /v1/echo HTTP/1.1", body, &reply), 413);
	assert_member(reply, "code", "body_too_large");
	(void)snprintf(head, sizeof(head),
		       "PUT /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		       "chunked\r\n\r\n401\r\n%s\r\n0\r\n"
		       "\r\nGET / HTTP/1.1",
		       body);
	assert_int_equal(ask(*state, head, NULL, &chunked), 413);
}

static void an_endless_body_is_cut_off(void **state)
{
	const struct fixture *f = *state;
	VHCA_AUTO_CLOSE int fd = dial(f);
	static const char head[] =
		"PUT /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
	char chunk[512];
	size_t sent = 0;
	ssize_t n = 0;

	memset(chunk, ' ', sizeof(chunk));
	memcpy(chunk, "1f0\r\n", 5);
	memcpy(chunk + 5 + 0x1f0, "\r\n", 2);
	send_bytes(fd, head, sizeof(head) - 1);
	while (n >= 0 && sent < 1024 * 1024) {
		n = send(fd, chunk, 5 + 0x1f0 + 2, MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		if (n < 0 && errno == EAGAIN)
			n = 0;
		pump(f, 0);
	}
	assert_int_equal(n, -1);
	assert_true(sent < 100 * 1024);
}

/* A connection that ended under a client that still sends would take the answer with it. */
static void a_refusal_waits_for_the_body(void **state)
{
	const struct fixture *f = *state;
	VHCA_AUTO_CLOSE int fd = dial(f);
	VHCA_AUTO_FREE char *reply = malloc(REPLY_MAX);
	static const char head[] =
		"PUT /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000\r\n\r\n";
	static const char next[] = "GET /v1/empty HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	char piece[500];

	assert_non_null(reply);
	memset(piece, ' ', sizeof(piece));
	send_bytes(fd, head, sizeof(head) - 1);
	for (size_t sent = 0; sent < 8000; sent += sizeof(piece)) {
		pump(f, 0);
		send_bytes(fd, piece, sizeof(piece));
		pump(f, 0);
	}
	send_bytes(fd, next, sizeof(next) - 1);
	assert_true(drain(f, fd, reply, REPLY_MAX) > 0);
	assert_int_equal(strncmp(reply, "HTTP/1.1 413 ", 13), 0);
	assert_non_null(strstr(reply, "HTTP/1.1 204 "));
}

static void no_body_is_awaited_in_vain(void **state)
{
	static const char *const heads[] = {
		"PUT /v1/echo HTTP/1.1\r\nContent-Length: 8000\r\nExpect: 100-continue",
		"PUT /v1/echo HTTP/1.1\r\nContent-Length: 99999999999999999999999",
		"PUT /v1/echo HTTP/1.1\r\nContent-Length: 100000",
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(heads); i++)
		assert_int_equal(ask(*state, heads[i], NULL, NULL), 413);
}

static void head_answers_as_get_without_a_body(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;
	const char *length;

	assert_int_equal(ask(*state, "HEAD /v1/big HTTP/1.1", NULL, &reply), 200);
	length = strstr(reply, "Content-Length: ");
	assert_non_null(length);
	assert_int_equal(strtoul(length + 16, NULL, 10), 2000010);
	assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
	assert_non_null(strstr(reply, "ETag: \""));
}

static void big_answers_arrive_whole(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;

	assert_int_equal(ask(*state, "GET /v1/big HTTP/1.1", NULL, &reply), 200);
	assert_int_equal(strlen(strstr(reply, "\r\n\r\n") + 4), 2000010);
}

static void text_is_sent_as_it_is(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;

	assert_int_equal(ask(*state, "GET /metrics HTTP/1.1", NULL, &reply), 200);
	assert_non_null(strstr(reply, "Content-Type: text/plain; version=0.0.4\r\n"));
	assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\nvhcad_vfs 4\n");
}

static void an_unchanged_answer_is_not_sent_again(void **state)
{
	VHCA_AUTO_FREE char *first = NULL, *second = NULL, *other = NULL, *put = NULL;
	char etag[64], head[256];

	assert_int_equal(ask(*state, "GET /v1/echo?state=1 HTTP/1.1", NULL, &first), 200);
	(void)snprintf(etag, sizeof(etag), "%s", strstr(first, "ETag: ") + 6);
	etag[strcspn(etag, "\r")] = '\0';
	assert_int_equal(etag[0], '"'); /* a strong one */
	(void)snprintf(head, sizeof(head),
		       "GET /v1/echo?state=1 HTTP/1.1\r\nIf-None-Match: \"x\", W/%s", etag);
	assert_int_equal(ask(*state, head, NULL, &second), 304);
	assert_non_null(strstr(second, etag));
	assert_string_equal(strstr(second, "\r\n\r\n"), "\r\n\r\n");
	(void)snprintf(head, sizeof(head), "GET /v1/echo?state=2 HTTP/1.1\r\nIf-None-Match: %s",
		       etag);
	assert_int_equal(ask(*state, head, NULL, &other), 200);
	assert_int_equal(ask(*state, "GET /v1/echo HTTP/1.1\r\nIf-None-Match: *", NULL, NULL), 304);
	assert_int_equal(ask(*state, "PUT /v1/echo HTTP/1.1\r\nIf-None-Match: *", "{}", &put), 200);
	assert_null(strstr(put, "ETag"));
}

static void garbage_does_no_harm(void **state)
{
	const struct fixture *f = *state;
	static const char *const garbage[] = {
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello",
		"GET\r\n\r\n",
		"GET / HTTP/9.9\r\n\r\n",
		"GET /v1/echo HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
		"GET /v1/echo HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
		"PUT /v1/echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"\r\n\r\n\r\n\r\n",
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(garbage); i++) {
		VHCA_AUTO_CLOSE int fd = dial(f);

		send_bytes(fd, garbage[i], strlen(garbage[i]));
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		for (int round = 0; round < 5; round++)
			pump(f, 1);
	}
	assert_int_equal(f->n_echo, 0);
	assert_int_equal(ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);
}

/* ---- late answers ---- */

static int start_late(struct fixture *f)
{
	static const char text[] =
		"GET /v1/late?wait=30 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	unsigned int before = f->n_late;
	int fd = dial(f);

	send_bytes(fd, text, sizeof(text) - 1);
	for (int i = 0; i < 100 && f->n_late == before; i++)
		pump(f, 10);
	assert_int_equal(f->n_late, before + 1);
	return fd;
}

static void a_late_answer_arrives(void **state)
{
	struct fixture *f = *state;
	VHCA_AUTO_FREE char *reply = malloc(REPLY_MAX);
	VHCA_AUTO_CLOSE int fd = start_late(f);
	struct json_object *body = json_object_new_object();

	assert_int_equal(recv(fd, reply, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_string_equal(vhca_http_query(f->late[0], "wait"), "30");
	vhca_json_add_bool(body, "ok", true);
	vhca_http_reply(f->late[0], 200, body);
	assert_true(drain(f, fd, reply, REPLY_MAX) > 0);
	assert_non_null(strstr(reply, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(reply, "{\"ok\":true}"));
	assert_int_equal(f->n_cancelled, 0);
}

static void late_answers_may_come_in_any_order(void **state)
{
	struct fixture *f = *state;
	VHCA_AUTO_FREE char *reply = malloc(REPLY_MAX);
	int fds[4];

	for (int i = 0; i < 4; i++)
		fds[i] = start_late(f);
	for (int i = 3; i >= 0; i--) {
		struct json_object *body = json_object_new_object();

		vhca_json_add_u64(body, "number", (uint64_t)i);
		vhca_http_reply(f->late[i], 200, body);
		assert_true(drain(f, fds[i], reply, REPLY_MAX) > 0);
		body = body_of(reply);
		assert_int_equal(json_object_get_int(json_object_object_get(body, "number")), i);
		(void)json_object_put(body);
		(void)close(fds[i]);
	}
}

static void a_client_that_leaves_is_noticed_at_once(void **state)
{
	struct fixture *f = *state;
	int gone = start_late(f), stays = start_late(f);
	VHCA_AUTO_FREE char *reply = malloc(REPLY_MAX);

	(void)close(gone);
	for (int i = 0; i < 20 && !f->n_cancelled; i++)
		pump(f, 10);
	assert_int_equal(f->n_cancelled, 1);
	for (int i = 0; i < 5; i++)
		pump(f, 1);
	assert_string_equal(vhca_http_path(f->late[0]), "/v1/late"); /* valid until replied */
	assert_null(vhca_http_header(f->late[0], "Host"));
	vhca_http_reply(f->late[0], 200, json_object_new_object());
	vhca_http_reply(f->late[1], 200, json_object_new_object());
	assert_true(drain(f, stays, reply, REPLY_MAX) > 0);
	assert_int_equal(f->n_cancelled, 1);
	(void)close(stays);
}

static void reply_and_forget(void *arg)
{
	struct fixture *f = arg;

	f->n_cancelled++;
	vhca_http_reply(f->late[0], 200, json_object_new_object());
	vhca_http_reply(f->late[1], 200, json_object_new_object());
}

static void a_cancelled_owner_may_reply_at_once(void **state)
{
	struct fixture *f = *state;
	int first = start_late(f), second = start_late(f);

	vhca_http_on_cancel(f->late[0], reply_and_forget, f);
	vhca_http_on_cancel(f->late[1], NULL, NULL);
	(void)close(first);
	(void)close(second); /* both events in one round */
	for (int i = 0; i < 20; i++)
		pump(f, 1);
	assert_int_equal(f->n_cancelled, 1);
}

static void freeing_the_server_cancels_what_waits(void **state)
{
	struct fixture *f = *state;
	int fds[3];
	char c;

	for (int i = 0; i < 3; i++)
		fds[i] = start_late(f);
	vhca_http_on_cancel(f->late[0], reply_and_forget, f);
	(void)close(fds[2]);
	for (int i = 0; i < 20 && !f->n_cancelled; i++)
		pump(f, 10);
	assert_int_equal(f->n_cancelled, 1); /* its handle is still held when the server goes */
	f->srv = vhca_http_server_free(f->srv);
	assert_int_equal(f->n_cancelled, 2); /* late[1] was replied by late[0]'s callback */
	assert_true(recv(fds[0], &c, 1, MSG_DONTWAIT) <= 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* ---- limits ---- */

static void slow_clients_are_dropped_and_others_served(void **state)
{
	struct fixture *f = *state;
	VHCA_AUTO_FREE char *reply = malloc(REPLY_MAX);
	VHCA_AUTO_CLOSE int waiting = start_late(f);
	int slow[14];

	for (int i = 0; i < 14; i++) { /* with the waiting one, one less than the limit */
		slow[i] = dial(f);
		send_bytes(slow[i], "GET /v1/echo HT", 15);
		pump(f, 0);
	}
	assert_int_equal(ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);
	for (int i = 0; i < 14; i++) { /* all end within the 1 s idle time-out and its tick */
		assert_true(drain(f, slow[i], reply, REPLY_MAX) >= 0);
		(void)close(slow[i]);
	}
	/* who waits for an answer is not idle */
	assert_int_equal(f->n_cancelled, 0);
	vhca_http_reply(f->late[0], 200, json_object_new_object());
	assert_true(drain(f, waiting, reply, REPLY_MAX) > 0);
	assert_int_equal(strncmp(reply, "HTTP/1.1 200 ", 13), 0);
}

static void connections_over_the_limit_wait_or_are_refused(void **state)
{
	const struct fixture *f = *state;
	int idle[20];

	for (int i = 0; i < 20; i++) {
		idle[i] = dial(f);
		pump(f, 0);
	}
	for (int i = 0; i < 20; i++)
		(void)close(idle[i]);
	for (int i = 0; i < 10; i++)
		pump(f, 1);
	assert_int_equal(ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);
}

/* ---- addresses ---- */

static void the_socket_has_its_mode_whatever_the_umask(void **state)
{
	struct fixture *f = *state;
	mode_t old = umask(0777);
	struct stat st;

	f->srv = vhca_http_server_free(f->srv);
	f->srv = listen_on(f, f->listen);
	(void)umask(old);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void only_a_dead_socket_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct vhca_http_server *second = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	char other[128];
	int fd;

	/* somebody listens */
	assert_int_equal(vhca_http_server_new(f->listen, 0600, NULL, routes, f, &second, &err),
			 -EADDRINUSE);
	assert_non_null(strstr(err.msg, f->path));
	assert_int_equal(ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);

	/* nobody does: what a killed daemon leaves behind */
	(void)snprintf(other, sizeof(other), "%s.dead", f->path);
	assert_int_equal(rename(f->path, other), 0);
	f->srv = vhca_http_server_free(f->srv); /* and a renamed socket is not removed */
	assert_int_equal(rename(other, f->path), 0);
	f->srv = listen_on(f, f->listen);
	assert_int_equal(ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);

	/* no socket at all */
	(void)snprintf(other, sizeof(other), "unix:%s/file", f->dir);
	fd = open(other + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(vhca_http_server_new(other, 0600, NULL, routes, f, &second, &err),
			 -EEXIST);
	assert_int_equal(access(other + 5, F_OK), 0);
	(void)unlink(other + 5);
}

static void wrong_addresses_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"unix:",
		"unix:relative",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:65536",
		":80",
		"localhost:80",
		"::1:80",
		"[::1]80",
		"[::1",
		"127.0.0.1:+80",
		"127.0.0.1:80:80",
		"unix:/tmp/no-such-directory-here/s.sock",
		"unix:/tmp/"
		"a-path-that-is-much-too-long-for-a-socket-address-because-the-kernel-allows-only"
		"-one-hundred-and-eight-bytes",
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(wrong); i++) {
		struct vhca_http_server *srv = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		if (vhca_http_server_new(wrong[i], 0600, NULL, routes, *state, &srv, &err) >= 0)
			fail_msg("accepted: %s", wrong[i]);
		assert_string_not_equal(err.msg, "");
		assert_null(srv);
	}
}

static void tcp_is_served(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static const char text[] = "GET /v1/empty HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	VHCA_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char reply[1024];

	f->srv = vhca_http_server_free(f->srv);
	f->srv = listen_on(f, "127.0.0.1:0");
	addr.sin_port = htons(vhca_http_server_port(f->srv));
	assert_int_not_equal(addr.sin_port, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	send_bytes(fd, text, sizeof(text) - 1);
	assert_true(drain(f, fd, reply, sizeof(reply)) > 0);
	assert_int_equal(strncmp(reply, "HTTP/1.1 204 ", 13), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_request_reaches_its_handler_whole),
		T(chunked_bodies_are_bodies),
		T(wrong_requests_get_problem_documents),
		T(a_wrong_method_is_told_the_right_ones),
		T(bodies_are_bounded),
		T(an_endless_body_is_cut_off),
		T(a_refusal_waits_for_the_body),
		T(no_body_is_awaited_in_vain),
		T(head_answers_as_get_without_a_body),
		T(big_answers_arrive_whole),
		T(text_is_sent_as_it_is),
		T(an_unchanged_answer_is_not_sent_again),
		T(garbage_does_no_harm),
		T(a_late_answer_arrives),
		T(late_answers_may_come_in_any_order),
		T(a_client_that_leaves_is_noticed_at_once),
		T(a_cancelled_owner_may_reply_at_once),
		T(freeing_the_server_cancels_what_waits),
		T(slow_clients_are_dropped_and_others_served),
		T(connections_over_the_limit_wait_or_are_refused),
		T(the_socket_has_its_mode_whatever_the_umask),
		T(only_a_dead_socket_is_replaced),
		T(wrong_addresses_are_refused),
		T(tcp_is_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
