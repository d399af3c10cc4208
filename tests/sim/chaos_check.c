/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The invariants of the project (docs/design/0006-chaos.md has the list), from what hosts, guests, SM and journals show. Shares
 * nothing with the product but the words in which journals are written. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/sim/chaos.h"

#define LATE_EFFECT_MS 1000

/* ---- one vGUID, one owner ---- */

/* The SM has given the vGUID to another port since; whether that one has it still, or has handed it on, is no matter here. */
static bool is_evicted(const struct chaos *c, const struct chaos_host *h, const struct world_vf *vf)
{
	const struct vhca_osm_binding *sm = chaos_sm_owner(c, vf->guid);

	return c->fenced && sm && sm->port_guid != h->w.port_guid && sm->epoch > vf->epoch;
}

static void check_pair(struct chaos *c, const struct chaos_host *a, const struct chaos_host *b,
		       const struct world_vf *va, const struct world_vf *vb)
{
	if (!is_evicted(c, a, va) && !is_evicted(c, b, vb))
		chaos_broken(c,
			     "3: vGUID 0x%llx is programmed at host %u (epoch %llu) and host %u "
			     "(epoch %llu)",
			     (unsigned long long)va->guid, a->n, (unsigned long long)va->epoch,
			     b->n, (unsigned long long)vb->epoch);
}

void chaos_check_vfs(struct chaos *c)
{
	for (unsigned int a = 0; a < c->n_hosts; a++) {
		for (unsigned int va = 0; va < c->hosts[a].w.n_vfs; va++) {
			const struct world_vf *vf = &c->hosts[a].w.vfs[va];

			if (vf->guid == VHCA_GUID_ALL1)
				continue;
			for (unsigned int b = a + 1; b < c->n_hosts; b++)
				for (unsigned int vb = 0; vb < c->hosts[b].w.n_vfs; vb++)
					if (c->hosts[b].w.vfs[vb].guid == vf->guid)
						check_pair(c, &c->hosts[a], &c->hosts[b], vf,
							   &c->hosts[b].w.vfs[vb]);
		}
	}
}

/* ---- never from under a guest ---- */

/* The journal of the host says that the guest is on its way out, or to be given back to. */
bool chaos_leaves(const struct chaos_host *h, const struct vhca_uuid *domain)
{
	char path[96], buf[16];

	chaos_path(h, path);
	memstore_ask(path,
		     "SELECT count(*) FROM migrations WHERE domain = ?1 AND state NOT IN "
		     "('done', 'failed', 'ended')",
		     VHCA_UUID_STR(domain), buf, sizeof(buf));
	return buf[0] != '0';
}

/* A guest that was started elsewhere while the SM was away, and has a vGUID that the SM gives to another host: by rights it loses the VF. */
static bool is_superseded(const struct chaos *c, const struct chaos_host *h,
			  const struct world_vf *vf)
{
	const struct vhca_osm_binding *sm = chaos_sm_owner(c, vf->guid);

	return sm && sm->port_guid != h->w.port_guid && sm->epoch >= vf->epoch;
}

/* ...or was here a moment ago: an effect that had been begun is not called back. */
static bool is_here(const struct chaos_host *h, unsigned int g)
{
	return h->w.domains[g].running || chaos_leaves(h, &h->w.domains[g].info.uuid) ||
	       vhca_now_ms() - h->w.domains[g].stopped_ms < LATE_EFFECT_MS;
}

/* A host has no reason to program for a guest that is neither here nor on its way: one that comes back from the dead must find that out. */
static void check_reason(struct chaos *c, const struct chaos_host *h, unsigned int v)
{
	for (unsigned int g = 0; g < c->n_guests; g++)
		for (unsigned int k = 0; k < c->guests[g].n_vfs; k++)
			if (c->guests[g].vfs[k].guid == h->w.vfs[v].guid && !is_here(h, g))
				chaos_broken(
					c, "3: host %u programs %s of guest %u, which is not here",
					h->n, c->guests[g].vfs[k].name, g);
}

/* No migration takes it: the SM has given the vGUID to another host. If it comes back, libvirt chooses where. */
static void check_taken(struct chaos *c, const struct chaos_host *h, unsigned int v)
{
	const struct world_vf *vf = &h->w.vfs[v];

	if (!is_superseded(c, h, vf))
		chaos_broken(c, "4: host %u: VF %u is pulled from under its guest", h->n, v);
	for (unsigned int g = 0; g < c->n_guests; g++)
		if (vhca_uuid_equal(&h->w.domains[g].info.uuid, &vf->user))
			c->guests[g].fresh = true;
}

void chaos_check_effect(struct chaos *c, const struct chaos_host *h, unsigned int v,
			enum vhca_effect effect)
{
	const struct world_vf *vf = &h->w.vfs[v];

	if ((effect == VHCA_EFFECT_DETACH || effect == VHCA_EFFECT_ASK) &&
	    !chaos_leaves(h, &vf->user))
		check_taken(c, h, v);
	if (effect == VHCA_EFFECT_STRIP && vf->group_open)
		chaos_broken(c, "4: host %u: VF %u is stripped under its guest", h->n, v);
	if (effect == VHCA_EFFECT_PROGRAM)
		check_reason(c, h, v);
	if (effect == VHCA_EFFECT_PROGRAM || effect == VHCA_EFFECT_ATTACH)
		chaos_check_vfs(c);
}

/* ---- nobody takes what nobody vouched for ---- */

static unsigned int guest_with(const struct chaos *c, uint64_t vguid)
{
	for (unsigned int g = 0; g < c->n_guests; g++)
		for (unsigned int k = 0; k < c->guests[g].n_vfs; k++)
			if (c->guests[g].vfs[k].guid == vguid)
				return g;
	return CHAOS_GUESTS_MAX; /* as guests are started first */
}

/* No migration that the host knows of has brought it. */
static bool has_never_moved(const struct chaos *c, uint64_t port_guid, unsigned int g)
{
	char path[96], buf[16] = "";

	for (unsigned int i = 0; i < c->n_hosts; i++) {
		if (c->hosts[i].w.port_guid != port_guid)
			continue;
		chaos_path(&c->hosts[i], path);
		memstore_ask(path, "SELECT count(*) FROM migrations WHERE domain = ?1",
			     VHCA_UUID_STR(&c->hosts[i].w.domains[g].info.uuid), buf, sizeof(buf));
	}
	return !strcmp(buf, "0");
}

void chaos_check_generation(struct chaos *c, const struct vhca_osm_binding *old,
			    const struct vhca_osm_binding *b)
{
	bool begins = b->epoch >> 32 > old->epoch >> 32;
	unsigned int g = guest_with(c, b->vguid);

	if (g == CHAOS_GUESTS_MAX)
		return;
	if (begins && !c->guests[g].vouched)
		chaos_broken(c, "3: vGUID 0x%llx is taken over, and nobody has vouched for it",
			     (unsigned long long)b->vguid);
	if (!begins && old->epoch && !old->withdrawn && old->port_guid != b->port_guid &&
	    has_never_moved(c, b->port_guid, g))
		chaos_broken(c, "3: vGUID 0x%llx is taken over, and no generation begins",
			     (unsigned long long)b->vguid);
}

/* ---- intent before effect ---- */

static bool is_shown(const struct world *w, uint64_t guid)
{
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		if (w->vfs[v].guid == guid)
			return true;
	return false;
}

/* What is handed over stands on no VF of the host any more. */
static void check_withdrawn(struct chaos *c, const struct chaos_host *h,
			    const struct vhca_uuid *domain)
{
	for (unsigned int g = 0; g < c->n_guests; g++)
		for (unsigned int i = 0; i < c->guests[g].n_vfs; i++)
			if (vhca_uuid_equal(&h->w.domains[g].info.uuid, domain) &&
			    is_shown(&h->w, c->guests[g].vfs[i].guid))
				chaos_broken(c,
					     "3: host %u hands over VF %u of guest %u, and still "
					     "shows its vGUID",
					     h->n, i, g);
}

void chaos_check_call(struct chaos *c, const struct chaos_host *h, const struct vhca_mig *m,
		      enum vhca_mig_effect effect)
{
	static const char *const want[] = {
		[VHCA_MIG_EFFECT_CLAIM] = "claiming",
		[VHCA_MIG_EFFECT_HANDOVER] = "handing_over ready copying finishing",
		[VHCA_MIG_EFFECT_STATUS] = "finishing copying",
		[VHCA_MIG_EFFECT_ABORT] = "aborting arbitrating",
		[VHCA_MIG_EFFECT_MARK] = "detaching",
		[VHCA_MIG_EFFECT_COPY] = "copying",
	};
	char path[96], state[32];

	if (effect == VHCA_MIG_EFFECT_HANDOVER)
		check_withdrawn(c, h, &m->domain);
	if (effect >= sizeof(want) / sizeof(want[0]) || !want[effect])
		return;
	chaos_path(h, path);
	memstore_ask(path, "SELECT state FROM migrations WHERE id = ?1", VHCA_UUID_STR(&m->id),
		     state, sizeof(state));
	if (!state[0] || !strstr(want[effect], state))
		chaos_broken(c, "5: host %u: an effect of state %s, and the journal says '%s'",
			     h->n, want[effect], state);
}

/* ---- nothing unscrubbed in the pool ---- */

static void check_freed(struct chaos *c, const struct chaos_host *h)
{
	char path[96], state[96], free_now[96];

	chaos_path(h, path);
	/* What the journal says of an earlier boot is not about these registers. */
	(void)snprintf(free_now, sizeof(free_now), "free %s", h->w.boot_id);
	for (unsigned int v = 0; v < h->w.n_vfs; v++) {
		memstore_ask(path, "SELECT state || ' ' || boot_id FROM vfs WHERE bdf = ?1",
			     VHCA_BDF_STR(h->w.vfs[v].bdf), state, sizeof(state));
		if (!strcmp(state, free_now) && !world_clean(&h->w, v))
			chaos_broken(c, "2: host %u: VF %u is free and was not scrubbed", h->n, v);
	}
}

/* ---- a failed migration leaves the guest as it was ---- */

static const char *what_is_wrong(const struct chaos_host *h, unsigned int g, unsigned int k)
{
	const struct chaos_vf *want = &h->chaos->guests[g].vfs[k];
	int v = world_vf_of(&h->w, g, want->name);

	if (v < 0)
		return "was not put back";
	if (h->w.vfs[v].guid != want->guid)
		return "has another vGUID";
	return vhca_bdf_cmp(h->w.vfs[v].guest, want->guest) != 0 ? "has another address" : NULL;
}

/* It was started elsewhere when its host had lost its power, and is just coming back. */
static bool comes_by_another(const struct chaos_host *h, const struct vhca_mig *failed)
{
	const struct vhca_mig *m;

	for (m = vhca_migrations_first(h->ms); m; m = TAILQ_NEXT(m, link))
		if (!m->source && !vhca_mig_state_is_final(m->state) &&
		    vhca_uuid_equal(&m->domain, &failed->domain))
			return true;
	return false;
}

/* The source says that all is as before. */
static void check_given_back(struct chaos *c, const struct chaos_host *h)
{
	const struct vhca_mig *m;
	const char *wrong;

	for (m = vhca_migrations_first(h->ms); m; m = TAILQ_NEXT(m, link)) {
		unsigned int g;

		if (!m->source || !m->committing || m->next != VHCA_MIG_FAILED || m->degraded)
			continue;
		g = chaos_guest_of(c, &m->domain);
		if (c->guests[g].at != h->n || c->guests[g].held || c->guests[g].fresh ||
		    !h->w.domains[g].running || comes_by_another(h, m))
			continue;
		for (unsigned int k = 0; k < c->guests[g].n_vfs; k++)
			if ((wrong = what_is_wrong(h, g, k)))
				chaos_broken(
					c, "8: guest %u: a migration failed at host %u, and %s %s",
					g, h->n, c->guests[g].vfs[k].name, wrong);
	}
}

void chaos_check_commit(struct chaos *c, const struct chaos_host *h, const char *label)
{
	if (!strcmp(label, "VF: free"))
		check_freed(c, h);
	else if (!strcmp(label, "source: failed"))
		check_given_back(c, h);
}

/* ---- when everything is back ---- */

static bool missing(struct chaos *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool missing(struct chaos *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	return false;
}

static bool host_rests(struct chaos *c, const struct chaos_host *h)
{
	const struct vhca_mig *m;

	if (!h->w.engine)
		return missing(c, "host %u: no agent", h->n);
	for (m = vhca_migrations_first(h->ms); m; m = TAILQ_NEXT(m, link))
		if (!vhca_mig_state_is_final(m->state))
			return missing(c, "host %u: a migration is %s: %s", h->n,
				       vhca_mig_state_to_string(m->state), m->reason);
	if (vhca_outbox_pending(h->outbox))
		return missing(c, "7: host %u: %zu reports in the outbox", h->n,
			       vhca_outbox_pending(h->outbox));
	return true;
}

/* The epoch that the host's journal has for a vGUID; 0 = none. */
static uint64_t epoch_of(const struct chaos_host *h, uint64_t guid)
{
	char path[96], text[32], epoch[32];

	chaos_path(h, path);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)guid);
	memstore_ask(path, "SELECT epoch FROM claims WHERE guid = CAST(?1 AS INTEGER)", text, epoch,
		     sizeof(epoch));
	return strtoull(epoch, NULL, 10);
}

/* The guest has its k-th VF where it runs, as it was in the beginning. */
static bool has_vf(struct chaos *c, unsigned int g, unsigned int k, bool used[WORLD_VFS_MAX])
{
	const struct chaos_guest *guest = &c->guests[g];
	const struct chaos_host *h = &c->hosts[guest->at];
	const struct chaos_vf *want = &guest->vfs[k];
	const struct vhca_osm_binding *sm = chaos_sm_owner(c, want->guid);
	int v = world_vf_of(&h->w, g, want->name);
	const struct world_vf *vf = &h->w.vfs[v < 0 ? 0 : v];
	uint64_t epoch;

	if (v < 0)
		return missing(c, "8: guest %u: has no %s at host %u", g, want->name, guest->at);
	used[v] = true;
	if (vf->guid != want->guid)
		return missing(c, "3: guest %u: its %s has vGUID 0x%llx", g, want->name,
			       (unsigned long long)vf->guid);
	if (!guest->fresh && vhca_bdf_cmp(vf->guest, want->guest) != 0)
		return missing(c, "8: guest %u: its %s has another address there", g, want->name);
	if (vf->map[0] < 0 || h->w.port_pkeys[vf->map[0]] != want->pkey)
		return missing(c, "1: guest %u: its %s has no P_Key", g, want->name);
	epoch = epoch_of(h, want->guid);
	return !c->fenced ||
	       (sm && !sm->withdrawn && sm->port_guid == h->w.port_guid && sm->epoch == epoch) ||
	       missing(c, "7: guest %u: the SM knows epoch %llu at 0x%llx, %s has %llu", g,
		       sm ? (unsigned long long)sm->epoch : 0,
		       sm ? (unsigned long long)sm->port_guid : 0, want->name,
		       (unsigned long long)epoch);
}

static bool guest_rests(struct chaos *c, unsigned int g, bool used[][WORLD_VFS_MAX])
{
	const struct chaos_guest *guest = &c->guests[g];

	for (unsigned int i = 0; i < c->n_hosts; i++)
		if (c->hosts[i].w.domains[g].running != (i == guest->at))
			return missing(c, "guest %u: is at host %u, and %s host %u", g, guest->at,
				       i == guest->at ? "not at" : "at", i);
	if (c->hosts[guest->at].w.domains[g].info.has_away)
		return missing(c, "guest %u: still has the marker of a migration", g);
	for (unsigned int k = 0; k < guest->n_vfs; k++)
		if (!has_vf(c, g, k, used[guest->at]))
			return false;
	return true;
}

static bool vf_rests(struct chaos *c, const struct chaos_host *h, unsigned int v, bool used)
{
	char path[96], state[32];

	chaos_path(h, path);
	memstore_ask(path, "SELECT state FROM vfs WHERE bdf = ?1", VHCA_BDF_STR(h->w.vfs[v].bdf),
		     state, sizeof(state));
	if (strcmp(state, used ? "attached" : "free") != 0)
		return missing(c, "host %u: VF %u is %s", h->n, v, state);
	if (!used && !world_clean(&h->w, v))
		return missing(c, "2: host %u: VF %u is not clean", h->n, v);
	if (!used && h->w.vfs[v].held)
		return missing(c, "3: host %u: the port holds the last GUID of VF %u", h->n, v);
	return true;
}

static bool claims_rest(struct chaos *c, const struct chaos_host *h)
{
	char path[96], claims[16], attached[16];

	chaos_path(h, path);
	memstore_ask(path, "SELECT count(*) FROM claims", NULL, claims, sizeof(claims));
	memstore_ask(path,
		     "SELECT count(*) FROM claims WHERE migration IS NULL AND leaving = 0 AND away "
		     "= 0 AND ending = 0 AND bdf IN (SELECT bdf FROM vfs WHERE state = 'attached')",
		     NULL, attached, sizeof(attached));
	return !strcmp(claims, attached) ||
	       missing(c, "host %u: %s claims, %s of them at rest in a guest", h->n, claims,
		       attached);
}

bool chaos_at_rest(struct chaos *c)
{
	bool used[CHAOS_HOSTS_MAX][WORLD_VFS_MAX] = {{false}};

	for (unsigned int i = 0; i < c->n_hosts; i++)
		if (!host_rests(c, &c->hosts[i]))
			return false;
	for (unsigned int g = 0; g < c->n_guests; g++)
		if (!guest_rests(c, g, used))
			return false;
	for (unsigned int i = 0; i < c->n_hosts; i++) {
		for (unsigned int v = 0; v < c->hosts[i].w.n_vfs; v++)
			if (!vf_rests(c, &c->hosts[i], v, used[i][v]))
				return false;
		if (!claims_rest(c, &c->hosts[i]))
			return false;
	}
	return true;
}
