/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_TICKETS_CHAIN_H
#define VHCA_OPENSM_TICKETS_CHAIN_H
/*
 * The tickets of a report (common/ticket/ticket.h), verified: in them nodes of [agents] name each
 * other. Who signs and who is named has to be listed there; nobody need have been heard.
 */
#include "common/ticket/ticket.h"
#include "opensm/bindings/agents.h"

/* The texts are the body's, oldest first. */
struct vhca_osm_proof {
	size_t n_tickets;
	const char *tickets[VHCA_TICKETS_MAX];
	bool settled; /* its guest has it: the former owner does not get it back */
};

struct vhca_osm_step {
	const struct vhca_osm_agent *from, *to;
	uint64_t epoch, port_guid; /* the named party's */
};

struct vhca_osm_chain {
	size_t n;
	struct vhca_osm_step steps[VHCA_TICKETS_MAX];
};

/*
 * One after the other. What is at `above` or below is left out unverified; what is not valid, too:
 * the rest may lead without it. Errors: bad_ticket, ticket_not_valid, of the first one that was;
 * *ret has the others all the same.
 */
int vhca_osm_chain_read(const struct vhca_http_auth *auth, const struct vhca_osm_agents *agents,
			uint64_t vguid, uint64_t above, const struct vhca_osm_proof *proof,
			struct vhca_osm_chain *ret, struct vhca_error *err);
/*
 * The way from a node that had it at an epoch: each step is signed by whom the one before it has
 * named, and above it. Returns the last step, NULL = there is none from there; *ret_from is the
 * port of its signer, from_port if that is the first one.
 */
const struct vhca_osm_step *vhca_osm_chain_follow(const struct vhca_osm_chain *chain,
						  const char *node, uint64_t epoch,
						  uint64_t from_port, uint64_t *ret_from);

#endif
