/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ticket: what is understood is written again letter by letter, and what no authority vouches
 * for is nobody's word, whatever its certificate and its signature are.
 */
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/auth_private.h"
#include "common/ticket/ticket.h"
#include "tests/fuzz/fuzz.h"

static void check_ticket(const struct vhca_ticket *ticket, const char *text)
{
	char again[VHCA_TICKET_MAX], signer[VHCA_CALLER_NAME_MAX];
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_http_auth auth = {.number = 1};

	FUZZ_ASSERT(strcmp(vhca_ticket_format(ticket, again), text) == 0);
	FUZZ_ASSERT(vhca_guid_is_valid(ticket->vguid) && vhca_guid_is_valid(ticket->port_guid));
	FUZZ_ASSERT(ticket->epoch > 0 && vhca_caller_is_certificate(ticket->name));
	FUZZ_ASSERT(gnutls_x509_trust_list_init(&auth.trust, 0) == 0);
	FUZZ_ASSERT(vhca_ticket_verify(&auth, ticket, signer, &err) < 0);
	FUZZ_ASSERT(err.kind == VHCA_ERR_DENIED && strcmp(err.code, "ticket_not_valid") == 0);
	gnutls_x509_trust_list_deinit(auth.trust, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *text = strndup((const char *)data, size);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_ticket ticket;
	int r;

	FUZZ_ASSERT(text);
	text[strcspn(text, "\n")] = '\0'; /* as editors end a file */
	r = vhca_ticket_parse(text, &ticket, &err);
	fuzz_verdict(r == 0);
	if (r == 0)
		check_ticket(&ticket, text);
	else
		FUZZ_ASSERT(err.kind == VHCA_ERR_INVALID && strcmp(err.code, "bad_ticket") == 0);
	return 0;
}
