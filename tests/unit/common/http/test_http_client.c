// SPDX-License-Identifier: LGPL-2.1-or-later
/* The blocking client against a server that answers with canned bytes, from a thread. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/client.h"
#include "common/http/json.h"
#include "tests/unit/unit.h"

struct canned {
	char dir[64], path[96];
	int listen_fd;
	pthread_t thread;
	const char *answer; /* NULL = never answers */
	size_t repeat;	    /* the last 1000 bytes sent so many times more */
	char request[8192]; /* what came */
};

/* ---- the server ---- */

static void read_request(struct canned *c, int fd)
{
	size_t len = 0;
	const char *end = NULL, *length;
	size_t body;

	while (len < sizeof(c->request) - 1) {
		ssize_t n = recv(fd, c->request + len, sizeof(c->request) - 1 - len, 0);

		if (n <= 0)
			return;
		len += (size_t)n;
		c->request[len] = '\0';
		end = strstr(c->request, "\r\n\r\n");
		if (!end)
			continue;
		length = strcasestr(c->request, "\r\nContent-Length: ");
		body = length ? strtoul(length + 18, NULL, 10) : 0;
		if (strlen(end + 4) >= body)
			return;
	}
}

static void *serve_one(void *arg)
{
	struct canned *c = arg;
	VHCA_AUTO_CLOSE int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	size_t len = c->answer ? strlen(c->answer) : 0;
	char c1;

	read_request(c, fd);
	if (!c->answer) {
		(void)recv(fd, &c1, 1, 0); /* until the client gives up */
		return NULL;
	}
	if (send(fd, c->answer, len, MSG_NOSIGNAL) != (ssize_t)len)
		return NULL;
	for (size_t i = 0; i < c->repeat; i++)
		if (send(fd, c->answer + len - 1000, 1000, MSG_NOSIGNAL) < 0)
			break;
	return NULL;
}

static int setup(void **state)
{
	struct canned *c = calloc(1, sizeof(*c));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	assert_non_null(c);
	(void)snprintf(c->dir, sizeof(c->dir), "/tmp/vhca-client-XXXXXX");
	assert_non_null(mkdtemp(c->dir));
	(void)snprintf(c->path, sizeof(c->path), "%s/s.sock", c->dir);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", c->path);
	c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(c->listen_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(c->listen_fd, 4), 0);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	struct canned *c = *state;

	(void)close(c->listen_fd);
	(void)unlink(c->path);
	assert_int_equal(rmdir(c->dir), 0);
	free(c);
	return 0;
}

/* One call against one canned answer. */
static int call(struct canned *c, const char *answer, struct vhca_http_call_args args,
		struct vhca_http_result *res, struct vhca_error *err)
{
	int r;

	c->answer = answer;
	args.method = args.method ? args.method : "GET";
	args.url = args.url ? args.url : "http://localhost/v1/x?a=b";
	args.unix_socket = c->path;
	assert_int_equal(pthread_create(&c->thread, NULL, serve_one, c), 0);
	r = vhca_http_call(&args, res, err);
	assert_int_equal(pthread_join(c->thread, NULL), 0);
	return r;
}

static const struct vhca_http_call_args plain = {.method = NULL};

/* ---- tests ---- */

static void an_answer_is_taken_apart(void **state)
{
	struct vhca_http_result res;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t n = 0;

	assert_int_equal(
		call(*state,
		     "HTTP/1.1 200 OK\r\nETAG:  \"abc-1\" \r\nContent-Length: 7\r\n\r\n{\"a\":5}",
		     plain, &res, &err),
		0);
	assert_int_equal(res.status, 200);
	assert_string_equal(res.etag, "\"abc-1\"");
	assert_int_equal(vhca_json_get_u64(res.body, "a", 9, &n, NULL), 0);
	assert_int_equal(n, 5);
	assert_int_equal(err.kind, VHCA_ERR_NONE);
	vhca_http_result_done(&res);
	assert_null(res.body);
}

static void a_request_says_what_it_should(void **state)
{
	struct canned *c = *state;
	static const char *const headers[] = {"If-None-Match: \"abc\"", "Idempotency-Key: 17",
					      NULL};
	struct json_object *body = json_object_new_object();
	const struct vhca_http_call_args args = {.method = "PUT", .body = body, .headers = headers};
	struct vhca_http_result res;

	vhca_json_add_u64(body, "epoch", 7);
	assert_int_equal(setenv("http_proxy", "http://192.0.2.1:1", 1), 0); /* must not be used */
	assert_int_equal(call(c, "HTTP/1.1 204 No Content\r\n\r\n", args, &res, NULL), 0);
	assert_int_equal(unsetenv("http_proxy"), 0);
	assert_int_equal(strncmp(c->request, "PUT /v1/x?a=b HTTP/1.1\r\n", 24), 0);
	assert_non_null(strstr(c->request, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(c->request, "\r\nIf-None-Match: \"abc\"\r\n"));
	assert_non_null(strstr(c->request, "\r\nIdempotency-Key: 17\r\n"));
	assert_non_null(strstr(c->request, "\r\nContent-Length: 11\r\n"));
	assert_null(strcasestr(c->request, "Expect:"));
	assert_non_null(strstr(c->request, "\r\n\r\n{\"epoch\":7}"));
	assert_int_equal(json_object_put(body), 1); /* was borrowed */
	assert_null(res.body);
	vhca_http_result_done(&res);
}

static void a_post_without_body_has_length_zero(void **state)
{
	struct canned *c = *state;
	const struct vhca_http_call_args post = {.method = "POST"}, del = {.method = "DELETE"};
	struct vhca_http_result res;

	assert_int_equal(call(c, "HTTP/1.1 204 No Content\r\n\r\n", post, &res, NULL), 0);
	assert_non_null(strstr(c->request, "\r\nContent-Length: 0\r\n"));
	assert_int_equal(call(c, "HTTP/1.1 204 No Content\r\n\r\n", del, &res, NULL), 0);
	assert_int_equal(strncmp(c->request, "DELETE ", 7), 0);
	assert_null(strstr(c->request, "Content-Length"));
}

static void a_problem_document_becomes_the_error(void **state)
{
	static const char answer[] =
		"HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n"
		"{\"kind\":\"conflict\",\"code\":\"superseded\",\"detail\":\"epoch 9 is known\","
		"\"hint\":\"give up\",\"retryable\":false}";
	struct vhca_http_result res;
	struct vhca_error err = VHCA_ERROR_INIT;
	bool retryable = true;

	assert_int_equal(call(*state, answer, plain, &res, &err), -EREMOTEIO);
	assert_int_equal(res.status, 409);
	assert_int_equal(err.kind, VHCA_ERR_CONFLICT);
	assert_string_equal(err.code, "superseded");
	assert_string_equal(err.msg, "epoch 9 is known");
	assert_string_equal(err.hint, "give up");
	assert_int_equal(vhca_json_opt_bool(res.body, "retryable", &retryable, NULL), 0);
	assert_false(retryable);
	vhca_http_result_done(&res);
}

static void other_answers_are_judged_by_their_status(void **state)
{
	static const struct {
		const char *answer;
		int rc, status;
		enum vhca_err kind;
	} table[] = {
		{"HTTP/1.1 304 Not Modified\r\n\r\n", 0, 304, VHCA_ERR_NONE},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0, 200, VHCA_ERR_NONE},
		{"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0, 201, VHCA_ERR_NONE},
		{"HTTP/1.1 503 Busy\r\nContent-Length: 6\r\n\r\n<html>", -EREMOTEIO, 503,
		 VHCA_ERR_UNAVAILABLE},
		{"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n[]", -EREMOTEIO, 404,
		 VHCA_ERR_NOT_FOUND},
		{"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", -EREMOTEIO, 500,
		 VHCA_ERR_INTERNAL},
		/* not followed: the answer must come from whom we asked */
		{"HTTP/1.1 302 Found\r\nLocation: http://localhost/other\r\nContent-Length: "
		 "0\r\n\r\n",
		 -EREMOTEIO, 302, VHCA_ERR_INTERNAL},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct vhca_http_result res;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_int_equal(call(*state, table[i].answer, plain, &res, &err), table[i].rc);
		assert_int_equal(res.status, table[i].status);
		assert_int_equal(err.kind, table[i].kind);
		vhca_http_result_done(&res);
	}
}

static void no_proper_answer_is_unavailable(void **state)
{
	static const char *const answers[] = {
		"",
		"SSH-2.0-OpenSSH_9.2p1\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nContent-Len",
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(answers); i++) {
		struct vhca_http_result res;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(call(*state, answers[i], plain, &res, &err) < 0);
		assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
		assert_string_equal(err.code, "unreachable");
		assert_int_equal(res.status, 0);
		assert_null(res.body);
		vhca_http_result_done(&res);
	}
}

static void a_silent_server_costs_the_time_out_only(void **state)
{
	const struct vhca_http_call_args args = {.total_ms = 150};
	struct vhca_http_result res;
	struct vhca_error err = VHCA_ERROR_INIT;
	uint64_t start = vhca_now_ms();

	assert_int_equal(call(*state, NULL, args, &res, &err), -ETIMEDOUT);
	assert_in_range(vhca_now_ms() - start, 140, 8000); /* else it is 10 s */
	assert_string_equal(err.code, "timeout");
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
}

static void a_long_answer_is_cut_off(void **state)
{
	struct canned *c = *state;
	const struct vhca_http_call_args args = {.reply_max = 2000};
	struct vhca_http_result res;
	struct vhca_error err = VHCA_ERROR_INIT;
	char answer[1100];

	(void)snprintf(answer, sizeof(answer),
		       "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%01000d", 0);
	c->repeat = 1;
	assert_int_equal(call(c, answer, args, &res, &err), 0); /* exactly the limit */
	vhca_http_result_done(&res);
	c->repeat = 1000;
	assert_int_equal(call(c, answer, args, &res, &err), -EMSGSIZE);
	assert_string_equal(err.code, "reply_too_large");
	assert_non_null(strstr(err.msg, "longer than 2000 bytes"));
}

static void an_oversized_etag_is_ignored(void **state)
{
	char answer[512];
	struct vhca_http_result res;

	(void)snprintf(answer, sizeof(answer),
		       "HTTP/1.1 200 OK\r\nETag: \"%0100d\"\r\nContent-Length: 0\r\n\r\n", 0);
	assert_int_equal(call(*state, answer, plain, &res, NULL), 0);
	assert_string_equal(res.etag, "");
}

static void nobody_there_is_unreachable(void **state)
{
	const struct canned *c = *state;
	struct vhca_http_call_args args = {.method = "GET", .url = "http://localhost/"};
	struct vhca_http_result res;
	struct vhca_error err = VHCA_ERROR_INIT;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/none", c->dir);
	args.unix_socket = path;
	assert_int_equal(vhca_http_call(&args, &res, &err), -ENOENT);
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	assert_string_equal(err.code, "unreachable");
	assert_non_null(strstr(err.msg, path));
	args.unix_socket = NULL;
	args.url = "http://127.0.0.1:1/";
	assert_int_equal(vhca_http_call(&args, &res, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.msg, args.url));
}

static void only_http_is_spoken(void **state)
{
	static const char *const urls[] = {"file:///etc/passwd", "ftp://localhost/", "gopher://x/",
					   "http://", ""};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(urls); i++) {
		const struct vhca_http_call_args args = {.method = "GET", .url = urls[i]};
		struct vhca_http_result res;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_int_equal(vhca_http_call(&args, &res, &err), -EINVAL);
		assert_string_equal(err.code, "bad_url");
		assert_null(res.body);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_is_taken_apart),
		T(a_request_says_what_it_should),
		T(a_post_without_body_has_length_zero),
		T(a_problem_document_becomes_the_error),
		T(other_answers_are_judged_by_their_status),
		T(no_proper_answer_is_unavailable),
		T(a_silent_server_costs_the_time_out_only),
		T(a_long_answer_is_cut_off),
		T(an_oversized_etag_is_ignored),
		T(nobody_there_is_unreachable),
		T(only_http_is_spoken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
