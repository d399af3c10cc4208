// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Certificates and tokens: what is refused when loaded, and who gets through between our server and
 * our client.
 */
#include "common/http/auth.h"

#include "tests/unit/unit.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/http/client.h"
#include "common/http/json.h"
#include "common/http/server.h"
#include "tests/unit/common/http/certs.h"
#include "tests/unit/tree.h"

#define TOKEN	  "s3cret-s3cret-s3cret"
#define NEW_TOKEN "n3wer-n3wer-n3wer=="

/* SHA-256 of TOKEN and of NEW_TOKEN. */
#define DIGEST	   "4a3057fd3371720d01f5d351fecab0d7948fd22e15a5c2c2b92b0b2696d3eeca"
#define NEW_DIGEST "0CF88F2F2FA171B0872D344A186B4D9142235388A391F0F923E624278538C187"

static struct tree dir;

/* ---- the files ---- */

static void put_tokens(const char *name, const char *text, mode_t mode)
{
	tree_put(&dir, name, text);
	assert_int_equal(chmod(TREE_PATH(&dir, name), mode), 0);
}

static int setup_files(void **state)
{
	(void)state;
	tree_init(&dir);
	assert_int_equal(certs_make(dir.root), 0);
	put_tokens("tokens", "# the agents'\n" TOKEN "\n\n" NEW_TOKEN "\r\n", 0600);
	put_tokens("new", NEW_TOKEN "\n", 0640);
	put_tokens("named",
		   "watcher metrics " DIGEST "\n# a new one\r\n\twatcher  read " NEW_DIGEST
		   " \r\nplain-plain-plain\n",
		   0600);
	put_tokens("plain", "plain-plain-plain\n", 0600);
	put_tokens("wrong", "another-token-of-somebody", 0600);
	return 0;
}

static int teardown_files(void **state)
{
	(void)state;
	tree_done(&dir);
	return 0;
}

/* Names in the tree instead of paths; NULL = none. */
static int load(const char *certificate, const char *key, const char *authority, const char *tokens,
		struct vhca_http_auth **ret, struct vhca_error *err)
{
	const struct vhca_http_auth_files files = {
		.certificate = certificate ? TREE_PATH(&dir, certificate) : NULL,
		.key = key ? TREE_PATH(&dir, key) : "",
		.authority = authority ? TREE_PATH(&dir, authority) : NULL,
		.tokens = tokens ? TREE_PATH(&dir, tokens) : NULL,
	};

	return vhca_http_auth_load(&files, ret, err);
}

static struct vhca_http_auth *loaded(const char *certificate, const char *key,
				     const char *authority, const char *tokens)
{
	struct vhca_http_auth *auth = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (load(certificate, key, authority, tokens, &auth, &err) < 0)
		fail_msg("%s", err.msg);
	return auth;
}

/* ---- loading ---- */

static void wrong_files_are_named(void **state)
{
	static const struct {
		const char *certificate, *key, *authority, *tokens;
		const char *file, *why;
	} table[] = {
		{"none.pem", "server.key", NULL, NULL, "none.pem", "No such file"},
		{"server.pem", "none.key", NULL, NULL, "none.key", "No such file"},
		{"server.pem", "server.key", "none.pem", NULL, "none.pem", "No such file"},
		{NULL, NULL, NULL, "none", "none", "No such file"},
		{"expired.pem", "expired.key", NULL, NULL, "expired.pem", "has expired on 20"},
		{"future.pem", "future.key", NULL, NULL, "future.pem", "not valid before 20"},
		{NULL, NULL, "expired.pem", NULL, "expired.pem", "has expired on 20"},
		{"server.pem", "client.key", NULL, NULL, "client.key", "no key in PEM for"},
		{"server.pem", "tokens", NULL, NULL, "tokens", "no key in PEM for"},
		{"tokens", "server.key", NULL, NULL, "tokens", "no certificates in PEM"},
		{"server.pem", NULL, NULL, NULL, "server.pem", "needs its key"},
		{NULL, "server.key", NULL, NULL, "server.key", "needs its certificate"},
		{"server.pem", "open.key", NULL, NULL, "open.key", "mode 0644"},
		{NULL, NULL, NULL, "open", "open", "mode 0604"},
		{NULL, NULL, NULL, "empty", "empty", "no token in it"},
		{NULL, NULL, NULL, "short", "short", "line 2: a token has 16 to 255"},
		{NULL, NULL, NULL, "blank", "blank", "line 1: a token has 16 to 255"},
	};

	(void)state;
	put_tokens("open.key", "never read", 0644);
	put_tokens("open", TOKEN "\n", 0604);
	put_tokens("empty", "\n# nothing\n", 0600);
	put_tokens("short", TOKEN "\n0123456789abcde\n", 0600);
	put_tokens("blank", "secret words with blanks\n", 0600);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct vhca_http_auth *auth = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(load(table[i].certificate, table[i].key, table[i].authority,
				 table[i].tokens, &auth, &err) < 0);
		assert_null(auth);
		if (!strstr(err.msg, TREE_PATH(&dir, table[i].file)) ||
		    !strstr(err.msg, table[i].why))
			fail_msg("%zu: %s", i, err.msg);
		assert_null(strstr(err.msg, "secret words"));
		assert_null(strstr(err.msg, "0123456789abcde"));
	}
}

/* For a server alone: a client could not send it. */
static void wrong_lines_of_names_are_told(void **state)
{
	static const struct {
		const char *line, *why;
	} table[] = {
		{"a read " DIGEST "0", "line 1: SHA-256"},
		{"a read 0123", "line 1: SHA-256"},
		{"a read z123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		 "line 1: SHA-256"},
		{"a boss " DIGEST, "line 1: \"boss\" is not one of metrics | read |"},
		{"a/b read " DIGEST, "line 1: \"a/b\" is no name"},
		{"read " DIGEST, "line 1: NAME ROLE SHA-256"},
		{"a read " DIGEST " more", "line 1: NAME ROLE SHA-256"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		const char *path = TREE_PATH(&dir, "ill");
		struct vhca_http_auth_files files = {.tokens = path, .names_tokens = true};
		struct vhca_http_auth *auth = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		put_tokens("ill", table[i].line, 0600);
		assert_true(vhca_http_auth_load(&files, &auth, &err) < 0);
		if (!strstr(err.msg, table[i].why) || strstr(err.msg, "4a3057fd"))
			fail_msg("%zu: %s", i, err.msg);
		files.names_tokens = false;
		assert_true(vhca_http_auth_load(&files, &auth, &err) < 0);
		assert_non_null(strstr(err.msg, "line 1: a token has 16 to 255"));
	}
}

static struct vhca_http_auth *loaded_with_crl(const char *name, const char *crl)
{
	struct vhca_http_auth *auth = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;
	char pem[TREE_PATH_MAX], key[TREE_PATH_MAX];
	struct vhca_http_auth_files files = {.authority = TREE_PATH(&dir, "ca.pem"),
					     .revoked = TREE_PATH(&dir, crl)};

	(void)snprintf(pem, sizeof(pem), "%s/%s.pem", dir.root, name);
	(void)snprintf(key, sizeof(key), "%s/%s.key", dir.root, name);
	files.certificate = pem;
	files.key = key;
	if (vhca_http_auth_load(&files, &auth, &err) < 0)
		fail_msg("%s", err.msg);
	return auth;
}

static void wrong_revocation_lists_are_told(void **state)
{
	static const struct {
		const char *crl, *authority, *why;
	} table[] = {
		{"other-ca-none.crl", "ca.pem", "ca.pem that may (keyUsage: cRLSign) has signed"},
		{"ca.pem", "ca.pem", "ca.pem: no certificate revocation list in PEM"},
		{"none.crl", "ca.pem", "none.crl: No such file"},
		{"ca-none.crl", NULL, "ca-none.crl: revokes nothing without an authority"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		const char *ca = table[i].authority ? TREE_PATH(&dir, "ca.pem") : NULL;
		const struct vhca_http_auth_files files = {
			.authority = ca, .revoked = TREE_PATH(&dir, table[i].crl)};
		struct vhca_http_auth *auth = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(vhca_http_auth_load(&files, &auth, &err) < 0);
		if (!strstr(err.msg, table[i].why))
			fail_msg("%zu: %s", i, err.msg);
	}
}

static void no_files_are_no_auth(void **state)
{
	(void)state;
	assert_null(loaded(NULL, NULL, NULL, NULL));
	assert_null(vhca_http_auth_free(NULL));
}

/* ---- a server in a thread of its own ---- */

struct door {
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
	struct door *d = ctx;

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
	struct door *d = arg;

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

static void door_open(struct door *d, struct vhca_http_auth *auth)
{
	const struct vhca_http_limits limits = {
		.auth = auth, .rules = d->rules, .handshake_ms = d->handshake_ms};
	struct vhca_error err = VHCA_ERROR_INIT;

	d->auth = auth;
	if (vhca_http_server_new("127.0.0.1:0", 0, &limits, routes, d, &d->srv, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
}

static void door_close(struct door *d)
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
static int report(const struct door *d, const char *scheme, size_t size,
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
	struct door d = {.late = false};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", NULL, "tokens"));
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "tokens"), &err),
			 200);
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "new"), &err), 200);
	assert_int_equal(atomic_load(&d.served), 2);

	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", NULL), &err), 401);
	assert_string_equal(err.code, "unauthorized");
	assert_int_equal(err.kind, VHCA_ERR_DENIED);
	assert_non_null(strstr(err.hint, "token_file"));
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "wrong"), &err), 401);
	assert_null(strstr(err.msg, "somebody"));
	/* a certificate is no token, and a body that is too large does not come first */
	assert_int_equal(
		report(&d, "https", 10, loaded("client.pem", "client.key", "ca.pem", NULL), &err),
		401);
	assert_int_equal(report(&d, "https", 100000, loaded(NULL, NULL, "ca.pem", NULL), &err),
			 401);
	assert_int_equal(atomic_load(&d.served), 2);
	door_close(&d);
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
		assert_int_equal(vhca_read_file(TREE_PATH(&dir, from), 65536, &text, &len), 0);
		tree_put_bytes(&dir, to, text, len);
		assert_int_equal(chmod(TREE_PATH(&dir, to), 0600), 0);
		free(text);
	}
}

static void a_certificate_lets_in(void **state)
{
	struct door d = {.late = false};
	struct vhca_http_auth *auth;
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", "ca.pem", NULL));
	assert_int_equal(
		report(&d, "https", 10, loaded("client.pem", "client.key", "ca.pem", NULL), &err),
		200);
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", NULL), &err), 401);
	assert_non_null(strstr(err.hint, "tls_ca"));
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "tokens"), &err),
			 401);
	assert_int_not_equal(report(&d, "https", 10,
				    loaded("stranger.pem", "stranger.key", "ca.pem", NULL), &err),
			     200);
	/* Loaded when it was right: the client reads it for each connection. */
	replace_pair("client", "aging");
	auth = loaded("aging.pem", "aging.key", "ca.pem", NULL);
	replace_pair("expired", "aging");
	assert_int_not_equal(report(&d, "https", 10, auth, &err), 200);
	assert_int_equal(atomic_load(&d.served), 1);
	door_close(&d);
}

static void door_reload(struct door *d, struct vhca_http_auth *fresh)
{
	atomic_store(&d->fresh, fresh);
	while (atomic_load(&d->fresh))
		(void)usleep(1000);
}

static void a_reload_changes_who_is_let_in(void **state)
{
	struct door d = {.late = false};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", "ca.pem", "tokens"));
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "new"), &err), 200);
	/* Another authority, whose certificate it has now, and another token. */
	door_reload(&d, loaded("stranger.pem", "stranger.key", "other-ca.pem", "plain"));
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "new"), &err), 0);
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "other-ca.pem", "new"), &err),
			 401);
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "other-ca.pem", "plain"), &err),
			 200);
	assert_int_equal(report(&d, "https", 10,
				loaded("client.pem", "client.key", "other-ca.pem", NULL), &err),
			 401);
	assert_int_equal(report(&d, "https", 10,
				loaded("stranger.pem", "stranger.key", "other-ca.pem", NULL), &err),
			 200);
	door_close(&d);
}

static void who_is_revoked_is_not_let_in(void **state)
{
	struct door d = {.late = false};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded_with_crl("server", "ca-none.crl"));
	assert_int_equal(
		report(&d, "https", 10, loaded("client.pem", "client.key", "ca.pem", NULL), &err),
		200);
	door_reload(&d, loaded_with_crl("server", "ca-client.crl"));
	assert_int_equal(
		report(&d, "https", 10, loaded("client.pem", "client.key", "ca.pem", NULL), &err),
		401);
	assert_int_equal(
		report(&d, "https", 10, loaded("named.pem", "named.key", "ca.pem", NULL), &err),
		200);
	/* So it is after the list has expired. */
	door_reload(&d, loaded_with_crl("server", "ca-old.crl"));
	assert_int_equal(
		report(&d, "https", 10, loaded("client.pem", "client.key", "ca.pem", NULL), &err),
		401);
	assert_int_equal(
		report(&d, "https", 10, loaded("named.pem", "named.key", "ca.pem", NULL), &err),
		200);
	/* Nor does a client believe a server that is. */
	assert_int_equal(report(&d, "https", 10, loaded_with_crl("named", "ca-none.crl"), &err),
			 200);
	assert_int_equal(report(&d, "https", 10, loaded_with_crl("named", "ca-server.crl"), &err),
			 0);
	door_close(&d);
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
	struct door d = {.late = false};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", "ca.pem", NULL));
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		struct vhca_http_auth *auth = loaded(cases[i].pem, cases[i].key, "ca.pem", NULL);

		assert_int_equal(report(&d, "https", 10, auth, &err), cases[i].status);
	}
	assert_non_null(strstr(err.hint, "clientAuth"));
	assert_int_equal(atomic_load(&d.served), 2);
	door_close(&d);
}

static void either_lets_in_where_both_are_asked_for(void **state)
{
	struct door d = {.late = false};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", "ca.pem", "tokens"));
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "new"), &err), 200);
	assert_int_equal(
		report(&d, "https", 10, loaded("client.pem", "client.key", "ca.pem", NULL), &err),
		200);
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "wrong"), &err), 401);
	door_close(&d);
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
	struct door d = {.rules = &rules};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	if (vhca_caller_rules_parse(&rules,
				    "cert:hv1.example.org:agent cert:spiffe://x/y:read "
				    "cert:192.0.2.7:agent cert:hv2.example.org:admin "
				    "cert:hv1:admin cert:x:admin address:127.0.0.1:admin "
				    "token:operate",
				    false, &err) < 0)
		fail_msg("%s", err.msg);
	door_open(&d, loaded("server.pem", "server.key", "ca.pem", "tokens"));
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		int status =
			report(&d, "https", 10,
			       loaded(cases[i].pem, cases[i].key, "ca.pem", cases[i].tokens), &err);

		if (status != cases[i].status || (status != 200 && !strstr(err.msg, cases[i].name)))
			fail_msg("%s: %d %s", cases[i].name, status, err.msg);
	}
	door_close(&d);
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
	const char *path = TREE_PATH(&dir, "named"), *pem = TREE_PATH(&dir, "server.pem");
	const char *key = TREE_PATH(&dir, "server.key"), *ca = TREE_PATH(&dir, "ca.pem");
	const struct vhca_http_auth_files files = {.certificate = pem,
						   .key = key,
						   .authority = ca,
						   .tokens = path,
						   .names_tokens = true};
	struct vhca_caller_rules rules = {.may = "nobody", .others = VHCA_CALLER_OPERATE};
	struct vhca_http_auth *auth = NULL;
	struct door d = {.rules = &rules};
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	if (vhca_http_auth_load(&files, &auth, &err) < 0)
		fail_msg("%s", err.msg);
	door_open(&d, auth);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		int status = report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", cases[i].tokens),
				    &err);

		bool named = strchr(cases[i].name, ':') != NULL;

		assert_true(named == (strstr(err.hint, "token_file") != NULL));
		if (status != cases[i].status || !strstr(err.msg, cases[i].name))
			fail_msg("%s: %d %s", cases[i].name, status, err.msg);
	}
	door_close(&d);
}

static void without_credentials_the_address_is_the_name(void **state)
{
	struct vhca_caller_rules rules = {.may = "nobody", .others = VHCA_CALLER_METRICS};
	struct door d = {.rules = &rules};
	struct vhca_error err;

	(void)state;
	door_open(&d, NULL);
	assert_int_equal(report(&d, "http", 10, NULL, &err), 403);
	assert_non_null(strstr(err.msg, "address:127.0.0.1 has metrics"));
	door_close(&d);
	assert_int_equal(vhca_caller_rules_parse(&rules, "address:127.0.0.1:agent", false, &err),
			 0);
	d = (struct door){.rules = &rules};
	door_open(&d, NULL);
	assert_int_equal(report(&d, "http", 10, NULL, &err), 200);
	door_close(&d);
}

static void a_false_server_gets_no_report(void **state)
{
	struct door d = {.late = false};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("stranger.pem", "stranger.key", NULL, "tokens"));
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", "tokens"), &err), 0);
	assert_int_equal(err.kind, VHCA_ERR_UNAVAILABLE);
	/* nor one whom only the system would know, where an authority is named or not */
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, NULL, "tokens"), &err), 0);
	assert_int_equal(report(&d, "https", 10, NULL, &err), 0);
	assert_int_equal(atomic_load(&d.served), 0);
	door_close(&d);
}

static void nothing_is_said_in_clear(void **state)
{
	struct door d = {.late = false}, plain = {.late = false};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", NULL, NULL));
	assert_int_equal(report(&d, "http", 10, NULL, &err), 0); /* plain HTTP at a TLS port */
	assert_int_equal(atomic_load(&d.served), 0);
	assert_int_equal(report(&d, "https", 10, loaded(NULL, NULL, "ca.pem", NULL), &err), 200);
	door_close(&d);

	/* the token stays at home */
	door_open(&plain, NULL);
	assert_int_equal(report(&plain, "http", 10, loaded(NULL, NULL, NULL, "tokens"), &err), 200);
	assert_int_equal(atomic_load(&plain.tokens_seen), 0);
	door_close(&plain);
}

static void a_server_needs_a_certificate_for_what_is_secret(void **state)
{
	static const char *const names[][2] = {{NULL, "tokens"}, {"ca.pem", NULL}};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(names); i++) {
		struct vhca_http_auth *auth = loaded(NULL, NULL, names[i][0], names[i][1]);
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
	struct door d = {.handshake_ms = 200};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct pollfd p = {.events = POLLIN};
	uint64_t begun = vhca_now_ms();
	struct vhca_http_stats stats;
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", "ca.pem", NULL));
	to.sin_port = htons(vhca_http_server_port(d.srv));
	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(p.fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(send(p.fd, hello, 4, MSG_NOSIGNAL), 4);
	assert_int_equal(poll(&p, 1, 3000), 1);
	assert_true(vhca_now_ms() >= begun + 200);
	(void)close(p.fd);
	assert_int_equal(
		report(&d, "https", 10, loaded("client.pem", "client.key", "ca.pem", NULL), &err),
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
	struct door d = {.late = true};
	struct vhca_error err;

	(void)state;
	door_open(&d, loaded("server.pem", "server.key", NULL, "tokens"));
	assert_int_equal(report(&d, "https", 60000, loaded(NULL, NULL, "ca.pem", "tokens"), &err),
			 200);
	assert_int_equal(report(&d, "https", 1, loaded(NULL, NULL, "ca.pem", "tokens"), &err), 200);
	assert_int_equal(report(&d, "https", 70000, loaded(NULL, NULL, "ca.pem", "tokens"), &err),
			 413);
	door_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_files_are_named),
		cmocka_unit_test(wrong_lines_of_names_are_told),
		cmocka_unit_test(wrong_revocation_lists_are_told),
		cmocka_unit_test(no_files_are_no_auth),
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
		cmocka_unit_test(nothing_is_said_in_clear),
		cmocka_unit_test(a_server_needs_a_certificate_for_what_is_secret),
		cmocka_unit_test(who_does_not_shake_hands_is_ended),
		cmocka_unit_test(long_and_late_answers_pass),
	};

	return cmocka_run_group_tests(tests, setup_files, teardown_files);
}
