/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The HTTP server: answers that come late, and requests whose client or server goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "tests/unit/common/http/echo_server.h"

/* ---- late answers ---- */

static void a_late_answer_arrives(void **state)
{
	struct echo_server *f = *state;
	VHCA_AUTO_FREE char *reply = malloc(ECHO_REPLY_MAX);
	VHCA_AUTO_CLOSE int fd = echo_server_start_late(f);
	struct json_object *body = json_object_new_object();

	assert_int_equal(recv(fd, reply, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_string_equal(vhca_http_query(f->late[0], "wait"), "30");
	vhca_json_add_bool(body, "ok", true);
	vhca_http_reply(f->late[0], 200, body);
	assert_true(echo_server_drain(f, fd, reply, ECHO_REPLY_MAX) > 0);
	assert_non_null(strstr(reply, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(reply, "{\"ok\":true}"));
	assert_int_equal(f->n_cancelled, 0);
}

static void late_answers_may_come_in_any_order(void **state)
{
	struct echo_server *f = *state;
	VHCA_AUTO_FREE char *reply = malloc(ECHO_REPLY_MAX);
	int fds[4];

	for (int i = 0; i < 4; i++)
		fds[i] = echo_server_start_late(f);
	for (int i = 3; i >= 0; i--) {
		struct json_object *body = json_object_new_object();

		vhca_json_add_u64(body, "number", (uint64_t)i);
		vhca_http_reply(f->late[i], 200, body);
		assert_true(echo_server_drain(f, fds[i], reply, ECHO_REPLY_MAX) > 0);
		body = echo_server_body(reply);
		assert_int_equal(json_object_get_int(json_object_object_get(body, "number")), i);
		(void)json_object_put(body);
		(void)close(fds[i]);
	}
}

static void a_client_that_leaves_is_noticed_at_once(void **state)
{
	struct echo_server *f = *state;
	int gone = echo_server_start_late(f), stays = echo_server_start_late(f);
	VHCA_AUTO_FREE char *reply = malloc(ECHO_REPLY_MAX);

	(void)close(gone);
	for (int i = 0; i < 20 && !f->n_cancelled; i++)
		echo_server_run(f, 10);
	assert_int_equal(f->n_cancelled, 1);
	for (int i = 0; i < 5; i++)
		echo_server_run(f, 1);
	assert_string_equal(vhca_http_path(f->late[0]), "/v1/late"); /* valid until replied */
	assert_null(vhca_http_header(f->late[0], "Host"));
	vhca_http_reply(f->late[0], 200, json_object_new_object());
	vhca_http_reply(f->late[1], 200, json_object_new_object());
	assert_true(echo_server_drain(f, stays, reply, ECHO_REPLY_MAX) > 0);
	assert_int_equal(f->n_cancelled, 1);
	(void)close(stays);
}

static void reply_and_forget(void *arg)
{
	struct echo_server *f = arg;

	f->n_cancelled++;
	vhca_http_reply(f->late[0], 200, json_object_new_object());
	vhca_http_reply(f->late[1], 200, json_object_new_object());
}

static void a_cancelled_owner_may_reply_at_once(void **state)
{
	struct echo_server *f = *state;
	int first = echo_server_start_late(f), second = echo_server_start_late(f);

	vhca_http_on_cancel(f->late[0], reply_and_forget, f);
	vhca_http_on_cancel(f->late[1], NULL, NULL);
	(void)close(first);
	(void)close(second); /* both events in one round */
	for (int i = 0; i < 20; i++)
		echo_server_run(f, 1);
	assert_int_equal(f->n_cancelled, 1);
}

static void freeing_the_server_cancels_what_waits(void **state)
{
	struct echo_server *f = *state;
	int fds[3];
	char c;

	for (int i = 0; i < 3; i++)
		fds[i] = echo_server_start_late(f);
	vhca_http_on_cancel(f->late[0], reply_and_forget, f);
	(void)close(fds[2]);
	for (int i = 0; i < 20 && !f->n_cancelled; i++)
		echo_server_run(f, 10);
	assert_int_equal(f->n_cancelled, 1); /* its handle is still held when the server goes */
	f->srv = vhca_http_server_free(f->srv);
	assert_int_equal(f->n_cancelled, 2); /* late[1] was replied by late[0]'s callback */
	assert_true(recv(fds[0], &c, 1, MSG_DONTWAIT) <= 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ECHO_CASE(a_late_answer_arrives),
		ECHO_CASE(late_answers_may_come_in_any_order),
		ECHO_CASE(a_client_that_leaves_is_noticed_at_once),
		ECHO_CASE(a_cancelled_owner_may_reply_at_once),
		ECHO_CASE(freeing_the_server_cancels_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
