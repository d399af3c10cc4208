// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the TLS session of a connection says: whom the certificate at its other end names. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/auth_private.h"
#include "common/http/server_private.h"

/* GnuTLS describes a session only after its handshake. */
bool vhca_http_auth_is_shaken(void *session)
{
	char *text = gnutls_session_get_desc(session);

	gnutls_free(text);
	return text != NULL;
}

uint32_t vhca_http_auth_awaits(void *session)
{
	if (vhca_http_auth_is_shaken(session))
		return 0;
	return gnutls_record_get_direction(session) == 1 ? EPOLLOUT : EPOLLIN;
}

/* What can stand in a rule, and is one word in the log. */
static bool take_text(const unsigned char *data, size_t len, char *ret, size_t size)
{
	if (len == 0 || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		if (data[i] <= ' ' || data[i] > '~')
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

int vhca_http_auth_name_of(const gnutls_datum_t *der, char ret[static VHCA_CALLER_NAME_MAX])
{
	static const char prefix[] = "cert:";
	VHCA_CLEANUP(free_certificate) gnutls_x509_crt_t crt = NULL;
	char name[VHCA_CALLER_NAME_MAX - sizeof(prefix) + 1];

	if (gnutls_x509_crt_init(&crt) < 0 ||
	    gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) < 0)
		return -EIO;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(kinds); i++)
		if (find_san(crt, &kinds[i], name, sizeof(name))) {
			(void)snprintf(ret, VHCA_CALLER_NAME_MAX, "%s%s", prefix, name);
			return 0;
		}
	return name_by_digest(der, ret);
}

int vhca_http_auth_name(const struct vhca_http_request *req, char ret[static VHCA_CALLER_NAME_MAX])
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(req->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	const gnutls_datum_t *der = NULL;
	unsigned int length = 0;

	if (info)
		der = gnutls_certificate_get_peers((gnutls_session_t)info->tls_session, &length);
	return der && length > 0 ? vhca_http_auth_name_of(der, ret) : -EIO;
}
