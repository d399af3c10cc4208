/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hosts that lose their power, and the operators who look after the guests that were on them: some
 * vouch for a guest that they start elsewhere (docs/design/0008-takeover.md), some start it there
 * and do not, some wait for the host. None vouches for what is not so.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "tests/sim/host/memstore.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"

#define POLL_MS	 900
#define BOOT_MS	 5000 /* libvirtd comes after the agent */
#define VOUCH_MS 20000

enum plan { TAKES_OVER, TAKES_OVER_LATER, STARTS_ELSEWHERE, WAITS };

/* Of an operator, for a guest. */
struct duty {
	struct chaos *c;
	unsigned int guest, lost; /* which time */
	unsigned int host;	  /* that was lost */
	enum plan plan;
};

/* ---- operators ---- */

/* Where it was, a migration of it is open yet (0006: what is not played). */
static bool is_leaving(const struct chaos *c, unsigned int g)
{
	const struct chaos_host *h = &c->hosts[c->guests[g].at];

	return chaos_leaves(h, &h->w.domains[g].info.uuid);
}

/* The SM has one of its VFs elsewhere, and no migration is open where it runs. */
static bool is_held_elsewhere(struct chaos *c, unsigned int g)
{
	const struct chaos_guest *guest = &c->guests[g];
	const struct chaos_host *h = &c->hosts[guest->at];

	if (guest->job.active || is_leaving(c, g))
		return false;
	for (unsigned int k = 0; k < guest->n_vfs; k++) {
		const struct vhca_osm_binding *sm =
			sim_sm_find(chaos_master(c), guest->vfs[k].guid);

		if (sm && !sm->withdrawn && sm->port_guid != h->w.port_guid)
			return true;
	}
	return false;
}

/* Its migration asks a host that has no power, and nobody has told the agent so. */
static bool waits_for_peer(const struct chaos *c, unsigned int g)
{
	const struct chaos_guest *guest = &c->guests[g];
	const struct chaos_host *h = &c->hosts[guest->at];
	char path[96], buf[16];

	chaos_path(h, path);
	memstore_ask(path,
		     "SELECT count(*) FROM migrations WHERE domain = ?1 AND state = 'finishing'",
		     VHCA_UUID_STR(&h->w.domains[g].info.uuid), buf, sizeof(buf));
	return buf[0] != '0' && guest->bare_since > 0 && !guest->job.active;
}

static bool vouches(struct chaos *c, unsigned int g, unsigned int at)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct chaos_host *h = &c->hosts[at];
	const struct vhca_uuid *uuid = &h->w.domains[g].info.uuid;

	if (!h->w.engine || h->dying ||
	    vhca_engine_takeover(h->w.engine, uuid, "it is off", &err) < 0)
		return false;
	chaos_trace(c, "guest %u: an operator vouches for it at host %u", g, at);
	ledger_vouch(&c->ledger, g);
	c->stats.takeovers++;
	return true;
}

/*
 * The guest runs. An agent that was killed has forgotten what an operator said, and has to hear it
 * again.
 */
static bool looks_again(const struct duty *d)
{
	bool held = is_held_elsewhere(d->c, d->guest) || waits_for_peer(d->c, d->guest);

	if (d->plan > TAKES_OVER_LATER)
		return false;
	if (held)
		(void)vouches(d->c, d->guest, d->c->guests[d->guest].at);
	return held || d->c->guests[d->guest].bare_since > 0;
}

static void starts(const struct duty *d)
{
	unsigned int at = d->plan == WAITS ? d->host : chaos_random(d->c, d->c->n_hosts);

	if (d->c->hosts[at].off || d->c->guests[d->guest].held ||
	    (d->plan == WAITS ? is_leaving(d->c, d->guest) : at == d->host))
		return;
	if (d->plan != TAKES_OVER || vouches(d->c, d->guest, at))
		(void)chaos_virt_start(d->c, d->guest, at);
}

static void on_turn(void *arg)
{
	struct duty *d = arg;
	const struct chaos_guest *guest = &d->c->guests[d->guest];
	bool goes_on = guest->lost == d->lost;
	uint64_t ms = guest->down ? POLL_MS : VOUCH_MS;

	if (goes_on && guest->down)
		starts(d);
	else if (goes_on)
		goes_on = looks_again(d);
	if (goes_on)
		vtime_after(VTIME_WORLD, ms, on_turn, d, free);
	else
		free(d);
}

static void look_after(struct chaos_host *h, unsigned int g)
{
	static const enum plan plans[] = {TAKES_OVER,	    TAKES_OVER, TAKES_OVER_LATER,
					  STARTS_ELSEWHERE, WAITS,	WAITS};
	struct duty *d = malloc(sizeof(*d));

	assert(d);
	*d = (struct duty){.c = h->chaos,
			   .guest = g,
			   .lost = h->chaos->guests[g].lost,
			   .host = h->n,
			   .plan = plans[chaos_random(h->chaos, VHCA_ARRAY_SIZE(plans))]};
	if (d->plan == STARTS_ELSEWHERE) /* it gets its VFs there when this host lets them go */
		chaos_trouble(h->chaos, h->off_ms);
	vtime_after(VTIME_WORLD, 100 + chaos_random(h->chaos, 20000), on_turn, d, free);
}

/* ---- power ---- */

static void on_libvirt(void *arg)
{
	chaos_virt(arg, true);
}

void chaos_power_on(struct chaos_host *h)
{
	uint64_t ms = chaos_random(h->chaos, BOOT_MS);

	if (!h->off)
		return;
	chaos_trace(h->chaos, "host %u: has power again", h->n);
	h->off = false;
	chaos_trouble(h->chaos, ms);
	chaos_start(h);
	vtime_after(VTIME_WORLD, ms, on_libvirt, h, NULL);
}

struct boot {
	struct chaos_host *h;
	unsigned int boots; /* tells it from one after another failure */
};

static void on_boot(void *arg)
{
	struct boot *b = arg;

	if (b->h->w.boots == b->boots)
		chaos_power_on(b->h);
	free(b);
}

void chaos_power_off(struct chaos_host *h, uint64_t ms)
{
	if (h->off || h->failing)
		return;
	h->failing = true;
	h->off_ms = ms;
	chaos_kill(h);
}

static void lose_guests(struct chaos_host *h)
{
	for (unsigned int g = 0; g < h->chaos->n_guests; g++) {
		unsigned int lost = h->chaos->guests[g].lost;

		chaos_virt_lose(h, g);
		if (h->chaos->guests[g].lost != lost)
			look_after(h, g);
	}
}

void chaos_power_fails(struct chaos_host *h)
{
	char boot_id[VHCA_UUID_STRLEN];
	struct boot *b = malloc(sizeof(*b));

	assert(b);
	chaos_trace(h->chaos, "host %u: has no power for %llu ms", h->n,
		    (unsigned long long)h->off_ms);
	h->chaos->stats.power_offs++;
	h->failing = false;
	h->off = h->w.virt_down = true;
	vtime_stall(VTIME_AGENT_OF(h->n), 0);
	lose_guests(h);
	memcpy(boot_id, h->w.boot_id, sizeof(boot_id));
	world_reboot(&h->w);
	if (chaos_is(h->chaos, CHAOS_SAME_BOOT))
		memcpy(h->w.boot_id, boot_id, sizeof(boot_id));
	*b = (struct boot){h, h->w.boots};
	vtime_after(VTIME_WORLD, h->off_ms, on_boot, b, free);
}
