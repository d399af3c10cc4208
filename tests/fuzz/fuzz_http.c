/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whole connections: what a client sends, in pieces between lines "%%", comes by a socket to the
 * real server. Whatever it is, each answer is one of HTTP, none is a 500, a handler sees nothing
 * that its route does not have, and when the client has gone, so has its connection.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/http/json.h"
#include "common/http/server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kit/input.h"

#define BODY_MAX    1024
#define ANSWERS_MAX 65536 /* bytes that are looked at */
#define WAIT_MS	    20000

static struct {
	char dir[32], path[64];
	struct vhca_http_server *srv;
	struct vhca_http_request *late; /* one at a time: a connection waits for its answer */
	char answers[ANSWERS_MAX + 1];
	size_t len;
} t;

/* ---- an API ---- */

static void on_echo(void *ctx, struct vhca_http_request *req)
{
	struct json_object *reply = json_object_new_object();

	(void)ctx;
	FUZZ_ASSERT(strcmp(vhca_http_path(req), "/v1/echo") == 0);
	vhca_json_add_string(reply, "method", vhca_http_method(req));
	vhca_json_add_string(reply, "state", vhca_http_query(req, "state"));
	vhca_json_add(reply, "body", json_object_get(vhca_http_body(req)));
	vhca_http_reply(req, 200, reply);
}

static void on_vf(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	FUZZ_ASSERT(vhca_http_param(req, 0)[0] && vhca_http_param(req, 1)[0]);
	vhca_http_reply(req, 201, NULL);
}

static void forget_late(void *arg)
{
	(void)arg;
	vhca_http_reply(t.late, 204, NULL); /* dropped */
	t.late = NULL;
}

static void on_late(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	FUZZ_ASSERT(!t.late);
	t.late = req;
	vhca_http_on_cancel(req, forget_late, NULL);
}

static const struct vhca_http_route routes[] = {
	{"GET", "/v1/echo", VHCA_CALLER_READ, on_echo, "state key"},
	{"PUT", "/v1/echo", VHCA_CALLER_OPERATE, on_echo},
	{"POST", "/v1/domains/{}/vfs/{}", VHCA_CALLER_OPERATE, on_vf, "state"},
	{"DELETE", "/v1/late", VHCA_CALLER_ADMIN, on_late},
	{"GET", "/v1/late", VHCA_CALLER_READ, on_late, "wait"},
	{.method = NULL},
};

/* ---- the server ---- */

static void drop_line(enum vhca_log_level level, const char *msg)
{
	(void)level;
	for (; *msg; msg++)
		FUZZ_ASSERT((unsigned char)*msg >= ' ' && *msg != '\x7f');
}

static void close_server(void)
{
	t.srv = vhca_http_server_free(t.srv);
	(void)rmdir(t.dir);
}

static void open_server(void)
{
	static const struct vhca_http_limits limits = {.body_max = BODY_MAX};
	char listen[80];

	(void)snprintf(t.dir, sizeof(t.dir), "/tmp/vhca-fuzz-http.XXXXXX");
	FUZZ_ASSERT(mkdtemp(t.dir));
	(void)snprintf(t.path, sizeof(t.path), "%s/s", t.dir);
	(void)snprintf(listen, sizeof(listen), "unix:%s", t.path);
	vhca_log_set_sink(drop_line);
	FUZZ_ASSERT(vhca_http_server_new(listen, 0600, &limits, routes, NULL, &t.srv, NULL) == 0);
	FUZZ_ASSERT(atexit(close_server) == 0);
}

static unsigned int connections(void)
{
	struct vhca_http_stats stats;

	vhca_http_server_stats(t.srv, &stats);
	return stats.connections;
}

static void run_server(int ms)
{
	struct pollfd p = {.fd = vhca_http_server_fd(t.srv), .events = POLLIN};

	(void)poll(&p, 1, ms);
	vhca_http_server_run(t.srv);
}

/* ---- the client ---- */

static void read_answers(int fd)
{
	ssize_t n;

	while (t.len < ANSWERS_MAX &&
	       (n = recv(fd, t.answers + t.len, ANSWERS_MAX - t.len, MSG_DONTWAIT)) > 0)
		t.len += (size_t)n;
	t.answers[t.len] = '\0';
}

/* As long as the server has something to do with what has come. */
static void serve(int fd)
{
	struct pollfd p = {.fd = vhca_http_server_fd(t.srv), .events = POLLIN};

	do {
		run_server(0);
		if (t.late) {
			vhca_http_reply(t.late, 204, NULL);
			t.late = NULL;
			run_server(0);
		}
		read_answers(fd);
	} while (poll(&p, 1, 0) > 0);
}

static int connect_client(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", t.path);
	FUZZ_ASSERT(fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
	return fd;
}

/* The client goes; the server, which has the time that a loaded machine takes, lets go of it. */
static void leave(int fd)
{
	uint64_t until = vhca_now_ms() + WAIT_MS;

	(void)close(fd);
	while (connections() > 0) {
		FUZZ_ASSERT(vhca_now_ms() < until);
		run_server(10);
	}
	FUZZ_ASSERT(!t.late);
}

/* ---- what is expected ---- */

/* Of the first answer, which begins what was read; a body may look like more of them. */
static void check_answers(void)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const char *answer = t.answers;
	unsigned int status = 0;

	while (strncmp(answer, go_on, strlen(go_on)) == 0)
		answer += strlen(go_on);
	if (!*answer)
		return;
	FUZZ_ASSERT(sscanf(answer, "HTTP/1.%*1[01] %3u ", &status) == 1);
	/* Two are libmicrohttpd's own: of encodings and versions that it does not know. */
	FUZZ_ASSERT(status >= 200 && (status < 500 || status == 501 || status == 505));
	FUZZ_ASSERT(strstr(answer, "\r\n\r\n"));
	fuzz_verdict(status < 300);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = 0;
	char *part;
	int fd;

	if (!t.srv)
		open_server();
	t.len = 0;
	fd = connect_client();
	while ((part = input_part(&data, &size, &len))) {
		(void)send(fd, part, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		free(part);
		serve(fd);
	}
	leave(fd);
	check_answers();
	return 0;
}
