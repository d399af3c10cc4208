// SPDX-License-Identifier: LGPL-2.1-or-later
/* The server's side: what libmicrohttpd has to know, and who may pass. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
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

/* GnuTLS describes a session only after its handshake. */
bool vhca_http_auth_is_shaken(void *session)
{
	char *text = gnutls_session_get_desc(session);

	gnutls_free(text);
	return text != NULL;
}

/* ---- whom a certificate names ---- */

/* What can stand in a rule, and is one word in the log. */
static bool is_name(const unsigned char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return len > 0;
}

static bool take_text(const unsigned char *data, size_t len, char *ret, size_t size)
{
	if (len >= size || !is_name(data, len))
		return false;
	memcpy(ret, data, len);
	ret[len] = '\0';
	return true;
}

/* Upper and lower case are the same there, and one name is to have one form. */
static bool take_host(const unsigned char *data, size_t len, char *ret, size_t size)
{
	if (!take_text(data, len, ret, size))
		return false;
	for (; *ret; ret++)
		*ret = (char)tolower((unsigned char)*ret);
	return true;
}

static bool take_address(const unsigned char *data, size_t len, char *ret, size_t size)
{
	bool v4 = len == sizeof(struct in_addr);

	if (!v4 && len != sizeof(struct in6_addr))
		return false;
	return inet_ntop(v4 ? AF_INET : AF_INET6, data, ret, (socklen_t)size) != NULL;
}

#define NAMES_MAX 64

/* In the order of what counts first. */
static const struct kind {
	gnutls_x509_subject_alt_name_t kind;
	bool (*take)(const unsigned char *data, size_t len, char *ret, size_t size);
} kinds[] = {
	{GNUTLS_SAN_DNSNAME, take_host},
	{GNUTLS_SAN_URI, take_text},
	{GNUTLS_SAN_IPADDRESS, take_address},
};

/* The first of its kind that is a name and has room: one that is cut would be another's. */
static bool find_san(gnutls_x509_crt_t crt, const struct kind *kind, char *ret, size_t size)
{
	unsigned char data[VHCA_CALLER_NAME_MAX];

	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		size_t len = sizeof(data);
		int r = gnutls_x509_crt_get_subject_alt_name(crt, i, data, &len, NULL);

		if (r == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return false;
		if (r == (int)kind->kind && kind->take(data, len, ret, size))
			return true;
	}
	return false;
}

static int name_by_digest(const gnutls_datum_t *der, char ret[static VHCA_CALLER_NAME_MAX])
{
	unsigned char digest[32];
	struct vhca_strbuf sb;

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, der->data, der->size, digest) < 0)
		return -EIO;
	vhca_strbuf_init(&sb, ret, VHCA_CALLER_NAME_MAX);
	vhca_strbuf_add(&sb, "cert-sha256:");
	for (size_t i = 0; i < sizeof(digest); i++)
		vhca_strbuf_add(&sb, "%02x", digest[i]);
	return 0;
}

static void free_certificate(gnutls_x509_crt_t *crt)
{
	if (*crt)
		gnutls_x509_crt_deinit(*crt);
}

int vhca_http_auth_name(const struct vhca_http_request *req, char ret[static VHCA_CALLER_NAME_MAX])
{
	static const char prefix[] = "cert:";
	VHCA_CLEANUP(free_certificate) gnutls_x509_crt_t crt = NULL;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	char name[VHCA_CALLER_NAME_MAX - sizeof(prefix) + 1];
	const gnutls_datum_t *der = NULL;
	unsigned int length = 0;

	if (info)
		der = gnutls_certificate_get_peers((gnutls_session_t)info->tls_session, &length);
	if (!der || length == 0 || gnutls_x509_crt_init(&crt) < 0 ||
	    gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) < 0)
		return -EIO;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(kinds); i++)
		if (find_san(crt, &kinds[i], name, sizeof(name))) {
			(void)snprintf(ret, VHCA_CALLER_NAME_MAX, "%s%s", prefix, name);
			return 0;
		}
	return name_by_digest(der, ret);
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
static bool verify(const struct vhca_http_auth *auth, struct MHD_Connection *conn,
		   time_t *ret_until)
{
	gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
					 .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
	VHCA_CLEANUP(chain_done) struct chain chain = {.n = 0};
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned int wrong = 0;
	bool verified;

	verified = info && read_chain((gnutls_session_t)info->tls_session, &chain) == 0 &&
		   gnutls_x509_trust_list_verify_crt2(auth->trust, chain.list, chain.n, &purpose, 1,
						      KEYS, &wrong, NULL) == 0 &&
		   wrong == 0;
	*ret_until = verdict_until(auth, &chain, verified);
	return verified;
}

/* Once for a connection, and again when a reload may have revoked it, or something expires. */
static bool has_certificate(const struct vhca_http_request *req)
{
	const struct vhca_http_auth *auth = req->srv->auth;
	struct vhca_http_peer *peer;

	if (!auth->trust)
		return false;
	peer = vhca_http_peer_of(req->conn);
	if (peer->verified_by != auth->number || time(NULL) >= peer->verified_until) {
		peer->verified = verify(auth, req->conn, &peer->verified_until);
		peer->verified_by = auth->number;
	}
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
