/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/common/http/auth_files.h"

#include <sys/stat.h>

#include "common/http/auth.h"
#include "tests/unit/common/http/certs.h"
#include "tests/unit/unit.h"

struct tree auth_dir;

void auth_put_tokens(const char *name, const char *text, mode_t mode)
{
	tree_put(&auth_dir, name, text);
	assert_int_equal(chmod(TREE_PATH(&auth_dir, name), mode), 0);
}

int auth_setup(void **state)
{
	(void)state;
	tree_init(&auth_dir);
	assert_int_equal(certs_make(auth_dir.root), 0);
	auth_put_tokens("tokens", "# the agents'\n" AUTH_TOKEN "\n\n" AUTH_NEW_TOKEN "\r\n", 0600);
	auth_put_tokens("new", AUTH_NEW_TOKEN "\n", 0640);
	auth_put_tokens("named",
			"watcher metrics " AUTH_DIGEST
			"\n# a new one\r\n\twatcher  read " AUTH_NEW_DIGEST
			" \r\nplain-plain-plain\n",
			0600);
	auth_put_tokens("plain", "plain-plain-plain\n", 0600);
	auth_put_tokens("wrong", "another-token-of-somebody", 0600);
	return 0;
}

int auth_teardown(void **state)
{
	(void)state;
	tree_done(&auth_dir);
	return 0;
}

int auth_load(const char *certificate, const char *key, const char *authority, const char *tokens,
	      struct vhca_http_auth **ret, struct vhca_error *err)
{
	const struct vhca_http_auth_files files = {
		.certificate = certificate ? TREE_PATH(&auth_dir, certificate) : NULL,
		.key = key ? TREE_PATH(&auth_dir, key) : "",
		.authority = authority ? TREE_PATH(&auth_dir, authority) : NULL,
		.tokens = tokens ? TREE_PATH(&auth_dir, tokens) : NULL,
	};

	return vhca_http_auth_load(&files, ret, err);
}

struct vhca_http_auth *auth_loaded(const char *certificate, const char *key, const char *authority,
				   const char *tokens)
{
	struct vhca_http_auth *auth = NULL;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (auth_load(certificate, key, authority, tokens, &auth, &err) < 0)
		fail_msg("%s", err.msg);
	return auth;
}
