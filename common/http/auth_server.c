// SPDX-License-Identifier: LGPL-2.1-or-later
/* The server's side: what libmicrohttpd has to know, and who may pass. */
#include <string.h>
#include <strings.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
#include "common/http/auth_private.h"
#include "common/http/server_private.h"

/* Older versions are broken; the order among the rest is GnuTLS's and so the distribution's. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

void vhca_http_auth_options(const struct vhca_http_auth *auth,
			    struct MHD_OptionItem ret[static VHCA_HTTP_AUTH_OPTIONS])
{
	size_t n = 0;

	if (auth && auth->certificate.text) {
		ret[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, auth->key.text};
		ret[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0,
						   auth->certificate.text};
		ret[n++] =
			(struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)PRIORITIES};
		/* Makes the server ask for a certificate; it is looked at in has_certificate(). */
		if (auth->authority.text)
			ret[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
							   auth->authority.text};
	}
	ret[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

unsigned int vhca_http_auth_flags(const struct vhca_http_auth *auth)
{
	return auth && auth->certificate.text ? MHD_USE_TLS : 0;
}

int vhca_http_auth_serves(const struct vhca_http_auth *auth, const char *listen,
			  struct vhca_error *err)
{
	const char *path;

	if (!auth || auth->certificate.text)
		return 0;
	path = auth->authority.path ? auth->authority.path : "the token file";
	return vhca_error_set(err, VHCA_ERR_INVALID, "credentials", 0,
			      "%s: %s is of no use without a certificate and a key: all that is "
			      "sent would be readable",
			      listen, path);
}

/* A certificate of a web server or of somebody's mail may be of the same authority. One that names no
 * purpose is good for all. */
static bool has_certificate(const struct vhca_http_request *req)
{
	gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
					 .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
	const union MHD_ConnectionInfo *info;
	unsigned int wrong = 0;

	if (!req->srv->auth->authority.text)
		return false;
	info = MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	return info &&
	       gnutls_certificate_verify_peers((gnutls_session_t)info->tls_session, &purpose, 1,
					       &wrong) == 0 &&
	       wrong == 0;
}

/* Takes the same time wherever two tokens of one length differ. */
static bool has_token(const struct vhca_http_request *req)
{
	static const char scheme[] = "Bearer ";
	const struct vhca_http_auth *auth = req->srv->auth;
	const char *line = vhca_http_header(req, "Authorization");
	size_t len;
	bool known = false;

	if (!line || strncasecmp(line, scheme, strlen(scheme)) != 0)
		return false;
	line += strlen(scheme);
	len = strlen(line);
	for (size_t i = 0; i < auth->n_tokens; i++)
		known |= strlen(auth->tokens[i]) == len &&
			 gnutls_memcmp(auth->tokens[i], line, len) == 0;
	return known;
}

int vhca_http_auth_check(const struct vhca_http_request *req, struct vhca_error *err)
{
	const struct vhca_http_auth *auth = req->srv->auth;
	int r;

	if (!auth || (!auth->authority.text && auth->n_tokens == 0) || has_certificate(req) ||
	    has_token(req))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_DENIED, "unauthorized", 0,
			   "the request has no %s%s%s that this server knows",
			   auth->authority.text ? "client certificate" : "",
			   auth->authority.text && auth->n_tokens ? " or " : "",
			   auth->n_tokens ? "token" : "");
	vhca_error_hint(
		err, "%s%s%s",
		auth->authority.text ? "show a certificate of the server's tls_ca that is good for "
				       "a client (extendedKeyUsage: clientAuth, or none)"
				     : "",
		auth->authority.text && auth->n_tokens ? ", or " : "",
		auth->n_tokens
			? "send \"Authorization: Bearer\" with a token of the server's token_file"
			: "");
	return r;
}
