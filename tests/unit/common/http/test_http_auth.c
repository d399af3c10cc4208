/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who gets through: TLS, certificates and tokens, between server and client in one process. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/auth.h"
#include "common/http/client.h"
#include "common/http/json.h"
#include "common/http/server.h"
#include "tests/unit/common/http/auth_files.h"
#include "tests/unit/unit.h"

/* ---- loading ---- */

static struct vhca_http_auth *auth_loaded_with_crl(const char *name, const char *crl)
{
	struct vhca_http_auth *auth = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	char pem[TREE_PATH_MAX], key[TREE_PATH_MAX];
	struct vhca_http_auth_files files = {.authority = TREE_PATH(&auth_dir, "ca.pem"),
					     .revoked = TREE_PATH(&auth_dir, crl)};

	(void)snprintf(pem, sizeof(pem), "%s/%s.pem", auth_dir.root, name);
	(void)snprintf(key, sizeof(key), "%s/%s.key", auth_dir.root, name);
	files.certificate = pem;
	files.key = key;
	if (vhca_http_auth_load(&files, &auth, &err) < 0)
		fail_msg("%s", err.msg);
	return auth;
}

/* ---- a server in a thread of its own ---- */

struct auth_files {
	struct vhca_http_auth *auth;
	const struct vhca_caller_rules *rules;
	struct vhca_http_server *srv;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint served, tokens_seen;
	bool late;
	unsigned int handshake_ms;
	struct vhca_http_request *waiting;
	struct vhca_http_auth *_Atomic fresh; /* takes the place of auth */
};

static void on_report(void *ctx, struct vhca_http_request *req)
{
	struct auth_files *d = ctx;

	atomic_fetch_add(&d->served, 1);
	if (vhca_http_header(req, "Authorization"))
		atomic_fetch_add(&d->tokens_seen, 1);
	if (d->late) {
		d->waiting = req;
		return;
	}
	vhca_http_reply(req, 200, json_object_get(vhca_http_body(req)));
}

static const struct vhca_http_route routes[] = {{"PUT", "/report", VHCA_CALLER_AGENT, on_report},
						{.method = NULL}};

static void *serve(void *arg)
{
	struct auth_files *d = arg;

	while (!atomic_load(&d->stop)) {
		struct pollfd p = {.fd = vhca_http_server_fd(d->srv), .events = POLLIN};
		int ms = vhca_http_server_timeout_ms(d->srv);

		struct vhca_http_auth *fresh;

		(void)poll(&p, 1, ms < 0 || ms > 5 ? 5 : ms);
		fresh = atomic_load(&d->fresh);
		vhca_http_auth_replace(d->auth, &fresh);
		atomic_store(&d->fresh, NULL);
		vhca_http_server_run(d->srv);
		if (d->waiting) {
			struct vhca_http_request *req = vhca_steal_ptr(&d->waiting);

			vhca_http_reply(req, 200, json_object_get(vhca_http_body(req)));
		}
	}
	return NULL;
}

static void auth_door_open(struct auth_files *d, struct vhca_http_auth *auth)
{
	const struct vhca_http_limits limits = {
		.auth = auth, .rules = d->rules, .handshake_ms = d->handshake_ms};
	struct vhca_error err = VHCA_ERROR_INIT;

	d->auth = auth;
	if (vhca_http_server_new("127.0.0.1:0", 0, &limits, routes, d, &d->srv, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
}

static void auth_door_close(struct auth_files *d)
{
	atomic_store(&d->stop, true);
	assert_int_equal(pthread_join(d->thread, NULL), 0);
	d->srv = vhca_http_server_free(d->srv);
	d->auth = vhca_http_auth_free(d->auth);
}

/*
 * What the client makes of a report: its HTTP status, or 0 and the reason. The client's auth is
 * freed.
 */
static int auth_report(const struct auth_files *d, const char *scheme, size_t size,
		       struct vhca_http_auth *auth, struct vhca_error *err)
{
	struct json_object *body = json_object_new_object();
	struct vhca_http_result res;
	char url[64], *text = malloc(size + 1);
	int status;

	assert_non_null(text);
	memset(text, 'x', size);
	text[size] = '\0';
	vhca_json_add_string(body, "text", text);
	(void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u/report", scheme,
		       vhca_http_server_port(d->srv));
	*err = (struct vhca_error)VHCA_ERROR_INIT;
	(void)vhca_http_call(
		&(struct vhca_http_call_args){
			.method = "PUT", .url = url, .body = body, .auth = auth},
		&res, err);
	status = res.status;
	if (status == 200)
		assert_true(json_object_equal(res.body, body));
	vhca_http_result_done(&res);
	(void)json_object_put(body);
	(void)vhca_http_auth_free(auth);
	free(text);
	return status;
}

/* ---- who gets through ---- */

static void a_token_lets_in(void **state)
{
	struct auth_files d = {.late = false};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", NULL, "tokens"));
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "tokens"), &err),
		200);
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "new"), &err), 200);
	assert_int_equal(atomic_load(&d.served), 2);

	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", NULL), &err), 401);
	assert_string_equal(err.code, "unauthorized");
	assert_int_equal(err.kind, VHCA_ERR_DENIED);
	assert_non_null(strstr(err.hint, "token_file"));
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "wrong"), &err),
		401);
	assert_null(strstr(err.msg, "somebody"));
	/* a certificate is no token, and a body that is too large does not come first */
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "ca.pem", NULL), &err),
			 401);
	assert_int_equal(
		auth_report(&d, "https", 100000, auth_loaded(NULL, NULL, "ca.pem", NULL), &err),
		401);
	assert_int_equal(atomic_load(&d.served), 2);
	auth_door_close(&d);
}

/* NAME.pem and NAME.key take the place of others. */
static void replace_pair(const char *name, const char *place)
{
	static const char *const suffixes[] = {"pem", "key"};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(suffixes); i++) {
		char from[32], to[32];
		char *text = NULL;
		size_t len = 0;

		(void)snprintf(from, sizeof(from), "%s.%s", name, suffixes[i]);
		(void)snprintf(to, sizeof(to), "%s.%s", place, suffixes[i]);
		assert_int_equal(vhca_read_file(TREE_PATH(&auth_dir, from), 65536, &text, &len), 0);
		tree_put_bytes(&auth_dir, to, text, len);
		assert_int_equal(chmod(TREE_PATH(&auth_dir, to), 0600), 0);
		free(text);
	}
}

static void a_certificate_lets_in(void **state)
{
	struct auth_files d = {.late = false};
	struct vhca_http_auth *auth;
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", "ca.pem", NULL));
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "ca.pem", NULL), &err),
			 200);
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", NULL), &err), 401);
	assert_non_null(strstr(err.hint, "tls_ca"));
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "tokens"), &err),
		401);
	assert_int_not_equal(
		auth_report(&d, "https", 10,
			    auth_loaded("stranger.pem", "stranger.key", "ca.pem", NULL), &err),
		200);
	/* Loaded when it was right: the client reads it for each connection. */
	replace_pair("client", "aging");
	auth = auth_loaded("aging.pem", "aging.key", "ca.pem", NULL);
	replace_pair("expired", "aging");
	assert_int_not_equal(auth_report(&d, "https", 10, auth, &err), 200);
	assert_int_equal(atomic_load(&d.served), 1);
	auth_door_close(&d);
}

static void auth_door_reload(struct auth_files *d, struct vhca_http_auth *fresh)
{
	atomic_store(&d->fresh, fresh);
	unit_until(!atomic_load(&d->fresh), (void)usleep(1000));
}

static void a_reload_changes_who_is_let_in(void **state)
{
	struct auth_files d = {.late = false};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", "ca.pem", "tokens"));
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "new"), &err), 200);
	/* Another authority, whose certificate it has now, and another token. */
	auth_door_reload(&d, auth_loaded("stranger.pem", "stranger.key", "other-ca.pem", "plain"));
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "new"), &err), 0);
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "other-ca.pem", "new"), &err),
		401);
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded(NULL, NULL, "other-ca.pem", "plain"), &err),
			 200);
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "other-ca.pem", NULL),
				     &err),
			 401);
	assert_int_equal(
		auth_report(&d, "https", 10,
			    auth_loaded("stranger.pem", "stranger.key", "other-ca.pem", NULL),
			    &err),
		200);
	auth_door_close(&d);
}

static void who_is_revoked_is_not_let_in(void **state)
{
	struct auth_files d = {.late = false};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded_with_crl("server", "ca-none.crl"));
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "ca.pem", NULL), &err),
			 200);
	auth_door_reload(&d, auth_loaded_with_crl("server", "ca-client.crl"));
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "ca.pem", NULL), &err),
			 401);
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("named.pem", "named.key", "ca.pem", NULL), &err),
			 200);
	/* So it is after the list has expired. */
	auth_door_reload(&d, auth_loaded_with_crl("server", "ca-old.crl"));
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "ca.pem", NULL), &err),
			 401);
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("named.pem", "named.key", "ca.pem", NULL), &err),
			 200);
	/* Nor does a client believe a server that is. */
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded_with_crl("named", "ca-none.crl"), &err),
		200);
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded_with_crl("named", "ca-server.crl"), &err),
		0);
	auth_door_close(&d);
}

/* All are of the server's authority. */
static void a_certificate_of_another_purpose_lets_nobody_in(void **state)
{
	static const struct {
		const char *pem, *key;
		int status;
	} cases[] = {
		{"for-clients.pem", "for-clients.key", 200},
		{"for-anything.pem", "for-anything.key", 200},
		{"for-servers.pem", "for-servers.key", 401},
		{"for-mail.pem", "for-mail.key", 401},
		{"for-code.pem", "for-code.key", 401},
	};
	struct auth_files d = {.late = false};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", "ca.pem", NULL));
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		struct vhca_http_auth *auth =
			auth_loaded(cases[i].pem, cases[i].key, "ca.pem", NULL);

		assert_int_equal(auth_report(&d, "https", 10, auth, &err), cases[i].status);
	}
	assert_non_null(strstr(err.hint, "clientAuth"));
	assert_int_equal(atomic_load(&d.served), 2);
	auth_door_close(&d);
}

static void either_lets_in_where_both_are_asked_for(void **state)
{
	struct auth_files d = {.late = false};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", "ca.pem", "tokens"));
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "new"), &err), 200);
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "ca.pem", NULL), &err),
			 200);
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "wrong"), &err),
		401);
	auth_door_close(&d);
}

/* Other names of its certificate, a part of one, and what is no name say nothing. */
static void a_caller_has_one_name(void **state)
{
	static const struct {
		const char *pem, *key, *tokens, *name;
		int status;
	} cases[] = {
		{"named.pem", "named.key", NULL, "cert:hv1.example.org", 200},
		{"by-uri.pem", "by-uri.key", NULL, "cert:spiffe://x/y has read", 403},
		{"by-address.pem", "by-address.key", NULL, "cert:2001:db8::7 has metrics", 403},
		{"unnamed.pem", "unnamed.key", NULL, "cert-sha256:", 403},
		{"ill-named.pem", "ill-named.key", NULL, "cert-sha256:", 403},
		{"client.pem", "client.key", NULL, "cert:localhost has metrics", 403},
		{"named.pem", "named.key", "new", "cert:hv1.example.org", 200},
		{NULL, NULL, "new", "token has operate", 403},
		{"for-servers.pem", "for-servers.key", "new", "token has operate", 403},
	};
	struct vhca_caller_rules rules = {.may = "nobody", .others = VHCA_CALLER_METRICS};
	struct auth_files d = {.rules = &rules};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	if (vhca_caller_rules_parse(&rules,
				    "cert:hv1.example.org:agent cert:spiffe://x/y:read "
				    "cert:192.0.2.7:agent cert:hv2.example.org:admin "
				    "cert:hv1:admin cert:x:admin address:127.0.0.1:admin "
				    "token:operate",
				    false, &err) < 0)
		fail_msg("%s", err.msg);
	auth_door_open(&d, auth_loaded("server.pem", "server.key", "ca.pem", "tokens"));
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		int status = auth_report(
			&d, "https", 10,
			auth_loaded(cases[i].pem, cases[i].key, "ca.pem", cases[i].tokens), &err);

		if (status != cases[i].status || (status != 200 && !strstr(err.msg, cases[i].name)))
			fail_msg("%s: %d %s", cases[i].name, status, err.msg);
	}
	auth_door_close(&d);
}

static void a_token_has_its_name_and_role(void **state)
{
	static const struct {
		const char *tokens, *name;
		int status;
	} cases[] = {
		{"tokens", "token:watcher has metrics", 403},
		{"new", "token:watcher has read", 403},
		{"plain", "token has operate", 403},
	};
	const char *path = TREE_PATH(&auth_dir, "named"), *pem = TREE_PATH(&auth_dir, "server.pem");
	const char *key = TREE_PATH(&auth_dir, "server.key"), *ca = TREE_PATH(&auth_dir, "ca.pem");
	const struct vhca_http_auth_files files = {.certificate = pem,
						   .key = key,
						   .authority = ca,
						   .tokens = path,
						   .names_tokens = true};
	struct vhca_caller_rules rules = {.may = "nobody", .others = VHCA_CALLER_OPERATE};
	struct vhca_http_auth *auth = NULL;
	struct auth_files d = {.rules = &rules};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	if (vhca_http_auth_load(&files, &auth, &err) < 0)
		fail_msg("%s", err.msg);
	auth_door_open(&d, auth);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		int status = auth_report(&d, "https", 10,
					 auth_loaded(NULL, NULL, "ca.pem", cases[i].tokens), &err);

		bool named = strchr(cases[i].name, ':') != NULL;

		assert_true(named == (strstr(err.hint, "token_file") != NULL));
		if (status != cases[i].status || !strstr(err.msg, cases[i].name))
			fail_msg("%s: %d %s", cases[i].name, status, err.msg);
	}
	auth_door_close(&d);
}

static void without_credentials_the_address_is_the_name(void **state)
{
	struct vhca_caller_rules rules = {.may = "nobody", .others = VHCA_CALLER_METRICS};
	struct auth_files d = {.rules = &rules};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, NULL);
	assert_int_equal(auth_report(&d, "http", 10, NULL, &err), 403);
	assert_non_null(strstr(err.msg, "address:127.0.0.1 has metrics"));
	auth_door_close(&d);
	assert_int_equal(vhca_caller_rules_parse(&rules, "address:127.0.0.1:agent", false, &err),
			 0);
	d = (struct auth_files){.rules = &rules};
	auth_door_open(&d, NULL);
	assert_int_equal(auth_report(&d, "http", 10, NULL, &err), 200);
	auth_door_close(&d);
}

static void a_false_server_gets_no_report(void **state)
{
	struct auth_files d = {.late = false};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("stranger.pem", "stranger.key", NULL, "tokens"));
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", "tokens"), &err), 0);
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	/* nor one whom only the system would know, where an authority is named or not */
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, NULL, "tokens"), &err), 0);
	assert_int_equal(auth_report(&d, "https", 10, NULL, &err), 0);
	assert_int_equal(atomic_load(&d.served), 0);
	auth_door_close(&d);
}

/* ---- a client that is freed with a connection ---- */

struct asking {
	struct vhca_http_multi *multi;
	struct pollfd pfd;
	bool freeing, done;
};

static void watch_socket(void *ctx, int fd, uint32_t events)
{
	struct asking *a = ctx;

	assert_false(a->freeing && events);
	a->pfd = (struct pollfd){.fd = fd, .events = (short)events};
}

static void set_timer(void *ctx, long ms)
{
	const struct asking *a = ctx;

	assert_false(a->freeing && ms >= 0);
}

static void on_answer(void *arg, int rc, const struct vhca_http_result *res,
		      const struct vhca_error *err)
{
	struct asking *a = arg;

	(void)rc;
	(void)err;
	assert_int_equal(res->status, 200);
	a->done = true;
}

static void a_client_that_is_freed_watches_no_socket(void **state)
{
	static const struct vhca_http_multi_ops ops = {watch_socket, set_timer};
	const uint64_t deadline = vhca_now_ms() + 10000;
	struct vhca_http_auth *auth = auth_loaded("client.pem", "client.key", "ca.pem", NULL);
	struct asking a = {.pfd = {.fd = -1}};
	struct json_object *body = json_object_new_object();
	struct auth_files d = {.late = false};
	char url[64];

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", "ca.pem", NULL));
	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/report",
		       vhca_http_server_port(d.srv));
	assert_int_equal(vhca_http_multi_new(&ops, &a, &a.multi), 0);
	assert_int_equal(vhca_http_multi_start(
				 a.multi,
				 &(struct vhca_http_call_args){
					 .method = "PUT", .url = url, .body = body, .auth = auth},
				 on_answer, &a),
			 0);
	while (!a.done && vhca_now_ms() < deadline)
		if (poll(&a.pfd, 1, 1) > 0)
			vhca_http_multi_ready(a.multi, a.pfd.fd, (uint32_t)a.pfd.revents);
		else
			vhca_http_multi_timeout(a.multi);
	assert_true(a.done);
	a.freeing = true;
	(void)vhca_http_multi_free(a.multi);
	(void)json_object_put(body);
	(void)vhca_http_auth_free(auth);
	auth_door_close(&d);
}

static void nothing_is_said_in_clear(void **state)
{
	struct auth_files d = {.late = false}, plain = {.late = false};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", NULL, NULL));
	assert_int_equal(auth_report(&d, "http", 10, NULL, &err), 0); /* plain HTTP at a TLS port */
	assert_int_equal(atomic_load(&d.served), 0);
	assert_int_equal(
		auth_report(&d, "https", 10, auth_loaded(NULL, NULL, "ca.pem", NULL), &err), 200);
	auth_door_close(&d);

	/* the token stays at home */
	auth_door_open(&plain, NULL);
	assert_int_equal(
		auth_report(&plain, "http", 10, auth_loaded(NULL, NULL, NULL, "tokens"), &err),
		200);
	assert_int_equal(atomic_load(&plain.tokens_seen), 0);
	auth_door_close(&plain);
}

static void a_server_needs_a_certificate_for_what_is_secret(void **state)
{
	static const char *const names[][2] = {{NULL, "tokens"}, {"ca.pem", NULL}};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(names); i++) {
		struct vhca_http_auth *auth = auth_loaded(NULL, NULL, names[i][0], names[i][1]);
		const struct vhca_http_limits limits = {.auth = auth};
		struct vhca_http_server *srv = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(vhca_http_server_new("127.0.0.1:0", 0, &limits, routes, NULL, &srv,
						 &err) < 0);
		assert_null(srv);
		assert_non_null(strstr(err.msg, "without a certificate"));
		(void)vhca_http_auth_free(auth);
	}
}

/* To be let in it would have to say something first. */
static void who_does_not_shake_hands_is_ended(void **state)
{
	static const char hello[] = "\x16\x03\x01\x02";
	struct auth_files d = {.handshake_ms = 200};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct pollfd p = {.events = POLLIN};
	uint64_t begun = vhca_now_ms();
	struct vhca_http_stats stats;
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", "ca.pem", NULL));
	to.sin_port = htons(vhca_http_server_port(d.srv));
	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(p.fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(send(p.fd, hello, 4, MSG_NOSIGNAL), 4);
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_true(vhca_now_ms() >= begun + 200);
	(void)close(p.fd);
	assert_int_equal(auth_report(&d, "https", 10,
				     auth_loaded("client.pem", "client.key", "ca.pem", NULL), &err),
			 200);
	atomic_store(&d.stop, true);
	assert_int_equal(pthread_join(d.thread, NULL), 0);
	vhca_http_server_stats(d.srv, &stats);
	assert_int_equal(stats.ended[VHCA_HTTP_END_HANDSHAKE], 1);
	d.srv = vhca_http_server_free(d.srv);
	d.auth = vhca_http_auth_free(d.auth);
}

/*
 * What libmicrohttpd and our loop have to get right together: records that wait decrypted,
 * suspended connections.
 */
static void long_and_late_answers_pass(void **state)
{
	struct auth_files d = {.late = true};
	struct vhca_error err;

	(void)state;
	auth_door_open(&d, auth_loaded("server.pem", "server.key", NULL, "tokens"));
	assert_int_equal(
		auth_report(&d, "https", 60000, auth_loaded(NULL, NULL, "ca.pem", "tokens"), &err),
		200);
	assert_int_equal(
		auth_report(&d, "https", 1, auth_loaded(NULL, NULL, "ca.pem", "tokens"), &err),
		200);
	assert_int_equal(
		auth_report(&d, "https", 70000, auth_loaded(NULL, NULL, "ca.pem", "tokens"), &err),
		413);
	auth_door_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_lets_in),
		cmocka_unit_test(a_certificate_lets_in),
		cmocka_unit_test(a_reload_changes_who_is_let_in),
		cmocka_unit_test(who_is_revoked_is_not_let_in),
		cmocka_unit_test(a_certificate_of_another_purpose_lets_nobody_in),
		cmocka_unit_test(either_lets_in_where_both_are_asked_for),
		cmocka_unit_test(a_caller_has_one_name),
		cmocka_unit_test(a_token_has_its_name_and_role),
		cmocka_unit_test(without_credentials_the_address_is_the_name),
		cmocka_unit_test(a_false_server_gets_no_report),
		cmocka_unit_test(a_client_that_is_freed_watches_no_socket),
		cmocka_unit_test(nothing_is_said_in_clear),
		cmocka_unit_test(a_server_needs_a_certificate_for_what_is_secret),
		cmocka_unit_test(who_does_not_shake_hands_is_ended),
		cmocka_unit_test(long_and_late_answers_pass),
	};

	return cmocka_run_group_tests(tests, auth_setup, auth_teardown);
}
