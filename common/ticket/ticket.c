/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/ticket/ticket.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/http/auth_private.h"

static void datum_done(gnutls_datum_t *datum)
{
	gnutls_free(datum->data);
}

/* ---- text ---- */

static int bad(struct vhca_error *err, const char *why)
{
	return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_TICKET, 0, "a ticket %s", why);
}

static void add_base64(struct vhca_strbuf *sb, const unsigned char *data, size_t n)
{
	const gnutls_datum_t raw = {(unsigned char *)(uintptr_t)data, (unsigned int)n};
	VHCA_CLEANUP(datum_done) gnutls_datum_t text = {NULL, 0};

	if (gnutls_base64_encode2(&raw, &text) < 0)
		sb->truncated = true;
	else
		vhca_strbuf_add(sb, " %.*s", (int)text.size, (const char *)text.data);
}

static int read_base64(const char *word, unsigned char *ret, size_t max, size_t *ret_n)
{
	const gnutls_datum_t text = {(unsigned char *)(uintptr_t)word, (unsigned int)strlen(word)};
	VHCA_CLEANUP(datum_done) gnutls_datum_t raw = {NULL, 0};

	if (text.size == 0 || gnutls_base64_decode2(&text, &raw) < 0 || raw.size == 0 ||
	    raw.size > max)
		return -EINVAL;
	memcpy(ret, raw.data, raw.size);
	*ret_n = raw.size;
	return 0;
}

/* What is signed, without a NUL of its own. */
static void add_signed(struct vhca_strbuf *sb, const struct vhca_ticket *ticket)
{
	vhca_strbuf_add(sb, "vhca-ticket-1 %s %" PRIu64 " %s %s %s", VHCA_GUID_STR(ticket->vguid),
			ticket->epoch, VHCA_UUID_STR(&ticket->migration),
			VHCA_GUID_STR(ticket->port_guid), ticket->name);
	add_base64(sb, ticket->certificate, ticket->n_certificate);
}

char *vhca_ticket_format(const struct vhca_ticket *ticket, char buf[static VHCA_TICKET_MAX])
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, VHCA_TICKET_MAX);
	add_signed(&sb, ticket);
	add_base64(&sb, ticket->signature, ticket->n_signature);
	return buf;
}

enum { VERSION, VGUID, EPOCH, MIGRATION, PORT_GUID, NAME, CERTIFICATE, SIGNATURE, WORDS };

static int read_words(char *const word[static WORDS], struct vhca_ticket *ret)
{
	if (vhca_guid_parse(word[VGUID], &ret->vguid) < 0 ||
	    vhca_parse_u64(word[EPOCH], 10, INT64_MAX, &ret->epoch) < 0 ||
	    vhca_uuid_parse(word[MIGRATION], &ret->migration) < 0 ||
	    vhca_guid_parse(word[PORT_GUID], &ret->port_guid) < 0 ||
	    vhca_strcpy(ret->name, sizeof(ret->name), word[NAME]) < 0)
		return -EINVAL;
	if (read_base64(word[CERTIFICATE], ret->certificate, sizeof(ret->certificate),
			&ret->n_certificate) < 0)
		return -EINVAL;
	return read_base64(word[SIGNATURE], ret->signature, sizeof(ret->signature),
			   &ret->n_signature);
}

/* What could be said, by whoever signs it. */
static bool makes_sense(const struct vhca_ticket *ticket)
{
	for (const char *c = ticket->name; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	return vhca_guid_is_valid(ticket->vguid) && vhca_guid_is_valid(ticket->port_guid) &&
	       ticket->epoch > 0 && ticket->epoch <= INT64_MAX &&
	       vhca_caller_is_certificate(ticket->name);
}

int vhca_ticket_parse(const char *text, struct vhca_ticket *ret, struct vhca_error *err)
{
	struct vhca_ticket ticket = {.n_certificate = 0};
	char copy[VHCA_TICKET_MAX], again[VHCA_TICKET_MAX];
	char *rest = copy, *word[WORDS + 1] = {NULL};
	size_t n = 0;

	if (vhca_strcpy(copy, sizeof(copy), text) < 0)
		return bad(err, "is longer than 4095 bytes");
	while (n <= WORDS && (word[n] = strsep(&rest, " ")))
		n++;
	if (n != WORDS || read_words(word, &ticket) < 0 || !makes_sense(&ticket))
		return bad(err, "is not understood");
	if (strcmp(vhca_ticket_format(&ticket, again), text) != 0)
		return bad(err, "is not in the form that it is written in");
	*ret = ticket;
	return 0;
}

/* ---- keys ---- */

/* By which algorithm a key signs: its kind leaves no choice, so a ticket need not name it. */
static gnutls_sign_algorithm_t algorithm_of(gnutls_pubkey_t key)
{
	gnutls_digest_algorithm_t digest = GNUTLS_DIG_UNKNOWN;

	if (gnutls_pubkey_get_preferred_hash_algorithm(key, &digest, NULL) < 0)
		return GNUTLS_SIGN_UNKNOWN;
	return gnutls_pk_to_sign(gnutls_pubkey_get_pk_algorithm(key, NULL), digest);
}

/* The certificate of a ticket, and its key; the private one is known to whoever signs. */
struct signer {
	gnutls_x509_crt_t crt;
	gnutls_pubkey_t key;
	gnutls_privkey_t private;
};

static void signer_done(struct signer *signer)
{
	if (signer->private)
		gnutls_privkey_deinit(signer->private);
	if (signer->key)
		gnutls_pubkey_deinit(signer->key);
	if (signer->crt)
		gnutls_x509_crt_deinit(signer->crt);
}

static int signer_init(struct signer *signer, const gnutls_datum_t *text, gnutls_x509_crt_fmt_t fmt)
{
	if (gnutls_x509_crt_init(&signer->crt) < 0 ||
	    gnutls_x509_crt_import(signer->crt, text, fmt) < 0 ||
	    gnutls_pubkey_init(&signer->key) < 0 ||
	    gnutls_pubkey_import_x509(signer->key, signer->crt, 0) < 0)
		return -EINVAL;
	return 0;
}

static gnutls_datum_t datum_of(const void *data, size_t n)
{
	return (gnutls_datum_t){(unsigned char *)(uintptr_t)data, (unsigned int)n};
}

/* Its data is in buf; empty if the certificate cannot be written. */
static gnutls_datum_t signed_text(const struct vhca_ticket *ticket,
				  char buf[static VHCA_TICKET_MAX])
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, VHCA_TICKET_MAX);
	add_signed(&sb, ticket);
	return datum_of(buf, sb.truncated ? 0 : sb.len);
}

/* Its own is the first that stands in the file. */
static int take_certificate(const struct vhca_http_auth *auth, struct signer *signer,
			    struct vhca_ticket *ret)
{
	const gnutls_datum_t pem = datum_of(auth->certificate.text, auth->certificate.len);
	VHCA_CLEANUP(datum_done) gnutls_datum_t der = {NULL, 0};

	if (signer_init(signer, &pem, GNUTLS_X509_FMT_PEM) < 0 ||
	    gnutls_x509_crt_export2(signer->crt, GNUTLS_X509_FMT_DER, &der) < 0 ||
	    der.size > sizeof(ret->certificate))
		return -EINVAL;
	memcpy(ret->certificate, der.data, der.size);
	ret->n_certificate = der.size;
	return 0;
}

static int take_signature(const struct vhca_http_auth *auth, struct signer *signer,
			  struct vhca_ticket *ret)
{
	const gnutls_datum_t pem = datum_of(auth->key.text, auth->key.len);
	VHCA_CLEANUP(datum_done) gnutls_datum_t signature = {NULL, 0};
	char text[VHCA_TICKET_MAX];
	const gnutls_datum_t what = signed_text(ret, text);

	if (!what.size || gnutls_privkey_init(&signer->private) < 0 ||
	    gnutls_privkey_import_x509_raw(signer->private, &pem, GNUTLS_X509_FMT_PEM, NULL, 0) <
		    0 ||
	    gnutls_privkey_sign_data2(signer->private, algorithm_of(signer->key), 0, &what,
				      &signature) < 0 ||
	    signature.size > sizeof(ret->signature))
		return -EINVAL;
	memcpy(ret->signature, signature.data, signature.size);
	ret->n_signature = signature.size;
	return 0;
}

int vhca_ticket_sign(const struct vhca_http_auth *auth, struct vhca_ticket *ticket,
		     struct vhca_error *err)
{
	VHCA_CLEANUP(signer_done) struct signer signer = {.crt = NULL};

	if (!makes_sense(ticket))
		return bad(err, "names no certificate, or no port, vGUID or epoch");
	if (!auth->certificate.text || take_certificate(auth, &signer, ticket) < 0 ||
	    take_signature(auth, &signer, ticket) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, "credentials", 0,
				      "%s: no ticket can be signed by its key",
				      auth->key.path ? auth->key.path : "no certificate");
	return 0;
}

static int not_valid(struct vhca_error *err, const struct vhca_ticket *ticket, const char *why)
{
	return vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_TICKET_NOT_VALID, 0,
			      "the ticket of %s at epoch %" PRIu64 " %s",
			      VHCA_GUID_STR(ticket->vguid), ticket->epoch, why);
}

int vhca_ticket_verify(const struct vhca_http_auth *auth, const struct vhca_ticket *ticket,
		       char ret_signer[static VHCA_CALLER_NAME_MAX], struct vhca_error *err)
{
	const gnutls_datum_t der = datum_of(ticket->certificate, ticket->n_certificate);
	const gnutls_datum_t signature = datum_of(ticket->signature, ticket->n_signature);
	VHCA_CLEANUP(signer_done) struct signer signer = {.crt = NULL};
	char text[VHCA_TICKET_MAX];
	const gnutls_datum_t what = signed_text(ticket, text);

	if (!auth || !auth->trust)
		return not_valid(err, ticket, "can be verified by no authority");
	if (signer_init(&signer, &der, GNUTLS_X509_FMT_DER) < 0 ||
	    !vhca_http_auth_vouches(auth, &signer.crt, 1) ||
	    vhca_http_auth_name_of(&der, ret_signer) < 0)
		return not_valid(err, ticket, "was signed by nobody whom tls_ca vouches for");
	if (!what.size || gnutls_pubkey_verify_data2(signer.key, algorithm_of(signer.key), 0, &what,
						     &signature) < 0)
		return not_valid(err, ticket, "was not signed by its certificate's key");
	return 0;
}
