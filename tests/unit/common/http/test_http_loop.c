// SPDX-License-Identifier: LGPL-2.1-or-later
/* Server and client of one process, both on one event loop. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/http_loop.h"
#include "common/http/json.h"
#include "tests/unit/unit.h"

#define MANY 200

struct fixture {
	char dir[64], path[96], listen[128];
	struct vhca_loop *loop;
	struct vhca_http_server *srv;
	struct vhca_http_loop_server *attached;
	struct vhca_http_loop_client *client;
	struct vhca_http_request *late[MANY];
	unsigned int n_late, n_cancelled, n_done;
};

struct call {
	struct fixture *f;
	unsigned int number, n_done;
	int rc, status;
	uint64_t answer;
	char code[VHCA_ERROR_CODE_MAX];
	bool free_client;  /* by done() */
	struct call *next; /* started by done() */
};

/* ---- server side ---- */

static struct json_object *number_object(uint64_t n)
{
	struct json_object *obj = json_object_new_object();

	vhca_json_add_u64(obj, "n", n);
	return obj;
}

static void on_number(void *ctx, struct vhca_http_request *req)
{
	(void)ctx;
	vhca_http_reply(req, 200, number_object(strtoul(vhca_http_param(req, 0), NULL, 10)));
}

static void on_cancel(void *arg)
{
	((struct fixture *)arg)->n_cancelled++;
}

static void on_late(void *ctx, struct vhca_http_request *req)
{
	struct fixture *f = ctx;

	vhca_http_on_cancel(req, on_cancel, f);
	f->late[f->n_late++] = req;
}

static const struct vhca_http_route routes[] = {
	{"GET", "/number/{}", VHCA_CALLER_NOBODY, on_number},
	{"PUT", "/late/{}", VHCA_CALLER_NOBODY, on_late},
	{.method = NULL},
};

static void serve(struct fixture *f, const char *spec)
{
	static const struct vhca_http_limits limits = {.connections_max = 256};
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_http_server_new(spec, 0600, &limits, routes, f, &f->srv, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(vhca_http_loop_attach(f->loop, f->srv, &f->attached), 0);
}

static void stop_serving(struct fixture *f)
{
	f->attached = vhca_http_loop_detach(f->attached);
	f->srv = vhca_http_server_free(f->srv);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/vhca-httploop-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/s.sock", f->dir);
	(void)snprintf(f->listen, sizeof(f->listen), "unix:%s", f->path);
	assert_int_equal(vhca_loop_new(&f->loop), 0);
	serve(f, f->listen);
	assert_int_equal(vhca_http_loop_client_new(f->loop, &f->client), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->client = vhca_http_loop_client_free(f->client);
	stop_serving(f);
	(void)vhca_loop_free(f->loop);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* ---- client side ---- */

static int start(struct call *c, const char *method, const char *url, uint32_t total_ms);

static void on_done(void *arg, int rc, const struct vhca_http_result *res,
		    const struct vhca_error *err)
{
	struct call *c = arg;

	c->n_done++;
	c->f->n_done++;
	c->rc = rc;
	c->status = res->status;
	(void)snprintf(c->code, sizeof(c->code), "%s", rc < 0 ? err->code : "");
	if (res->body)
		(void)vhca_json_opt_u64(res->body, "n", UINT64_MAX, &c->answer, NULL);
	if (c->next)
		assert_int_equal(start(c->next, "GET", "http://localhost/number/2", 0), 0);
	if (c->free_client)
		c->f->client = vhca_http_loop_client_free(c->f->client);
}

static int start(struct call *c, const char *method, const char *url, uint32_t total_ms)
{
	const struct vhca_http_call_args args = {
		.method = method,
		.url = url,
		.unix_socket = c->f->srv && vhca_http_server_port(c->f->srv) ? NULL : c->f->path,
		.total_ms = total_ms,
	};

	return vhca_http_multi_start(vhca_http_loop_client_multi(c->f->client), &args, on_done, c);
}

static void run_until(struct fixture *f, const unsigned int *counter, unsigned int n)
{
	uint64_t deadline = vhca_now_ms() + UNIT_WAIT_MS;

	while (*counter < n && vhca_now_ms() < deadline)
		assert_true(vhca_loop_once(f->loop, 1000) >= 0);
	assert_int_equal(*counter, n);
}

static void assert_idle(struct fixture *f)
{
	uint64_t end = vhca_now_ms() + 30;
	unsigned int rounds = 0;

	while (vhca_now_ms() < end)
		if (vhca_loop_once(f->loop, 10) > 0)
			rounds++;
	assert_true(rounds < 5); /* nothing spins */
}

/* ---- tests ---- */

static void two_hundred_requests_at_once(void **state)
{
	struct fixture *f = *state;
	struct call *calls = calloc(MANY, sizeof(*calls));
	char url[64];

	assert_non_null(calls);
	for (unsigned int i = 0; i < MANY; i++) {
		calls[i] = (struct call){.f = f, .number = i};
		(void)snprintf(url, sizeof(url), "http://localhost/number/%u", i);
		assert_int_equal(start(&calls[i], "GET", url, 0), 0);
	}
	assert_int_equal(f->n_done, 0); /* never from inside of start */
	run_until(f, &f->n_done, MANY);
	for (unsigned int i = 0; i < MANY; i++) {
		assert_int_equal(calls[i].rc, 0);
		assert_int_equal(calls[i].n_done, 1);
		assert_int_equal(calls[i].answer, i);
	}
	assert_idle(f);
	free(calls);
}

static void the_same_over_tcp(void **state)
{
	struct fixture *f = *state;
	struct call calls[20];
	char url[64];

	stop_serving(f);
	serve(f, "127.0.0.1:0");
	for (unsigned int i = 0; i < 20; i++) {
		calls[i] = (struct call){.f = f};
		(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/number/%u",
			       vhca_http_server_port(f->srv), i);
		assert_int_equal(start(&calls[i], "GET", url, 0), 0);
	}
	run_until(f, &f->n_done, 20);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(calls[i].answer, i);
}

static void reply_first(void *arg)
{
	struct fixture *f = arg;

	vhca_http_reply(f->late[0], 200, number_object(42));
	vhca_http_loop_kick(f->attached);
}

static void a_late_answer_leaves_at_once(void **state)
{
	struct fixture *f = *state;
	struct call c = {.f = f};
	struct vhca_timer *timer;
	uint64_t start_ms;

	assert_int_equal(start(&c, "PUT", "http://localhost/late/1", 0), 0);
	run_until(f, &f->n_late, 1);
	assert_idle(f);
	assert_int_equal(f->n_done, 0);
	assert_int_equal(vhca_timer_new(f->loop, "reply", reply_first, f, &timer), 0);
	vhca_timer_arm_ms(timer, 10);
	start_ms = vhca_now_ms();
	run_until(f, &f->n_done, 1);
	assert_true(vhca_now_ms() - start_ms < 8000); /* else it is 10 s */
	assert_int_equal(c.answer, 42);
	(void)vhca_timer_free(timer);
}

static void a_time_out_ends_the_request_on_both_sides(void **state)
{
	struct fixture *f = *state;
	struct call c = {.f = f};

	assert_int_equal(start(&c, "PUT", "http://localhost/late/1", 100), 0);
	run_until(f, &f->n_done, 1);
	assert_int_equal(c.rc, -ETIMEDOUT);
	assert_string_equal(c.code, "timeout");
	run_until(f, &f->n_cancelled, 1); /* the server has noticed */
	vhca_http_reply(f->late[0], 200, NULL);
	assert_idle(f);
	assert_int_equal(f->n_done, 1);
}

static void done_may_start_the_next_request(void **state)
{
	struct fixture *f = *state;
	struct call second = {.f = f};
	struct call first = {.f = f, .next = &second};

	assert_int_equal(start(&first, "GET", "http://localhost/number/1", 0), 0);
	run_until(f, &f->n_done, 2);
	assert_int_equal(second.answer, 2);
}

static void done_may_free_the_client(void **state)
{
	struct fixture *f = *state;
	struct call waiting = {.f = f};
	struct call last = {.f = f, .free_client = true};

	assert_int_equal(start(&waiting, "PUT", "http://localhost/late/1", 0), 0);
	run_until(f, &f->n_late, 1);
	assert_int_equal(start(&last, "GET", "http://localhost/number/1", 0), 0);
	run_until(f, &f->n_done, 1);
	assert_null(f->client);
	run_until(f, &f->n_cancelled, 1);
	assert_int_equal(waiting.n_done, 0);
	vhca_http_reply(f->late[0], 200, NULL);
	assert_idle(f);
}

static void freeing_the_client_forgets_what_is_under_way(void **state)
{
	struct fixture *f = *state;
	struct call calls[3] = {{.f = f}, {.f = f}, {.f = f}};

	for (int i = 0; i < 3; i++)
		assert_int_equal(start(&calls[i], "PUT", "http://localhost/late/1", 0), 0);
	run_until(f, &f->n_late, 3);
	f->client = vhca_http_loop_client_free(f->client);
	run_until(f, &f->n_cancelled, 3);
	assert_int_equal(f->n_done, 0);
}

static void a_cancelled_request_is_never_done(void **state)
{
	struct fixture *f = *state;
	struct call gone = {.f = f}, stays = {.f = f};

	assert_int_equal(start(&gone, "PUT", "http://localhost/late/1", 0), 0);
	assert_int_equal(start(&stays, "GET", "http://localhost/number/2", 0), 0);
	run_until(f, &f->n_late, 1);
	vhca_http_multi_cancel(vhca_http_loop_client_multi(f->client), &gone);
	run_until(f, &f->n_cancelled, 1);
	vhca_http_reply(f->late[0], 200, NULL);
	run_until(f, &f->n_done, 1);
	assert_int_equal(stays.n_done, 1);
	assert_idle(f);
	assert_int_equal(gone.n_done, 0);
}

static void a_server_that_goes_away_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct call c = {.f = f}, after = {.f = f};

	assert_int_equal(start(&c, "PUT", "http://localhost/late/1", 0), 0);
	run_until(f, &f->n_late, 1);
	stop_serving(f);
	assert_int_equal(f->n_cancelled, 1);
	run_until(f, &f->n_done, 1);
	assert_string_equal(c.code, "unreachable");
	assert_int_equal(start(&after, "GET", "http://localhost/number/1", 0), 0);
	run_until(f, &f->n_done, 2);
	assert_string_equal(after.code, "unreachable");
}

/* ---- a client whose timer does not run ---- */

struct by_hand {
	struct vhca_http_multi *multi;
	int fd;
	uint32_t events;
	long ms;
};

static void watch_by_hand(void *ctx, int fd, uint32_t events)
{
	struct by_hand *h = ctx;

	h->fd = fd;
	h->events = events;
}

static void time_by_hand(void *ctx, long ms)
{
	((struct by_hand *)ctx)->ms = ms;
}

static void ask_by_hand(struct fixture *f, struct by_hand *h)
{
	const struct vhca_http_call_args args = {
		.method = "GET", .url = "http://localhost/number/1", .unix_socket = f->path};
	struct call c = {.f = f};
	uint64_t deadline = vhca_now_ms() + UNIT_WAIT_MS;

	assert_int_equal(vhca_http_multi_start(h->multi, &args, on_done, &c), 0);
	while (c.n_done == 0 && vhca_now_ms() < deadline) {
		assert_true(vhca_loop_once(f->loop, 1) >= 0);
		if (h->events)
			vhca_http_multi_ready(h->multi, h->fd, h->events);
		else
			vhca_http_multi_timeout(h->multi);
	}
	assert_int_equal(c.n_done, 1);
	assert_int_equal(c.rc, 0);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void connections_are_kept_until_the_client_is_idle(void **state)
{
	static const struct vhca_http_multi_ops ops = {watch_by_hand, time_by_hand};
	struct fixture *f = *state;
	struct by_hand h = {.fd = -1, .ms = -1};
	int fd;

	assert_int_equal(vhca_http_multi_new(&ops, &h, &h.multi), 0);
	vhca_http_multi_cancel(h.multi, f);
	assert_int_equal(h.ms, -1); /* there is nothing to close */
	ask_by_hand(f, &h);
	fd = h.fd;
	ask_by_hand(f, &h);
	assert_int_equal(h.fd, fd);
	assert_int_equal(h.ms, VHCA_HTTP_MULTI_IDLE_MS);
	assert_true(is_open(fd));
	vhca_http_multi_timeout(h.multi);
	assert_false(is_open(fd));
	ask_by_hand(f, &h);
	(void)vhca_http_multi_free(h.multi);
}

static void too_many_requests_are_refused(void **state)
{
	struct fixture *f = *state;
	struct call c = {.f = f};

	for (int i = 0; i < VHCA_HTTP_MULTI_MAX; i++)
		assert_int_equal(start(&c, "GET", "http://localhost/number/1", 0), 0);
	assert_int_equal(start(&c, "GET", "http://localhost/number/1", 0), -EAGAIN);
	f->client = vhca_http_loop_client_free(f->client);
	assert_int_equal(c.n_done, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(two_hundred_requests_at_once),
		T(the_same_over_tcp),
		T(a_late_answer_leaves_at_once),
		T(a_time_out_ends_the_request_on_both_sides),
		T(done_may_start_the_next_request),
		T(done_may_free_the_client),
		T(freeing_the_client_forgets_what_is_under_way),
		T(a_cancelled_request_is_never_done),
		T(a_server_that_goes_away_is_an_error),
		T(connections_are_kept_until_the_client_is_idle),
		T(too_many_requests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
