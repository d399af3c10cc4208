/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HTTP_AUTH_H
#define VHCA_HTTP_AUTH_H
/*
 * Who one is and whom one trusts, for a server and a client alike: TLS certificates and bearer
 * tokens.
 *
 *               server                                   client
 *   certificate speaks TLS 1.2 or 1.3, nothing else      shows it when asked
 *   authority   a certificate of it that is good for a   the server must have a certificate of it; none = the system's
 *               client (RFC 5280, 4.2.1.12) lets in
 *   tokens      one of them lets a client in, perhaps    the first is sent, by https only
 *               with a name and a role
 *
 *   revoked     who stands in it is not let in           nor believed
 *
 * A server with neither an authority nor tokens lets everybody in. The files are checked when they
 * are loaded; what they hold never goes into a message.
 */
#include <stdbool.h>

#include "common/base/error.h"

#define VHCA_HTTP_TOKENS_MAX 16
#define VHCA_HTTP_TOKEN_MIN  16
#define VHCA_HTTP_TOKEN_MAX  255

struct vhca_http_auth;

struct vhca_http_auth_files {	 /* NULL or "" = none */
	const char *certificate; /* PEM: one's own, then those that lead to its authority */
	const char *key;	 /* PEM: of the certificate */
	const char *authority;	 /* PEM: one or more */
	const char *revoked;	 /* PEM: certificate revocation lists of the authorities */
	const char *tokens; /* one a line; empty lines and those that begin with # do not count */
	bool names_tokens;  /* a server: a line may be "NAME ROLE SHA-256", the last of the token */
};

/*
 * *ret is NULL if there are no files. Errors name the file: it cannot be read, is no PEM, has
 * expired, does not fit the key; a key or tokens that everybody may read. Blocking.
 */
int vhca_http_auth_load(const struct vhca_http_auth_files *files, struct vhca_http_auth **ret,
			struct vhca_error *err);
/* What auth's files held gives way to what those of *fresh hold, which becomes NULL: for servers
 * and clients that borrow auth, on whose thread this is called, and from the next handshake and
 * request on. Connections stay. Both may be NULL, together. */
void vhca_http_auth_replace(struct vhca_http_auth *auth, struct vhca_http_auth **fresh);
/* Wipes the secrets. Accepts NULL, returns NULL. */
struct vhca_http_auth *vhca_http_auth_free(struct vhca_http_auth *auth);

#endif
