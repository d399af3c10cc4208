// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * More clients than the server has connections: those who ask get their answers, whoever holds on
 * to places, and how.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/server.h"
#include "tests/unit/unit.h"

#define CONNECTIONS 8
#define KEPT	    6 /* three quarters */
#define CLIENTS	    40
#define LIST_SIZE   (8 << 20) /* more than the kernel takes for a client that does not */
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

/* More than the kernel takes for a client that does not. */
static void on_big(void *ctx, struct vhca_http_request *req)
{
	size_t size = 16 * 1024 * 1024;
	VHCA_AUTO_FREE char *text = malloc(size);

	(void)ctx;
	assert_non_null(text);
	memset(text, 'x', size - 1);
	text[size - 1] = '\0';
	vhca_http_reply_text(req, 200, "text/plain", text);
}

static void on_list(void *ctx, struct vhca_http_request *req)
{
	struct json_object *body = json_object_new_object();
	VHCA_AUTO_FREE char *text = malloc(LIST_SIZE);

	(void)ctx;
	assert_non_null(text);
	memset(text, 'x', LIST_SIZE);
	json_object_object_add(body, "list", json_object_new_string_len(text, LIST_SIZE));
	vhca_http_reply(req, 200, body);
}

static const struct vhca_http_route routes[] = {
	{"GET", "/v1/list", VHCA_CALLER_NOBODY, on_list},
	{"PUT", "/v1/list", VHCA_CALLER_NOBODY, on_list},
	{"GET", "/metrics", VHCA_CALLER_METRICS, on_list},
	{"GET", "/v1/big", VHCA_CALLER_NOBODY, on_big},
	{"PUT", "/v1/here", VHCA_CALLER_NOBODY, on_here},
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

/*
 * Runs the server until so many clients have all of their answer; the number of those that have
 * been asked to close.
 */
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

/* ---- strangers: other addresses of this host ---- */

#define PLACES 16 /* half of them for strangers, and for each address */

static void open_port(struct fixture *f, const struct vhca_http_limits *limits)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	f->srv = vhca_http_server_free(f->srv);
	if (vhca_http_server_new("127.0.0.1:0", 0, limits, routes, f, &f->srv, &err) < 0)
		fail_msg("%s", err.msg);
}

static const struct vhca_http_limits patient = {
	.connections_max = PLACES, .head_ms = 600000, .idle_timeout_s = 600};

static void run_for(const struct fixture *f, unsigned int ms)
{
	uint64_t deadline = vhca_now_ms() + ms;

	do {
		struct pollfd p = {.fd = vhca_http_server_fd(f->srv), .events = POLLIN};
		int left = vhca_http_server_timeout_ms(f->srv);

		assert_true(poll(&p, 1, left >= 0 && left < 5 ? left : 5) >= 0);
		vhca_http_server_run(f->srv);
	} while (vhca_now_ms() < deadline);
}

static int dial_from(const struct fixture *f, unsigned int host)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl((127U << 24) + host)};
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(vhca_http_server_port(f->srv))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static bool is_open(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

/* Whether there was an answer within a second. */
static bool is_answered(const struct fixture *f, int fd)
{
	char reply[1024] = "";

	if (send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL) < 0)
		return false;
	for (int i = 0; i < 200; i++) {
		run_for(f, 5);
		if (recv(fd, reply, sizeof(reply) - 1, MSG_DONTWAIT) > 0)
			return strncmp(reply, "HTTP/1.1 200 ", 13) == 0;
	}
	return false;
}

static uint64_t ended(const struct fixture *f, enum vhca_http_end why)
{
	struct vhca_http_stats stats;

	vhca_http_server_stats(f->srv, &stats);
	return stats.ended[why];
}

static void come_from(struct fixture *f, unsigned int first, unsigned int step)
{
	for (unsigned int i = 0; i < CLIENTS; i++) {
		f->clients[i].fd = dial_from(f, first + i * step);
		run_for(f, 0);
	}
	run_for(f, 20);
}

static void an_address_has_its_places_and_no_more(void **state)
{
	struct fixture *f = *state;
	VHCA_AUTO_CLOSE int other = -1;

	open_port(f, &patient);
	come_from(f, 2, 0);
	assert_int_equal(ended(f, VHCA_HTTP_END_SOURCE), CLIENTS - PLACES / 2);
	other = dial_from(f, 3);
	assert_true(is_answered(f, other));
	assert_false(is_open(f->clients[0].fd)); /* the oldest went for the newest */
	assert_true(is_open(f->clients[CLIENTS - 1].fd));
}

static void who_has_passed_keeps_its_place(void **state)
{
	struct fixture *f = *state;
	VHCA_AUTO_CLOSE int kept = -1, again = -1, newcomer = -1;

	open_port(f, &patient);
	kept = dial_from(f, 2);
	assert_true(is_answered(f, kept));
	come_from(f, 100, 1);
	assert_true(ended(f, VHCA_HTTP_END_STRANGERS) >= CLIENTS - PLACES / 2);
	assert_true(is_open(kept));
	assert_true(is_answered(f, kept));
	again = dial_from(f, 2);
	assert_true(is_answered(f, again));
	newcomer = dial_from(f, 3); /* at the cost of a stranger that says nothing */
	assert_true(is_answered(f, newcomer));
}

static void places_of_those_who_have_gone_are_theirs_again(void **state)
{
	struct fixture *f = *state;
	struct vhca_http_stats stats;
	int fd;

	open_port(f, &patient);
	for (unsigned int i = 0; i < 10 * PLACES; i++) {
		fd = dial_from(f, 2 + i);
		assert_true(is_answered(f, fd));
		(void)close(fd);
	}
	run_for(f, 20);
	vhca_http_server_stats(f->srv, &stats);
	assert_int_equal(stats.connections, 0);
}

static void idle_places_are_given_to_a_crowd(void **state)
{
	struct fixture *f = *state;

	open_port(f, &patient);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		f->clients[i].fd = dial_from(f, 2 + i);
		assert_true(is_answered(f, f->clients[i].fd));
	}
}

/* Bytes keep coming, and none of them too late after the one before. */
static void drip(struct fixture *f, const struct vhca_http_limits *limits, const char *head,
		 enum vhca_http_end why)
{
	uint64_t begun = vhca_now_ms();
	VHCA_AUTO_CLOSE int fd = -1;

	open_port(f, limits);
	fd = dial_from(f, 2);
	assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
	while (is_open(fd) && vhca_now_ms() < begun + 5000) {
		(void)send(fd, "x", 1, MSG_NOSIGNAL);
		run_for(f, 20);
	}
	assert_false(is_open(fd));
	assert_true(vhca_now_ms() >= begun + 200);
	assert_true(vhca_now_ms() < begun + 4500);
	assert_int_equal(ended(f, why), 1);
}

static void who_drips_is_ended(void **state)
{
	static const struct vhca_http_limits heads = {.head_ms = 200}, bodies = {.body_ms = 200};
	static const char body[] =
		"PUT /v1/here HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n";

	drip(*state, &heads, "GET /v1/here HTTP/1.1\r\nX: ", VHCA_HTTP_END_HEAD);
	drip(*state, &bodies, body, VHCA_HTTP_END_BODY);
}

static void a_second_head_may_not_drip_either(void **state)
{
	static const struct vhca_http_limits limits = {.idle_timeout_s = 1};
	struct fixture *f = *state;
	VHCA_AUTO_CLOSE int fd = -1;
	uint64_t begun;

	open_port(f, &limits);
	fd = dial_from(f, 2);
	assert_true(is_answered(f, fd));
	begun = vhca_now_ms();
	while (is_open(fd) && vhca_now_ms() < begun + 5000) {
		(void)send(fd, "G", 1, MSG_NOSIGNAL);
		run_for(f, 20);
	}
	assert_true(vhca_now_ms() < begun + 4500);
	assert_int_equal(ended(f, VHCA_HTTP_END_IDLE), 1);
}

static void who_does_not_take_its_answer_is_ended(void **state)
{
	static const struct vhca_http_limits limits = {.answer_ms = 200};
	static const char request[] = "GET /v1/big HTTP/1.1\r\nHost: x\r\n\r\n";
	struct fixture *f = *state;
	VHCA_AUTO_CLOSE int fd = -1;

	open_port(f, &limits);
	fd = dial_from(f, 2);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	for (int i = 0; i < 100 && !ended(f, VHCA_HTTP_END_ANSWER); i++)
		run_for(f, 50);
	assert_int_equal(ended(f, VHCA_HTTP_END_ANSWER), 1);
}

/* ---- answers that nobody takes ---- */

/* The first bytes of the answer, of which no more is taken. */
static const char *ask(const struct fixture *f, int fd, const char *request)
{
	static char head[512];
	ssize_t n = -1;

	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	for (int i = 0; i < 400 && n < 0; i++) {
		run_for(f, 5);
		n = recv(fd, head, sizeof(head) - 1, MSG_DONTWAIT);
	}
	assert_true(n > 0);
	head[n] = '\0';
	return head;
}

static uint64_t answering(const struct fixture *f)
{
	struct vhca_http_stats stats;

	vhca_http_server_stats(f->srv, &stats);
	return stats.answering;
}

#define GET_LIST    "GET /v1/list HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_METRICS "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
#define PUT_LIST    "PUT /v1/list HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
#define OK	    "HTTP/1.1 200 "
#define REFUSED	    "HTTP/1.1 503 "

static void answers_that_nobody_takes_have_a_bound(void **state)
{
	static const struct vhca_http_limits limits = {.answering_max = 4 * LIST_SIZE + 4096};
	struct fixture *f = *state;
	int *fd = &f->clients[0].fd, last = -1;

	open_port(f, &limits);
	for (unsigned int i = 0; i < 8; i++)
		f->clients[i].fd = dial_from(f, 2 + i / 2);
	for (unsigned int i = 0; i < 8; i++) { /* one is more than an address's eighth already */
		const char *head = ask(f, f->clients[i].fd, GET_LIST);

		assert_memory_equal(head, i % 2 == 0 ? OK : REFUSED, strlen(OK));
		assert_true(i % 2 == 0 || strstr(head, "\r\nRetry-After: 1\r\n"));
	}
	last = dial_from(f, 6); /* there is no room left */
	assert_memory_equal(ask(f, last, GET_LIST), REFUSED, strlen(REFUSED));
	assert_memory_equal(ask(f, last, REQUEST), OK, strlen(OK)); /* it is small */
	assert_int_equal(answering(f) / LIST_SIZE, 4);
	(void)close(*fd); /* takes no more */
	*fd = -1;
	run_for(f, 20);
	assert_int_equal(answering(f) / LIST_SIZE, 3);
	assert_memory_equal(ask(f, last, GET_LIST), OK, strlen(OK));
	(void)close(last);
	run_for(f, 20);
	for (unsigned int i = 0; i < 8; i++)
		vhca_close_cleanup(&f->clients[i].fd);
	run_for(f, 20);
	assert_int_equal(answering(f), 0);
}

/* What was done is told, and what is larger than all the room is had one by one. */
static void what_changes_something_is_answered(void **state)
{
	static const struct vhca_http_limits limits = {.answering_max = 1024};
	struct fixture *f = *state;

	open_port(f, &limits);
	for (unsigned int i = 0; i < 3; i++)
		f->clients[i].fd = dial_from(f, 2 + i);
	assert_memory_equal(ask(f, f->clients[0].fd, GET_LIST), OK, strlen(OK));
	assert_memory_equal(ask(f, f->clients[1].fd, GET_LIST), REFUSED, strlen(REFUSED));
	assert_memory_equal(ask(f, f->clients[2].fd, PUT_LIST), OK, strlen(OK));
	assert_int_equal(answering(f) / LIST_SIZE, 2);
}

/* They see what is wrong, and can end it. */
static void who_monitors_and_root_are_answered(void **state)
{
	static const struct vhca_http_limits limits = {.answering_max = 1024};
	struct fixture *f = *state;
	struct vhca_error err = VHCA_ERROR_INIT;
	char listen[128];

	open_port(f, &limits);
	for (unsigned int i = 0; i < 2; i++)
		f->clients[i].fd = dial_from(f, 2 + i);
	assert_memory_equal(ask(f, f->clients[0].fd, GET_LIST), OK, strlen(OK));
	assert_memory_equal(ask(f, f->clients[1].fd, GET_LIST), REFUSED, strlen(REFUSED));
	f->clients[2].fd = dial_from(f, 3);
	assert_memory_equal(ask(f, f->clients[2].fd, GET_METRICS), OK, strlen(OK));
	f->srv = vhca_http_server_free(f->srv);
	(void)snprintf(listen, sizeof(listen), "unix:%s", f->path);
	if (vhca_http_server_new(listen, 0660, &limits, routes, f, &f->srv, &err) < 0)
		fail_msg("%s", err.msg);
	for (unsigned int i = 3; i < 6; i++) { /* the server's own user */
		f->clients[i].fd = vhca_connect_unix(f->path, vhca_now_ms() + 10000);
		assert_true(f->clients[i].fd >= 0);
		assert_memory_equal(ask(f, f->clients[i].fd, GET_LIST), OK, strlen(OK));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(few_keep_their_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(a_crowd_is_served_to_the_last, setup, teardown),
		cmocka_unit_test_setup_teardown(an_address_has_its_places_and_no_more, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_has_passed_keeps_its_place, setup, teardown),
		cmocka_unit_test_setup_teardown(places_of_those_who_have_gone_are_theirs_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(idle_places_are_given_to_a_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(who_drips_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(a_second_head_may_not_drip_either, setup, teardown),
		cmocka_unit_test_setup_teardown(who_does_not_take_its_answer_is_ended, setup,
						teardown),
		cmocka_unit_test_setup_teardown(answers_that_nobody_takes_have_a_bound, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_changes_something_is_answered, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_monitors_and_root_are_answered, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("http_crowd", tests, NULL, NULL);
}
