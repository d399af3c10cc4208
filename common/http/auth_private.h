/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_AUTH_PRIVATE_H
#define VHCA_HTTP_AUTH_PRIVATE_H
/* What server, client and tickets do with struct vhca_http_auth; only auth.c changes it. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <gnutls/x509.h>

#include "common/base/caller.h"
#include "common/base/text.h"
#include "common/http/auth.h"

struct vhca_http_pem {
	char *path, *text; /* NULL = none */
	size_t len;
};

#define VHCA_HTTP_DIGEST_SIZE 32 /* of SHA-256 */

struct vhca_http_token {
	char text[VHCA_HTTP_TOKEN_MAX + 1]; /* "" = only its digest is known, and whose it is */
	unsigned char digest[VHCA_HTTP_DIGEST_SIZE];
	char name[VHCA_NAME_MAX];
	enum vhca_caller_role role;
};

struct vhca_http_auth {
	struct vhca_http_pem certificate, key, authority, revoked;
	gnutls_x509_trust_list_t trust; /* of the last two; NULL without an authority */
	time_t authority_until;		/* the first of the authorities expires */
	uint64_t number;		/* of what was loaded: 1, 2, ... in this process */
	size_t n_tokens;
	struct vhca_http_token tokens[VHCA_HTTP_TOKENS_MAX];
};

/* Is the first of these n good for a client, by auth's authorities and what they have revoked? */
bool vhca_http_auth_vouches(const struct vhca_http_auth *auth, gnutls_x509_crt_t *chain,
			    unsigned int n);
/* "cert:" and the first name of a certificate, else "cert-sha256:" and its digest. */
int vhca_http_auth_name_of(const gnutls_datum_t *der, char ret[static VHCA_CALLER_NAME_MAX]);

#endif
