/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people and programs ask of the agents. */
#include <stdio.h>

#include "tests/sim/hosts/chaos.h"

#define PORT_GUID UINT64_C(0xfa163e0000000000) /* a MAC address */

/* Where fresh VFs are. All are in their guest: its agent has just said so. */
static void learn_addresses(struct chaos *c, unsigned int g)
{
	struct chaos_guest *guest = &c->guests[g];
	const struct world *w = &c->hosts[guest->at].w;

	for (unsigned int k = 0; guest->fresh && k < guest->n_vfs; k++) {
		int v = world_vf_of(w, g, guest->vfs[k].name);

		if (v < 0)
			return;
		guest->vfs[k].guest = w->vfs[v].guest;
	}
	guest->fresh = false;
}

bool chaos_request(struct chaos *c, unsigned int guest, unsigned int to,
		   const struct vhca_mig_request *req, struct vhca_uuid *ret_id)
{
	unsigned int from = c->guests[guest].at;
	struct chaos_host *h = &c->hosts[from];
	struct vhca_mig_request full = *req;
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;
	char peer[16];

	if (!h->ms || h->dying || (from == to && req->mode != VHCA_MIG_MODE_PARK))
		return false;
	(void)snprintf(peer, sizeof(peer), "host%u", to);
	full.domain = h->w.domains[guest].info.uuid;
	full.peer = peer;
	if (vhca_migrations_request(h->ms, &full, &m, &err) < 0) {
		chaos_trace(c, "guest %u: %s", guest, err.msg);
		return false;
	}
	chaos_trace(c, "guest %u: %s %u -> %u", guest, vhca_mig_mode_to_string(req->mode), from,
		    to);
	learn_addresses(c, guest);
	*ret_id = m->id;
	c->stats.started++;
	return true;
}

bool chaos_migrate(struct chaos *c, unsigned int guest, unsigned int to)
{
	const struct vhca_mig_request req = {.mode = VHCA_MIG_MODE_MANAGED};
	struct chaos_orch *o = &c->guests[guest].orch;

	if (!chaos_request(c, guest, to, &req, &o->id))
		return false;
	*o = (struct chaos_orch){.serial = o->serial +
					   1}; /* whoever it was has nothing to do any more */
	return true;
}

void chaos_cancel(struct chaos *c, unsigned int guest)
{
	struct chaos_host *h = &c->hosts[c->guests[guest].at];

	if (!h->ms || h->dying)
		return;
	for (const struct vhca_mig *m = vhca_migrations_first(h->ms); m; m = TAILQ_NEXT(m, link)) {
		if (!m->source || vhca_mig_state_is_final(m->state) ||
		    !vhca_uuid_equal(&m->domain, &h->w.domains[guest].info.uuid))
			continue;
		chaos_trace(c, "guest %u: cancel", guest);
		(void)vhca_migrations_cancel(h->ms, &m->id, NULL);
	}
}

bool chaos_drain(struct chaos_host *h, unsigned int peer)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	char name[16];
	const char *const peers[] = {name};

	if (!h->drain || h->dying)
		return false;
	(void)snprintf(name, sizeof(name), "host%u", peer);
	chaos_trace(h->chaos, "host %u: drained", h->n);
	return vhca_drain_begin(h->drain, peers, peer != h->n, &err) == 0;
}

bool chaos_undrain(struct chaos_host *h)
{
	if (!h->drain || h->dying)
		return false;
	chaos_trace(h->chaos, "host %u: no longer drained", h->n);
	vhca_drain_end(h->drain);
	return true;
}

static void on_reserved(void *arg, const struct vhca_claim *claim, const struct vhca_error *err)
{
	const struct chaos_host *h = arg;

	chaos_trace(h->chaos, "host %u: port: %s", h->n,
		    err	    ? err->msg
		    : claim ? "reserved"
			    : "is");
}

void chaos_reserve(struct chaos_host *h, uint32_t lease_s)
{
	struct vhca_claim_request req = {
		.origin = VHCA_ORIGIN_CLAIM,
		.domain_name = "never",
		.domain.b = {0xee, (uint8_t)h->n},
		.vf = {.numa = -1, .fabric = "default", .guid = PORT_GUID + h->n},
		.has_bdf = true,
		.bdf = h->w.vfs[h->w.n_vfs - 1].bdf,
		.no_partition = true,
		.lease_s = lease_s,
	};

	if (!h->w.engine || h->dying)
		return;
	chaos_trace(h->chaos, "host %u: a port for %u s", h->n, lease_s);
	vhca_port_name(req.vf.guid, req.vf.name);
	vhca_engine_claim_port(h->w.engine, &req, on_reserved, h);
}
