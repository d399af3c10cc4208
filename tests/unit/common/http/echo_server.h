/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_COMMON_HTTP_ECHO_SERVER_H
#define VHCA_TESTS_UNIT_COMMON_HTTP_ECHO_SERVER_H
/* A server with routes that echo, fail, wait or answer with much, and its client. */
#include "common/http/server.h"
#include "tests/unit/unit.h"

#define ECHO_REPLY_MAX (4 * 1024 * 1024)

struct echo_server {
	char dir[64], path[96], listen[128];
	struct vhca_http_server *srv;
	struct vhca_http_request *late[8]; /* held by on_late(), in order of arrival */
	unsigned int n_late, n_cancelled, n_echo;
};

extern const struct vhca_http_route echo_server_routes[];
/* Or fails the running test. */
struct vhca_http_server *echo_server_listen(struct echo_server *f, const char *spec);
int echo_server_setup(void **state);
int echo_server_teardown(void **state);
/* What there is to do within ms. */
void echo_server_run(const struct echo_server *f, int ms);
int echo_server_dial(const struct echo_server *f);
void echo_server_send(int fd, const char *data, size_t len);
/* Reads to the end of the connection, at most 3 s; -1 if it does not end. */
ssize_t echo_server_drain(const struct echo_server *f, int fd, char *buf, size_t size);
/* One request with "Connection: close"; returns the status, and the answer in *ret (caller frees).
 */
int echo_server_ask(const struct echo_server *f, const char *head, const char *body, char **ret);
struct json_object *echo_server_body(const char *reply);
/* A request that waits for its answer: its connection. */
int echo_server_start_late(struct echo_server *f);

#define ECHO_CASE(name) \
	cmocka_unit_test_setup_teardown(name, echo_server_setup, echo_server_teardown)

#endif
