/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The HTTP server: requests and the answers to them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/ratelimit.h"
#include "common/http/json.h"
#include "tests/unit/common/http/echo_server.h"

/* ---- client ---- */

static void echo_server_assert(const char *reply, const char *key, const char *value)
{
	struct json_object *obj = echo_server_body(reply);
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

	assert_int_equal(
		echo_server_ask(*state,
				"POST /v1/domains/vm%201/vfs/ib%2f0?state=a%20b+c HTTP/1.1\r\n"
				"Content-Type: text/whatever\r\nIdempotency-Key: k1",
				" {\"a\":[1]} ", &reply),
		200);
	assert_non_null(strstr(reply, "Content-Type: application/json\r\n"));
	echo_server_assert(reply, "method", "POST");
	echo_server_assert(reply, "path", "/v1/domains/vm%201/vfs/ib%2f0");
	echo_server_assert(reply, "p0", "vm 1");
	echo_server_assert(reply, "p1", "ib/0");
	echo_server_assert(reply, "p9", "");
	echo_server_assert(reply, "state", "a b c");
	echo_server_assert(reply, "key", "k1");
	obj = echo_server_body(reply);
	assert_true(json_object_object_get_ex(obj, "body", &body));
	assert_string_equal(json_object_to_json_string_ext(body, 0), "{\"a\":[1]}");
	(void)json_object_put(obj);
}

static void chunked_bodies_are_bodies(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;

	assert_int_equal(
		echo_server_ask(
			*state,
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

		assert_int_equal(echo_server_ask(*state, table[i].head, table[i].body, &reply),
				 table[i].status);
		assert_non_null(strstr(reply, "Content-Type: application/problem+json\r\n"));
		echo_server_assert(reply, "code", table[i].code);
	}
	assert_int_equal(((struct echo_server *)*state)->n_echo, 0);
}

static void a_wrong_method_is_told_the_right_ones(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL, *bad_body = NULL;

	assert_int_equal(echo_server_ask(*state, "DELETE /v1/echo HTTP/1.1", NULL, &reply), 405);
	assert_non_null(strstr(reply, "Allow: GET, HEAD, PUT\r\n"));
	assert_int_equal(echo_server_ask(*state, "PUT /v1/echo HTTP/1.1", "x", &bad_body), 400);
	assert_null(strstr(bad_body, "Allow:"));
}

static void bodies_are_bounded(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL, *chunked = NULL;
	char body[1100], head[2048];

	memset(body, ' ', sizeof(body));
	memcpy(body, "{}", 2);
	body[1024] = '\0';
	assert_int_equal(echo_server_ask(*state, "PUT /v1/echo HTTP/1.1", body, NULL), 200);
	body[1024] = ' ';
	body[1025] = '\0';
	assert_int_equal(echo_server_ask(*state, "PUT /v1/echo HTTP/1.1", body, &reply), 413);
	echo_server_assert(reply, "code", "body_too_large");
	(void)snprintf(head, sizeof(head),
		       "PUT /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
		       "chunked\r\n\r\n401\r\n%s\r\n0\r\n"
		       "\r\nGET / HTTP/1.1",
		       body);
	assert_int_equal(echo_server_ask(*state, head, NULL, &chunked), 413);
}

static void an_endless_body_is_cut_off(void **state)
{
	const struct echo_server *f = *state;
	VHCA_AUTO_CLOSE int fd = echo_server_dial(f);
	static const char head[] =
		"PUT /v1/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
	char chunk[512];
	size_t sent = 0;
	ssize_t n = 0;

	memset(chunk, ' ', sizeof(chunk));
	memcpy(chunk, "1f0\r\n", 5);
	memcpy(chunk + 5 + 0x1f0, "\r\n", 2);
	echo_server_send(fd, head, sizeof(head) - 1);
	while (n >= 0 && sent < 1024 * 1024) {
		n = send(fd, chunk, 5 + 0x1f0 + 2, MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		if (n < 0 && errno == EAGAIN)
			n = 0;
		echo_server_run(f, 0);
	}
	assert_int_equal(n, -1);
	assert_true(sent < 100 * 1024);
}

/* A connection that ended under a client that still sends would take the answer with it. */
static void a_refusal_waits_for_the_body(void **state)
{
	const struct echo_server *f = *state;
	VHCA_AUTO_CLOSE int fd = echo_server_dial(f);
	VHCA_AUTO_FREE char *reply = malloc(ECHO_REPLY_MAX);
	static const char head[] =
		"PUT /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 8000\r\n\r\n";
	static const char next[] = "GET /v1/empty HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	char piece[500];

	assert_non_null(reply);
	memset(piece, ' ', sizeof(piece));
	echo_server_send(fd, head, sizeof(head) - 1);
	for (size_t sent = 0; sent < 8000; sent += sizeof(piece)) {
		echo_server_run(f, 0);
		echo_server_send(fd, piece, sizeof(piece));
		echo_server_run(f, 0);
	}
	echo_server_send(fd, next, sizeof(next) - 1);
	assert_true(echo_server_drain(f, fd, reply, ECHO_REPLY_MAX) > 0);
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
		assert_int_equal(echo_server_ask(*state, heads[i], NULL, NULL), 413);
}

static void head_answers_as_get_without_a_body(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;
	const char *length;

	assert_int_equal(echo_server_ask(*state, "HEAD /v1/big HTTP/1.1", NULL, &reply), 200);
	length = strstr(reply, "Content-Length: ");
	assert_non_null(length);
	assert_int_equal(strtoul(length + 16, NULL, 10), 2000010);
	assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
	assert_non_null(strstr(reply, "ETag: \""));
}

static void big_answers_arrive_whole(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;

	assert_int_equal(echo_server_ask(*state, "GET /v1/big HTTP/1.1", NULL, &reply), 200);
	assert_int_equal(strlen(strstr(reply, "\r\n\r\n") + 4), 2000010);
}

static void text_is_sent_as_it_is(void **state)
{
	VHCA_AUTO_FREE char *reply = NULL;

	assert_int_equal(echo_server_ask(*state, "GET /metrics HTTP/1.1", NULL, &reply), 200);
	assert_non_null(strstr(reply, "Content-Type: text/plain; version=0.0.4\r\n"));
	assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\nvhcad_vfs 4\n");
}

static void an_unchanged_answer_is_not_sent_again(void **state)
{
	VHCA_AUTO_FREE char *first = NULL, *second = NULL, *other = NULL, *put = NULL;
	char etag[64], head[256];

	assert_int_equal(echo_server_ask(*state, "GET /v1/echo?state=1 HTTP/1.1", NULL, &first),
			 200);
	(void)snprintf(etag, sizeof(etag), "%s", strstr(first, "ETag: ") + 6);
	etag[strcspn(etag, "\r")] = '\0';
	assert_int_equal(etag[0], '"'); /* a strong one */
	(void)snprintf(head, sizeof(head),
		       "GET /v1/echo?state=1 HTTP/1.1\r\nIf-None-Match: \"x\", W/%s", etag);
	assert_int_equal(echo_server_ask(*state, head, NULL, &second), 304);
	assert_non_null(strstr(second, etag));
	assert_string_equal(strstr(second, "\r\n\r\n"), "\r\n\r\n");
	(void)snprintf(head, sizeof(head), "GET /v1/echo?state=2 HTTP/1.1\r\nIf-None-Match: %s",
		       etag);
	assert_int_equal(echo_server_ask(*state, head, NULL, &other), 200);
	assert_int_equal(
		echo_server_ask(*state, "GET /v1/echo HTTP/1.1\r\nIf-None-Match: *", NULL, NULL),
		304);
	assert_int_equal(
		echo_server_ask(*state, "PUT /v1/echo HTTP/1.1\r\nIf-None-Match: *", "{}", &put),
		200);
	assert_null(strstr(put, "ETag"));
}

static void a_document_has_its_tag(void **state)
{
	VHCA_AUTO_FREE char *first = NULL, *second = NULL, *head = NULL;
	char ask[128], etag[64];

	assert_int_equal(echo_server_ask(*state, "GET /openapi.json HTTP/1.1", NULL, &first), 200);
	assert_non_null(strstr(first, "Content-Type: application/json\r\n"));
	assert_string_equal(strstr(first, "\r\n\r\n"), "\r\n\r\n{\"openapi\":\"3.1.0\"}");
	(void)snprintf(etag, sizeof(etag), "%s", strstr(first, "ETag: ") + 6);
	etag[strcspn(etag, "\r")] = '\0';
	(void)snprintf(ask, sizeof(ask), "GET /openapi.json HTTP/1.1\r\nIf-None-Match: %s", etag);
	assert_int_equal(echo_server_ask(*state, ask, NULL, &second), 304);
	assert_string_equal(strstr(second, "\r\n\r\n"), "\r\n\r\n");
	assert_int_equal(echo_server_ask(*state, "HEAD /openapi.json HTTP/1.1", NULL, &head), 200);
	assert_non_null(strstr(head, etag));
	assert_string_equal(strstr(head, "\r\n\r\n"), "\r\n\r\n");
}

static void garbage_does_no_harm(void **state)
{
	const struct echo_server *f = *state;
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
		VHCA_AUTO_CLOSE int fd = echo_server_dial(f);

		echo_server_send(fd, garbage[i], strlen(garbage[i]));
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		for (int round = 0; round < 5; round++)
			echo_server_run(f, 1);
	}
	assert_int_equal(f->n_echo, 0);
	assert_int_equal(echo_server_ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);
}

/* ---- the audit ---- */

#define REFUSED 500

static struct {
	unsigned int done, failed, refused, more;
} told;

static void on_log(enum vhca_log_level level, const char *msg)
{
	if (strncmp(msg, "audit: ", 7) != 0 || level > VHCA_LOG_NOTICE)
		return;
	told.done += strstr(msg, "PUT /v1/echo: 200") != NULL;
	told.failed += strstr(msg, "DELETE /v1/failure: 500 disk_full") != NULL;
	told.refused += strstr(msg, "DELETE /v1/error: 409 vf_busy") != NULL;
	if (strstr(msg, " more refusals in a minute"))
		told.more += (unsigned int)strtoul(strrchr(msg, ':') + 1, NULL, 10);
}

static void a_loop_of_refusals_does_not_fill_the_log(void **state)
{
	struct echo_server *f = *state;

	vhca_log_set_sink(on_log);
	for (unsigned int i = 0; i < REFUSED; i++)
		assert_int_equal(echo_server_ask(f, "DELETE /v1/error HTTP/1.1", NULL, NULL), 409);
	for (unsigned int i = 0; i < 2 * VHCA_RATELIMIT_LINES; i++)
		assert_int_equal(echo_server_ask(f, "PUT /v1/echo HTTP/1.1", "{}", NULL), 200);
	for (unsigned int i = 0; i < 2 * VHCA_RATELIMIT_LINES; i++)
		assert_int_equal(echo_server_ask(f, "DELETE /v1/failure HTTP/1.1", NULL, NULL),
				 500);
	f->srv = vhca_http_server_free(f->srv);
	vhca_log_set_sink(NULL);
	assert_int_equal(told.refused, VHCA_RATELIMIT_LINES);
	assert_int_equal(told.more, REFUSED - VHCA_RATELIMIT_LINES);
	assert_int_equal(told.done, 2 * VHCA_RATELIMIT_LINES);	 /* whatever was done */
	assert_int_equal(told.failed, 2 * VHCA_RATELIMIT_LINES); /* or may have been */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ECHO_CASE(a_request_reaches_its_handler_whole),
		ECHO_CASE(chunked_bodies_are_bodies),
		ECHO_CASE(wrong_requests_get_problem_documents),
		ECHO_CASE(a_wrong_method_is_told_the_right_ones),
		ECHO_CASE(bodies_are_bounded),
		ECHO_CASE(an_endless_body_is_cut_off),
		ECHO_CASE(a_refusal_waits_for_the_body),
		ECHO_CASE(no_body_is_awaited_in_vain),
		ECHO_CASE(head_answers_as_get_without_a_body),
		ECHO_CASE(big_answers_arrive_whole),
		ECHO_CASE(text_is_sent_as_it_is),
		ECHO_CASE(an_unchanged_answer_is_not_sent_again),
		ECHO_CASE(a_document_has_its_tag),
		ECHO_CASE(garbage_does_no_harm),
		ECHO_CASE(a_loop_of_refusals_does_not_fill_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
