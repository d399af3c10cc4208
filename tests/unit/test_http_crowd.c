// SPDX-License-Identifier: LGPL-2.1-or-later
/* More clients than the server has connections, all of which keep theirs: every one of them gets its answer. */
#include "common/http/server.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

#define CONNECTIONS 8
#define KEPT	    6 /* three quarters */
#define CLIENTS	    40
#define REQUEST	    "GET /v1/here HTTP/1.1\r\nHost: x\r\n\r\n"

struct client {
	int fd;
	char reply[1024];
	size_t len;
	bool over; /* the server has closed the connection */
};

struct fixture {
	char dir[64], path[96];
	struct vhca_http_server *srv;
	struct client clients[CLIENTS];
};

static void on_here(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply(req, 200, json_object_new_object());
}

static const struct vhca_http_route routes[] = {
	{"GET", "/v1/here", VHCA_CALLER_NOBODY, on_here},
	{.method = NULL},
};

static int setup(void **state)
{
	/* Who only waits for others to be idle would wait longer than the test. */
	static const struct vhca_http_limits limits = {
		.connections_max = CONNECTIONS, .connection_memory = 4096, .idle_timeout_s = 600};
	struct fixture *f = calloc(1, sizeof(*f));
	struct vhca_error err = VHCA_ERROR_INIT;
	char listen[128];

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vhca-crowd-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/s.sock", f->dir);
	(void)snprintf(listen, sizeof(listen), "unix:%s", f->path);
	if (vhca_http_server_new(listen, 0660, &limits, routes, f, &f->srv, &err) < 0)
		fail_msg("%s", err.msg);
	for (unsigned int i = 0; i < CLIENTS; i++)
		f->clients[i].fd = -1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < CLIENTS; i++)
		vhca_close_cleanup(&f->clients[i].fd);
	f->srv = vhca_http_server_free(f->srv);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void come(struct fixture *f, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct client *c = &f->clients[i];

		c->fd = vhca_connect_unix(f->path, vhca_now_ms() + 10000);
		assert_true(c->fd >= 0);
		assert_int_equal(send(c->fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL),
				 strlen(REQUEST));
	}
}

static void receive(struct client *c)
{
	ssize_t n;

	if (c->over)
		return;
	n = recv(c->fd, c->reply + c->len, sizeof(c->reply) - 1 - c->len, MSG_DONTWAIT);
	c->over = n == 0;
	if (n > 0)
		c->len += (size_t)n;
	else
		assert_true(n == 0 || errno == EAGAIN);
}

/* Runs the server until so many clients have all of their answer; the number of those that have been asked to close. */
static unsigned int serve(struct fixture *f, unsigned int n)
{
	uint64_t deadline = vhca_now_ms() + 60000;
	unsigned int answered = 0, closed = 0;

	while (answered < n && vhca_now_ms() < deadline) {
		struct pollfd p = {.fd = vhca_http_server_fd(f->srv), .events = POLLIN};

		assert_true(poll(&p, 1, 10) >= 0);
		vhca_http_server_run(f->srv);
		answered = closed = 0;
		for (unsigned int i = 0; i < n; i++) {
			receive(&f->clients[i]);
			answered += strstr(f->clients[i].reply, "\r\n\r\n{") != NULL;
			closed += strstr(f->clients[i].reply, "Connection: close") != NULL;
		}
	}
	assert_int_equal(answered, n);
	return closed;
}

static void few_keep_their_connections(void **state)
{
	struct fixture *f = *state;

	come(f, KEPT);
	assert_int_equal(serve(f, KEPT), 0);
}

static void a_crowd_is_served_to_the_last(void **state)
{
	struct fixture *f = *state;

	come(f, CLIENTS);
	assert_true(serve(f, CLIENTS) >= CLIENTS - CONNECTIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(few_keep_their_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(a_crowd_is_served_to_the_last, setup, teardown),
	};

	return cmocka_run_group_tests_name("http_crowd", tests, NULL, NULL);
}
