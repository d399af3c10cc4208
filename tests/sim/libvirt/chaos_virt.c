/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt between the hosts: markers in live metadata, peer-to-peer migrations with the hook's
 * question at the destination, and how they end (what the rig measured stands in
 * docs/design/0002-migration.md). libvirt goes on with a copy when an agent dies.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"
#include "tests/sim/libvirt/sim_copy.h"
#include "tests/sim/libvirt/sim_domain.h"

#define HELD_MS \
	60000 /* until somebody looks after a guest of which libvirt does not know where it runs */

struct call {
	struct chaos_host *h;
	struct vhca_mig *m;
	enum vhca_mig_effect effect;
	struct vhca_mig_result res;
};

static const char *const names[] = {
	[VHCA_MIG_EFFECT_MARK] = "libvirt mark",
	[VHCA_MIG_EFFECT_UNMARK] = "libvirt unmark",
	[VHCA_MIG_EFFECT_COPY] = "libvirt migrate",
	[VHCA_MIG_EFFECT_CANCEL] = "libvirt abort job",
	[VHCA_MIG_EFFECT_JOB] = "libvirt job info",
	[VHCA_MIG_EFFECT_CHECK] = "libvirt check",
	[VHCA_MIG_EFFECT_NO_START] = "libvirt no start",
};

static enum vtime_owner owner_of(const struct chaos_host *h)
{
	return VTIME_AGENT_OF(h->n);
}

/* ---- answers ---- */

static void on_answer(void *arg)
{
	struct call *call = arg;

	if (chaos_step(call->h, CHAOS_AFTER, "%s", names[call->effect]))
		vhca_migrations_effect_done(call->m, call->effect, &call->res);
	free(call);
}

static void answer(struct call *call)
{
	vtime_after(owner_of(call->h), chaos_random(call->h->chaos, 6), on_answer, call, free);
}

/* ---- the copy ---- */

/* By value: the guest may be at its next migration when it comes. */
struct turn {
	struct chaos *c;
	unsigned int guest, serial;
};

static void after(struct chaos *c, unsigned int guest, uint64_t ms, void (*fn)(void *arg))
{
	struct turn *t = malloc(sizeof(*t));

	assert(t);
	*t = (struct turn){c, guest, c->guests[guest].job.serial};
	vtime_after(VTIME_WORLD, ms, fn, t, free);
}

static struct chaos_job *job_of(const struct turn *t)
{
	struct chaos_job *job = &t->c->guests[t->guest].job;

	return job->active && job->serial == t->serial ? job : NULL;
}

/* Whoever waits for the job hears of its end; a killed agent does not. */
static void tell(struct chaos *c, const struct chaos_job *job, const char *error)
{
	struct chaos_host *h = &c->hosts[job->from];
	struct call *call;

	if (!job->m || !h->w.engine || h->life != job->life)
		return;
	call = calloc(1, sizeof(*call));
	assert(call);
	*call = (struct call){.h = h, .m = job->m, .effect = VHCA_MIG_EFFECT_COPY};
	call->res.called_us = job->begun_us;
	if (h->w.virt_down)
		call->res.rc = sim_virt_lost(&call->res.err);
	else if (error)
		call->res.rc = sim_virt_failed(&call->res.err, error);
	answer(call);
}

static void fail_job(struct chaos *c, unsigned int g, const char *why)
{
	struct chaos_job *job = &c->guests[g].job;

	if (!job->active || c->guests[g].held)
		return;
	chaos_trace(c, "guest %u: copy failed: %s", g, why);
	job->active = false;
	if (c->hosts[job->to].w.domains[g].running)
		world_domain_stop(&c->hosts[job->to].w, g);
	tell(c, job, why);
}

/* The copy that is left behind goes. */
static void on_confirmed(void *arg)
{
	struct turn *t = arg;
	struct chaos_job *job = job_of(t);

	if (job) {
		struct chaos_host *from = &t->c->hosts[job->from];

		(void)chaos_step(from, CHAOS_BEFORE, "(the copy here goes)");
		t->c->guests[t->guest].held = false;
		job->active = false;
		world_domain_stop(&from->w, t->guest);
		tell(t->c, job, NULL);
		(void)chaos_step(from, CHAOS_AFTER, "(the copy here goes)");
	}
	free(t);
}

/* Nobody at the source knows that the guest has arrived. */
static void lose_confirm(struct chaos *c, unsigned int g)
{
	struct chaos_job *job = &c->guests[g].job;

	chaos_trace(c, "guest %u: confirm is lost", g);
	tell(c, job, "the migration's end is not known");
	job->life = 0;
	after(c, g, HELD_MS, on_confirmed);
}

static const char *why_not(struct chaos *c, const struct chaos_job *job)
{
	if (job->cancel)
		return "aborted by client";
	if (c->cut[job->from][job->to])
		return "connection lost";
	if (chaos_odd(c, c->odds.copy_fails))
		return "internal error";
	return NULL;
}

/*
 * The agent there has VFs for it, at the addresses that they had. If an orchestrator came too late
 * it has none any more, and asks for new ones.
 */
static bool is_expected(const struct chaos_host *to, const struct chaos_job *job, unsigned int g)
{
	const struct vhca_dom_info *info = &to->w.domains[g].info;
	char path[96], state[32];

	if (job->m)
		return true; /* a managed migration is never too late */
	chaos_path(to, path);
	memstore_ask(path, "SELECT state FROM migrations WHERE id = ?1", VHCA_UUID_STR(&info->away),
		     state, sizeof(state));
	return info->has_away && !strcmp(state, "incoming");
}

static void on_copied(void *arg)
{
	struct turn *t = arg;
	struct chaos *c = t->c;
	struct chaos_job *job = job_of(t);
	const char *why = job ? why_not(c, job) : NULL;

	if (job && why) {
		fail_job(c, t->guest, why);
	} else if (job) {
		struct chaos_host *to = &c->hosts[job->to];

		(void)chaos_step(to, CHAOS_BEFORE, "(the guest runs here)");
		c->guests[t->guest].fresh =
			c->guests[t->guest].fresh || !is_expected(to, job, t->guest);
		c->guests[t->guest].at = job->to;
		c->guests[t->guest].held = true;
		ledger_guest_arrives(&c->ledger, t->guest, job->to, vtime_now());
		c->hosts[job->from].w.domains[t->guest].incoming = true;
		world_look(&c->hosts[job->from].w, t->guest);
		world_incoming(&to->w, t->guest, false);
		if (chaos_odd(c, c->odds.confirm_lost))
			lose_confirm(c, t->guest);
		else
			after(c, t->guest, 1 + chaos_random(c, 30), on_confirmed);
		(void)chaos_step(to, CHAOS_AFTER, "(the guest runs here)");
	}
	free(t);
}

/* The destination's libvirtd has made the domain. */
static void on_appears(void *arg)
{
	struct turn *t = arg;
	struct chaos *c = t->c;
	struct chaos_job *job = job_of(t);
	uint64_t ms = chaos_odd(c, c->odds.slow_copy) ? 100000 + chaos_random(c, 200000)
						      : 100 + chaos_random(c, 3000);

	if (job) {
		struct chaos_host *to = &c->hosts[job->to];

		(void)chaos_step(to, CHAOS_BEFORE, "(the domain comes in)");
		sim_copy_comes(&c->hosts[job->from].w, &to->w, t->guest);
		after(c, t->guest, ms, on_copied);
		(void)chaos_step(to, CHAOS_AFTER, "(the domain comes in)");
	}
	free(t);
}

/* A guest without a marker is one that is started there, as far as the hook can see. */
static int ask_hook(const struct chaos_host *there, const struct vhca_dom_info *info,
		    struct vhca_error *err)
{
	struct vhca_hook_request req = {
		.op = "prepare", .has_uuid = true, .uuid = info->uuid, .has_request = true};

	struct vhca_migrations *ms = there->dying ? NULL : there->ms;

	if (info->has_away)
		return sim_copy_ask(ms, info, err);
	return ms ? vhca_engine_hook(there->w.engine, &req, err) : 0;
}

/* What libvirt asks before a copy: at the source, then at the destination. */
static int may_begin(struct chaos *c, unsigned int g, unsigned int from, unsigned int to,
		     struct vhca_error *err)
{
	const struct chaos_guest *guest = &c->guests[g];
	const struct world *w = &c->hosts[from].w;
	const struct chaos_host *there = &c->hosts[to];

	if (!w->domains[g].running || guest->at != from || guest->held)
		return sim_virt_gone(err);
	if (guest->job.active)
		return sim_virt_failed(err, "another job is active");
	if (world_has_vf(w, g))
		return sim_virt_failed(err, "cannot migrate a domain with a host device");
	if (c->cut[from][to] || there->w.virt_down)
		return sim_virt_failed(err, "cannot connect to the destination");
	if (there->w.domains[g].running)
		return sim_virt_failed(err, "the domain exists there");
	return ask_hook(there, &w->domains[g].info, err);
}

static int begin_job(struct chaos *c, unsigned int g, const struct chaos_job *job,
		     struct vhca_error *err)
{
	struct chaos_guest *guest = &c->guests[g];
	int r = may_begin(c, g, job->from, job->to, err);

	if (r < 0)
		return r;
	guest->job = *job;
	guest->job.active = true;
	guest->job.serial++;
	guest->job.cancel = c->next_copy_fails;
	c->next_copy_fails = false;
	chaos_trace(c, "guest %u: copy begins%s", g, job->m ? "" : " by its orchestrator");
	after(c, g, 10 + chaos_random(c, 40), on_appears);
	return 0;
}

/* An agent of ours begins none that would cost the guest its VFs. */
static void check_begin(struct chaos *c, unsigned int g, const struct vhca_mig *m,
			const struct chaos_host *h)
{
	const struct vhca_dom_info *info = &h->w.domains[g].info;

	if (!info->has_away || !vhca_uuid_equal(&info->away, &m->id))
		chaos_broken(c, CHAOS_RULE_MARKER,
			     "4: a copy of guest %u is begun without its marker", g);
	if (world_has_vf(&h->w, g))
		chaos_broken(c, CHAOS_RULE_COPY, "4: a copy of guest %u is begun with a VF in it",
			     g);
}

static int begin_copy(struct call *call)
{
	struct chaos_host *h = call->h;
	struct chaos *c = h->chaos;
	unsigned int g = chaos_guest_of(c, &call->m->domain);
	const struct chaos_guest *guest = &c->guests[g];
	const struct chaos_job job = {.serial = guest->job.serial,
				      .from = h->n,
				      .to = (unsigned int)call->m->peer[4] - '0',
				      .life = h->life,
				      .begun_us = vhca_now_us(),
				      .m = call->m};

	if (h->w.domains[g].running && guest->at == h->n && !guest->held && !guest->job.active)
		check_begin(c, g, call->m, h);
	return begin_job(c, g, &job, &call->res.err);
}

int chaos_virt_migrate(struct chaos *c, unsigned int g, unsigned int to, struct vhca_error *err)
{
	const struct chaos_guest *guest = &c->guests[g];
	const struct chaos_job job = {.serial = guest->job.serial, .from = guest->at, .to = to};

	if (guest->at == to || c->hosts[guest->at].w.virt_down)
		return sim_virt_lost(err);
	return begin_job(c, g, &job, err);
}

void chaos_virt_lose(struct chaos_host *h, unsigned int g)
{
	struct chaos *c = h->chaos;
	struct chaos_guest *guest = &c->guests[g];
	struct chaos_job *job = &guest->job;

	if (job->active && guest->held && job->from == h->n)
		guest->held = job->active = false; /* the copy here goes; the guest runs on */
	else if (job->active && (job->from == h->n || job->to == h->n))
		fail_job(c, g, "the host lost its power");
	if (guest->at != h->n || guest->down)
		return;
	chaos_trace(c, "guest %u is lost with its host", g);
	guest->down = true;
	guest->lost++;
	ledger_guest_goes(&c->ledger, g, vtime_now());
}

bool chaos_virt_stop(struct chaos *c, unsigned int g)
{
	struct chaos_guest *guest = &c->guests[g];
	struct world *w = &c->hosts[guest->at].w;

	if (w->virt_down || guest->down || guest->held || guest->job.active || world_has_vf(w, g))
		return false;
	chaos_trace(c, "guest %u is saved", g);
	guest->down = true;
	ledger_guest_goes(&c->ledger, g, vtime_now());
	world_domain_stop(w, g);
	return true;
}

bool chaos_virt_start(struct chaos *c, unsigned int g, unsigned int at)
{
	struct chaos_guest *guest = &c->guests[g];
	struct vhca_dom_info info = c->hosts[guest->at].w.domains[g].info;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct chaos_host *h = &c->hosts[at];

	info.has_away = false;
	if (h->w.virt_down || c->guests[g].held || h->w.domains[g].running ||
	    ask_hook(h, &info, &err) < 0)
		return false;
	chaos_trace(c, "guest %u starts at host %u", g, at);
	guest->at = at;
	guest->down = false;
	guest->fresh = true;
	guest->starts++;
	ledger_guest_starts(&c->ledger, g, at, vtime_now());
	h->w.domains[g].info = info;
	world_incoming(&h->w, g, false);
	return true;
}

/* ---- calls ---- */

static bool is_leaving(const struct chaos_host *h, unsigned int g)
{
	const struct chaos_job *job = &h->chaos->guests[g].job;

	return job->active && job->from == h->n;
}

static int mark(struct call *call, unsigned int g, bool on)
{
	struct world *w = &call->h->w;

	if (!w->domains[g].running)
		return sim_virt_gone(&call->res.err);
	if (is_leaving(call->h, g))
		return sim_virt_failed(&call->res.err, "cannot acquire state change lock");
	if (chaos_is(call->h->chaos, on ? CHAOS_NO_MARKER : CHAOS_KEEPS_MARKER))
		return 0;
	sim_copy_mark(w, g, on ? &call->m->id : NULL);
	if (on && chaos_is(call->h->chaos, CHAOS_EARLY_COPY) && begin_copy(call) == 0)
		call->res.err = (struct vhca_error)VHCA_ERROR_INIT;
	return 0;
}

static int perform(struct call *call)
{
	struct chaos *c = call->h->chaos;
	unsigned int g = chaos_guest_of(c, &call->m->domain);
	struct chaos_guest *guest = &c->guests[g];
	bool mine = is_leaving(call->h, g);

	if (call->effect == VHCA_MIG_EFFECT_MARK || call->effect == VHCA_MIG_EFFECT_UNMARK)
		return mark(call, g, call->effect == VHCA_MIG_EFFECT_MARK);
	if (call->effect == VHCA_MIG_EFFECT_CANCEL) {
		if (!mine || guest->held)
			return sim_virt_failed(&call->res.err, "no job is active");
		guest->job.cancel = true;
		fail_job(c, g, "aborted by client");
		return 0;
	}
	call->res.active = call->h->w.domains[g].running;
	call->res.held = mine && guest->held;
	call->res.copying = mine && !guest->held;
	return 0;
}

static void on_call(void *arg)
{
	struct call *call = arg;
	struct chaos_host *h = call->h;
	bool begun = false;

	if (!chaos_step(h, CHAOS_BEFORE, "%s", names[call->effect])) {
		free(call);
		return;
	}
	if (h->w.virt_down) {
		call->res.rc = sim_virt_lost(&call->res.err);
	} else if (call->effect == VHCA_MIG_EFFECT_COPY) {
		call->res.rc = begin_copy(call);
		begun = call->res.rc == 0;
	} else {
		call->res.rc = perform(call);
	}
	if (begun)
		free(call); /* its end is told by tell() */
	else
		answer(call);
}

void chaos_virt_effect(void *host, struct vhca_mig *m, enum vhca_mig_effect effect)
{
	struct chaos_host *h = host;
	struct call *call;

	chaos_check_call(h->chaos, h, m, effect);
	if (effect <= VHCA_MIG_EFFECT_ABORT) {
		vhca_peer_effect(h->peer, m, effect);
		return;
	}
	call = calloc(1, sizeof(*call));
	assert(call);
	*call = (struct call){.h = h, .m = m, .effect = effect};
	vtime_after(owner_of(h), 1 + chaos_random(h->chaos, 15), on_call, call, free);
}

/* ---- what happens to it ---- */

void chaos_virt(struct chaos_host *h, bool up)
{
	struct chaos *c = h->chaos;

	if (up != h->w.virt_down || (up && h->off))
		return;
	chaos_trace(c, "host %u: libvirtd is %s", h->n, up ? "up" : "down");
	h->w.virt_down = !up;
	if (up) {
		world_sync_domains(&h->w);
		return;
	}
	for (unsigned int g = 0; g < c->n_guests; g++)
		if (c->guests[g].job.active &&
		    (c->guests[g].job.from == h->n || c->guests[g].job.to == h->n))
			fail_job(c, g, "libvirtd went away");
	if (h->w.engine)
		vhca_engine_virt_lost(h->w.engine);
}

void chaos_kill_incoming(struct chaos *c, unsigned int guest)
{
	fail_job(c, guest, "the destination's QEMU died");
}
