/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orchestrators (docs/design/0007-external-drain.md): programs that have a guest prepared by its
 * agent, look every now and then whether it is, and then migrate it themselves. Some die on the
 * way. How long the guest of a dead one is without its VFs is checked here.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"

#define POLL_MS 700
#define LOOK_MS 1000
/*
 * After the lease: until an agent has looked at the job, the destination has withdrawn (or the SM
 * has decided), and the VFs are back, with messages and effects that fail now and then.
 */
#define MARGIN_MS 180000

struct turn {
	struct chaos *c;
	unsigned int guest, serial;
};

/* ---- what an orchestrator does ---- */

static void on_restore(void *arg)
{
	struct turn *t = arg;
	struct chaos *c = t->c;

	/*
	 * Elsewhere it would be another host's word against this one's, which the SM may hear
	 * later.
	 */
	(void)chaos_virt_start(c, t->guest, c->guests[t->guest].at);
	if (c->guests[t->guest].down)
		vtime_after(VTIME_WORLD, POLL_MS, on_restore, t, free);
	else
		free(t);
}

static void saves(struct chaos *c, unsigned int g)
{
	struct turn *t;

	if (!chaos_virt_stop(c, g))
		return;
	t = malloc(sizeof(*t));
	assert(t);
	*t = (struct turn){c, g, 0};
	vtime_after(VTIME_WORLD, 100 + chaos_random(c, 20000), on_restore, t, free);
}

static void migrates(struct chaos *c, unsigned int g)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (c->guests[g].at != c->guests[g].orch.from)
		chaos_trace(c, "guest %u: orchestrator: it is not there any more", g);
	else if (c->guests[g].orch.mode == VHCA_MIG_MODE_PARK)
		saves(c, g);
	else if (chaos_virt_migrate(c, g, c->guests[g].orch.to, &err) < 0)
		chaos_trace(c, "guest %u: orchestrator: libvirt: %s", g, err.msg);
	c->guests[g].orch.on = false;
}

static void cancels(struct chaos *c, unsigned int g)
{
	chaos_cancel(c, g);
	c->guests[g].orch.on = false;
}

/* Once; then it thinks again, and migrates. */
static void extends(struct chaos *c, unsigned int g)
{
	struct chaos_orch *o = &c->guests[g].orch;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_migrations_extend(c->hosts[o->from].ms, &o->id, 2 * o->lease_ms, &err) < 0) {
		chaos_trace(c, "guest %u: orchestrator: %s", g, err.msg);
		return;
	}
	chaos_trace(c, "guest %u: orchestrator extends the lease", g);
	o->lease_ms *= 2;
	o->lease_from = vtime_now();
	o->ready_ms = 0;
	o->plan = CHAOS_PLAN_MIGRATES;
}

static void (*const plans[CHAOS_PLANS])(struct chaos *c, unsigned int g) = {
	[CHAOS_PLAN_MIGRATES] = migrates, [CHAOS_PLAN_BLINDLY] = migrates,
	[CHAOS_PLAN_CANCELS] = cancels,	  [CHAOS_PLAN_EXTENDS] = extends,
	[CHAOS_PLAN_DIES] = NULL,
};

/*
 * It is its turn: the guest is ready, as the agent says, and it has thought for long enough. One
 * that does not look just waits.
 */
static bool is_time(struct chaos *c, struct chaos_orch *o)
{
	const struct chaos_host *h = &c->hosts[o->from];
	const struct vhca_mig *m;

	if (o->plan == CHAOS_PLAN_BLINDLY)
		return vtime_now() >= o->begun_ms + o->think_ms;
	if (!h->ms || h->dying)
		return false; /* asks again */
	m = vhca_migrations_find(h->ms, &o->id);
	if (!m || m->state > VHCA_MIG_PARKED) {
		o->on = false;
		return false;
	}
	if (m->state != VHCA_MIG_READY && m->state != VHCA_MIG_PARKED)
		return false;
	o->ready_ms = o->ready_ms ? o->ready_ms : vtime_now();
	return vtime_now() >= o->ready_ms + o->think_ms;
}

static void on_turn(void *arg)
{
	struct turn *t = arg;
	struct chaos_orch *o = &t->c->guests[t->guest].orch;

	if (o->on && o->serial == t->serial && is_time(t->c, o))
		plans[o->plan](t->c, t->guest);
	if (o->on && o->serial == t->serial)
		vtime_after(VTIME_WORLD, POLL_MS, on_turn, t, free);
	else
		free(t);
}

bool chaos_orchestrate(struct chaos *c, unsigned int g, const struct chaos_orch *orch)
{
	const struct vhca_mig_request req = {.mode = orch->mode, .lease_ms = orch->lease_ms};
	struct chaos_orch *o = &c->guests[g].orch;
	unsigned int serial = o->serial + 1;
	struct turn *t;

	if (!chaos_request(c, g, orch->to, &req, &o->id))
		return false;
	t = malloc(sizeof(*t));
	assert(t);
	*t = (struct turn){c, g, serial};
	*o = (struct chaos_orch){.on = orch->plan != CHAOS_PLAN_DIES,
				 .serial = serial,
				 .id = o->id,
				 .mode = orch->mode,
				 .plan = orch->plan,
				 .from = c->guests[g].at,
				 .to = orch->to,
				 .lease_ms = orch->lease_ms,
				 .think_ms = orch->think_ms,
				 .begun_ms = vtime_now(),
				 .lease_from = vtime_now()};
	vtime_after(VTIME_WORLD, POLL_MS, on_turn, t, free);
	return true;
}

/* ---- no guest is without its VFs for long ---- */

void chaos_trouble(struct chaos *c, uint64_t ms)
{
	if (vtime_now() + ms > c->trouble_until)
		c->trouble_until = vtime_now() + ms;
}

/* Runs, moves nowhere, and lacks a VF. */
static bool lacks_a_vf(const struct chaos *c, unsigned int g)
{
	const struct chaos_guest *guest = &c->guests[g];

	if (guest->job.active || guest->held || guest->down)
		return false;
	for (unsigned int k = 0; k < guest->n_vfs; k++)
		if (world_vf_of(&c->hosts[guest->at].w, g, guest->vfs[k].name) < 0)
			return true;
	return false;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void check_device(struct chaos *c, unsigned int g)
{
	struct chaos_guest *guest = &c->guests[g];
	uint64_t now = vtime_now(), since;

	if (!lacks_a_vf(c, g)) {
		guest->bare_since = 0;
		return;
	}
	guest->bare_since = guest->bare_since ? guest->bare_since : now;
	since = later(guest->orch.lease_from + guest->orch.lease_ms,
		      later(guest->bare_since, c->trouble_until));
	if (now > since + MARGIN_MS)
		chaos_broken(c, CHAOS_RULE_DEVICE,
			     "8: guest %u: without a VF for %llu s, all is well, and its lease was "
			     "%llu s",
			     g, (unsigned long long)(now - guest->bare_since) / 1000,
			     (unsigned long long)guest->orch.lease_ms / 1000);
}

/*
 * It runs here, moves nowhere, and its VF shows no identity, though its host can know that it may.
 */
static bool is_nameless(const struct chaos *c, unsigned int g, unsigned int k)
{
	const struct chaos_guest *guest = &c->guests[g];
	const struct world *w = &c->hosts[guest->at].w;
	int v = world_vf_of(w, g, guest->vfs[k].name);

	return !guest->job.active && !guest->held && !guest->down && v >= 0 &&
	       w->vfs[v].guid != guest->vfs[k].guid &&
	       ledger_may(&c->ledger, guest->vfs[k].guid, guest->at, vtime_now(), 0);
}

static void check_identity(struct chaos *c, unsigned int g, unsigned int k)
{
	uint64_t *since = &c->guests[g].nameless_since[k], now = vtime_now();

	if (!is_nameless(c, g, k)) {
		*since = 0;
		return;
	}
	*since = *since ? *since : now;
	if (now > later(*since, c->trouble_until) + MARGIN_MS)
		chaos_broken(c, CHAOS_RULE_WITHHELD,
			     "8: guest %u: %s is without its identity for %llu s, and nobody else "
			     "has it",
			     g, c->guests[g].vfs[k].name,
			     (unsigned long long)(now - *since) / 1000);
}

static void look_at(struct chaos *c, unsigned int g)
{
	check_device(c, g);
	for (unsigned int k = 0; k < c->guests[g].n_vfs; k++)
		check_identity(c, g, k);
}

void chaos_look_after_guests(void *arg)
{
	struct chaos *c = arg;

	for (unsigned int g = 0; g < c->n_guests; g++)
		look_at(c, g);
	vtime_after(VTIME_WORLD, LOOK_MS, chaos_look_after_guests, c, NULL);
}
