// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/auth.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/auth_private.h"

#define FILE_SIZE_MAX	 (256 * 1024)
#define CERTIFICATES_MAX 256

VHCA_DEFINE_CLEANUP(struct vhca_http_auth, vhca_http_auth_free)

__attribute__((format(printf, 3, 4))) static int bad(struct vhca_error *err, const char *path,
						     const char *fmt, ...)
{
	char why[320];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return vhca_error_set(err, VHCA_ERR_INVALID, "credentials", 0, "%s: %s", path, why);
}

/* ---- files ---- */

static bool is_named(const char *path)
{
	return path && *path;
}

static int read_pem(const char *path, struct vhca_http_pem *ret, struct vhca_error *err)
{
	int r;

	if (!is_named(path))
		return 0;
	r = vhca_read_file(path, FILE_SIZE_MAX, &ret->text, &ret->len);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "credentials", -r, "%s", path);
	ret->path = strdup(path);
	return ret->path ? 0 : vhca_error_no_memory(err, path);
}

/*
 * The mistake of a careless "cp"; who may be in the file's group is the administrator's decision.
 */
static int check_mode(const char *path, struct vhca_error *err)
{
	struct stat st;

	if (!is_named(path))
		return 0;
	if (stat(path, &st) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "credentials", errno, "%s", path);
	if (!(st.st_mode & S_IRWXO))
		return 0;
	(void)bad(err, path, "holds a secret, and its mode %04o lets everybody at it",
		  (unsigned int)(st.st_mode & 07777));
	vhca_error_hint(err, "chmod o= %s; if others could read it, replace what it holds", path);
	return -EIO;
}

static void wipe(struct vhca_http_pem *pem)
{
	if (pem->text)
		explicit_bzero(pem->text, pem->len);
	free(pem->text);
	free(pem->path);
}

/* ---- certificates ---- */

struct certificates {
	gnutls_x509_crt_t *list;
	unsigned int n;
};

static void certificates_done(struct certificates *c)
{
	for (unsigned int i = 0; i < c->n; i++)
		gnutls_x509_crt_deinit(c->list[i]);
	gnutls_free(c->list);
}

static const char *day(time_t when, char buf[static 16])
{
	struct tm tm;

	if (!gmtime_r(&when, &tm) || strftime(buf, 16, "%Y-%m-%d", &tm) == 0)
		return "a date out of range";
	return buf;
}

static int check_time(const char *path, gnutls_x509_crt_t crt, struct vhca_error *err)
{
	time_t now = time(NULL), from = gnutls_x509_crt_get_activation_time(crt),
	       until = gnutls_x509_crt_get_expiration_time(crt);
	char buf[16];

	if (until != (time_t)-1 && until < now) {
		(void)bad(err, path, "the certificate has expired on %s", day(until, buf));
		vhca_error_hint(err, "renew it and start again");
		return -EIO;
	}
	if (from != (time_t)-1 && from > now)
		return bad(err, path, "the certificate is not valid before %s", day(from, buf));
	return 0;
}

static int check_certificates(const struct vhca_http_pem *pem, time_t *ret_until,
			      struct vhca_error *err)
{
	VHCA_CLEANUP(certificates_done) struct certificates c = {.n = 0};
	const gnutls_datum_t text = {(unsigned char *)pem->text, (unsigned int)pem->len};
	int r;

	if (!pem->text)
		return 0;
	r = gnutls_x509_crt_list_import2(&c.list, &c.n, &text, GNUTLS_X509_FMT_PEM, 0);
	if (r < 0 || c.n > CERTIFICATES_MAX)
		return bad(err, pem->path, "no certificates in PEM: %s",
			   r < 0 ? gnutls_strerror(r) : "too many");
	for (unsigned int i = 0; i < c.n; i++) {
		time_t until = gnutls_x509_crt_get_expiration_time(c.list[i]);

		if (check_time(pem->path, c.list[i], err) < 0)
			return -EIO;
		if (i == 0 || until < *ret_until)
			*ret_until = until;
	}
	return 0;
}

static void free_credentials(gnutls_certificate_credentials_t *cred)
{
	if (*cred)
		gnutls_certificate_free_credentials(*cred);
}

static int check_pair(const struct vhca_http_auth *auth, struct vhca_error *err)
{
	VHCA_CLEANUP(free_credentials) gnutls_certificate_credentials_t cred = NULL;
	const gnutls_datum_t crt = {(unsigned char *)auth->certificate.text,
				    (unsigned int)auth->certificate.len};
	const gnutls_datum_t key = {(unsigned char *)auth->key.text, (unsigned int)auth->key.len};
	int r;

	if (!auth->certificate.text && !auth->key.text)
		return 0;
	if (!auth->key.text)
		return bad(err, auth->certificate.path,
			   "a certificate needs its key, and no key is given");
	if (!auth->certificate.text)
		return bad(err, auth->key.path, "a key needs its certificate, and none is given");
	r = gnutls_certificate_allocate_credentials(&cred);
	if (r == 0)
		r = gnutls_certificate_set_x509_key_mem(cred, &crt, &key, GNUTLS_X509_FMT_PEM);
	if (r < 0)
		return bad(err, auth->key.path, "no key in PEM for the certificate: %s",
			   gnutls_strerror(r));
	return 0;
}

/* ---- trust ---- */

struct crls {
	gnutls_x509_crl_t *list;
	unsigned int n;
};

static void crls_done(struct crls *c)
{
	for (unsigned int i = 0; i < c->n; i++)
		gnutls_x509_crl_deinit(c->list[i]);
	gnutls_free(c->list);
}

/* A list that is out of date goes on to count: without it, who is revoked would be let in again,
 * and a host that was off for long could not begin. */
static int check_revoked(struct vhca_http_auth *auth, const struct certificates *cas,
			 gnutls_x509_crl_t crl, struct vhca_error *err)
{
	static const unsigned int dates = GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED |
					  GNUTLS_CERT_REVOCATION_DATA_ISSUED_IN_FUTURE;
	time_t until = gnutls_x509_crl_get_next_update(crl);
	unsigned int wrong = 0;
	char buf[16];

	if (gnutls_x509_crl_verify(crl, cas->list, cas->n, 0, &wrong) < 0 ||
	    (wrong & ~(dates | GNUTLS_CERT_INVALID)) || wrong == GNUTLS_CERT_INVALID)
		return bad(err, auth->revoked.path,
			   "no authority of %s that may (keyUsage: cRLSign) has signed it",
			   auth->authority.path);
	if (until != (time_t)-1 && until < time(NULL))
		vhca_log_warning("%s: the revocation list has expired on %s; it goes on to count",
				 auth->revoked.path, day(until, buf));
	return 0;
}

/* What somebody else has signed revokes nothing, and nobody would see that. */
static int heed_revoked(struct vhca_http_auth *auth, struct vhca_error *err)
{
	VHCA_CLEANUP(crls_done) struct crls c = {.n = 0};
	VHCA_CLEANUP(certificates_done) struct certificates cas = {.n = 0};
	const gnutls_datum_t lists = {(unsigned char *)auth->revoked.text,
				      (unsigned int)auth->revoked.len};
	const gnutls_datum_t authorities = {(unsigned char *)auth->authority.text,
					    (unsigned int)auth->authority.len};
	int r = gnutls_x509_crl_list_import2(&c.list, &c.n, &lists, GNUTLS_X509_FMT_PEM, 0);

	if (r < 0 || c.n == 0)
		return bad(err, auth->revoked.path, "no certificate revocation list in PEM: %s",
			   r < 0 ? gnutls_strerror(r) : "it is empty");
	r = gnutls_x509_crt_list_import2(&cas.list, &cas.n, &authorities, GNUTLS_X509_FMT_PEM, 0);
	if (r < 0)
		return bad(err, auth->authority.path, "%s", gnutls_strerror(r));
	for (unsigned int i = 0; i < c.n; i++)
		if (check_revoked(auth, &cas, c.list[i], err) < 0)
			return -EINVAL;
	if (gnutls_x509_trust_list_add_crls(auth->trust, c.list, c.n, 0, 0) != (int)c.n)
		return bad(err, auth->revoked.path, "GnuTLS does not take it");
	c.n = 0; /* they are the trust list's */
	return 0;
}

static int load_trust(struct vhca_http_auth *auth, struct vhca_error *err)
{
	const gnutls_datum_t cas = {(unsigned char *)auth->authority.text,
				    (unsigned int)auth->authority.len};

	if (!auth->authority.text)
		return auth->revoked.text ? bad(err, auth->revoked.path,
						"revokes nothing without an authority")
					  : 0;
	if (gnutls_x509_trust_list_init(&auth->trust, 0) < 0 ||
	    gnutls_x509_trust_list_add_trust_mem(auth->trust, &cas, NULL, GNUTLS_X509_FMT_PEM, 0,
						 0) <= 0)
		return bad(err, auth->authority.path, "no certificates of authorities");
	return auth->revoked.text ? heed_revoked(auth, err) : 0;
}

/* ---- tokens ---- */

static int add_text(struct vhca_http_token *token, const char *path, unsigned int line,
		    const char *text, struct vhca_error *err)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789-._~+/="; /* of RFC 6750 */
	size_t len = strlen(text);

	if (len < VHCA_HTTP_TOKEN_MIN || len > VHCA_HTTP_TOKEN_MAX || strspn(text, alphabet) != len)
		return bad(err, path,
			   "line %u: a token has %d to %d characters of A-Z a-z 0-9 - . _ ~ + / =",
			   line, VHCA_HTTP_TOKEN_MIN, VHCA_HTTP_TOKEN_MAX);
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, len, token->digest) < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "internal", EIO, "SHA-256");
	return vhca_strcpy(token->text, sizeof(token->text), text);
}

static bool parse_digest(const char *hex, unsigned char ret[static VHCA_HTTP_DIGEST_SIZE])
{
	const gnutls_datum_t text = {(unsigned char *)hex, (unsigned int)strlen(hex)};
	size_t size = VHCA_HTTP_DIGEST_SIZE;

	return text.size == 2 * VHCA_HTTP_DIGEST_SIZE &&
	       gnutls_hex_decode(&text, ret, &size) == 0 && size == VHCA_HTTP_DIGEST_SIZE;
}

/* NAME ROLE SHA-256; the line is cut. */
static int add_named(struct vhca_http_token *token, const char *path, unsigned int line, char *text,
		     struct vhca_error *err)
{
	static const char blanks[] = " \t";
	char *rest = NULL, *name = strtok_r(text, blanks, &rest);
	char *role = strtok_r(NULL, blanks, &rest), *digest = strtok_r(NULL, blanks, &rest);
	struct vhca_error why = VHCA_ERROR_INIT;

	if (!digest || strtok_r(NULL, blanks, &rest))
		return bad(err, path, "line %u: NAME ROLE SHA-256, or a token", line);
	if (!vhca_name_is_valid(name))
		return bad(err, path, "line %u: \"%.40s\" is no name", line, name);
	if (vhca_caller_role_parse(role, &token->role, &why) < 0)
		return bad(err, path, "line %u: %s", line, why.msg);
	if (!parse_digest(digest, token->digest))
		return bad(err, path, "line %u: SHA-256 has %d hex digits", line,
			   2 * VHCA_HTTP_DIGEST_SIZE);
	return vhca_strcpy(token->name, sizeof(token->name), name);
}

static int add_token(struct vhca_http_auth *auth, const struct vhca_http_auth_files *files,
		     unsigned int line, char *text, struct vhca_error *err)
{
	struct vhca_http_token *token = &auth->tokens[auth->n_tokens];

	if (auth->n_tokens == VHCA_HTTP_TOKENS_MAX)
		return bad(err, files->tokens, "line %u: more than %d tokens", line,
			   VHCA_HTTP_TOKENS_MAX);
	auth->n_tokens++;
	if (files->names_tokens && strpbrk(text, " \t"))
		return add_named(token, files->tokens, line, text, err);
	return add_text(token, files->tokens, line, text, err);
}

static int parse_tokens(struct vhca_http_auth *auth, const struct vhca_http_auth_files *files,
			char *text, struct vhca_error *err)
{
	unsigned int number = 0;
	char *line;
	int r = 0;

	while (r == 0 && (line = strsep(&text, "\n")) != NULL) {
		number++;
		line[strcspn(line, "\r")] = '\0';
		if (*line && *line != '#')
			r = add_token(auth, files, number, line, err);
	}
	if (r == 0 && auth->n_tokens == 0)
		return bad(err, files->tokens, "no token in it");
	return r;
}

static int load_tokens(struct vhca_http_auth *auth, const struct vhca_http_auth_files *files,
		       struct vhca_error *err)
{
	VHCA_CLEANUP(wipe) struct vhca_http_pem file = {.path = NULL};
	int r = read_pem(files->tokens, &file, err);

	if (r < 0 || !file.text)
		return r;
	/*
	 * What stands in front of it would be taken for a token, and what stands behind it not be
	 * seen.
	 */
	if (strlen(file.text) != file.len)
		return bad(err, files->tokens, "contains a NUL byte");
	return parse_tokens(auth, files, file.text, err);
}

/* ---- life ---- */

static int load(struct vhca_http_auth *auth, const struct vhca_http_auth_files *files,
		struct vhca_error *err)
{
	time_t own_until;

	if (read_pem(files->certificate, &auth->certificate, err) < 0 ||
	    read_pem(files->key, &auth->key, err) < 0 ||
	    read_pem(files->authority, &auth->authority, err) < 0 ||
	    read_pem(files->revoked, &auth->revoked, err) < 0 || check_mode(files->key, err) < 0 ||
	    check_mode(files->tokens, err) < 0 ||
	    check_certificates(&auth->certificate, &own_until, err) < 0 ||
	    check_certificates(&auth->authority, &auth->authority_until, err) < 0 ||
	    check_pair(auth, err) < 0 || load_trust(auth, err) < 0)
		return -EIO;
	return load_tokens(auth, files, err);
}

static _Atomic uint64_t loaded;

int vhca_http_auth_load(const struct vhca_http_auth_files *files, struct vhca_http_auth **ret,
			struct vhca_error *err)
{
	VHCA_CLEANUP(vhca_http_auth_freep) struct vhca_http_auth *auth = NULL;
	int r;

	*ret = NULL;
	if (!is_named(files->certificate) && !is_named(files->key) && !is_named(files->authority) &&
	    !is_named(files->revoked) && !is_named(files->tokens))
		return 0;
	auth = calloc(1, sizeof(*auth));
	if (!auth)
		return vhca_error_no_memory(err, "credentials");
	auth->number = atomic_fetch_add(&loaded, 1) + 1;
	r = load(auth, files, err);
	if (r == 0)
		*ret = vhca_steal_ptr(&auth);
	return r;
}

void vhca_http_auth_replace(struct vhca_http_auth *auth, struct vhca_http_auth **fresh)
{
	struct vhca_http_auth old;

	if (!auth || !*fresh)
		return;
	old = *auth;
	*auth = **fresh;
	**fresh = old;
	explicit_bzero(&old, sizeof(old));
	*fresh = vhca_http_auth_free(*fresh);
}

struct vhca_http_auth *vhca_http_auth_free(struct vhca_http_auth *auth)
{
	if (!auth)
		return NULL;
	wipe(&auth->certificate);
	wipe(&auth->key);
	wipe(&auth->authority);
	wipe(&auth->revoked);
	if (auth->trust)
		gnutls_x509_trust_list_deinit(auth->trust, 1);
	explicit_bzero(auth, sizeof(*auth));
	free(auth);
	return NULL;
}
