/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/hosts/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/migration/handover.h"
#include "common/base/file.h"
#include "tests/sim/host/world_mlx5.h"
#include "tests/sim/libvirt/pair_copy.h"
#include "tests/sim/libvirt/sim_copy.h"

#define SETTLE_ROUNDS 20

void pair_must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# pair: %s\n", what);
	abort();
}

static unsigned int host_of(const struct pair *p, const struct world *w)
{
	return w == &p->w[0] ? 0 : 1;
}

/* ---- invariants over both hosts ---- */

/* The SM has taken the vGUID from b and given it to a. */
static bool evicted(const struct pair *p, unsigned int a, const struct world_vf *b)
{
	return p->fenced && pair_sm_outbids(&p->sm, b->guid, b->epoch, p->w[a].port_guid);
}

static void check(const struct pair *p)
{
	for (unsigned int a = 0; a < WORLD_VFS; a++) {
		for (unsigned int b = 0; b < WORLD_VFS; b++) {
			const struct world_vf *va = &p->w[0].vfs[a], *vb = &p->w[1].vfs[b];

			pair_must(va->guid == VHCA_GUID_ALL1 || va->guid != vb->guid ||
					  evicted(p, 0, vb) || evicted(p, 1, va),
				  "one vGUID is requested on both hosts");
		}
	}
}

static void programming(struct world *w, uint64_t guid, uint64_t epoch)
{
	struct pair *p = w->pair;
	const struct world *other = &p->w[1 - host_of(p, w)];

	pair_must(!p->fenced || !pair_sm_outbids(&p->sm, guid, epoch, other->port_guid),
		  "a host programs what the SM has given to the other one");
}

/* ---- effects of a migration ---- */

struct job {
	struct pair *p;
	unsigned int host;
	unsigned int deaths; /* of that host: whose life the question is from */
	struct vhca_mig *m;
	enum vhca_mig_effect effect;
	enum pair_fault fault;
	uint64_t due, called_us;
};

static void reply(struct job *job, const struct vhca_mig_result *res)
{
	if (job->fault == PAIR_KILL_AFTER)
		job->p->kill = (int)job->p->victim;
	/* A dead source hears nothing any more. */
	if (job->fault != PAIR_KILL_AFTER || job->p->victim != job->host)
		vhca_migrations_effect_done(job->m, job->effect, res);
	free(job);
}

static void on_peer(void *arg, const struct vhca_mig *m, const struct vhca_error *err)
{
	struct job *job = arg;
	struct vhca_mig_result res = {.rc = err ? -EIO : 0};
	struct vhca_claim *c = NULL;

	if (err)
		res.err = *err;
	else
		res.begun = vhca_migration_begun(m);
	while (!err && (c = vhca_migration_claim(m, c)))
		res.vfs[res.n_vfs++] = vhca_mig_vf_of(c);
	/*
	 * We were killed with our question open, and may live again; the peer answers all the same.
	 */
	if (job->p->kill == (int)job->host || job->deaths != job->p->deaths[job->host]) {
		free(job);
		return;
	}
	reply(job, &res);
}

static void later(struct job *job);

static void unreachable(struct job *job)
{
	struct vhca_mig_result res = {0};

	if (!job->due)
		job->due = vhca_now_ms() + job->p->silent_ms;
	if (vhca_now_ms() < job->due) {
		later(job);
		return;
	}
	res.rc =
		vhca_error_set(&res.err, VHCA_ERR_UNAVAILABLE, "unreachable", EHOSTUNREACH, "peer");
	reply(job, &res);
}

/* As agent/migration/peer.c has it. */
static void offer_lid(const struct job *job, const struct vhca_claim *c,
		      struct vhca_reservation *ret)
{
	struct vhca_error why = VHCA_ERROR_INIT;

	ret->lid_follows = vhca_migration_check_lid(job->m, c, &why) == 0;
	if (!ret->lid_follows && job->p->w[job->host].conf.lid_policy == VHCA_LID_FOLLOW)
		(void)snprintf(ret->lid_stays, sizeof(ret->lid_stays), "%s", why.msg);
}

static void offer(struct job *job, struct vhca_migrations *peer)
{
	const struct vhca_dom_info *guest = vhca_migration_guest(job->m);
	struct vhca_mig_offer *o = calloc(1, sizeof(*o));
	struct vhca_claim *c = NULL;

	pair_must(o != NULL, "out of memory");
	if (guest)
		o->memory = guest->memory;
	o->id = job->m->id;
	o->domain = job->m->domain;
	o->mode = job->m->mode;
	(void)snprintf(o->domain_name, sizeof(o->domain_name), "%s", job->m->domain_name);
	(void)snprintf(o->node, sizeof(o->node), "host%u", job->host);
	while ((c = vhca_migration_claim(job->m, c))) {
		struct vhca_reservation *r = &o->vfs[o->n_vfs++];

		r->req = (struct vhca_claim_request){
			.domain = c->domain, .origin = c->origin, .vf = {.numa = -1}};
		(void)snprintf(r->req.domain_name, sizeof(r->req.domain_name), "%s",
			       c->domain_name);
		(void)snprintf(r->req.vf.name, sizeof(r->req.vf.name), "%s", c->name);
		(void)snprintf(r->req.vf.fabric, sizeof(r->req.vf.fabric), "%s", c->fabric);
		r->identity = c->identity;
		r->epoch = c->epoch;
		r->migration = o->id;
		r->has_guest = c->has_guest;
		r->guest = c->guest;
		r->from_port_guid = job->p->w[job->host].port_guid;
		r->from_lid = job->p->w[job->host].lid;
		offer_lid(job, c, r);
	}
	vhca_migrations_offer(peer, o, on_peer, job);
	free(o);
}

static void ask_peer(struct job *job)
{
	struct vhca_migrations *peer = job->p->ms[1 - job->host];
	struct vhca_mig_handed handed[VHCA_MIGRATION_VFS_MAX];
	struct vhca_mig_result res = {0};
	const struct vhca_mig *there;
	struct vhca_claim *c = NULL;
	unsigned int n = 0;

	if (job->p->cut || !peer ||
	    (job->p->cut_handover && job->effect == VHCA_MIG_EFFECT_HANDOVER)) {
		unreachable(job);
	} else if (job->effect == VHCA_MIG_EFFECT_CLAIM) {
		offer(job, peer);
	} else if (job->effect == VHCA_MIG_EFFECT_HANDOVER) {
		while ((c = vhca_migration_claim(job->m, c)))
			handed[n++] = (struct vhca_mig_handed){.guid = c->identity.guid,
							       .epoch = c->epoch,
							       .proof = mig_proof_of(job->m, c)};
		vhca_migrations_handover(peer, &job->m->id, handed, n, on_peer, job);
		while (n-- > 0)
			json_object_put(handed[n].proof);
	} else if (job->effect == VHCA_MIG_EFFECT_ABORT) {
		vhca_migrations_end(peer, &job->m->id, on_peer, job);
	} else {
		there = vhca_migrations_find(peer, &job->m->id);
		res.attached = there && vhca_migration_attached(there);
		res.ended = there && there->state == VHCA_MIG_ENDED;
		res.waits = there && there->state == VHCA_MIG_RESERVED;
		res.begun = there && vhca_migration_begun(there);
		res.arrived = there &&
			      (there->state == VHCA_MIG_ATTACHING || there->state == VHCA_MIG_DONE);
		while (there && (c = vhca_migration_claim(there, c)))
			res.vfs[res.n_vfs++] = vhca_mig_vf_of(c);
		reply(job, &res);
	}
}

/* ---- libvirt ---- */

static void on_job(void *arg);

static void later(struct job *job)
{
	pair_must(vhca_loop_post(job->p->w[job->host].loop, on_job, job, free) == 0, "post");
}

static void end_copy(struct pair *p, unsigned int from)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (p->w[1 - from].domains[0].running)
		(void)pair_copy_end(p, from, &err);
	p->copying = p->copy_adrift = false;
}

static void copy(struct job *job)
{
	struct vhca_mig_result res = {0};

	if (!job->p->copying && job->due == 0) {
		res.rc = pair_copy_begin(job->p, job->host, &res.err);
		job->due = vhca_now_ms() + 30;
		job->called_us = vhca_now_us();
		if (res.rc < 0) {
			reply(job, &res);
			return;
		}
	}
	if (!job->p->copy_begins)
		pair_copy_comes(job->p, 1 - job->host);
	if ((vhca_now_ms() < job->due || job->p->copy_hangs || job->p->copy_begins) &&
	    !job->p->copy_cancelled) {
		later(job);
		return;
	}
	res.called_us = job->called_us;
	res.rc = pair_copy_end(job->p, job->host, &res.err);
	reply(job, &res);
}

static int no_start(struct pair *p, struct vhca_error *err)
{
	if (p->keeps_start)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "libvirt", EIO,
				      "autostart: no space");
	p->autostart = false;
	return 0;
}

static void run(struct job *job)
{
	struct vhca_mig_result res = {0};
	struct pair *p = job->p;

	if (job->effect == VHCA_MIG_EFFECT_COPY) {
		copy(job);
		return;
	}
	if (job->effect == VHCA_MIG_EFFECT_MARK || job->effect == VHCA_MIG_EFFECT_UNMARK)
		sim_copy_mark(&p->w[job->host], 0,
			      job->effect == VHCA_MIG_EFFECT_MARK ? &job->m->id : NULL);
	if (job->effect == VHCA_MIG_EFFECT_CANCEL) {
		p->copy_cancelled = p->copying;
		if (p->copy_adrift)
			end_copy(p, job->host);
	}
	if (job->effect == VHCA_MIG_EFFECT_CHECK && p->copy_refused)
		res.rc = pair_copy_refused(&res.err);
	res.dirty_is_known = p->dirty_is_known;
	res.dirty_mib = p->dirty_mib;
	if (job->effect == VHCA_MIG_EFFECT_NO_START)
		res.rc = no_start(p, &res.err);
	res.active = p->w[job->host].domains[0].running;
	res.copying = p->copying;
	res.held = p->held;
	reply(job, &res);
}

static void on_job(void *arg)
{
	struct job *job = arg;
	struct vhca_mig_result res = {0};

	if (job->fault == PAIR_KILL_BEFORE) {
		job->p->kill = (int)job->p->victim;
		if (job->p->victim == job->host) {
			free(job);
			return;
		}
		/* Only the other one dies: the question meets a dead peer. */
		job->fault = PAIR_NOTHING;
		later(job);
	} else if (job->fault == PAIR_FAIL) {
		job->fault = PAIR_NOTHING;
		res.rc = vhca_error_set(&res.err, VHCA_ERR_DEVICE, "injected", EIO,
					"injected failure");
		reply(job, &res);
	} else if (vhca_mig_effect_asks_peer(job->effect)) {
		ask_peer(job);
	} else {
		run(job);
	}
}

static void start_effect(void *ctx, struct vhca_mig *m, enum vhca_mig_effect effect)
{
	struct world *w = ctx;
	struct pair *p = w->pair;
	struct job *job = calloc(1, sizeof(*job));

	pair_must(job != NULL, "out of memory");
	*job = (struct job){.p = p, .host = host_of(p, w), .m = m, .effect = effect};
	job->deaths = p->deaths[job->host];
	/* Asking how it goes is repeated at will: only what changes something counts. */
	if (effect != VHCA_MIG_EFFECT_STATUS && effect != VHCA_MIG_EFFECT_JOB &&
	    ++p->effects == p->fault_at)
		job->fault = p->fault;
	later(job);
}

static void members(void *ctx)
{
	struct world *w = ctx;

	vhca_engine_declare_members(w->engine);
}

/* ---- life ---- */

static void started(struct world *w)
{
	struct pair *p = w->pair;
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_migrations_args args = {
		.loop = w->loop,
		.store = w->store,
		.events = w->events,
		.engine = w->engine,
		.conf = &w->conf,
		.effects = {start_effect, members, w},
		.abort_tries_ms = p->patience_ms,
		.retry_ms = 20,
		.renew_ms = 30,
		.status_ms = 20,
		.job_ms = 50,
		.alone_ms = p->alone_ms,
	};

	if (p->fenced)
		pair_sm_started(&p->sm, host_of(p, w), w);
	if (vhca_migrations_new(&args, &p->ms[host_of(p, w)], &err) < 0)
		pair_must(false, err.msg);
}

static void stopping(struct world *w)
{
	struct pair *p = w->pair;
	unsigned int host = host_of(p, w);
	struct vhca_migrations *ms = p->ms[host];

	/*
	 * What libvirt was doing for the killed agent goes on without it: a copy ends at once here,
	 * for brevity.
	 */
	if (p->copying && !p->copy_hangs && w->domains[0].running && !w->domains[0].incoming)
		end_copy(p, host);
	p->copy_adrift =
		p->copy_adrift || (p->copying && w->domains[0].running && !w->domains[0].incoming);
	p->ms[host] = NULL;
	p->deaths[host]++;
	vhca_migrations_free(ms);
	if (p->fenced)
		pair_sm_stopping(&p->sm, host);
}

static bool home_0(const struct pair *p, const void *arg)
{
	(void)arg;
	return pair_at_home(p, 0);
}

static void init(struct pair *p, bool fenced, struct world_mlx5 *mlx5,
		 enum vhca_conf_lid_policy policy)
{
	memset(p, 0, sizeof(*p));
	p->kill = -1;
	p->patience_ms = 100;
	p->wait_ms = 1;
	p->fenced = fenced;
	pair_sm_init(&p->sm);
	for (unsigned int h = 0; h < 2; h++) {
		struct world *w = &p->w[h];

		world_init(w);
		w->pair = p;
		w->started = started;
		w->stopping = stopping;
		w->programming = programming;
		w->fenced = fenced;
		w->port_guid += h * 0x100;
		for (unsigned int v = 0; v < WORLD_VFS; v++)
			w->vfs[v].guid += h * 0x100;
		if (mlx5)
			world_mlx5_init(w, &mlx5[h]);
		w->sm_accepts = mlx5 && !fenced;
		w->conf.lid_policy = policy;
		w->lid = (uint16_t)(PAIR_LID + h);
		w->conf.lease_ms = 600000; /* no test waits for it that does not say so */
		w->conf.external_lease_ms = 60000;
		w->conf.n_peers = 1;
		(void)snprintf(w->conf.peers[0].name, sizeof(w->conf.peers[0].name), "other");
		world_start(w);
	}
	(void)world_domain_start(&p->w[0], 0, "0x8001");
	pair_must(pair_until(p, home_0, NULL), "the guest did not get its VF");
}

void pair_init(struct pair *p)
{
	init(p, false, NULL, VHCA_LID_HOST);
}

void pair_init_mlx5(struct pair *p, struct world_mlx5 *mlx5)
{
	init(p, false, mlx5, VHCA_LID_HOST);
}

void pair_init_fenced(struct pair *p)
{
	init(p, true, NULL, VHCA_LID_HOST);
}

void pair_init_dynamic(struct pair *p, struct world_mlx5 *mlx5)
{
	init(p, true, mlx5, VHCA_LID_DYNAMIC);
}

void pair_init_follow(struct pair *p)
{
	init(p, true, NULL, VHCA_LID_FOLLOW);
}

void pair_done(struct pair *p)
{
	for (unsigned int h = 0; h < 2; h++)
		if (p->w[h].mlx5)
			world_mlx5_done(&p->w[h]);
	world_done(&p->w[0]);
	world_done(&p->w[1]);
	pair_sm_done(&p->sm);
}

void pair_silence(struct pair *p, unsigned int host)
{
	world_kill(&p->w[host]);
}

void pair_revive(struct pair *p, unsigned int host)
{
	world_start(&p->w[host]);
}

/* One report of host h reaches the SM. What arbitration asks for counts as an effect of its own. */
static void round_of_sm(struct pair *p, unsigned int h)
{
	bool hit = false;

	if (p->sm_down || p->unheard[h]) {
		pair_sm_delay(&p->sm, h);
		return;
	}
	if (!pair_sm_next(&p->sm, h))
		return;
	if (pair_state(p, h) == VHCA_MIG_ARBITRATING)
		hit = ++p->effects == p->fault_at;
	if (hit && p->fault == PAIR_KILL_AFTER)
		pair_sm_lose(&p->sm, h);
	else if (hit && p->fault == PAIR_FAIL)
		pair_sm_delay(&p->sm, h);
	else if (!hit)
		pair_sm_take(&p->sm, h);
	if (hit && p->fault != PAIR_FAIL)
		p->kill = (int)p->victim;
}

static void round_of_both(struct pair *p)
{
	for (unsigned int h = 0; h < 2; h++) {
		if (!p->w[h].engine)
			continue;
		world_round(&p->w[h], p->wait_ms);
		if (p->fenced)
			round_of_sm(p, h);
		check(p);
		if (p->kill >= 0 && p->w[p->kill].engine) {
			world_kill(&p->w[p->kill]);
			world_start(&p->w[p->kill]);
		}
		p->kill = -1;
	}
}

static void explain(const struct pair *p)
{
	for (unsigned int h = 0; h < 2; h++) {
		const struct vhca_mig *m;
		const struct vhca_claim *c;

		if (!p->ms[h])
			continue;
		m = vhca_migrations_first(p->ms[h]);
		for (; m; m = TAILQ_NEXT(m, link))
			fprintf(stderr, "# host %u: %s %s effect %d handed %d cancel %d: %s\n", h,
				m->source ? "source" : "destination",
				vhca_mig_state_to_string(m->state), (int)m->effect,
				vhca_migration_promised(m), (int)m->cancel, m->reason);
		TAILQ_FOREACH (c, &vhca_engine_model(p->w[h].engine)->claims, link)
			fprintf(stderr,
				"# host %u: claim %s on %s %s epoch %llu migrating %d custody %s "
				"ending %d: %s\n",
				h, c->name, VHCA_BDF_STR(c->vf->bdf),
				vhca_vf_state_to_string(c->vf->state), (unsigned long long)c->epoch,
				c->migrating, vhca_custody_to_string(c->custody),
				vhca_claim_is_ending(c), c->vf->reason);
		fprintf(stderr, "# host %u: domain %s, ib0 on VF %d\n", h,
			p->w[h].domains[0].running ? "runs" : "does not run",
			world_vf_of(&p->w[h], 0, "ib0"));
	}
}

bool pair_until(struct pair *p, bool (*cond)(const struct pair *p, const void *arg),
		const void *arg)
{
	uint64_t deadline = vhca_now_ms() + 60000; /* a busy machine */

	while (!cond(p, arg)) {
		if (vhca_now_ms() > deadline) {
			explain(p);
			return false;
		}
		round_of_both(p);
	}
	return true;
}

void pair_settle(struct pair *p)
{
	uint64_t deadline = vhca_now_ms() + 60;

	/* A busy machine gives us few rounds in that time. */
	for (unsigned int n = 0; n < SETTLE_ROUNDS || vhca_now_ms() < deadline; n++)
		round_of_both(p);
}

struct vhca_uuid pair_request(struct pair *p, unsigned int from, enum vhca_mig_mode mode)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	const struct vhca_mig *m = NULL;
	struct vhca_mig_request req = {
		.domain = p->w[from].domains[0].info.uuid, .peer = "other", .mode = mode};

	if (vhca_migrations_request(p->ms[from], &req, &m, &err) < 0)
		pair_must(false, err.msg);
	return m->id;
}

struct vhca_uuid pair_migrate(struct pair *p, unsigned int from)
{
	return pair_request(p, from, VHCA_MIG_MODE_MANAGED);
}

enum vhca_mig_state pair_state(const struct pair *p, unsigned int host)
{
	enum vhca_mig_state state = VHCA_MIG_STATE_COUNT;

	for (const struct vhca_mig *m = vhca_migrations_first(p->ms[host]); m;
	     m = TAILQ_NEXT(m, link))
		state = m->state;
	return state;
}

bool pair_told(const struct pair *p, unsigned int host, const char *text)
{
	return world_told(&p->w[host], text);
}

static bool host_empty_but(const struct world *w, int v)
{
	const struct vhca_hca *hca;
	const struct vhca_vf *vf;
	int i = 0;

	if (!w->engine)
		return false;
	hca = TAILQ_FIRST(&vhca_engine_model(w->engine)->hcas);
	TAILQ_FOREACH (vf, &hca->vfs, link) {
		if (i++ == v)
			continue;
		if (vf->state != VHCA_VF_FREE || vf->claim || vf->committing ||
		    !world_clean(w, (unsigned int)(i - 1)))
			return false;
	}
	return true;
}

bool pair_at_home(const struct pair *p, unsigned int host)
{
	const struct world *w = &p->w[host], *other = &p->w[1 - host];
	const struct vhca_claim *c;
	int v = world_vf_of(w, 0, "ib0");

	if (!w->domains[0].running || other->domains[0].running || v < 0 || !w->engine)
		return false;
	c = vhca_model_claim_of(vhca_engine_model(w->engine), &w->domains[0].info.uuid, "ib0");
	return c && c->vf->state == VHCA_VF_ATTACHED && !c->migrating && !c->vf->committing &&
	       w->vfs[v].guid == c->identity.guid && host_empty_but(w, v) &&
	       host_empty_but(other, -1) && !w->domains[0].info.has_away;
}
