/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TICKET_TICKET_H
#define VHCA_TICKET_TICKET_H
/*
 * By which the owner of a vGUID names who has it next (docs/design/0014-authority.md). One line of
 * words, a blank between two:
 *
 *   vhca-ticket-1 VGUID EPOCH MIGRATION PORT_GUID NAME CERTIFICATE SIGNATURE
 *
 * EPOCH is the one that the named party has it at, PORT_GUID its port and NAME its certificate's,
 * "cert:hv2.example.org". CERTIFICATE is the signer's own, the DER in base64; SIGNATURE is by its
 * key, of all that stands before the last blank, so that the first word keeps it apart from
 * whatever else the key signs. By which digest, the kind of the key says. A ticket has one form:
 * what would be written otherwise is none. It has no date: it counts from an epoch on.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/base/caller.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/http/auth.h"

/* A signature of RSA with 4096 bits; a certificate with such a key, and names. */
#define VHCA_TICKET_CERTIFICATE_MAX 2048
#define VHCA_TICKET_SIGNATURE_MAX   512
#define VHCA_TICKET_MAX		    4096 /* bytes of one, with NUL */
/*
 * With one report, or one hand-over: so many times a guest goes on while no subnet manager says yes
 * to any of it. Each is one of at most 4 KiB that the plugin verifies before it knows whose it is.
 */
#define VHCA_TICKETS_MAX 4

struct vhca_ticket {
	uint64_t vguid, epoch;
	struct vhca_uuid migration;
	uint64_t port_guid;
	char name[VHCA_CALLER_NAME_MAX];
	size_t n_certificate, n_signature;
	unsigned char certificate[VHCA_TICKET_CERTIFICATE_MAX];
	unsigned char signature[VHCA_TICKET_SIGNATURE_MAX];
};

/* Only what it says is read, not whether it is true. Error: bad_ticket. */
int vhca_ticket_parse(const char *text, struct vhca_ticket *ret, struct vhca_error *err);
/* As parse() takes it; a ticket that was parsed or signed. */
char *vhca_ticket_format(const struct vhca_ticket *ticket, char buf[static VHCA_TICKET_MAX]);
/*
 * By the key of auth, which shows that it is of auth's certificate; the ticket has neither
 * certificate nor signature yet. Error: bad_ticket, of what cannot stand in one; credentials.
 */
int vhca_ticket_sign(const struct vhca_http_auth *auth, struct vhca_ticket *ticket,
		     struct vhca_error *err);
/*
 * Whose word it is: the name of the certificate, which an authority of auth's vouches for, for a
 * client, that nobody has revoked and that has not expired, and whose key has signed this. Error:
 * ticket_not_valid.
 */
int vhca_ticket_verify(const struct vhca_http_auth *auth, const struct vhca_ticket *ticket,
		       char ret_signer[static VHCA_CALLER_NAME_MAX], struct vhca_error *err);

#endif
