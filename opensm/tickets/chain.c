/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/tickets/chain.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/codes.h"

static void not_valid(const struct vhca_ticket *ticket, const char *who, const char *why,
		      struct vhca_error *err)
{
	(void)vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_TICKET_NOT_VALID, 0,
			     "the ticket of %s at epoch %" PRIu64 " %s: %s",
			     VHCA_GUID_STR(ticket->vguid), ticket->epoch, why, who);

	vhca_error_hint(err, "each hypervisor has a line in [agents] of vhcasm.conf");
}

/* False: it counts for nothing, with an error unless its epoch is just over. */
static bool read_step(const struct vhca_http_auth *auth, const struct vhca_osm_agents *agents,
		      uint64_t vguid, uint64_t above, const char *text, struct vhca_osm_step *ret,
		      struct vhca_error *err)
{
	char signer[VHCA_CALLER_NAME_MAX];
	struct vhca_ticket ticket;

	if (vhca_ticket_parse(text, &ticket, err) < 0)
		return false;
	if (ticket.vguid != vguid)
		not_valid(&ticket, VHCA_GUID_STR(vguid), "is not of this virtual GUID", err);
	if (ticket.vguid != vguid || ticket.epoch <= above ||
	    vhca_ticket_verify(auth, &ticket, signer, err) < 0)
		return false;
	*ret = (struct vhca_osm_step){.from = vhca_osm_agents_find(agents, signer),
				      .to = vhca_osm_agents_find(agents, ticket.name),
				      .epoch = ticket.epoch,
				      .port_guid = ticket.port_guid};
	if (!ret->from)
		not_valid(&ticket, signer, "was signed by no node of [agents]", err);
	else if (!ret->to)
		not_valid(&ticket, ticket.name, "names no node of [agents]", err);
	return ret->from && ret->to;
}

int vhca_osm_chain_read(const struct vhca_http_auth *auth, const struct vhca_osm_agents *agents,
			uint64_t vguid, uint64_t above, const struct vhca_osm_proof *proof,
			struct vhca_osm_chain *ret, struct vhca_error *err)
{
	struct vhca_error first = VHCA_ERROR_INIT;

	*ret = (struct vhca_osm_chain){.n = 0};
	for (size_t i = 0; i < proof->n_tickets; i++) {
		struct vhca_error own = VHCA_ERROR_INIT;

		ret->n += read_step(auth, agents, vguid, above, proof->tickets[i],
				    &ret->steps[ret->n], &own);
		if (own.kind && !first.kind)
			first = own;
	}
	if (!first.kind)
		return 0;
	if (err)
		*err = first;
	return -EACCES;
}

const struct vhca_osm_step *vhca_osm_chain_follow(const struct vhca_osm_chain *chain,
						  const char *node, uint64_t epoch,
						  uint64_t from_port, uint64_t *ret_from)
{
	const struct vhca_osm_step *last = NULL;

	for (size_t i = 0; i < chain->n; i++) {
		const struct vhca_osm_step *step = &chain->steps[i];

		if (strcmp(step->from->node, node) != 0 || step->epoch <= epoch)
			continue;
		*ret_from = last ? last->port_guid : from_port;
		last = step;
		node = step->to->node;
		epoch = step->epoch;
	}
	return last;
}
