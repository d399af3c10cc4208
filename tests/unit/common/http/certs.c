// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/common/http/certs.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"

#define DAY 86400

struct pair {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

struct name {
	gnutls_x509_subject_alt_name_t kind;
	const char *text;
	unsigned int size;
};

struct wish {
	const char *name;
	bool authority;
	long from, until;	  /* seconds from now */
	const char *purpose;	  /* an OID; NULL = all */
	bool ill;		  /* what GnuTLS would not write */
	const struct name *names; /* up to a size of 0; NULL = a server's here */
	unsigned int serial;	  /* 0 = by its name */
};

static void pair_done(struct pair *p)
{
	if (p->crt)
		gnutls_x509_crt_deinit(p->crt);
	if (p->key)
		gnutls_x509_privkey_deinit(p->key);
}

static const struct name of_server[] = {
	{GNUTLS_SAN_IPADDRESS, "\x7f\0\0\1", 4}, {GNUTLS_SAN_DNSNAME, "localhost", 9}, {.size = 0}};

static int add_names(gnutls_x509_crt_t crt, const struct name *names)
{
	int r = 0;

	for (; names->size && r == 0; names++)
		r = gnutls_x509_crt_set_subject_alt_name(crt, names->kind, names->text, names->size,
							 GNUTLS_FSAN_APPEND);
	return r;
}

/* The hosts "x:admin *" and "hv1", NUL, ".org". */
static int add_ill_names(gnutls_x509_crt_t crt)
{
	static const char der[] = "\x30\x15\x82\x09x:admin *\x82\x08hv1\0.org";

	return gnutls_x509_crt_set_extension_by_oid(crt, GNUTLS_X509EXT_OID_SAN, der,
						    sizeof(der) - 1, 0);
}

static unsigned int serial_of(const char *name)
{
	return (unsigned int)name[0] << 8 | (unsigned char)name[strlen(name) - 1];
}

static int describe(gnutls_x509_crt_t crt, const struct wish *w)
{
	time_t now = time(NULL);
	char dn[64];
	unsigned int serial = w->serial ? w->serial : serial_of(w->name);

	(void)snprintf(dn, sizeof(dn), "CN=%s", w->name);
	if (gnutls_x509_crt_set_version(crt, 3) < 0 ||
	    gnutls_x509_crt_set_serial(crt, &serial, sizeof(serial)) < 0 ||
	    gnutls_x509_crt_set_activation_time(crt, now + w->from) < 0 ||
	    gnutls_x509_crt_set_expiration_time(crt, now + w->until) < 0 ||
	    gnutls_x509_crt_set_dn(crt, dn, NULL) < 0 ||
	    gnutls_x509_crt_set_basic_constraints(crt, w->authority, -1) < 0)
		return -1;
	if (w->authority)
		return gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_KEY_CERT_SIGN |
								  GNUTLS_KEY_CRL_SIGN);
	if (w->purpose && gnutls_x509_crt_set_key_purpose_oid(crt, w->purpose, 0) < 0)
		return -1;
	if (w->ill)
		return add_ill_names(crt);
	return add_names(crt, w->names ? w->names : of_server);
}

static int save(const char *dir, const char *name, const char *suffix, gnutls_datum_t *text,
		mode_t mode)
{
	char path[256];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s.%s", dir, name, suffix);
	r = vhca_write_file_atomic(path, text->data, text->size, mode);
	gnutls_free(text->data);
	return r;
}

static int save_pair(const char *dir, const char *name, const struct pair *p)
{
	gnutls_datum_t crt = {NULL, 0}, key = {NULL, 0};

	if (gnutls_x509_crt_export2(p->crt, GNUTLS_X509_FMT_PEM, &crt) < 0 ||
	    save(dir, name, "pem", &crt, 0644) < 0 ||
	    gnutls_x509_privkey_export2(p->key, GNUTLS_X509_FMT_PEM, &key) < 0)
		return -1;
	return save(dir, name, "key", &key, 0600);
}

/* issuer NULL: it signs itself. */
static int make(const char *dir, const struct wish *w, const struct pair *issuer, struct pair *ret)
{
	const unsigned int bits = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
	const struct pair *by = issuer ? issuer : ret;

	if (gnutls_x509_crt_init(&ret->crt) < 0 || gnutls_x509_privkey_init(&ret->key) < 0 ||
	    gnutls_x509_privkey_generate(ret->key, GNUTLS_PK_ECDSA, bits, 0) < 0 ||
	    describe(ret->crt, w) < 0 || gnutls_x509_crt_set_key(ret->crt, ret->key) < 0 ||
	    gnutls_x509_crt_sign2(ret->crt, by->crt, by->key, GNUTLS_DIG_SHA256, 0) < 0)
		return -1;
	return save_pair(dir, w->name, ret);
}

static int add_revoked(gnutls_x509_crl_t crl, const unsigned int *serials, size_t n, time_t when)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = gnutls_x509_crl_set_crt_serial(crl, &serials[i], sizeof(serials[i]), when);
	return r;
}

/* NAME.crl of the authority, with these serial numbers. */
static int make_crl(const char *dir, const char *name, const struct pair *ca,
		    const unsigned int *serials, size_t n, long until)
{
	gnutls_datum_t text = {NULL, 0};
	time_t now = time(NULL);
	gnutls_x509_crl_t crl;
	int r;

	if (gnutls_x509_crl_init(&crl) < 0)
		return -1;
	r = gnutls_x509_crl_set_version(crl, 2);
	if (r == 0)
		r = gnutls_x509_crl_set_this_update(crl, now - 2 * DAY);
	if (r == 0)
		r = gnutls_x509_crl_set_next_update(crl, now + until);
	if (r == 0)
		r = gnutls_x509_crl_set_number(crl, "\1", 1);
	if (r == 0)
		r = add_revoked(crl, serials, n, now - DAY);
	if (r == 0)
		r = gnutls_x509_crl_sign2(crl, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0);
	if (r == 0)
		r = gnutls_x509_crl_export2(crl, GNUTLS_X509_FMT_PEM, &text);
	gnutls_x509_crl_deinit(crl);
	return r == 0 ? save(dir, name, "crl", &text, 0644) : -1;
}

static int make_crls(const char *dir, const char *authority, const struct pair *ca)
{
	const unsigned int client_serial = serial_of("client"), server_serial = serial_of("server");
	char none[32], old[32], client[32], server[32];

	(void)snprintf(none, sizeof(none), "%s-none", authority);
	(void)snprintf(old, sizeof(old), "%s-old", authority);
	(void)snprintf(client, sizeof(client), "%s-client", authority);
	(void)snprintf(server, sizeof(server), "%s-server", authority);
	if (make_crl(dir, none, ca, NULL, 0, DAY) < 0 ||
	    make_crl(dir, old, ca, &client_serial, 1, -DAY) < 0 ||
	    make_crl(dir, client, ca, &client_serial, 1, DAY) < 0)
		return -1;
	return make_crl(dir, server, ca, &server_serial, 1, DAY);
}

static int make_all(const char *dir, const struct wish *authority, const struct wish *others,
		    size_t n)
{
	VHCA_CLEANUP(pair_done) struct pair ca = {NULL, NULL};
	int r = make(dir, authority, NULL, &ca);

	if (r == 0)
		r = make_crls(dir, authority->name, &ca);
	for (size_t i = 0; i < n && r == 0; i++) {
		VHCA_CLEANUP(pair_done) struct pair p = {NULL, NULL};

		r = make(dir, &others[i], &ca, &p);
	}
	return r;
}

int certs_make(const char *dir)
{
	static const struct name all[] = {{GNUTLS_SAN_URI, "spiffe://x/y", 12},
					  {GNUTLS_SAN_IPADDRESS, "\xc0\0\2\7", 4},
					  {GNUTLS_SAN_DNSNAME, "HV1.example.org", 15},
					  {GNUTLS_SAN_DNSNAME, "hv2.example.org", 15},
					  {.size = 0}},
				 uri[] = {{GNUTLS_SAN_IPADDRESS, "\xc0\0\2\7", 4},
					  {GNUTLS_SAN_URI, "spiffe://x/y", 12},
					  {.size = 0}},
				 address[] = {{GNUTLS_SAN_IPADDRESS,
					       "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\7", 16},
					      {.size = 0}},
				 none[] = {{.size = 0}};
	static const struct wish ca = {"ca", true, -DAY, DAY},
				 other_ca = {"other-ca", true, -DAY, DAY};
	static const struct wish ours[] = {
		{"server", false, -DAY, DAY},
		{"client", false, -DAY, DAY},
		{"expired", false, -2 * DAY, -DAY},
		{"future", false, DAY, 2 * DAY},
		{"for-clients", false, -DAY, DAY, GNUTLS_KP_TLS_WWW_CLIENT},
		{"for-servers", false, -DAY, DAY, GNUTLS_KP_TLS_WWW_SERVER},
		{"for-mail", false, -DAY, DAY, GNUTLS_KP_EMAIL_PROTECTION},
		{"for-code", false, -DAY, DAY, GNUTLS_KP_CODE_SIGNING},
		{"for-anything", false, -DAY, DAY, GNUTLS_KP_ANY},
		{.name = "named", .from = -DAY, .until = DAY, .names = all},
		{.name = "by-uri", .from = -DAY, .until = DAY, .names = uri},
		{.name = "by-address", .from = -DAY, .until = DAY, .names = address},
		{.name = "unnamed", .from = -DAY, .until = DAY, .names = none},
		{.name = "ill-named", .from = -DAY, .until = DAY, .ill = true},
	};
	static const struct wish theirs[] = {{"stranger", false, -DAY, DAY}};

	if (make_all(dir, &ca, ours, VHCA_ARRAY_SIZE(ours)) < 0)
		return -1;
	return make_all(dir, &other_ca, theirs, VHCA_ARRAY_SIZE(theirs));
}

/* ---- the matrix ---- */

static const struct {
	const char *word, *oid;
} purposes[] = {
	{"none", NULL},
	{"clients", GNUTLS_KP_TLS_WWW_CLIENT},
	{"servers", GNUTLS_KP_TLS_WWW_SERVER},
	{"mail", GNUTLS_KP_EMAIL_PROTECTION},
	{"code", GNUTLS_KP_CODE_SIGNING},
	{"anything", GNUTLS_KP_ANY},
};

static const struct {
	const char *word;
	struct name names[2];
} callers[] = {
	{"listed", {{GNUTLS_SAN_DNSNAME, "hv1.matrix", 10}, {.size = 0}}},
	{"unlisted", {{GNUTLS_SAN_DNSNAME, "hv2.matrix", 10}, {.size = 0}}},
	{"unnamed", {{.size = 0}}},
};

static const struct {
	const char *word;
	long from, until;
} times[] = {{"now", -DAY, DAY}, {"past", -2 * DAY, -DAY}, {"future", DAY, 2 * DAY}};

#define COMBINATIONS \
	(VHCA_ARRAY_SIZE(purposes) * VHCA_ARRAY_SIZE(callers) * VHCA_ARRAY_SIZE(times) * 2)

/* Takes one of a number's dimensions off. */
static size_t take(size_t *rest, size_t n)
{
	size_t i = *rest % n;

	*rest /= n;
	return i;
}

/* That of a combination; `revoked` is the last dimension. */
static bool describe_combination(size_t i, const char *authority, char name[static 64],
				 struct wish *ret)
{
	size_t rest = i, purpose = take(&rest, VHCA_ARRAY_SIZE(purposes));
	size_t caller = take(&rest, VHCA_ARRAY_SIZE(callers));
	size_t when = take(&rest, VHCA_ARRAY_SIZE(times));

	(void)snprintf(name, 64, "%s-%s-%s-%s-%s", authority, purposes[purpose].word,
		       callers[caller].word, times[when].word, rest ? "revoked" : "kept");
	*ret = (struct wish){.name = name,
			     .from = times[when].from,
			     .until = times[when].until,
			     .purpose = purposes[purpose].oid,
			     .names = callers[caller].names,
			     .serial = (unsigned int)i + 1};
	return rest;
}

static int make_combinations(const char *dir, const char *authority, const struct pair *ca,
			     gnutls_x509_privkey_t key)
{
	unsigned int revoked[COMBINATIONS];
	char name[64], crl[64];
	struct wish wish;
	size_t n = 0;

	for (size_t i = 0; i < COMBINATIONS; i++) {
		VHCA_CLEANUP(pair_done) struct pair p = {NULL, NULL};
		gnutls_datum_t text = {NULL, 0};

		if (describe_combination(i, authority, name, &wish))
			revoked[n++] = wish.serial;
		if (gnutls_x509_crt_init(&p.crt) < 0 || describe(p.crt, &wish) < 0 ||
		    gnutls_x509_crt_set_key(p.crt, key) < 0 ||
		    gnutls_x509_crt_sign2(p.crt, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0) < 0 ||
		    gnutls_x509_crt_export2(p.crt, GNUTLS_X509_FMT_PEM, &text) < 0 ||
		    save(dir, name, "pem", &text, 0644) < 0)
			return -1;
	}
	(void)snprintf(crl, sizeof(crl), "%s-matrix", authority);
	return make_crl(dir, crl, ca, revoked, n, DAY);
}

int certs_make_matrix(const char *dir)
{
	static const char *const authorities[] = {"ca", "other-ca"};
	static const struct wish owner = {"matrix", false, -DAY, DAY};
	VHCA_CLEANUP(pair_done) struct pair keys = {NULL, NULL};
	int r = make(dir, &owner, NULL, &keys);

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(authorities) && r == 0; i++) {
		VHCA_CLEANUP(pair_done) struct pair ca = {NULL, NULL}, server = {NULL, NULL};
		const struct wish authority = {authorities[i], true, -DAY, DAY};
		char name[32];
		const struct wish door = {
			.name = name, .from = -DAY, .until = DAY, .serial = COMBINATIONS + 1};

		(void)snprintf(name, sizeof(name), "%s-server", authorities[i]);
		r = make(dir, &authority, NULL, &ca);
		if (r == 0)
			r = make(dir, &door, &ca, &server);
		if (r == 0)
			r = make_combinations(dir, authorities[i], &ca, keys.key);
	}
	return r;
}
