// SPDX-License-Identifier: LGPL-2.1-or-later
/* Many who begin a handshake at once, and what becomes of those who do not go on with it. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include "common/http/server.h"
#include "tests/unit/common/http/auth_files.h"
#include "tests/unit/unit.h"

struct server {
	unsigned int source_max;
	struct vhca_http_auth *auth;
	struct vhca_http_server *srv;
};

static void begin(struct server *s)
{
	static const struct vhca_http_route routes[] = {{.method = NULL}};
	struct vhca_http_limits limits = {.source_max = s->source_max};
	struct vhca_error err = VHCA_ERROR_INIT;

	limits.auth = s->auth = auth_loaded("server.pem", "server.key", "ca.pem", NULL);
	if (vhca_http_server_new("127.0.0.1:0", 0, &limits, routes, NULL, &s->srv, &err) < 0)
		fail_msg("%s", err.msg);
}

static void end(struct server *s)
{
	s->srv = vhca_http_server_free(s->srv);
	s->auth = vhca_http_auth_free(s->auth);
}

static unsigned int answered; /* handshakes: the server's key is read for each */

int __real_gnutls_privkey_import_x509_raw(gnutls_privkey_t key, const gnutls_datum_t *data,
					  gnutls_x509_crt_fmt_t format, const char *password,
					  unsigned int flags);
int __wrap_gnutls_privkey_import_x509_raw(gnutls_privkey_t key, const gnutls_datum_t *data,
					  gnutls_x509_crt_fmt_t format, const char *password,
					  unsigned int flags);
int __wrap_gnutls_privkey_import_x509_raw(gnutls_privkey_t key, const gnutls_datum_t *data,
					  gnutls_x509_crt_fmt_t format, const char *password,
					  unsigned int flags)
{
	answered++;
	return __real_gnutls_privkey_import_x509_raw(key, data, format, password, flags);
}

#define HELLOS 8

/* What was written to them, or that they were closed. */
static unsigned int heard(const int fds[static HELLOS])
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < HELLOS; i++) {
		struct pollfd p = {.fd = fds[i], .events = POLLIN};

		assert_true(poll(&p, 1, 0) >= 0);
		n += p.revents != 0;
	}
	return n;
}

static int dial(const struct vhca_http_server *srv)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(vhca_http_server_port(srv))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int dial_and_speak(const struct vhca_http_server *srv)
{
	int fd = dial(srv);

	assert_int_equal(send(fd, "no hello", 8, MSG_NOSIGNAL), 8);
	return fd;
}

struct hello {
	unsigned char data[4096];
	size_t len;
};

static ssize_t keep_hello(gnutls_transport_ptr_t to, const void *data, size_t len)
{
	struct hello *hello = to;

	assert_true(len <= sizeof(hello->data) - hello->len);
	memcpy(hello->data + hello->len, data, len);
	hello->len += len;
	return (ssize_t)len;
}

static ssize_t hear_nothing(gnutls_transport_ptr_t from, void *data, size_t len)
{
	(void)from;
	(void)data;
	(void)len;
	errno = EAGAIN;
	return -1;
}

/* What every client says first. */
static struct hello new_hello(void)
{
	gnutls_certificate_credentials_t trust;
	struct hello hello = {.len = 0};
	gnutls_session_t session;

	assert_int_equal(gnutls_certificate_allocate_credentials(&trust), 0);
	assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
	assert_int_equal(gnutls_set_default_priority(session), 0);
	assert_int_equal(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, trust), 0);
	gnutls_transport_set_ptr(session, &hello);
	gnutls_transport_set_push_function(session, keep_hello);
	gnutls_transport_set_pull_function(session, hear_nothing);
	assert_int_equal(gnutls_handshake(session), GNUTLS_E_AGAIN);
	gnutls_deinit(session);
	gnutls_certificate_free_credentials(trust);
	return hello;
}

static int dial_and_greet(const struct vhca_http_server *srv)
{
	struct hello hello = new_hello();
	int fd = dial(srv);

	assert_int_equal(send(fd, hello.data, hello.len, MSG_NOSIGNAL), hello.len);
	return fd;
}

/* Handshakes cost: what else the thread has to do has its turn after each. */
static void a_crowd_shakes_hands_one_by_one(void **state)
{
	struct server s = {.source_max = 0};
	unsigned int now = 0, last = 0;
	int fds[HELLOS];

	(void)state;
	begin(&s);
	for (unsigned int i = 0; i < HELLOS; i++)
		fds[i] = dial_and_speak(s.srv);
	for (unsigned int i = 0; i < 100 && now < HELLOS; i++) {
		struct pollfd p = {.fd = vhca_http_server_fd(s.srv), .events = POLLIN};

		assert_true(poll(&p, 1, 100) >= 0);
		vhca_http_server_run(s.srv);
		now = heard(fds);
		assert_true(now - last <= 1);
		last = now;
	}
	assert_int_equal(now, HELLOS);
	for (unsigned int i = 0; i < HELLOS; i++)
		(void)close(fds[i]);
	end(&s);
}

/* All of them have had a turn with a byte, and wait for the next one. */
static void begin_hellos(const struct server *s, const struct hello *hello, int ret[static HELLOS])
{
	for (unsigned int i = 0; i < HELLOS; i++) {
		ret[i] = dial(s->srv);
		assert_int_equal(send(ret[i], hello->data, 1, MSG_NOSIGNAL), 1);
	}
	for (unsigned int i = 0; i < 3 * HELLOS; i++)
		vhca_http_server_run(s->srv);
}

static void end_hellos(const struct hello *hello, const int fds[static HELLOS])
{
	for (unsigned int i = 0; i < HELLOS; i++)
		assert_int_equal(send(fds[i], hello->data + 1, hello->len - 1, MSG_NOSIGNAL),
				 hello->len - 1);
}

/* A byte is no hello: the answer to what comes behind it has its turn as well. */
static void who_sends_a_byte_first_waits_for_his_turn(void **state)
{
	struct server s = {.source_max = HELLOS};
	struct hello hello = new_hello();
	int fds[HELLOS];

	(void)state;
	begin(&s);
	begin_hellos(&s, &hello, fds);
	end_hellos(&hello, fds);
	assert_true(vhca_http_server_timeout_ms(s.srv) != 0);
	answered = 0;
	for (unsigned int i = 1; i <= HELLOS; i++) {
		vhca_http_server_run(s.srv);
		assert_true(answered <= i);
	}
	for (unsigned int i = 0; i < 3 * HELLOS && answered < HELLOS; i++)
		vhca_http_server_run(s.srv);
	assert_true(vhca_http_server_timeout_ms(s.srv) != 0); /* nothing to do until they go on */
	assert_int_equal(answered, HELLOS);
	for (unsigned int i = 0; i < HELLOS; i++)
		(void)close(fds[i]);
	end(&s);
}

/* As a library does it to run a program: for a moment the child has all descriptors. */
static pid_t fork_idle(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (child == 0)
		(void)pause();
	return child;
}

/* A descriptor that a child has, too, does not leave an epoll set by being closed. */
static void who_goes_while_he_is_held_is_forgotten(void **state)
{
	struct server s = {.source_max = 0};
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC}; /* resets, whoever has it, too */
	struct vhca_http_stats stats;
	int fds[HELLOS];
	pid_t child;

	(void)state;
	begin(&s);
	for (unsigned int i = 0; i < HELLOS; i++)
		fds[i] = dial_and_speak(s.srv);
	vhca_http_server_run(s.srv);
	vhca_http_server_stats(s.srv, &stats);
	assert_int_equal(stats.connections, HELLOS);
	child = fork_idle();
	for (unsigned int i = 0; i < HELLOS; i++) {
		assert_int_equal(connect(fds[i], &nobody, sizeof(nobody)), 0);
		(void)close(fds[i]);
	}
	for (unsigned int i = 0; i < HELLOS; i++)
		vhca_http_server_run(s.srv);
	vhca_http_server_stats(s.srv, &stats);
	assert_int_equal(stats.connections, 0);
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	end(&s);
}

static void reset(int fd)
{
	const struct linger now = {.l_onoff = 1};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	(void)close(fd);
}

/* What he has said first can be read still, and would be answered, with all others of that kind at
 * once. */
static void who_resets_after_his_first_words_is_not_answered(void **state)
{
	struct server s = {.source_max = 0};
	struct vhca_http_stats stats;
	int fds[HELLOS];

	(void)state;
	begin(&s);
	for (unsigned int i = 0; i < HELLOS; i++)
		fds[i] = dial_and_greet(s.srv);
	vhca_http_server_run(s.srv);
	answered = 0;
	vhca_http_server_run(s.srv);
	assert_int_equal(answered, 1);
	for (unsigned int i = 0; i < HELLOS; i++)
		reset(fds[i]);
	for (unsigned int i = 0; i < HELLOS; i++)
		vhca_http_server_run(s.srv);
	assert_int_equal(answered, 1);
	vhca_http_server_stats(s.srv, &stats);
	assert_int_equal(stats.connections, 0);
	end(&s);
}

static void who_resets_in_the_middle_is_not_answered(void **state)
{
	struct server s = {.source_max = HELLOS};
	struct hello hello = new_hello();
	struct vhca_http_stats stats;
	int fds[HELLOS];

	(void)state;
	begin(&s);
	begin_hellos(&s, &hello, fds);
	answered = 0;
	end_hellos(&hello, fds);
	for (unsigned int i = 0; i < HELLOS; i++)
		reset(fds[i]);
	vhca_http_server_run(s.srv);
	assert_int_equal(answered, 0);
	vhca_http_server_stats(s.srv, &stats);
	assert_int_equal(stats.connections, 0);
	end(&s);
}

/* So too who has to go for others. */
static void who_is_ended_after_his_first_words_is_not_answered(void **state)
{
	struct server s = {.source_max = 2};
	int fds[HELLOS];

	(void)state;
	begin(&s);
	answered = 0;
	for (unsigned int i = 0; i < HELLOS; i++)
		fds[i] = dial_and_greet(s.srv);
	for (unsigned int i = 0; i < HELLOS; i++)
		vhca_http_server_run(s.srv);
	assert_int_equal(answered, 2);
	for (unsigned int i = 0; i < HELLOS; i++)
		(void)close(fds[i]);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crowd_shakes_hands_one_by_one),
		cmocka_unit_test(who_sends_a_byte_first_waits_for_his_turn),
		cmocka_unit_test(who_goes_while_he_is_held_is_forgotten),
		cmocka_unit_test(who_resets_after_his_first_words_is_not_answered),
		cmocka_unit_test(who_resets_in_the_middle_is_not_answered),
		cmocka_unit_test(who_is_ended_after_his_first_words_is_not_answered),
	};

	return cmocka_run_group_tests(tests, auth_setup, auth_teardown);
}
