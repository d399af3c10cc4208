/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine: states, waiters, requests. What each state does stands in migration_src.c and migration_dst.c. */
#include "agent/migration.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/migration_int.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"

static const char *const state_names[] = {
	[VHCA_MIG_CLAIMING] = "claiming",
	[VHCA_MIG_DETACHING] = "detaching",
	[VHCA_MIG_HANDING_OVER] = "handing_over",
	[VHCA_MIG_COPYING] = "copying",
	[VHCA_MIG_FINISHING] = "finishing",
	[VHCA_MIG_ABORTING] = "aborting",
	[VHCA_MIG_ARBITRATING] = "arbitrating",
	[VHCA_MIG_RESTORING] = "restoring",
	[VHCA_MIG_RESERVING] = "reserving",
	[VHCA_MIG_RESERVED] = "reserved",
	[VHCA_MIG_PROGRAMMING] = "programming",
	[VHCA_MIG_INCOMING] = "incoming",
	[VHCA_MIG_ATTACHING] = "attaching",
	[VHCA_MIG_ENDING] = "ending",
	[VHCA_MIG_DONE] = "done",
	[VHCA_MIG_FAILED] = "failed",
	[VHCA_MIG_ENDED] = "ended",
};
static_assert(VHCA_ARRAY_SIZE(state_names) == VHCA_MIG_STATE_COUNT, "every state has a name");

const char *vhca_mig_state_to_string(enum vhca_mig_state state)
{
	return state_names[state];
}

int vhca_mig_state_parse(const char *word, enum vhca_mig_state *ret)
{
	for (unsigned int i = 0; i < VHCA_MIG_STATE_COUNT; i++) {
		if (!strcmp(word, state_names[i])) {
			*ret = (enum vhca_mig_state)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool vhca_mig_state_is_final(enum vhca_mig_state state)
{
	return state >= VHCA_MIG_DONE;
}

/* ---- finding ---- */

static struct vhca_mig *find(const struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	struct vhca_mig *m;

	TAILQ_FOREACH (m, &ms->list, link)
		if (vhca_uuid_equal(&m->id, id))
			return m;
	return NULL;
}

const struct vhca_mig *vhca_migrations_find(struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	return find(ms, id);
}

const struct vhca_mig *vhca_migrations_first(struct vhca_migrations *ms)
{
	return TAILQ_FIRST(&ms->list);
}

static bool owns(const struct vhca_mig *m, const struct vhca_claim *c)
{
	return (c->migrating || (m->state == VHCA_MIG_DONE && !m->source)) &&
	       vhca_uuid_equal(&c->migration, &m->id);
}

struct vhca_claim *vhca_migration_claim(const struct vhca_mig *m, struct vhca_claim *after)
{
	struct vhca_claim *c =
		after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&m->owner->model->claims);

	while (c && !owns(m, c))
		c = TAILQ_NEXT(c, link);
	return c;
}

struct vhca_domain *mig_domain(const struct vhca_mig *m)
{
	return vhca_model_domain(m->owner->model, &m->domain);
}

bool vhca_migration_attached(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (m->state == VHCA_MIG_DONE)
		return true;
	if (m->state != VHCA_MIG_ATTACHING)
		return false;
	while ((c = vhca_migration_claim(m, c)))
		if (c->vf->state != VHCA_VF_ATTACHED)
			return false;
	return true;
}

/* ---- waiters ---- */

static int add_waiter(struct vhca_mig *m, enum vhca_mig_state until, vhca_mig_waiter_fn fn,
		      void *arg)
{
	struct vhca_mig_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct vhca_mig_waiter){.until = until, .fn = fn, .arg = arg};
	STAILQ_INSERT_TAIL(&m->waiters, w, link);
	return 0;
}

/* The states of a side that goes well are in ascending order; a state that ends otherwise fails who waited for less. */
static bool satisfied(const struct vhca_mig *m, const struct vhca_mig_waiter *w)
{
	if (w->until == VHCA_MIG_ENDED)
		return m->state == VHCA_MIG_ENDED;
	return m->state >= w->until && m->state != VHCA_MIG_ENDING && m->state != VHCA_MIG_ENDED &&
	       m->state != VHCA_MIG_FAILED;
}

static bool hopeless(const struct vhca_mig *m, const struct vhca_mig_waiter *w)
{
	if (w->until == VHCA_MIG_ENDED)
		return m->state == VHCA_MIG_ATTACHING || m->state == VHCA_MIG_DONE;
	return m->state == VHCA_MIG_ENDING || m->state == VHCA_MIG_ENDED;
}

static const struct vhca_error too_late = {
	.kind = VHCA_ERR_CONFLICT,
	.code = "too_late",
	.msg = "the domain has arrived",
};

static void tell_waiters(struct vhca_mig *m)
{
	STAILQ_HEAD(, vhca_mig_waiter) told = STAILQ_HEAD_INITIALIZER(told);
	struct vhca_mig_waiter *w, *next;

	for (w = STAILQ_FIRST(&m->waiters); w; w = next) {
		next = STAILQ_NEXT(w, link);
		if (!satisfied(m, w) && !hopeless(m, w))
			continue;
		STAILQ_REMOVE(&m->waiters, w, vhca_mig_waiter, link);
		STAILQ_INSERT_TAIL(&told, w, link);
	}
	while ((w = STAILQ_FIRST(&told))) {
		STAILQ_REMOVE_HEAD(&told, link);
		w->fn(w->arg, m,
		      !hopeless(m, w)		   ? NULL
		      : w->until == VHCA_MIG_ENDED ? &too_late
						   : &m->failure);
		free(w);
	}
}

struct answer {
	vhca_mig_waiter_fn fn;
	void *arg;
	struct vhca_error err;
};

static void on_answer(void *arg)
{
	VHCA_AUTO_FREE struct answer *a = arg;

	a->fn(a->arg, NULL, &a->err);
}

static void answer_later(struct vhca_migrations *ms, vhca_mig_waiter_fn fn, void *arg,
			 const struct vhca_error *err)
{
	struct answer *a = calloc(1, sizeof(*a));

	if (!a) {
		fn(arg, NULL, err);
		return;
	}
	*a = (struct answer){.fn = fn, .arg = arg, .err = *err};
	if (vhca_loop_post(ms->args.loop, on_answer, a, free) < 0)
		on_answer(a);
}

/* ---- stepping ---- */

static void step(struct vhca_mig *m)
{
	void (*const *steps)(struct vhca_mig * m) =
		m->source ? mig_source_steps : mig_destination_steps;

	if (m->committing || vhca_mig_state_is_final(m->state) || !steps[m->state])
		return;
	steps[m->state](m);
}

static void on_round(void *arg)
{
	struct vhca_migrations *ms = arg;
	struct vhca_mig *m;

	TAILQ_FOREACH (m, &ms->list, link)
		step(m);
}

static void on_timer(void *arg)
{
	tell_waiters(arg); /* who asks again for what is reached */
	step(arg);
}

void mig_again(struct vhca_mig *m, uint64_t ms)
{
	vhca_timer_arm_ms(m->timer, ms);
}

void mig_start(struct vhca_mig *m, enum vhca_mig_effect effect)
{
	uint64_t now = vhca_now_ms();

	if (m->effect != VHCA_MIG_EFFECT_NONE)
		return;
	if (now < m->not_before_ms) {
		mig_again(m, m->not_before_ms - now);
		return;
	}
	m->effect = effect;
	m->owner->args.effects.start(m->owner->args.effects.ctx, m, effect);
}

void mig_reason(struct vhca_mig *m, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(m->reason, sizeof(m->reason), fmt, ap);
	va_end(ap);
}

void mig_members(struct vhca_mig *m)
{
	m->owner->args.effects.members(m->owner->args.effects.ctx);
}

void mig_fail(struct vhca_mig *m, const struct vhca_error *err)
{
	if (!m->failure.kind)
		m->failure = *err;
	mig_reason(m, "%s", m->failure.msg);
}

void mig_fail_to(struct vhca_mig *m, enum vhca_mig_state to, enum vhca_err kind, const char *code,
		 const char *text)
{
	struct vhca_error err;

	vhca_error_set(&err, kind, code, 0, "%s", text);
	mig_fail(m, &err);
	mig_move(m, to);
}

void mig_retry(struct vhca_mig *m, const struct vhca_error *err)
{
	uint32_t ms = vhca_backoff_next(&m->backoff);

	mig_reason(m, "%s", err->msg);
	m->not_before_ms = vhca_now_ms() + ms;
	mig_again(m, ms);
}

static void entered(struct vhca_mig *m, enum vhca_mig_state from)
{
	uint64_t now = vhca_now_ms();

	m->step_ms[from] += (uint32_t)(now - m->entered_ms);
	m->entered_ms = now;
	m->updated_ms = vhca_wall_ms();
	m->not_before_ms = 0;
	m->answered = m->loaded = false;
	vhca_backoff_reset(&m->backoff);
	m->lease_until = now + m->owner->args.conf->lease_ms;
	vhca_events_add(m->owner->args.events, "migration", m->domain_name, "%s (%u ms) -> %s%s%s",
			state_names[from], m->step_ms[from], state_names[m->state],
			m->reason[0] ? ": " : "", m->reason);
}

static void on_commit(void *arg, int rc)
{
	struct vhca_mig *m = arg;
	enum vhca_mig_state from = m->state;

	m->committing = false;
	if (rc < 0) {
		vhca_log_error("%s: migration: state database: %s", m->domain_name, strerror(-rc));
		mig_again(m, MIG_RETRY_FIRST_MS);
		return;
	}
	(void)vhca_fault("migration.moved");
	m->state = m->next;
	entered(m, from);
	tell_waiters(m);
	mig_again(m, 0);
}

void mig_move(struct vhca_mig *m, enum vhca_mig_state to)
{
	struct vhca_txn *txn = vhca_txn_new(m->owner->args.store);

	m->committing = true;
	m->next = to;
	(void)vhca_fault("migration.move");
	mig_journal(txn, m, to);
	vhca_txn_commit(txn, on_commit, m);
}

void vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
				 const struct vhca_mig_result *res)
{
	if (effect != VHCA_MIG_EFFECT_CANCEL)
		m->effect = VHCA_MIG_EFFECT_NONE;
	if (!m->committing)
		mig_source_done(m, effect, res);
	if (effect == VHCA_MIG_EFFECT_CANCEL) {
		m->cancelling = false;
		mig_again(m, MIG_JOB_POLL_MS);
		return;
	}
	mig_again(m, m->not_before_ms > vhca_now_ms() ? m->not_before_ms - vhca_now_ms() : 0);
}

/* ---- life ---- */

struct vhca_mig *mig_new(struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	struct vhca_mig *m = calloc(1, sizeof(*m)), *old;

	if (!m || vhca_timer_new(ms->args.loop, "migration", on_timer, m, &m->timer) < 0) {
		free(m);
		return NULL;
	}
	m->owner = ms;
	m->id = *id;
	m->started_ms = m->updated_ms = vhca_wall_ms();
	m->entered_ms = vhca_now_ms();
	m->backoff =
		(struct vhca_backoff){.first_ms = ms->args.retry_ms, .cap_ms = MIG_RETRY_CAP_MS};
	STAILQ_INIT(&m->waiters);
	for (old = TAILQ_FIRST(&ms->list); old && ms->n > VHCA_MIGRATION_HISTORY_MAX;
	     old = TAILQ_FIRST(&ms->list)) {
		if (!vhca_mig_state_is_final(old->state) || old->effect != VHCA_MIG_EFFECT_NONE)
			break;
		mig_drop(old);
	}
	TAILQ_INSERT_TAIL(&ms->list, m, link);
	ms->n++;
	return m;
}

void mig_drop(struct vhca_mig *m)
{
	struct vhca_error err;
	struct vhca_mig_waiter *w;

	vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "shutting_down", 0,
		       "the agent is stopping; ask again");
	while ((w = STAILQ_FIRST(&m->waiters))) {
		STAILQ_REMOVE_HEAD(&m->waiters, link);
		w->fn(w->arg, NULL, &err);
		free(w);
	}
	TAILQ_REMOVE(&m->owner->list, m, link);
	m->owner->n--;
	vhca_timer_free(m->timer);
	free(m);
}

int vhca_migrations_new(const struct vhca_migrations_args *args, struct vhca_migrations **ret,
			struct vhca_error *err)
{
	struct vhca_migrations *ms = calloc(1, sizeof(*ms));
	struct vhca_mig *m;
	int r;

	if (!ms)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "migrations");
	ms->args = *args;
	if (!ms->args.abort_tries_ms)
		ms->args.abort_tries_ms = MIG_ABORT_TRIES_MS;
	if (!ms->args.retry_ms)
		ms->args.retry_ms = MIG_RETRY_FIRST_MS;
	ms->model = vhca_engine_model(args->engine);
	TAILQ_INIT(&ms->list);
	r = mig_load(ms, err);
	if (r < 0) {
		vhca_migrations_free(ms);
		return r;
	}
	TAILQ_FOREACH (m, &ms->list, link)
		if (!vhca_mig_state_is_final(m->state))
			vhca_log_notice("%s: migration %s goes on: %s", m->domain_name,
					VHCA_UUID_STR(&m->id), state_names[m->state]);
	vhca_engine_listen(args->engine, on_round, ms);
	*ret = ms;
	return 0;
}

struct vhca_migrations *vhca_migrations_free(struct vhca_migrations *ms)
{
	if (!ms)
		return NULL;
	vhca_engine_listen(ms->args.engine, NULL, NULL);
	while (TAILQ_FIRST(&ms->list))
		mig_drop(TAILQ_FIRST(&ms->list));
	free(ms);
	return NULL;
}

/* ---- the source's requests ---- */

static unsigned int running(const struct vhca_migrations *ms)
{
	const struct vhca_mig *m;
	unsigned int n = 0;

	TAILQ_FOREACH (m, &ms->list, link)
		n += !vhca_mig_state_is_final(m->state);
	return n;
}

static int check_start(struct vhca_migrations *ms, const struct vhca_domain *dom, const char *peer,
		       struct vhca_error *err)
{
	const struct vhca_mig *m;
	const struct vhca_claim *c;
	unsigned int n = 0;

	if (!vhca_conf_peer(ms->args.conf, peer))
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_peer", 0,
				      "there is no [peer %.31s] in the configuration", peer);
	TAILQ_FOREACH (m, &ms->list, link)
		if (vhca_uuid_equal(&m->domain, &dom->info->uuid) &&
		    !vhca_mig_state_is_final(m->state))
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "migrating", EBUSY,
					      "domain %s: a migration is %s already",
					      dom->info->name, state_names[m->state]);
	TAILQ_FOREACH (c, &ms->model->claims, link) {
		if (!vhca_uuid_equal(&c->domain, &dom->info->uuid))
			continue;
		n++;
		if (c->vf->state != VHCA_VF_ATTACHED || c->ending)
			return vhca_error_set(
				err, VHCA_ERR_CONFLICT, "not_attached", EBUSY,
				"domain %s: VF %s is %s; wait until it is attached, or detach it",
				dom->info->name, c->name, vhca_vf_state_to_string(c->vf->state));
		if (c->way == VHCA_WAY_CLAIM)
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "own_hostdev", 0,
					      "domain %s: VF %s was claimed for a <hostdev> of the "
					      "domain's own, which "
					      "vhcad does not plug in again; detach it, migrate, "
					      "and attach one there",
					      dom->info->name, c->name);
	}
	if (!n)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "no_vf", 0,
				      "domain %s has no InfiniBand VF: migrate it with virsh",
				      dom->info->name);
	if (running(ms) >= VHCA_MIGRATIONS_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many", EBUSY,
				      "%u migrations are running", running(ms));
	return 0;
}

int vhca_migrations_start(struct vhca_migrations *ms, const struct vhca_uuid *domain,
			  const char *peer, const struct vhca_mig **ret, struct vhca_error *err)
{
	struct vhca_domain *dom = vhca_model_domain(ms->model, domain);
	struct vhca_mig *m;
	struct vhca_uuid id;
	struct vhca_claim *c;
	int r;

	if (!dom)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_domain", 0,
				      "domain %s does not run here", VHCA_UUID_STR(domain));
	r = check_start(ms, dom, peer, err);
	if (r < 0)
		return r;
	m = vhca_uuid_random(&id) < 0 ? NULL : mig_new(ms, &id);
	if (!m)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "migration");
	m->source = true;
	m->domain = *domain;
	(void)vhca_strcpy(m->domain_name, sizeof(m->domain_name), dom->info->name); /* same size */
	(void)vhca_strcpy(m->peer, sizeof(m->peer), peer); /* a configured name */
	/* From now on the claims are the migration's: written with its first step. */
	TAILQ_FOREACH (c, &ms->model->claims, link) {
		if (!vhca_uuid_equal(&c->domain, domain))
			continue;
		c->migrating = true;
		c->migration = id;
	}
	mig_move(m, VHCA_MIG_CLAIMING);
	*ret = m;
	return 0;
}

int vhca_migrations_cancel(struct vhca_migrations *ms, const struct vhca_uuid *id,
			   struct vhca_error *err)
{
	struct vhca_mig *m = find(ms, id);

	if (!m || !m->source)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0,
				      "migration %s", VHCA_UUID_STR(id));
	if (vhca_mig_state_is_final(m->state) || m->state == VHCA_MIG_FINISHING)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "too_late", 0,
				      "migration of %s is %s", m->domain_name,
				      state_names[m->state]);
	m->cancel = true;
	mig_again(m, 0);
	return 0;
}

/* ---- the destination's requests ---- */

static int reserve_all(struct vhca_mig *m, const struct vhca_mig_offer *offer,
		       struct vhca_error *err)
{
	struct vhca_claim *c;

	for (unsigned int i = 0; i < offer->n_vfs; i++) {
		int r = vhca_engine_reserve(m->owner->args.engine, &offer->vfs[i], &c, err);

		if (r < 0) {
			vhca_error_prefix(err, "VF %s", offer->vfs[i].req.vf.name);
			return r;
		}
	}
	return 0;
}

static int new_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
		     struct vhca_mig **ret, struct vhca_error *err)
{
	struct vhca_mig *m;

	if (running(ms) >= VHCA_MIGRATIONS_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many", EBUSY,
				      "%u migrations are running", running(ms));
	if (vhca_model_domain(ms->model, &offer->domain))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "domain_exists", EEXIST,
				      "domain %s runs here", offer->domain_name);
	m = mig_new(ms, &offer->id);
	if (!m)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "migration");
	m->domain = offer->domain;
	(void)vhca_strcpy(m->domain_name, sizeof(m->domain_name),
			  offer->domain_name); /* same size */
	(void)snprintf(m->peer, sizeof(m->peer), "%s", offer->node);
	*ret = m;
	return 0;
}

void vhca_migrations_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
			   vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_mig *m = find(ms, &offer->id);
	int r = 0;

	if (!m) {
		r = new_offer(ms, offer, &m, &err);
		if (r < 0) {
			answer_later(ms, fn, arg, &err);
			return;
		}
		/* What could be reserved is ended again with the migration. */
		if (reserve_all(m, offer, &err) < 0)
			mig_fail(m, &err);
		mig_move(m, m->failure.kind ? VHCA_MIG_ENDING : VHCA_MIG_RESERVING);
	}
	if (m->source || add_waiter(m, VHCA_MIG_RESERVED, fn, arg) < 0) {
		vhca_error_set(&err, VHCA_ERR_CONFLICT, "bad_request", 0,
			       "migration %s is one of this node's own", VHCA_UUID_STR(&offer->id));
		answer_later(ms, fn, arg, &err);
		return;
	}
	if (!m->committing)
		mig_again(m, 0);
}

static int take_epochs(struct vhca_mig *m, const struct vhca_epoch *epochs, unsigned int n,
		       struct vhca_error *err)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c))) {
		uint64_t epoch = 0;

		for (unsigned int i = 0; i < n; i++)
			if (epochs[i].guid == c->identity.guid)
				epoch = epochs[i].epoch;
		if (epoch <= c->epoch)
			return vhca_error_set(err, VHCA_ERR_CONFLICT, "stale_epoch", 0,
					      "GUID %s: epoch %llu was handed over, %llu is known",
					      VHCA_GUID_STR(c->identity.guid),
					      (unsigned long long)epoch,
					      (unsigned long long)c->epoch);
	}
	while ((c = vhca_migration_claim(m, c)))
		for (unsigned int i = 0; i < n; i++)
			if (epochs[i].guid == c->identity.guid)
				vhca_engine_return(m->owner->args.engine, c, epochs[i].epoch);
	return 0;
}

static bool at_rest(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!vhca_claim_rests_in(c, VHCA_VF_CLAIMED))
			return false;
	return true;
}

void vhca_migrations_handover(struct vhca_migrations *ms, const struct vhca_uuid *id,
			      const struct vhca_epoch *epochs, unsigned int n,
			      vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_mig *m = find(ms, id);
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = 0;

	if (!m || m->source)
		r = vhca_error_set(&err, VHCA_ERR_NOT_FOUND, "no_such_migration", 0, "migration %s",
				   VHCA_UUID_STR(id));
	else if (m->state < VHCA_MIG_RESERVED ||
		 (m->state == VHCA_MIG_RESERVED && (m->committing || !at_rest(m))))
		r = vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "not_reserved", EAGAIN,
				   "migration %s is not reserved yet", VHCA_UUID_STR(id));
	else if (m->state == VHCA_MIG_RESERVED)
		r = take_epochs(m, epochs, n, &err);
	if (!r && add_waiter(m, VHCA_MIG_INCOMING, fn, arg) < 0)
		r = vhca_error_set(&err, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, "migration");
	if (r < 0) {
		answer_later(ms, fn, arg, &err);
		return;
	}
	if (m->state == VHCA_MIG_RESERVED) {
		m->handed = true;
		mig_move(m, VHCA_MIG_PROGRAMMING);
	} else {
		mig_again(m, 0); /* a source that was restarted asks again */
	}
}

void vhca_migrations_end(struct vhca_migrations *ms, const struct vhca_uuid *id,
			 vhca_mig_waiter_fn fn, void *arg)
{
	struct vhca_mig *m = find(ms, id);
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!m) {
		m = mig_new(ms, id);
		if (m)
			m->state =
				VHCA_MIG_ENDING; /* nothing to end, but a late offer must not start it */
	}
	if (!m || m->source || m->state == VHCA_MIG_ATTACHING || m->state == VHCA_MIG_DONE) {
		answer_later(ms, fn, arg, &too_late);
		return;
	}
	vhca_error_set(&err, VHCA_ERR_CONFLICT, "aborted", 0, "given up by the source");
	mig_fail(m, &err);
	if (add_waiter(m, VHCA_MIG_ENDED, fn, arg) < 0) {
		answer_later(ms, fn, arg, &err);
		return;
	}
	m->cancel = true;
	mig_again(m, 0);
}

int vhca_migrations_begin(struct vhca_migrations *ms, const struct vhca_uuid *id,
			  struct vhca_error *err)
{
	struct vhca_mig *m = find(ms, id);

	if (!m || m->source || m->cancel ||
	    (m->state != VHCA_MIG_INCOMING && m->next != VHCA_MIG_INCOMING))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "not_prepared", 0,
				      "this host has no InfiniBand VFs ready for migration %s of "
				      "this domain; start it with vhcactl migrate "
				      "at the source",
				      VHCA_UUID_STR(id));
	m->pinned =
		true; /* durable with the next move; after a restart the lease starts anew and is long enough */
	m->lease_until = vhca_now_ms() + ms->args.conf->lease_ms; /* for the domain to appear */
	mig_again(m, ms->args.conf->lease_ms);
	return 0;
}
