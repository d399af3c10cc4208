/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The HTTP server: where it listens, and how many it serves there. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "tests/unit/common/http/echo_server.h"

/* ---- limits ---- */

static void slow_clients_are_dropped_and_others_served(void **state)
{
	struct echo_server *f = *state;
	VHCA_AUTO_FREE char *reply = malloc(ECHO_REPLY_MAX);
	VHCA_AUTO_CLOSE int waiting = echo_server_start_late(f);
	int slow[14];

	for (int i = 0; i < 14; i++) { /* with the waiting one, one less than the limit */
		slow[i] = echo_server_dial(f);
		echo_server_send(slow[i], "GET /v1/echo HT", 15);
		echo_server_run(f, 0);
	}
	assert_int_equal(echo_server_ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);
	for (int i = 0; i < 14; i++) { /* all end within the 1 s idle time-out and its tick */
		assert_true(echo_server_drain(f, slow[i], reply, ECHO_REPLY_MAX) >= 0);
		(void)close(slow[i]);
	}
	/* who waits for an answer is not idle */
	assert_int_equal(f->n_cancelled, 0);
	vhca_http_reply(f->late[0], 200, json_object_new_object());
	assert_true(echo_server_drain(f, waiting, reply, ECHO_REPLY_MAX) > 0);
	assert_int_equal(strncmp(reply, "HTTP/1.1 200 ", 13), 0);
}

static void connections_over_the_limit_wait_or_are_refused(void **state)
{
	const struct echo_server *f = *state;
	int idle[20];

	for (int i = 0; i < 20; i++) {
		idle[i] = echo_server_dial(f);
		echo_server_run(f, 0);
	}
	for (int i = 0; i < 20; i++)
		(void)close(idle[i]);
	for (int i = 0; i < 10; i++)
		echo_server_run(f, 1);
	assert_int_equal(echo_server_ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);
}

/* ---- addresses ---- */

static void the_socket_has_its_mode_whatever_the_umask(void **state)
{
	struct echo_server *f = *state;
	mode_t old = umask(0777);
	struct stat st;

	f->srv = vhca_http_server_free(f->srv);
	f->srv = echo_server_listen(f, f->listen);
	(void)umask(old);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
}

static void only_a_dead_socket_is_replaced(void **state)
{
	struct echo_server *f = *state;
	struct vhca_http_server *second = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	char other[128];
	int fd;

	/* somebody listens */
	assert_int_equal(
		vhca_http_server_new(f->listen, 0600, NULL, echo_server_routes, f, &second, &err),
		-EADDRINUSE);
	assert_non_null(strstr(err.msg, f->path));
	assert_int_equal(echo_server_ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);

	/* nobody does: what a killed daemon leaves behind */
	(void)snprintf(other, sizeof(other), "%s.dead", f->path);
	assert_int_equal(rename(f->path, other), 0);
	f->srv = vhca_http_server_free(f->srv); /* and a renamed socket is not removed */
	assert_int_equal(rename(other, f->path), 0);
	f->srv = echo_server_listen(f, f->listen);
	assert_int_equal(echo_server_ask(f, "GET /v1/echo HTTP/1.1", NULL, NULL), 200);

	/* no socket at all */
	(void)snprintf(other, sizeof(other), "unix:%s/file", f->dir);
	fd = open(other + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(
		vhca_http_server_new(other, 0600, NULL, echo_server_routes, f, &second, &err),
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

		if (vhca_http_server_new(wrong[i], 0600, NULL, echo_server_routes, *state, &srv,
					 &err) >= 0)
			fail_msg("accepted: %s", wrong[i]);
		assert_string_not_equal(err.msg, "");
		assert_null(srv);
	}
}

static void tcp_is_served(void **state)
{
	struct echo_server *f = *state;
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	static const char text[] = "GET /v1/empty HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	VHCA_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char reply[1024];

	f->srv = vhca_http_server_free(f->srv);
	f->srv = echo_server_listen(f, "127.0.0.1:0");
	addr.sin_port = htons(vhca_http_server_port(f->srv));
	assert_int_not_equal(addr.sin_port, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	echo_server_send(fd, text, sizeof(text) - 1);
	assert_true(echo_server_drain(f, fd, reply, sizeof(reply)) > 0);
	assert_int_equal(strncmp(reply, "HTTP/1.1 204 ", 13), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ECHO_CASE(slow_clients_are_dropped_and_others_served),
		ECHO_CASE(connections_over_the_limit_wait_or_are_refused),
		ECHO_CASE(the_socket_has_its_mode_whatever_the_umask),
		ECHO_CASE(only_a_dead_socket_is_replaced),
		ECHO_CASE(wrong_addresses_are_refused),
		ECHO_CASE(tcp_is_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
