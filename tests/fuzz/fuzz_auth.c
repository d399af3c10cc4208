/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A token file, a line "%%", and the Authorization line of a request: let in is who has one of the
 * file's tokens behind "Bearer ", letter by letter, or whose SHA-256 stands there at the end of a
 * server's line, and nobody else. The same file as certificates is refused by name, without a word
 * of what it holds.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <gnutls/crypto.h>

#include "common/base/cleanup.h"
#include "common/http/auth.h"
#include "common/http/server_private.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kit/input.h"

static const char *authorization;

/* ---- what stands in for the production symbol ---- */

const char *__wrap_vhca_http_header(const struct vhca_http_request *req, const char *name);
const char *__wrap_vhca_http_header(const struct vhca_http_request *req, const char *name)
{
	(void)req;
	return strcasecmp(name, "Authorization") == 0 ? authorization : NULL;
}

/* ---- what is expected ---- */

static bool is_line_of(const char *token, const char *file, size_t len)
{
	size_t n = strlen(token);

	for (size_t at = 0; at + n <= len; at++)
		if (memcmp(file + at, token, n) == 0 && (at == 0 || file[at - 1] == '\n') &&
		    (at + n == len || strchr("\r\n", file[at + n])))
			return true;
	return false;
}

static bool may_pass(const char *file, size_t len)
{
	const char *token;

	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return false;
	token = authorization + 7;
	return strlen(token) >= VHCA_HTTP_TOKEN_MIN && strlen(token) <= VHCA_HTTP_TOKEN_MAX &&
	       token[0] != '#' && !strpbrk(token, "\r\n \t") && is_line_of(token, file, len);
}

/* A server's file may know no more of a token than that. */
static bool has_digest(const char *file, size_t len)
{
	unsigned char digest[VHCA_HTTP_DIGEST_SIZE];
	char hex[2 * VHCA_HTTP_DIGEST_SIZE + 1];
	size_t n = strlen(authorization + 7);

	FUZZ_ASSERT(gnutls_hash_fast(GNUTLS_DIG_SHA256, authorization + 7, n, digest) == 0);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	for (size_t at = 0; at + sizeof(hex) - 1 <= len; at++)
		if (strncasecmp(file + at, hex, sizeof(hex) - 1) == 0)
			return true;
	return false;
}

static void check_request(const struct vhca_http_auth *auth, const char *file, size_t len)
{
	struct vhca_http_server srv = {.auth = auth};
	struct vhca_http_request req = {.srv = &srv};
	struct vhca_error err = VHCA_ERROR_INIT;
	bool passed = vhca_http_auth_check(&req, &err) == 0;

	fuzz_verdict(passed || !authorization);
	FUZZ_ASSERT(passed == may_pass(file, len) || (passed && req.token->name[0]));
	FUZZ_ASSERT(!passed || !req.token->name[0] || has_digest(file, len));
	FUZZ_ASSERT(passed || (err.kind == VHCA_ERR_DENIED && !strcmp(err.code, "unauthorized")));
}

/* A secret is no part of a message, not even of a damaged file. */
static void check_refused(const struct vhca_http_auth *auth, const struct vhca_error *err,
			  const char *path)
{
	fuzz_verdict(false);
	FUZZ_ASSERT(!auth && err->kind == VHCA_ERR_INVALID && !strcmp(err->code, "credentials"));
	FUZZ_ASSERT(strncmp(err->msg, path, strlen(path)) == 0);
}

static void check_tokens(const char *file, size_t len, bool names)
{
	const char *path = input_file((const uint8_t *)file, len);
	const struct vhca_http_auth_files files = {.tokens = path, .names_tokens = names};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_http_auth *auth = NULL;

	if (vhca_http_auth_load(&files, &auth, &err) < 0)
		check_refused(auth, &err, path);
	else
		check_request(auth, file, len);
	(void)vhca_http_auth_free(auth);
}

static void check_authority(const char *file, size_t len)
{
	const char *path = input_file((const uint8_t *)file, len);
	const struct vhca_http_auth_files files = {.authority = path};
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_http_auth *auth = NULL;

	if (vhca_http_auth_load(&files, &auth, &err) < 0)
		check_refused(auth, &err, path);
	(void)vhca_http_auth_free(auth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *file = NULL, *line = NULL;
	size_t len = 0, line_len = 0;

	file = input_part(&data, &size, &len);
	if (!file)
		return 0;
	line = input_part(&data, &size, &line_len);
	if (line)
		line[strcspn(line, "\r\n")] = '\0';
	authorization = line;
	check_tokens(file, len, false);
	check_tokens(file, len, true);
	if (memmem(file, len, "-----BEGIN", 10))
		check_authority(file, len);
	authorization = NULL;
	return 0;
}
