// SPDX-License-Identifier: LGPL-2.1-or-later
/* The server's side: what libmicrohttpd has to know, and who may pass. */
#include <string.h>
#include <strings.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/auth_private.h"
#include "common/http/server_private.h"

/* Older versions are broken; the order among the rest is GnuTLS's and so the distribution's. */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* ---- what a handshake shows ---- */

/* libmicrohttpd gives its callback nothing to know the server by; a thread runs one at a time. */
static _Thread_local const struct vhca_http_auth *running;

const struct vhca_http_auth *vhca_http_auth_run(const struct vhca_http_auth *auth)
{
	const struct vhca_http_auth *before = running;

	running = auth;
	return before;
}

#define CHAIN_MAX 16

static int import_chain(const struct vhca_http_pem *pem, gnutls_pcert_st **ret, unsigned int *ret_n)
{
	const gnutls_datum_t text = {(unsigned char *)pem->text, (unsigned int)pem->len};
	gnutls_pcert_st *chain = gnutls_calloc(CHAIN_MAX, sizeof(*chain));
	unsigned int n = CHAIN_MAX;

	if (!chain || gnutls_pcert_list_import_x509_raw(chain, &n, &text, GNUTLS_X509_FMT_PEM,
							GNUTLS_X509_CRT_LIST_SORT) < 0) {
		gnutls_free(chain);
		return -1;
	}
	*ret = chain;
	*ret_n = n;
	return 0;
}

static int import_key(const struct vhca_http_pem *pem, gnutls_privkey_t *ret)
{
	const gnutls_datum_t text = {(unsigned char *)pem->text, (unsigned int)pem->len};
	gnutls_privkey_t key;

	if (gnutls_privkey_init(&key) < 0)
		return -1;
	if (gnutls_privkey_import_x509_raw(key, &text, GNUTLS_X509_FMT_PEM, NULL, 0) < 0) {
		gnutls_privkey_deinit(key);
		return -1;
	}
	*ret = key;
	return 0;
}

/* Copies for each connection: what a reload replaces may be freed while a handshake goes on.
 * NOLINTNEXTLINE(readability-function-size): the parameters are GnuTLS's */
static int on_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
			  gnutls_pcert_st **ret_chain, unsigned int *ret_n,
			  gnutls_ocsp_data_st **ret_ocsp, unsigned int *ret_n_ocsp,
			  gnutls_privkey_t *ret_key, unsigned int *ret_flags)
{
	gnutls_privkey_t key;

	(void)info;
	if (import_key(&running->key, &key) < 0)
		return -1;
	if (import_chain(&running->certificate, ret_chain, ret_n) < 0) {
		gnutls_privkey_deinit(key);
		return -1;
	}
	/* The names of the authorities that libmicrohttpd was started with, which may be others
	 * by now. */
	gnutls_certificate_send_x509_rdn_sequence(session, 1);
	*ret_ocsp = NULL;
	*ret_n_ocsp = 0;
	*ret_key = key;
	*ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
	return 0;
}

void vhca_http_auth_options(const struct vhca_http_auth *auth, const char *authority,
			    struct MHD_OptionItem ret[static VHCA_HTTP_AUTH_OPTIONS])
{
	size_t n = 0;

	if (auth && auth->certificate.text) {
		ret[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK2, 0,
						   (void *)(uintptr_t)on_certificate};
		ret[n++] =
			(struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)PRIORITIES};
		/* Makes the server ask for a certificate; it is looked at in has_certificate(). */
		if (authority)
			ret[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
							   (void *)authority};
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

/* ---- who may pass ---- */

struct chain {
	gnutls_x509_crt_t list[CHAIN_MAX];
	unsigned int n;
};

static void chain_done(struct chain *chain)
{
	for (unsigned int i = 0; i < chain->n; i++)
		gnutls_x509_crt_deinit(chain->list[i]);
}

static int read_chain(gnutls_session_t session, struct chain *ret)
{
	unsigned int n = 0;
	const gnutls_datum_t *der = gnutls_certificate_get_peers(session, &n);

	if (!der || n == 0 || n > CHAIN_MAX)
		return -1;
	for (; ret->n < n; ret->n++) {
		if (gnutls_x509_crt_init(&ret->list[ret->n]) < 0)
			return -1;
		if (gnutls_x509_crt_import(ret->list[ret->n], &der[ret->n], GNUTLS_X509_FMT_DER) <
		    0) {
			gnutls_x509_crt_deinit(ret->list[ret->n]);
			return -1;
		}
	}
	return 0;
}

/* Keys of 1024 bits of RSA at least, as NORMAL in PRIORITIES has it for what GnuTLS verifies by
 * itself. */
#define KEYS GNUTLS_PROFILE_TO_VFLAGS(GNUTLS_PROFILE_LOW)

/* As long as nothing expires. Who is not let in may be a little later. */
#define REFUSED_S 5

static time_t verdict_until(const struct vhca_http_auth *auth, const struct chain *chain,
			    bool verified)
{
	time_t until = auth->authority_until;

	if (!verified)
		return time(NULL) + REFUSED_S;
	for (unsigned int i = 0; i < chain->n; i++) {
		time_t t = gnutls_x509_crt_get_expiration_time(chain->list[i]);

		if (t < until)
			until = t;
	}
	return until;
}

/*
 * A certificate of a web server or of somebody's mail may be of the same authority. One that names
 * no purpose is good for all.
 */
bool vhca_http_auth_vouches(const struct vhca_http_auth *auth, gnutls_x509_crt_t *chain,
			    unsigned int n)
{
	gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
					 .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
	unsigned int wrong = 0;

	return gnutls_x509_trust_list_verify_crt2(auth->trust, chain, n, &purpose, 1, KEYS, &wrong,
						  NULL) == 0 &&
	       wrong == 0;
}

/* Once for a connection, and again when a reload may have revoked it, or something expires. */
static bool has_certificate(const struct vhca_http_request *req)
{
	VHCA_CLEANUP(chain_done) struct chain chain = {.n = 0};
	const struct vhca_http_auth *auth = req->srv->auth;
	const union MHD_ConnectionInfo *info;
	struct vhca_http_peer *peer;

	if (!auth->trust)
		return false;
	peer = vhca_http_peer_of(req->conn);
	if (peer->verified_by == auth->number && time(NULL) < peer->verified_until)
		return peer->verified;
	info = MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	peer->verified = info && read_chain((gnutls_session_t)info->tls_session, &chain) == 0 &&
			 vhca_http_auth_vouches(auth, chain.list, chain.n);
	peer->verified_until = verdict_until(auth, &chain, peer->verified);
	peer->verified_by = auth->number;
	return peer->verified;
}

/* Whichever token comes, and wherever it differs: it takes the same time. */
static const struct vhca_http_token *find_token(const struct vhca_http_request *req)
{
	static const char scheme[] = "Bearer ";
	const struct vhca_http_auth *auth = req->srv->auth;
	const char *line = vhca_http_header(req, "Authorization");
	const struct vhca_http_token *found = NULL;
	unsigned char digest[VHCA_HTTP_DIGEST_SIZE];
	size_t len;

	if (!line || strncasecmp(line, scheme, strlen(scheme)) != 0)
		return NULL;
	line += strlen(scheme);
	len = strlen(line);
	if (len < VHCA_HTTP_TOKEN_MIN || len > VHCA_HTTP_TOKEN_MAX ||
	    gnutls_hash_fast(GNUTLS_DIG_SHA256, line, len, digest) < 0)
		return NULL;
	for (size_t i = 0; i < auth->n_tokens; i++)
		if (gnutls_memcmp(auth->tokens[i].digest, digest, sizeof(digest)) == 0 && !found)
			found = &auth->tokens[i];
	return found;
}

int vhca_http_auth_check(struct vhca_http_request *req, struct vhca_error *err)
{
	const struct vhca_http_auth *auth = req->srv->auth;
	int r;

	if (!auth || (!auth->authority.text && auth->n_tokens == 0))
		return 0;
	req->by_certificate = has_certificate(req);
	if (!req->by_certificate)
		req->token = find_token(req);
	if (req->by_certificate || req->token)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_UNAUTHORIZED, 0,
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
