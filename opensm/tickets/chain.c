/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/tickets/chain.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/codes.h"

static int not_valid(const struct vhca_ticket *ticket, const char *who, const char *why,
		     struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_TICKET_NOT_VALID, 0,
			       "the ticket of %s at epoch %" PRIu64 " %s: %s",
			       VHCA_GUID_STR(ticket->vguid), ticket->epoch, why, who);

	vhca_error_hint(err, "each hypervisor has a line in [agents] of vhcasm.conf");
	return r;
}

static int read_step(const struct vhca_http_auth *auth, const struct vhca_osm_agents *agents,
		     uint64_t vguid, const char *text, struct vhca_osm_step *ret,
		     struct vhca_error *err)
{
	char signer[VHCA_CALLER_NAME_MAX];
	struct vhca_ticket ticket;
	int r = vhca_ticket_parse(text, &ticket, err);

	if (r == 0 && ticket.vguid != vguid)
		r = not_valid(&ticket, VHCA_GUID_STR(vguid), "is not of this virtual GUID", err);
	if (r == 0)
		r = vhca_ticket_verify(auth, &ticket, signer, err);
	if (r < 0)
		return r;
	*ret = (struct vhca_osm_step){.from = vhca_osm_agents_find(agents, signer),
				      .to = vhca_osm_agents_find(agents, ticket.name),
				      .epoch = ticket.epoch,
				      .port_guid = ticket.port_guid};
	if (!ret->from)
		return not_valid(&ticket, signer, "was signed by no node of [agents]", err);
	if (!ret->to)
		return not_valid(&ticket, ticket.name, "names no node of [agents]", err);
	return 0;
}

int vhca_osm_chain_read(const struct vhca_http_auth *auth, const struct vhca_osm_agents *agents,
			uint64_t vguid, const struct vhca_osm_proof *proof,
			struct vhca_osm_chain *ret, struct vhca_error *err)
{
	*ret = (struct vhca_osm_chain){.n = 0};
	for (size_t i = 0; i < proof->n_tickets; i++) {
		int r = read_step(auth, agents, vguid, proof->tickets[i], &ret->steps[ret->n], err);

		if (r < 0)
			return r;
		ret->n++;
	}
	return 0;
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
