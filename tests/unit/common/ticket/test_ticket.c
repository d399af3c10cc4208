/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* common/ticket: what a ticket says, whose word it is, and that not one letter of it can change. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gnutls/abstract.h>
#include <gnutls/x509.h>

#include "common/base/cleanup.h"
#include "common/ticket/ticket.h"
#include "tests/unit/common/http/auth_files.h"
#include "tests/unit/unit.h"

static struct vhca_ticket ticket_to_hv2(void)
{
	struct vhca_ticket ticket = {.vguid = 0x02c9ab0000000001,
				     .epoch = 7,
				     .port_guid = 0x0002c90300a1b2c3,
				     .name = "cert:hv2.example.org"};

	assert_int_equal(vhca_uuid_parse("6b3e0f5c-1111-4222-8333-0123456789ab", &ticket.migration),
			 0);
	return ticket;
}

static struct vhca_ticket signed_by(const char *certificate, const char *key)
{
	struct vhca_http_auth *auth = auth_loaded(certificate, key, NULL, NULL);
	struct vhca_ticket ticket = ticket_to_hv2();
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_ticket_sign(auth, &ticket, &err) < 0)
		fail_msg("%s", err.msg);
	(void)vhca_http_auth_free(auth);
	return ticket;
}

/* The signer's name, or the code of the refusal. */
static const char *verdict(const struct vhca_http_auth *auth, const struct vhca_ticket *ticket)
{
	static char signer[VHCA_CALLER_NAME_MAX];
	static struct vhca_error err;

	err = (struct vhca_error)VHCA_ERROR_INIT;
	return vhca_ticket_verify(auth, ticket, signer, &err) < 0 ? err.code : signer;
}

static const char *verdict_of(const char *authority, const struct vhca_ticket *ticket)
{
	struct vhca_http_auth *auth = auth_loaded(NULL, NULL, authority, NULL);
	const char *said = verdict(auth, ticket);

	(void)vhca_http_auth_free(auth);
	return said;
}

static void a_ticket_is_its_signers_word(void **state)
{
	const struct vhca_ticket ticket = signed_by("named.pem", "named.key");
	char text[VHCA_TICKET_MAX];
	struct vhca_ticket read;

	(void)state;
	assert_int_equal(vhca_ticket_parse(vhca_ticket_format(&ticket, text), &read, NULL), 0);
	assert_true(read.vguid == ticket.vguid && read.epoch == 7 &&
		    vhca_uuid_equal(&read.migration, &ticket.migration) &&
		    read.port_guid == ticket.port_guid);
	assert_string_equal(read.name, "cert:hv2.example.org");
	assert_string_equal(verdict_of("ca.pem", &read), "cert:hv1.example.org");
}

/* Who has no authority in common with the reader, or not one for this. */
static void whom_nobody_vouches_for_signs_nothing(void **state)
{
	static const struct {
		const char *certificate, *key, *said;
	} signers[] = {
		{"client.pem", "client.key", NULL},
		{"for-clients.pem", "for-clients.key", NULL},
		{"for-servers.pem", "for-servers.key", "ticket_not_valid"},
		{"for-mail.pem", "for-mail.key", "ticket_not_valid"},
		{"stranger.pem", "stranger.key", "ticket_not_valid"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(signers); i++) {
		const struct vhca_ticket ticket = signed_by(signers[i].certificate, signers[i].key);
		const char *said = verdict_of("ca.pem", &ticket);

		if (signers[i].said)
			assert_string_equal(said, signers[i].said);
		else
			assert_true(vhca_caller_is_certificate(said));
	}
}

static void who_is_revoked_signs_nothing(void **state)
{
	const struct vhca_ticket ticket = signed_by("client.pem", "client.key");
	const struct vhca_http_auth_files files = {.authority = TREE_PATH(&auth_dir, "ca.pem"),
						   .revoked =
							   TREE_PATH(&auth_dir, "ca-client.crl")};
	struct vhca_http_auth *auth = NULL;

	(void)state;
	assert_int_equal(vhca_http_auth_load(&files, &auth, NULL), 0);
	assert_string_equal(verdict(auth, &ticket), "ticket_not_valid");
	(void)vhca_http_auth_free(auth);
	assert_string_equal(verdict(NULL, &ticket), "ticket_not_valid");
}

/* Of each letter another one, as good in its place as can be: not understood, or not true. */
static void no_letter_can_change(void **state)
{
	const struct vhca_ticket ticket = signed_by("client.pem", "client.key");
	struct vhca_http_auth *auth = auth_loaded(NULL, NULL, "ca.pem", NULL);
	char text[VHCA_TICKET_MAX];
	size_t understood = 0;

	(void)state;
	(void)vhca_ticket_format(&ticket, text);
	for (char *c = text; *c; c++) {
		const char was = *c;
		struct vhca_ticket read;

		*c = was == '1' ? '2' : '1';
		if (vhca_ticket_parse(text, &read, NULL) == 0) {
			understood++;
			assert_string_equal(verdict(auth, &read), "ticket_not_valid");
		}
		*c = was;
	}
	assert_true(understood > 100);
	(void)vhca_http_auth_free(auth);
}

/* Another's certificate under it does not make it his word. */
static void a_certificate_needs_its_key(void **state)
{
	const struct vhca_ticket other = signed_by("named.pem", "named.key");
	struct vhca_ticket ticket = signed_by("client.pem", "client.key");

	(void)state;
	memcpy(ticket.certificate, other.certificate, other.n_certificate);
	ticket.n_certificate = other.n_certificate;
	assert_string_equal(verdict_of("ca.pem", &ticket), "ticket_not_valid");
}

static void a_ticket_has_one_form(void **state)
{
	static const char *const forms[] = {
		"", "vhca-ticket-1", "vhca-ticket-1 %s", " %s", "%s ", "%s\n", "%s AA==",
	};
	const struct vhca_ticket ticket = signed_by("client.pem", "client.key");
	char text[VHCA_TICKET_MAX], form[VHCA_TICKET_MAX + 32];
	struct vhca_error err;
	struct vhca_ticket read;

	(void)state;
	(void)vhca_ticket_format(&ticket, text);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		const char *at = strstr(forms[i], "%s");
		int before = at ? (int)(at - forms[i]) : (int)strlen(forms[i]);

		(void)snprintf(form, sizeof(form), "%.*s%s%s", before, forms[i], at ? text : "",
			       at ? at + 2 : "");
		err = (struct vhca_error)VHCA_ERROR_INIT;
		assert_true(vhca_ticket_parse(form, &read, &err) < 0);
		assert_string_equal(err.code, "bad_ticket");
	}
	memset(form, 'a', sizeof(form));
	form[sizeof(form) - 1] = '\0';
	assert_true(vhca_ticket_parse(form, &read, &err) < 0);
	assert_string_equal(err.code, "bad_ticket");
}

static void nothing_senseless_is_signed(void **state)
{
	struct vhca_http_auth *auth = auth_loaded("client.pem", "client.key", NULL, NULL);
	struct vhca_ticket tickets[4];

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(tickets); i++)
		tickets[i] = ticket_to_hv2();
	tickets[0].vguid = UINT64_MAX;
	tickets[1].epoch = 0;
	tickets[2].port_guid = 0;
	(void)vhca_strcpy(tickets[3].name, sizeof(tickets[3].name), "token:hv2");
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(tickets); i++) {
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(vhca_ticket_sign(auth, &tickets[i], &err) < 0);
		assert_string_equal(err.code, "bad_ticket");
	}
	(void)vhca_http_auth_free(auth);
	auth = auth_loaded(NULL, NULL, "ca.pem", NULL); /* it has no key */
	tickets[0] = ticket_to_hv2();
	assert_true(vhca_ticket_sign(auth, &tickets[0], NULL) < 0);
	(void)vhca_http_auth_free(auth);
}

/* ---- kinds of keys ---- */

static void put_pem(const char *name, const gnutls_datum_t *pem)
{
	VHCA_AUTO_FREE char *text = strndup((const char *)pem->data, pem->size);

	assert_non_null(text);
	auth_put_tokens(name, text, 0600);
}

/* "own.pem", for hv1.example.org and by itself, and "own.key". */
static void make_key(gnutls_pk_algorithm_t kind, unsigned int bits)
{
	const unsigned char serial = 1;
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	gnutls_datum_t pem;

	assert_int_equal(gnutls_x509_privkey_init(&key), 0);
	assert_int_equal(gnutls_x509_privkey_generate(key, kind, bits, 0), 0);
	assert_int_equal(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, 0, &pem),
			 0);
	put_pem("own.key", &pem);
	gnutls_free(pem.data);
	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
	assert_int_equal(gnutls_x509_crt_set_serial(crt, &serial, 1), 0);
	assert_int_equal(gnutls_x509_crt_set_dn(crt, "CN=hv1", NULL), 0);
	assert_int_equal(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 3600), 0);
	assert_int_equal(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 86400), 0);
	assert_int_equal(
		gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "hv1.example.org",
						     strlen("hv1.example.org"), GNUTLS_FSAN_SET),
		0);
	assert_int_equal(gnutls_x509_crt_set_basic_constraints(crt, 1, -1), 0);
	assert_int_equal(gnutls_x509_crt_set_key(crt, key), 0);
	assert_int_equal(gnutls_x509_crt_sign2(crt, crt, key,
					       kind == GNUTLS_PK_EDDSA_ED25519 ? GNUTLS_DIG_SHA512
									       : GNUTLS_DIG_SHA256,
					       0),
			 0);
	assert_int_equal(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem), 0);
	put_pem("own.pem", &pem);
	gnutls_free(pem.data);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

static void each_kind_of_key_signs(void **state)
{
	static const struct {
		gnutls_pk_algorithm_t kind;
		unsigned int bits;
	} keys[] = {
		{GNUTLS_PK_RSA, 2048},
		{GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP384R1)},
		{GNUTLS_PK_EDDSA_ED25519, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519)},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(keys); i++) {
		char text[VHCA_TICKET_MAX];
		struct vhca_ticket ticket;

		make_key(keys[i].kind, keys[i].bits);
		ticket = signed_by("own.pem", "own.key");
		assert_int_equal(
			vhca_ticket_parse(vhca_ticket_format(&ticket, text), &ticket, NULL), 0);
		assert_string_equal(verdict_of("own.pem", &ticket), "cert:hv1.example.org");
		ticket.epoch++;
		assert_string_equal(verdict_of("own.pem", &ticket), "ticket_not_valid");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ticket_is_its_signers_word),
		cmocka_unit_test(whom_nobody_vouches_for_signs_nothing),
		cmocka_unit_test(who_is_revoked_signs_nothing),
		cmocka_unit_test(no_letter_can_change),
		cmocka_unit_test(a_certificate_needs_its_key),
		cmocka_unit_test(a_ticket_has_one_form),
		cmocka_unit_test(nothing_senseless_is_signed),
		cmocka_unit_test(each_kind_of_key_signs),
	};

	return cmocka_run_group_tests_name("ticket", tests, auth_setup, auth_teardown);
}
