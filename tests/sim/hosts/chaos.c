/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/hosts/chaos.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos_attacker.h"

static struct chaos *the_chaos; /* what is wrapped has no argument for it */

/* ---- chance ---- */

uint32_t chaos_random(struct chaos *c, uint32_t n)
{
	/* xorshift64*: the run must be the same with every C library */
	c->rng ^= c->rng >> 12;
	c->rng ^= c->rng << 25;
	c->rng ^= c->rng >> 27;
	return (uint32_t)((c->rng * 0x2545f4914f6cdd1du) >> 33) % n;
}

bool chaos_odd(struct chaos *c, unsigned int of_1000)
{
	return of_1000 && chaos_random(c, 1000) < of_1000;
}

int __wrap_vhca_uuid_random(struct vhca_uuid *ret);
int __wrap_vhca_uuid_random(struct vhca_uuid *ret)
{
	for (unsigned int i = 0; i < sizeof(ret->b); i++)
		ret->b[i] = (uint8_t)chaos_random(the_chaos, 256);
	return 0;
}

/* ---- what is told ---- */

void chaos_trace(const struct chaos *c, const char *fmt, ...)
{
	va_list ap;

	if (!c->trace)
		return;
	fprintf(stderr, "# %8llu ", (unsigned long long)vtime_now() - 1000000);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}

void chaos_broken(struct chaos *c, enum chaos_rule rule, const char *fmt, ...)
{
	va_list ap;

	if (c->broken)
		return;
	c->broken = true;
	c->rule = rule;
	va_start(ap, fmt);
	(void)vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	chaos_trace(c, "VIOLATION: %s", c->why);
}

static void digest(struct chaos *c, uint64_t what)
{
	c->stats.digest = (c->stats.digest ^ what) * UINT64_C(0x9e3779b97f4a7c15);
	c->stats.digest ^= c->stats.digest >> 32;
}

bool chaos_step(struct chaos_host *h, enum chaos_when when, const char *fmt, ...)
{
	char label[128] = "";
	va_list ap;

	if (h->dying)
		return false;
	if (h->chaos->trace || h->chaos->wants_labels) {
		va_start(ap, fmt);
		(void)vsnprintf(label, sizeof(label), fmt, ap);
		va_end(ap);
	}
	h->chaos->stats.steps++;
	digest(h->chaos, vtime_now() << 4 | h->n << 1 | (when == CHAOS_AFTER));
	digest(h->chaos, h->chaos->rng);
	chaos_trace(h->chaos, "host %u %s %s", h->n, when == CHAOS_BEFORE ? "begins" : "ended ",
		    label);
	if (h->chaos->on_step)
		h->chaos->on_step(h->chaos, h, when, label);
	return !h->dying;
}

unsigned int chaos_guest_of(const struct chaos *c, const struct vhca_uuid *domain)
{
	for (unsigned int g = 0; g < c->n_guests; g++)
		if (vhca_uuid_equal(&c->hosts[0].w.domains[g].info.uuid, domain))
			return g;
	abort();
}

/* ---- the journal ---- */

void chaos_path(const struct chaos_host *h, char ret[static 96])
{
	(void)snprintf(ret, 96, "%s/state.db", h->w.dir);
}

static enum vtime_owner owner_of(const struct chaos_host *h)
{
	return VTIME_AGENT_OF(h->n);
}

/* A loop is nothing but the name of its host. */
static enum vtime_owner owner_of_loop(const struct vhca_loop *loop)
{
	return owner_of((const struct chaos_host *)loop);
}

struct chaos *chaos_of_loop(const struct vhca_loop *loop)
{
	return ((const struct chaos_host *)loop)->chaos;
}

int __wrap_vhca_loop_new(struct vhca_loop **ret);
int __wrap_vhca_loop_new(struct vhca_loop **ret)
{
	/* The host that is being started is the one without. */
	for (unsigned int i = 0; i < the_chaos->n_hosts; i++) {
		if (&the_chaos->hosts[i].w.loop != ret)
			continue;
		*ret = (struct vhca_loop *)&the_chaos->hosts[i];
		return 0;
	}
	return -EINVAL;
}

struct vhca_loop *__wrap_vhca_loop_free(struct vhca_loop *loop);
struct vhca_loop *__wrap_vhca_loop_free(struct vhca_loop *loop)
{
	(void)loop;
	return NULL;
}

static void on_told(void *arg)
{
	struct chaos_commit *cm = arg;

	TAILQ_REMOVE(&cm->host->commits, cm, link);
	if (cm->mem.done)
		cm->mem.done(cm->mem.arg, cm->rc);
	free(cm);
}

static void make_durable(struct chaos_commit *cm)
{
	if (chaos_loses(cm->host->chaos, cm->mem.label))
		memstore_drop(&cm->mem);
	else
		cm->rc = memstore_apply(&cm->mem);
	chaos_check_commit(cm->host->chaos, cm->host, cm->mem.label);
}

static void on_commit(void *arg)
{
	struct chaos_commit *cm = arg;
	struct chaos_host *h = cm->host;
	uint64_t at = vtime_now() + chaos_random(h->chaos, 3);

	if (!chaos_step(h, CHAOS_BEFORE, "journal %s", cm->mem.label))
		return;
	make_durable(cm);
	if (!chaos_step(h, CHAOS_AFTER, "journal %s", cm->mem.label))
		return;
	h->sm_answer_ms = at > h->sm_answer_ms ? at : h->sm_answer_ms;
	vtime_after(owner_of(h), h->sm_answer_ms - vtime_now(), on_told, cm, NULL);
}

static void submit(struct vhca_store *store, const struct memstore_commit *mem)
{
	struct chaos_host *h = (struct chaos_host *)memstore_loop(store);
	struct chaos_commit *cm = calloc(1, sizeof(*cm));

	assert(cm);
	*cm = (struct chaos_commit){.host = h, .mem = *mem};
	TAILQ_INSERT_TAIL(&h->commits, cm, link);
	/* The same delay for all: they become durable in their order. */
	vtime_after(owner_of(h), 2, on_commit, cm, NULL);
}

/*
 * What was on its way to the disk when the agent was killed: the first few of them got there,
 * perhaps none.
 */
static void drop_commits(struct chaos_host *h)
{
	bool lucky = h->chaos->odds.late && chaos_random(h->chaos, 2);
	struct chaos_commit *cm;

	while ((cm = TAILQ_FIRST(&h->commits))) {
		lucky = lucky && chaos_random(h->chaos, 3);
		if (cm->mem.txn && lucky)
			make_durable(cm);
		if (cm->mem.txn)
			memstore_drop(&cm->mem);
		TAILQ_REMOVE(&h->commits, cm, link);
		free(cm);
	}
}

/* ---- the world's hooks ---- */

static struct chaos_host *host_of(const struct world *w)
{
	return w->pair;
}

static void journaled(const struct world *w, struct vhca_bdf bdf, char ret[static 32])
{
	char path[96];

	chaos_path(host_of(w), path);
	memstore_ask(path, "SELECT state FROM vfs WHERE bdf = ?1", VHCA_BDF_STR(bdf), ret, 32);
}

static bool is_libvirts(enum vhca_effect effect)
{
	return vhca_effect_room(effect) == VHCA_EFFECT_AT_LIBVIRT;
}

static bool is_step(enum vhca_effect effect)
{
	return effect != VHCA_EFFECT_READ && effect != VHCA_EFFECT_PROBE;
}

/* libvirt plugs nothing into a domain that it is migrating away, and nothing out. */
static bool is_copied(const struct chaos_host *h, const struct vhca_vf *vf)
{
	const struct chaos_job *job;

	if (!vf->claim || vhca_claim_is_port(vf->claim))
		return false;
	job = &h->chaos->guests[chaos_guest_of(h->chaos, &vf->claim->domain)].job;
	return job->active && job->from == h->n;
}

static enum world_fault interfere(struct world *w, const struct vhca_vf *vf,
				  enum vhca_effect effect)
{
	struct chaos_host *h = host_of(w);

	w->sm_deaf = h->chaos->sm_down;
	if (is_step(effect) && !chaos_step(h, CHAOS_BEFORE, "VF %s", vhca_effect_to_string(effect)))
		return WORLD_CRASH_BEFORE;
	if (is_libvirts(effect) && w->virt_down)
		return WORLD_AWAY;
	if (is_libvirts(effect) && is_copied(h, vf))
		return WORLD_HELD;
	return chaos_odd(h->chaos, h->chaos->odds.effect_fails) ? WORLD_FAIL : WORLD_NOTHING;
}

static void happened(struct world *w, unsigned int v, enum vhca_effect effect)
{
	struct chaos_host *h = host_of(w);

	chaos_check_effect(h->chaos, h, v, effect);
	if (is_step(effect))
		(void)chaos_step(h, CHAOS_AFTER, "VF %s", vhca_effect_to_string(effect));
}

static void later(struct world *w, void (*fn)(void *arg), void *arg)
{
	struct chaos_host *h = host_of(w);

	vtime_after(owner_of(h), chaos_random(h->chaos, 20), fn, arg, free);
}

static const struct world_hooks hooks = {journaled, interfere, later, chaos_twist, happened};

/* ---- lives ---- */

void chaos_net_serve(unsigned int host, const struct vhca_http_route *routes, void *ctx)
{
	the_chaos->hosts[host].routes = routes;
	the_chaos->hosts[host].routes_ctx = ctx;
}

static void members(void *ctx)
{
	struct chaos_host *h = ctx;

	vhca_engine_declare_members(h->w.engine);
}

static void must(int r, const struct vhca_error *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "# chaos: %s\n", err->msg);
	abort();
}

static void started(struct world *w)
{
	static const char *const urls[] = {"http://sm0", "http://sm1"};
	struct chaos_host *h = host_of(w);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_http_multi *http = (struct vhca_http_multi *)h;
	struct vhca_outbox_conf ob = {.ops = &vhca_sm_vhcasm,
				      .urls = urls,
				      .n_urls = h->chaos->standby ? 2 : 1,
				      .timeout_ms = w->conf.sm_timeout_ms,
				      .named_other = vhca_engine_sm_named_other,
				      .would_answer = vhca_engine_sm_would_answer,
				      .snapshot = vhca_engine_snapshot};
	struct vhca_migrations_args args = {
		.loop = w->loop,
		.store = w->store,
		.events = w->events,
		.engine = w->engine,
		.conf = &w->conf,
		.auth = h->chaos->credentials[h->n],
		.effects = {chaos_virt_effect, members, h},
		.alone_ms = h->chaos->alone_ms,
	};
	struct vhca_drain_args drain = {.loop = w->loop,
					.store = w->store,
					.events = w->events,
					.engine = w->engine,
					.conf = &w->conf};

	must(vhca_outbox_new(&ob, w->loop, w->store, http, vhca_engine_sm_answer, w->engine,
			     &h->outbox, &err),
	     &err);
	vhca_engine_set_outbox(w->engine, h->outbox);
	must(vhca_peer_new(w->loop, http, &w->conf, NULL, &h->peer), &err);
	must(vhca_migrations_new(&args, &h->ms, &err), &err);
	drain.migrations = h->ms;
	must(vhca_drain_new(&drain, &h->drain, &err), &err);
	must(vhca_peer_api_new(
		     w->loop, &w->conf,
		     &(struct vhca_peer_api_parts){.migrations = h->ms, .auth = (void *)h},
		     &h->peer_api, &err),
	     &err);
}

static void stopping(struct world *w)
{
	struct chaos_host *h = host_of(w);

	h->outbox = vhca_outbox_free(h->outbox);
	h->peer = vhca_peer_free(h->peer);
	h->drain = vhca_drain_free(h->drain);
	h->ms = vhca_migrations_free(h->ms);
	h->peer_api = vhca_peer_api_free(h->peer_api);
}

void chaos_start(struct chaos_host *h)
{
	if (h->w.engine || h->off)
		return;
	h->life++;
	h->sm_answer_ms = 0;
	h->w.events_lost = (h->life + h->n) % 3 ==
			   0; /* what an agent does must not hang on hearing of it first */
	chaos_trace(h->chaos, "host %u: agent starts", h->n);
	ledger_agent_starts(&h->chaos->ledger, h->n, vtime_now());
	world_start(&h->w);
}

static void kill_now(struct chaos_host *h)
{
	if (!h->w.engine)
		return;
	chaos_trace(h->chaos, "host %u: agent is killed", h->n);
	h->chaos->stats.kills++;
	h->dying = true; /* nothing leaves it any more */
	h->w.crashed = false;
	drop_commits(h);
	chaos_net_dead(h);
	vtime_drop(owner_of(h));
	world_kill(&h->w);
	vtime_drop(owner_of(h)); /* the answers to those who waited */
	h->dying = false;
}

void chaos_kill(struct chaos_host *h)
{
	if (h->w.engine)
		h->dying = true;
}

static void kill_the_dying(struct chaos *c)
{
	for (unsigned int i = 0; i < c->n_hosts; i++) {
		struct chaos_host *h = &c->hosts[i];

		if (h->dying || h->w.crashed)
			kill_now(h);
		if (h->failing)
			chaos_power_fails(h);
	}
}

void chaos_cut(struct chaos *c, unsigned int a, unsigned int b, bool cut)
{
	chaos_trace(c, "link %u-%u is %s", a, b, cut ? "cut" : "whole");
	c->cut[a][b] = c->cut[b][a] = cut;
}

static void init_host(struct chaos *c, unsigned int n, unsigned int n_vfs)
{
	struct chaos_host *h = &c->hosts[n];
	struct world *w = &h->w;
	char path[96];

	world_init(w);
	h->chaos = c;
	h->n = n;
	TAILQ_INIT(&h->commits);
	w->pair = h;
	w->hooks = &hooks;
	w->started = started;
	w->stopping = stopping;
	w->fenced = c->fenced;
	w->shows_too_early = c->breakage == CHAOS_PLUGS_EARLY;
	w->port_guid += n * 0x100;
	c->ledger.ports[n] = w->port_guid;
	w->n_vfs = n_vfs;
	w->plugs = n * 50;
	for (unsigned int v = 0; v < n_vfs; v++)
		w->vfs[v].guid = w->vfs[v].boot_guid += n * 0x100;
	w->conf.poll_ms = c->mlx5 ? 20000 : 5000; /* each look at mlx5 reads real files */
	w->conf.sm_timeout_ms = 5000;
	w->conf.pkey_timeout_ms = 20000;
	w->conf.detach_timeout_ms = 20000;
	w->conf.detach_retry_ms = 5000;
	w->conf.copy.timeout_ms = 120000; /* a slow copy mostly takes longer */
	(void)snprintf(w->conf.node_name, sizeof(w->conf.node_name), "host%u", n);
	(void)snprintf(w->conf.peer_listen, sizeof(w->conf.peer_listen), "host%u", n);
	w->conf.n_peers = c->n_hosts;
	for (unsigned int i = 0; i < c->n_hosts; i++) {
		(void)snprintf(w->conf.peers[i].name, sizeof(w->conf.peers[i].name), "host%u", i);
		(void)snprintf(w->conf.peers[i].certificate, sizeof(w->conf.peers[i].certificate),
			       "cert:host%u", i);
		(void)snprintf(w->conf.peers[i].agent, sizeof(w->conf.peers[i].agent),
			       "%s://host%u", c->authority ? "https" : "http", i);
	}
	if (c->authority)
		(void)vhca_strcpy(w->conf.tls_certificate, sizeof(w->conf.tls_certificate), "own");
	if (c->ports)
		w->conf.hcas[0].reserve[w->conf.hcas[0].n_reserve++] = w->vfs[n_vfs - 1].bdf;
	w->conf.lid_policy = c->lid_policy;
	w->no_vports = c->mlx5 &&
		       c->lid_policy == VHCA_LID_HOST; /* as agent/agent.c has it of our back end */
	if (c->mlx5)
		world_mlx5_init(w, &h->mlx5);
	chaos_path(h, path);
	memstore_create(path);
	chaos_start(h);
}

static void init_guest(struct chaos *c, unsigned int g)
{
	struct chaos_guest *guest = &c->guests[g];
	struct world *w;

	guest->at = g % c->n_hosts;
	w = &c->hosts[guest->at].w;
	for (unsigned int i = 0; i < c->n_hosts; i++)
		c->hosts[i].w.domains[g].info.uuid =
			(struct vhca_uuid){.b = {[0] = 0xd0, [15] = (uint8_t)g}};
	for (unsigned int k = 0; k < guest->n_vfs; k++) {
		struct chaos_vf *vf = &guest->vfs[k];

		vf->pkey = (g + k) % 2 ? 0x8002 : 0x8001;
		(void)snprintf(vf->name, sizeof(vf->name), "ib%u", k);
		if (k == 0)
			(void)world_domain_start(w, g, VHCA_PKEY_STR(vf->pkey));
		else
			world_ask(w, g, vf->name, VHCA_PKEY_STR(vf->pkey));
	}
}

static void learn_guest(struct chaos *c, unsigned int g)
{
	struct chaos_guest *guest = &c->guests[g];
	const struct world *w = &c->hosts[guest->at].w;

	for (unsigned int k = 0; k < guest->n_vfs; k++) {
		int v = world_vf_of(w, g, guest->vfs[k].name);

		assert(v >= 0);
		guest->vfs[k].guid = w->vfs[v].guid;
		guest->vfs[k].guest = w->vfs[v].guest;
		ledger_add(&c->ledger, guest->vfs[k].guid, g, guest->vfs[k].pkey, guest->at);
	}
}

/*
 * So many that all guests may be at one host: running out of VFs is an honest refusal, but shows
 * nothing.
 */
static unsigned int count_vfs(struct chaos *c, unsigned int max)
{
	unsigned int n = 0;

	for (unsigned int g = 0; g < c->n_guests; g++) {
		/* Rather few. */
		c->guests[g].n_vfs = max > 1 ? 1 + chaos_random(c, 1 + chaos_random(c, max)) : 1;
		n += c->guests[g].n_vfs;
	}
	return n > WORLD_VFS ? n : WORLD_VFS;
}

void chaos_init(struct chaos *c, uint64_t seed, const struct chaos_size *size)
{
	bool trace = c->trace;
	unsigned int n_vfs;

	memset(c, 0, sizeof(*c));
	the_chaos = c;
	c->trace = trace;
	c->fenced = true;
	c->breakage = size->breakage;
	c->standby = size->standby;
	c->mlx5 = size->mlx5;
	c->lid_policy = size->lid_policy;
	c->rng = seed * 2654435761u + 88172645463325252u;
	c->n_hosts = size->hosts;
	c->n_guests = size->guests;
	c->alone_ms = size->alone_ms;
	TAILQ_INIT(&c->calls);
	ledger_init(&c->ledger, c->n_hosts);
	vtime_reset(NULL, NULL);
	vtime_set_owners(owner_of_loop);
	memstore_use(submit);
	memstore_skip(NULL);
	for (unsigned int i = 0; i < CHAOS_SMS; i++)
		sim_sm_init(&c->sms[i], false);
	n_vfs = count_vfs(c, size->vfs);
	c->ports = size->ports && n_vfs < WORLD_VFS_MAX;
	n_vfs += c->ports;
	if (size->certificates)
		chaos_tickets_begin(c, size->certificates);
	for (unsigned int i = 0; i < c->n_hosts; i++)
		init_host(c, i, n_vfs);
	chaos_nodes_list(c);
	chaos_run(c, 2000);
	for (unsigned int g = 0; g < c->n_guests; g++)
		init_guest(c, g);
	chaos_run(c, 20000);
	for (unsigned int g = 0; g < c->n_guests; g++)
		learn_guest(c, g);
	chaos_look_after_guests(c);
}

void chaos_done(struct chaos *c)
{
	for (unsigned int i = 0; i < c->n_hosts; i++) {
		kill_now(&c->hosts[i]);
		if (c->mlx5)
			world_mlx5_done(&c->hosts[i].w);
		world_done(&c->hosts[i].w);
	}
	vtime_reset(NULL, NULL);
	memstore_remove_all();
	chaos_attacker_end(c);
	chaos_tickets_end(c);
	vhca_osm_agents_done(&c->agents);
	for (unsigned int i = 0; i < CHAOS_SMS; i++)
		sim_sm_done(&c->sms[i]);
}

void chaos_run(struct chaos *c, uint64_t ms)
{
	uint64_t until = vtime_now() + ms;

	kill_the_dying(c);
	while (!c->broken && vtime_run_one(until))
		kill_the_dying(c);
}

bool chaos_settle(struct chaos *c, uint64_t ms)
{
	uint64_t until = vtime_now() + ms;

	while (!c->broken && !chaos_at_rest(c)) {
		if (vtime_now() >= until)
			return false;
		chaos_run(c, 1000);
	}
	return !c->broken;
}
