/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_AUTH_PRIVATE_H
#define VHCA_HTTP_AUTH_PRIVATE_H
/* What server and client do with struct vhca_http_auth; only auth.c changes it. */
#include <stddef.h>

#include "common/http/auth.h"

struct vhca_http_pem {
	char *path, *text; /* NULL = none */
	size_t len;
};

struct vhca_http_auth {
	struct vhca_http_pem certificate, key, authority;
	size_t n_tokens;
	char tokens[VHCA_HTTP_TOKENS_MAX][VHCA_HTTP_TOKEN_MAX + 1];
};

#endif
