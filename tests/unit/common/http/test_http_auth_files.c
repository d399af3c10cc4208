/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Certificates, tokens, names and revocation lists: which files are refused, and in which words. */
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/auth.h"
#include "tests/unit/common/http/auth_files.h"
#include "tests/unit/unit.h"

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
	auth_put_tokens("open.key", "never read", 0644);
	auth_put_tokens("open", AUTH_TOKEN "\n", 0604);
	auth_put_tokens("empty", "\n# nothing\n", 0600);
	auth_put_tokens("short", AUTH_TOKEN "\n0123456789abcde\n", 0600);
	auth_put_tokens("blank", "secret words with blanks\n", 0600);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		struct vhca_http_auth *auth = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(auth_load(table[i].certificate, table[i].key, table[i].authority,
				      table[i].tokens, &auth, &err) < 0);
		assert_null(auth);
		if (!strstr(err.msg, TREE_PATH(&auth_dir, table[i].file)) ||
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
		{"a read " AUTH_DIGEST "0", "line 1: SHA-256"},
		{"a read 0123", "line 1: SHA-256"},
		{"a read z123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		 "line 1: SHA-256"},
		{"a boss " AUTH_DIGEST, "line 1: \"boss\" is not one of metrics | read |"},
		{"a/b read " AUTH_DIGEST, "line 1: \"a/b\" is no name"},
		{"read " AUTH_DIGEST, "line 1: NAME ROLE SHA-256"},
		{"a read " AUTH_DIGEST " more", "line 1: NAME ROLE SHA-256"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++) {
		const char *path = TREE_PATH(&auth_dir, "ill");
		struct vhca_http_auth_files files = {.tokens = path, .names_tokens = true};
		struct vhca_http_auth *auth = NULL;
		struct vhca_error err = VHCA_ERROR_INIT;

		auth_put_tokens("ill", table[i].line, 0600);
		assert_true(vhca_http_auth_load(&files, &auth, &err) < 0);
		if (!strstr(err.msg, table[i].why) || strstr(err.msg, "4a3057fd"))
			fail_msg("%zu: %s", i, err.msg);
		files.names_tokens = false;
		assert_true(vhca_http_auth_load(&files, &auth, &err) < 0);
		assert_non_null(strstr(err.msg, "line 1: a token has 16 to 255"));
	}
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
		const char *ca = table[i].authority ? TREE_PATH(&auth_dir, "ca.pem") : NULL;
		const struct vhca_http_auth_files files = {
			.authority = ca, .revoked = TREE_PATH(&auth_dir, table[i].crl)};
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
	assert_null(auth_loaded(NULL, NULL, NULL, NULL));
	assert_null(vhca_http_auth_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_files_are_named),
		cmocka_unit_test(wrong_lines_of_names_are_told),
		cmocka_unit_test(wrong_revocation_lists_are_told),
		cmocka_unit_test(no_files_are_no_auth),
	};

	return cmocka_run_group_tests(tests, auth_setup, auth_teardown);
}
