/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The invariants of the project (docs/design/0006-chaos.md has the list), from what hosts, guests,
 * SM and journals show. Shares nothing with the product but the words in which journals are
 * written.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/http/json.h"
#include "tests/sim/hosts/chaos.h"

#define LATE_EFFECT_MS 1000
/* Of a migration. Not with NOT IN, for which SQLite makes a table of its own at each question. */
#define IS_OPEN "state <> 'done' AND state <> 'failed' AND state <> 'ended'"

/* ---- one vGUID, one owner ---- */

static void check_pair(struct chaos *c, const struct chaos_host *a, const struct chaos_host *b,
		       const struct world_vf *va)
{
	if (c->fenced && (ledger_is_evicted(&c->ledger, va->guid, a->n) ||
			  ledger_is_evicted(&c->ledger, va->guid, b->n)))
		return;
	chaos_broken(c, CHAOS_RULE_ONE_OWNER,
		     "3: vGUID 0x%llx is programmed at host %u and host %u",
		     (unsigned long long)va->guid, a->n, b->n);
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
						check_pair(c, &c->hosts[a], &c->hosts[b], vf);
		}
	}
}

/* ---- never from under a guest ---- */

/* The journal of the host says that the guest is on its way out, or to be given back to. */
bool chaos_leaves(const struct chaos_host *h, const struct vhca_uuid *domain)
{
	char path[96], buf[16];

	chaos_path(h, path);
	memstore_ask(path, "SELECT count(*) FROM migrations WHERE domain = ?1 AND " IS_OPEN,
		     VHCA_UUID_STR(domain), buf, sizeof(buf));
	return buf[0] != '0';
}

/* Here or on its way, or was a moment ago: an effect that had been begun is not called back. */
static bool is_here(const struct chaos_host *h, unsigned int g)
{
	return h->w.domains[g].running || chaos_leaves(h, &h->w.domains[g].info.uuid) ||
	       vhca_now_ms() - h->w.domains[g].stopped_ms < LATE_EFFECT_MS;
}

/*
 * A host has no reason to program for a guest that is neither here nor on its way: one that comes
 * back from the dead must find that out.
 */
static void check_reason(struct chaos *c, const struct chaos_host *h, unsigned int v)
{
	const struct ledger_id *id = ledger_find(&c->ledger, h->w.vfs[v].guid);

	if (!id || id->guest == LEDGER_NOBODY)
		return;
	if (!is_here(h, id->guest))
		chaos_broken(c, CHAOS_RULE_HERE,
			     "3: host %u programs a vGUID of guest %u, which is not here", h->n,
			     id->guest);
	if (!ledger_may(&c->ledger, id->guid, h->n, vhca_now_ms(), LATE_EFFECT_MS))
		chaos_broken(c, CHAOS_RULE_PROOF,
			     "3: host %u programs vGUID 0x%llx of guest %u, and cannot know that "
			     "it may (given %llu, handed over %llu)",
			     h->n, (unsigned long long)id->guid, id->guest,
			     (unsigned long long)id->at[h->n].proof,
			     (unsigned long long)id->at[h->n].promised);
}

/*
 * No key but that of the vGUID that the VF shows; who is in the guest has it under the name that
 * asked for this key.
 */
static void check_keys(struct chaos *c, const struct chaos_host *h, unsigned int v)
{
	const struct world_vf *vf = &h->w.vfs[v];
	const struct ledger_id *id = ledger_find(&c->ledger, vf->guid);

	if (!id || id->guest == LEDGER_NOBODY)
		return;
	for (unsigned int k = 0; k < VHCA_VF_PKEYS_MAX; k++)
		if (vf->map[k] >= 0 && h->w.port_pkeys[vf->map[k]] != id->pkey)
			chaos_broken(c, CHAOS_RULE_KEYS,
				     "1: host %u: VF %u of guest %u shows P_Key 0x%04x", h->n, v,
				     id->guest, h->w.port_pkeys[vf->map[k]]);
}

/*
 * No migration takes it: the SM has told the host that another one has the vGUID. If it comes back,
 * libvirt chooses where.
 */
static void check_taken(struct chaos *c, const struct chaos_host *h, unsigned int v)
{
	const struct world_vf *vf = &h->w.vfs[v];
	const struct ledger_id *id = ledger_find(&c->ledger, vf->guid);

	if (!id || id->guest == LEDGER_NOBODY || id->at[h->n].may)
		chaos_broken(c, CHAOS_RULE_PULLED,
			     "4: host %u: VF %u is pulled from under its guest", h->n, v);
	for (unsigned int g = 0; g < c->n_guests; g++)
		if (vhca_uuid_equal(&h->w.domains[g].info.uuid, &vf->user))
			c->guests[g].fresh = true;
}

void chaos_check_effect(struct chaos *c, const struct chaos_host *h, unsigned int v,
			enum vhca_effect effect)
{
	const struct world_vf *vf = &h->w.vfs[v];

	if ((effect == VHCA_EFFECT_DETACH || effect == VHCA_EFFECT_ASK_GUEST_AGENT) &&
	    !chaos_leaves(h, &vf->user))
		check_taken(c, h, v);
	if (effect == VHCA_EFFECT_SCRUB_IN_GUEST && vf->group_open)
		chaos_broken(c, CHAOS_RULE_STRIPPED,
			     "4: host %u: VF %u is stripped under its guest", h->n, v);
	if (effect == VHCA_EFFECT_PROGRAM)
		check_reason(c, h, v);
	if (effect != VHCA_EFFECT_PROGRAM && effect != VHCA_EFFECT_ATTACH)
		return;
	check_keys(c, h, v);
	chaos_check_vfs(c);
}

/* ---- nobody takes what nobody vouched for ---- */

void chaos_check_sm(struct chaos *c, const struct ledger_message *m)
{
	static const struct {
		enum chaos_rule rule;
		const char *text;
	} verdicts[] = {
		[LEDGER_WRONGLY_ACCEPTED] = {CHAOS_RULE_FENCE, "the SM accepts what is over"},
		[LEDGER_WRONGLY_REFUSED] = {CHAOS_RULE_FENCE, "the SM refuses what is not over"},
		[LEDGER_UNVOUCHED] = {CHAOS_RULE_VOUCHED,
				      "it is taken over, and nobody has vouched for it"},
		[LEDGER_WRONG_KEY] = {CHAOS_RULE_KEYS, "it is told of another tenant's key"},
		[LEDGER_NO_GENERATION] = {CHAOS_RULE_GENERATION,
					  "it is taken over, and no generation begins"},
	};
	enum ledger_verdict verdict = ledger_sm_answers(&c->ledger, m);

	if (verdict != LEDGER_RIGHT)
		chaos_broken(c, verdicts[verdict].rule, "host %u: %s %s: %s", m->from, m->method,
			     m->path, verdicts[verdict].text);
}

/* ---- LIDs ---- */

/* It was started elsewhere when its host had lost its power, and is just coming back. */
static bool comes_by_another(const struct chaos_host *h, unsigned int g)
{
	char path[96], buf[16];

	chaos_path(h, path);
	memstore_ask(path,
		     "SELECT count(*) FROM migrations WHERE domain = ?1 AND role = 'destination' "
		     "AND " IS_OPEN,
		     VHCA_UUID_STR(&h->w.domains[g].info.uuid), buf, sizeof(buf));
	return buf[0] != '0';
}

static bool is_shown(const struct world *w, uint64_t guid)
{
	for (unsigned int v = 0; v < w->n_vfs; v++)
		if (w->vfs[v].guid == guid)
			return true;
	return false;
}

/* What waits in the outbox while the VF is cleared, or power fails, is sent all the same. */
static bool is_withdrawn_next(const struct world *w, uint64_t guid, uint64_t vport)
{
	return !is_shown(w, guid) &&
	       (w->boots > 1 || (vport <= w->n_vfs && w->vfs[vport - 1].last == guid));
}

/* Until a VF shows the GUID, a sweep would find it elsewhere. */
static void check_vport(struct chaos *c, const struct ledger_message *m)
{
	const struct world *w = &c->hosts[m->from].w;
	struct json_object *to = NULL;
	uint64_t guid = 0, vport = 0;

	if (!m->body || !json_object_object_get_ex(m->body, "to", &to) ||
	    vhca_json_opt_u64(to, "vport", UINT16_MAX, &vport, NULL) < 0 || !vport ||
	    vhca_json_get_guid(m->body, "vguid", &guid, NULL))
		return;
	if (is_withdrawn_next(w, guid, vport))
		return;
	if (vport > w->n_vfs || w->vfs[vport - 1].guid != guid)
		chaos_broken(c, CHAOS_RULE_VPORT,
			     "host %u names vport %u for 0x%llx, which it does not show", m->from,
			     (unsigned int)vport, (unsigned long long)guid);
}

/* A withdrawal of what the SM has elsewhere, or nowhere, gives up no LID. */
static bool has_lid_here(const struct chaos *c, const struct ledger_id *id, unsigned int host)
{
	const struct ledger_told *told = &id->sm[c->ledger.master];

	return told->bound && told->port == c->ledger.ports[host];
}

/* A claim that ends, because its VF could not be plugged in, say, is made anew with another LID. */
static bool is_claimed(const struct chaos_host *h, uint64_t guid)
{
	char path[96], text[24], buf[16];

	chaos_path(h, path);
	(void)snprintf(text, sizeof(text), "%lld", (long long)guid);
	memstore_ask(path,
		     "SELECT count(*) FROM claims WHERE guid = CAST(?1 AS INTEGER) AND NOT ending",
		     text, buf, sizeof(buf));
	return buf[0] != '0';
}

/* Who has a guest wants its LID again. */
static void check_kept(struct chaos *c, const struct ledger_message *m)
{
	uint64_t guid = ledger_withdrawn(m);
	const struct ledger_id *id = ledger_find(&c->ledger, guid);

	if (c->lid_policy != VHCA_LID_DYNAMIC || !id || id->guest == LEDGER_NOBODY ||
	    strstr(m->path, "&keep_lid=yes") || !has_lid_here(c, id, m->from))
		return;
	if (c->hosts[m->from].w.domains[id->guest].running &&
	    is_claimed(&c->hosts[m->from], guid) &&
	    chaos_leaves(&c->hosts[m->from], &c->hosts[m->from].w.domains[id->guest].info.uuid) &&
	    !comes_by_another(&c->hosts[m->from], id->guest))
		chaos_broken(c, CHAOS_RULE_KEPT,
			     "host %u gives up the LID of 0x%llx, whose guest "
			     "is here",
			     m->from, (unsigned long long)guid);
}

void chaos_check_report(struct chaos *c, const struct ledger_message *m)
{
	check_vport(c, m);
	check_kept(c, m);
}

/* ---- intent before effect ---- */

/* What is handed over stands on no VF of the host any more. */
void chaos_check_handed(struct chaos *c, const struct ledger_message *m)
{
	uint64_t guid;

	for (unsigned int n = 0; (guid = ledger_handed(m, n)); n++)
		if (is_shown(&c->hosts[m->from].w, guid))
			chaos_broken(c, CHAOS_RULE_HANDED,
				     "3: host %u hands over vGUID 0x%llx, and still shows it",
				     m->from, (unsigned long long)guid);
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
		[VHCA_MIG_EFFECT_CHECK] = "claiming",
		[VHCA_MIG_EFFECT_NO_START] = "finishing",
	};
	char path[96], state[32];

	if (effect >= sizeof(want) / sizeof(want[0]) || !want[effect])
		return;
	chaos_path(h, path);
	memstore_ask(path, "SELECT state FROM migrations WHERE id = ?1", VHCA_UUID_STR(&m->id),
		     state, sizeof(state));
	if (!state[0] || !strstr(want[effect], state))
		chaos_broken(c, CHAOS_RULE_MIG_INTENT,
			     "5: host %u: an effect of state %s, and the journal says '%s'", h->n,
			     want[effect], state);
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
			chaos_broken(c, CHAOS_RULE_CLEAN,
				     "2: host %u: VF %u is free and was not scrubbed", h->n, v);
	}
}

/* ---- a failed migration leaves the guest as it was ---- */

/*
 * Withheld is an identity as long as the host cannot know that it is the only owner; the device is
 * there all the same.
 */
static bool is_withheld(const struct chaos_host *h, const struct chaos_vf *want, uint64_t guid)
{
	const struct ledger *l = &h->chaos->ledger;

	return guid == VHCA_GUID_ALL1 && !ledger_may(l, want->guid, h->n, vhca_now_ms(), 0);
}

static void check_vf_back(struct chaos *c, const struct chaos_host *h, unsigned int g,
			  const struct chaos_vf *want)
{
	int v = world_vf_of(&h->w, g, want->name);
	const struct world_vf *vf = &h->w.vfs[v < 0 ? 0 : v];

	if (v < 0)
		chaos_broken(c, CHAOS_RULE_GIVEN_BACK,
			     "8: guest %u: a migration failed at host %u, and %s was not put back",
			     g, h->n, want->name);
	else if (vf->guid != want->guid && !is_withheld(h, want, vf->guid))
		chaos_broken(c, CHAOS_RULE_GIVEN_BACK,
			     "8: guest %u: a migration failed at host %u, and %s has no identity",
			     g, h->n, want->name);
	else if (!c->guests[g].fresh && vhca_bdf_cmp(vf->guest, want->guest) != 0)
		chaos_broken(
			c, CHAOS_RULE_ADDRESS,
			"8: guest %u: a migration failed at host %u, and %s has another address", g,
			h->n, want->name);
}

/* The migration whose row was written last. */
static bool last_of_source(const struct chaos_host *h, const char *id_of, char ret[static 64])
{
	char path[96];

	chaos_path(h, path);
	memstore_ask(path, id_of, NULL, ret, 64);
	return ret[0];
}

#define LAST_OF_SOURCE(column) \
	"SELECT " column " FROM migrations WHERE role = 'source' ORDER BY rowid DESC LIMIT 1"

static unsigned int last_guest_of_source(const struct chaos_host *h)
{
	struct vhca_uuid domain;
	char text[64];

	return last_of_source(h, LAST_OF_SOURCE("domain"), text) &&
			       vhca_uuid_parse(text, &domain) == 0
		       ? chaos_guest_of(h->chaos, &domain)
		       : CHAOS_GUESTS_MAX;
}

static const bool *had_when_it_began(const struct chaos *c, const struct chaos_host *h,
				     unsigned int g)
{
	char id[64];

	if (!last_of_source(h, LAST_OF_SOURCE("id"), id))
		return NULL;
	for (unsigned int i = 0; i < c->n_begun && i < CHAOS_BEGUN_MAX; i++)
		if (!strcmp(c->begun[i].id, id) && c->begun[i].starts == c->guests[g].starts)
			return c->begun[i].had;
	return NULL; /* lost since, and started anew: what runs here is another guest */
}

static void note_begun(struct chaos *c, const struct chaos_host *h)
{
	unsigned int g = last_guest_of_source(h), i = c->n_begun % CHAOS_BEGUN_MAX;
	char id[64];

	if (g == CHAOS_GUESTS_MAX || !last_of_source(h, LAST_OF_SOURCE("id"), id))
		return;
	if (had_when_it_began(c, h, g))
		return;
	(void)snprintf(c->begun[i].id, sizeof(c->begun[i].id), "%.36s", id);
	c->begun[i].starts = c->guests[g].starts;
	for (unsigned int k = 0; k < c->guests[g].n_vfs; k++)
		c->begun[i].had[k] = world_vf_of(&h->w, g, c->guests[g].vfs[k].name) >= 0;
	c->n_begun++;
}

/* The source says that all is as before. */
static void check_given_back(struct chaos *c, const struct chaos_host *h)
{
	unsigned int g = last_guest_of_source(h);
	const bool *had;

	if (g == CHAOS_GUESTS_MAX || c->guests[g].at != h->n || c->guests[g].held ||
	    !h->w.domains[g].running || comes_by_another(h, g))
		return;
	had = had_when_it_began(c, h, g);
	for (unsigned int k = 0; had && k < c->guests[g].n_vfs; k++)
		if (had[k])
			check_vf_back(c, h, g, &c->guests[g].vfs[k]);
}

void chaos_check_commit(struct chaos *c, const struct chaos_host *h, const char *label)
{
	if (!strcmp(label, "VF: free"))
		check_freed(c, h);
	else if (!strcmp(label, "source: claiming") || !strcmp(label, "source: detaching"))
		note_begun(c, h);
	else if (!strcmp(label, "source: failed"))
		check_given_back(c, h);
}

/* ---- when everything is back ---- */

static bool missing(struct chaos *c, enum chaos_rule rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool missing(struct chaos *c, enum chaos_rule rule, const char *fmt, ...)
{
	va_list ap;

	c->rule = rule;
	va_start(ap, fmt);
	(void)vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	return false;
}

static bool host_rests(struct chaos *c, const struct chaos_host *h)
{
	char path[96], text[96];

	if (!h->w.engine)
		return missing(c, CHAOS_RULE_ENDED, "host %u: no agent", h->n);
	if (!TAILQ_EMPTY(&h->commits))
		return missing(c, CHAOS_RULE_ENDED, "host %u: something is on its way to the disk",
			       h->n);
	chaos_path(h, path);
	memstore_ask(path, "SELECT state || ': ' || reason FROM migrations WHERE " IS_OPEN, NULL,
		     text, sizeof(text));
	if (text[0])
		return missing(c, CHAOS_RULE_ENDED, "host %u: a migration is %s", h->n, text);
	memstore_ask(path,
		     "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM outbox_members)",
		     NULL, text, sizeof(text));
	return !strcmp(text, "0") ||
	       missing(c, CHAOS_RULE_TOLD, "7: host %u: %s reports in the outbox", h->n, text);
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

/* A VF that is a port has the keys that the SM was told. */
static bool has_key(struct chaos *c, const struct chaos_host *h, const struct world_vf *vf,
		    const struct chaos_vf *want)
{
	const struct vhca_osm_binding *sm = sim_sm_find(chaos_master(c), want->guid);

	if (c->mlx5)
		return sm && sm->n_pkeys == 1 && sm->pkeys[0] == want->pkey;
	return vf->map[0] >= 0 && h->w.port_pkeys[vf->map[0]] == want->pkey;
}

/* The guest has its k-th VF where it runs, as it was in the beginning. */
static bool has_vf(struct chaos *c, unsigned int g, unsigned int k, bool used[WORLD_VFS_MAX])
{
	const struct chaos_guest *guest = &c->guests[g];
	const struct chaos_host *h = &c->hosts[guest->at];
	const struct chaos_vf *want = &guest->vfs[k];
	const struct vhca_osm_binding *sm = sim_sm_find(chaos_master(c), want->guid);
	const struct ledger_id *id = ledger_find(&c->ledger, want->guid);
	const struct ledger_told *told = &id->sm[c->sm_master];
	int v = world_vf_of(&h->w, g, want->name);
	const struct world_vf *vf = &h->w.vfs[v < 0 ? 0 : v];
	uint64_t epoch;

	if (v < 0)
		return missing(c, CHAOS_RULE_GUEST, "8: guest %u: has no %s at host %u", g,
			       want->name, guest->at);
	used[v] = true;
	if (vf->guid != want->guid)
		return missing(c, CHAOS_RULE_GUEST, "3: guest %u: its %s has vGUID 0x%llx", g,
			       want->name, (unsigned long long)vf->guid);
	if (!guest->fresh && vhca_bdf_cmp(vf->guest, want->guest) != 0)
		return missing(c, CHAOS_RULE_GUEST, "8: guest %u: its %s has another address there",
			       g, want->name);
	check_keys(c, h, (unsigned int)v);
	if (!has_key(c, h, vf, want))
		return missing(c, CHAOS_RULE_GUEST, "1: guest %u: its %s has no P_Key", g,
			       want->name);
	if (!chaos_lid_leads(c, want->guid, h->w.port_guid, (uint16_t)(v + 1)))
		return missing(c, CHAOS_RULE_LIDS, "guest %u: the LID of its %s leads elsewhere", g,
			       want->name);
	epoch = epoch_of(h, want->guid);
	return !c->fenced ||
	       (sm && !sm->withdrawn && sm->port_guid == h->w.port_guid && sm->epoch == epoch &&
		told->bound && told->port == sm->port_guid && told->epoch == epoch) ||
	       missing(c, CHAOS_RULE_SM,
		       "7: guest %u: the SM knows epoch %llu at 0x%llx, was told %llu at 0x%llx, "
		       "and %s has %llu",
		       g, sm ? (unsigned long long)sm->epoch : 0,
		       sm ? (unsigned long long)sm->port_guid : 0, (unsigned long long)told->epoch,
		       (unsigned long long)told->port, want->name, (unsigned long long)epoch);
}

static bool guest_rests(struct chaos *c, unsigned int g, bool used[][WORLD_VFS_MAX])
{
	const struct chaos_guest *guest = &c->guests[g];

	for (unsigned int i = 0; i < c->n_hosts; i++)
		if (c->hosts[i].w.domains[g].running != (i == guest->at))
			return missing(c, CHAOS_RULE_GUEST,
				       "guest %u: is at host %u, and %s host %u", g, guest->at,
				       i == guest->at ? "not at" : "at", i);
	if (c->hosts[guest->at].w.domains[g].info.has_away)
		return missing(c, CHAOS_RULE_GUEST, "guest %u: still has the marker of a migration",
			       g);
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
		return missing(c, CHAOS_RULE_POOL, "host %u: VF %u is %s", h->n, v, state);
	if (!used && !world_clean(&h->w, v))
		return missing(c, CHAOS_RULE_POOL, "2: host %u: VF %u is not clean", h->n, v);
	if (!used && h->w.vfs[v].held)
		return missing(c, CHAOS_RULE_POOL,
			       "3: host %u: the port holds the last GUID of VF %u", h->n, v);
	return true;
}

static bool claims_rest(struct chaos *c, const struct chaos_host *h)
{
	char path[96], claims[16], attached[16];

	chaos_path(h, path);
	memstore_ask(path, "SELECT count(*) FROM claims", NULL, claims, sizeof(claims));
	memstore_ask(path,
		     "SELECT count(*) FROM claims WHERE migration IS NULL AND custody = 'here' AND "
		     "ending = 0 AND bdf IN (SELECT bdf FROM vfs WHERE state = 'attached')",
		     NULL, attached, sizeof(attached));
	return !strcmp(claims, attached) ||
	       missing(c, CHAOS_RULE_CLAIMS, "host %u: %s claims, %s of them at rest in a guest",
		       h->n, claims, attached);
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
