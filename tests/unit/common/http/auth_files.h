/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_COMMON_HTTP_AUTH_FILES_H
#define VHCA_TESTS_UNIT_COMMON_HTTP_AUTH_FILES_H
/* Credentials in files, and what common/http/auth.h makes of them. */
#include <sys/stat.h>

#include "common/http/auth.h"
#include "tests/unit/tree.h"

#define AUTH_TOKEN     "s3cret-s3cret-s3cret"
#define AUTH_NEW_TOKEN "n3wer-n3wer-n3wer=="
/* SHA-256 of each. */
#define AUTH_DIGEST	"4a3057fd3371720d01f5d351fecab0d7948fd22e15a5c2c2b92b0b2696d3eeca"
#define AUTH_NEW_DIGEST "0CF88F2F2FA171B0872D344A186B4D9142235388A391F0F923E624278538C187"

extern struct tree auth_dir;
void auth_put_tokens(const char *name, const char *text, mode_t mode);
int auth_setup(void **state);
int auth_teardown(void **state);
/* Names in the tree instead of paths; NULL = none. */
int auth_load(const char *certificate, const char *key, const char *authority, const char *tokens,
	      struct vhca_http_auth **ret, struct vhca_error *err);
/* The same; fails the running test if they are refused. */
struct vhca_http_auth *auth_loaded(const char *certificate, const char *key, const char *authority,
				   const char *tokens);

#endif
