/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What executes the rules of source.c, waiting.c, rollback.c and destination.c. */
#include "agent/migration/migration.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/migration/migration_int.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"

/* ---- finding ---- */

struct vhca_mig *mig_find(const struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	struct vhca_mig *m;

	TAILQ_FOREACH (m, &ms->list, link)
		if (vhca_uuid_equal(&m->id, id))
			return m;
	return NULL;
}

const struct vhca_mig *vhca_migrations_find(struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	return mig_find(ms, id);
}

const struct vhca_mig *vhca_migrations_first(struct vhca_migrations *ms)
{
	return TAILQ_FIRST(&ms->list);
}

/*
 * What the destination has brought is settled before it is done, and the source asks for it in
 * between, too.
 */
static bool has_brought(const struct vhca_mig *m)
{
	return !m->source && (m->state == VHCA_MIG_ATTACHING || m->state == VHCA_MIG_DONE);
}

static bool owns(const struct vhca_mig *m, const struct vhca_claim *c)
{
	return (c->migrating || has_brought(m)) && vhca_uuid_equal(&c->migration, &m->id);
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

const struct vhca_dom_info *vhca_migration_guest(const struct vhca_mig *m)
{
	const struct vhca_domain *dom = mig_domain(m);

	return dom ? dom->info : NULL;
}

bool vhca_migration_begun(const struct vhca_mig *m)
{
	return m->begun || m->pinned || m->state == VHCA_MIG_ATTACHING ||
	       m->state == VHCA_MIG_DONE || mig_domain(m) ||
	       !vhca_engine_virt_synced(m->owner->args.engine);
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

/* ---- stepping ---- */

void mig_again(struct vhca_mig *m, uint64_t ms)
{
	vhca_timer_arm_ms(m->timer, ms);
}

static void start(struct vhca_mig *m, enum vhca_mig_effect effect)
{
	uint64_t now = vhca_now_ms();

	if (m->effect != VHCA_MIG_EFFECT_NONE)
		return;
	if (now < m->not_before_ms) {
		mig_again(m, m->not_before_ms - now);
		return;
	}
	m->effect = effect;
	m->may_be_marked |= effect == VHCA_MIG_EFFECT_MARK;
	m->owner->args.effects.start(m->owner->args.effects.ctx, m, effect);
}

void mig_event(struct vhca_mig *m, enum mig_event event)
{
	const struct mig_rule *rule;

	if (m->committing || vhca_mig_state_is_final(m->state))
		return;
	m->degraded = m->degraded || mig_states[m->state].degraded;
	rule = mig_rule_for(m, event);
	if (!rule)
		return;
	if (rule->action)
		rule->action(m);
	if (rule->effect != VHCA_MIG_EFFECT_NONE)
		start(m, rule->effect);
	if (rule->next == MIG_UNDO)
		mig_move(m, (enum vhca_mig_state)mig_states[m->state].undo);
	else if (rule->next != MIG_STAY)
		mig_move(m, (enum vhca_mig_state)rule->next);
}

static void on_round(void *arg)
{
	struct vhca_migrations *ms = arg;
	struct vhca_mig *m;

	TAILQ_FOREACH (m, &ms->list, link) {
		mig_event(m, MIG_ON_LOOK);
		mig_look_at_times(m);
	}
}

static void on_timer(void *arg)
{
	mig_tell(arg); /* who asks again for what is reached */
	mig_event(arg, MIG_ON_LOOK);
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

void mig_fail_with(struct vhca_mig *m, enum vhca_err kind, const char *code, const char *text)
{
	struct vhca_error err;

	vhca_error_set(&err, kind, code, 0, "%s", text);
	mig_fail(m, &err);
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
	if (!m->source)
		m->lease_until = now + m->owner->args.conf->lease_ms;
	if (m->state == VHCA_MIG_READY && from != VHCA_MIG_READY)
		mig_note_left(m, VHCA_MIG_REMOVED_TO_READY, vhca_now_us());
	vhca_events_add(m->owner->args.events, "migration", m->domain_name, "%s (%u ms) -> %s%s%s",
			vhca_mig_state_to_string(from), m->step_ms[from],
			vhca_mig_state_to_string(m->state), m->reason[0] ? ": " : "", m->reason);
}

/* Whose claims are its own again; those of a destination end. */
static void give_claims_up(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL, *next;

	for (c = vhca_migration_claim(m, NULL); c; c = next) {
		next = vhca_migration_claim(m, c);
		if (m->source)
			c->migrating = false; /* nobody has written yet that it is */
		else
			vhca_engine_drop(m->owner->args.engine, c);
	}
}

/* Its first row could not be written: nothing was begun, and nothing is. It is known in memory
 * only. */
static void never_began(struct vhca_mig *m, int rc)
{
	enum vhca_mig_state from = m->state;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_engine_check_disk(m->owner->args.engine, &err) == 0)
		vhca_error_set(&err, VHCA_ERR_EXHAUSTED, "state_disk", -rc,
			       "the migration cannot be written to the state database");
	mig_fail(m, &err);
	give_claims_up(m);
	m->state = m->source ? VHCA_MIG_FAILED : VHCA_MIG_ENDED;
	entered(m, from);
	mig_tell(m);
	vhca_engine_stir(m->owner->args.engine);
}

static void on_commit(void *arg, int rc)
{
	struct vhca_mig *m = arg;
	enum vhca_mig_state from = m->state;

	m->committing = false;
	if (rc < 0 && !m->journaled) {
		never_began(m, rc);
		return;
	}
	if (rc < 0) {
		vhca_log_error("%s: migration: state database: %s", m->domain_name, strerror(-rc));
		mig_again(m, MIG_RETRY_FIRST_MS);
		return;
	}
	(void)vhca_fault_in("migration.moved", vhca_mig_state_to_string(m->next));
	m->journaled = true;
	m->state = m->next;
	entered(m, from);
	mig_tell(m);
	mig_again(m, 0);
	if (vhca_mig_state_is_final(m->state) || m->state == VHCA_MIG_PARKED)
		vhca_engine_stir(m->owner->args.engine); /* a drain may go on with the next one */
}

void mig_move(struct vhca_mig *m, enum vhca_mig_state to)
{
	struct vhca_txn *txn = vhca_txn_new(m->owner->args.store);

	m->committing = true;
	m->next = to;
	(void)vhca_fault_in("migration.move", vhca_mig_state_to_string(to));
	if (!m->journaled)
		vhca_txn_fail_fast(txn);
	mig_journal(txn, m, to);
	vhca_txn_commit(txn, on_commit, m);
}

void vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
				 const struct vhca_mig_result *res)
{
	if (effect == VHCA_MIG_EFFECT_HANDOVER && m->handing)
		m->handing = false;
	else if (effect != VHCA_MIG_EFFECT_CANCEL)
		m->effect = VHCA_MIG_EFFECT_NONE;
	if (effect == VHCA_MIG_EFFECT_COPY)
		mig_note_left(m, VHCA_MIG_REMOVED_TO_MIGRATE, res->called_us);
	/* An answer to a question of an earlier state has no rule any more. */
	m->res = res;
	mig_event(m, (enum mig_event)effect);
	m->res = NULL;
	if (effect == VHCA_MIG_EFFECT_CANCEL) {
		m->cancelling = false;
		mig_again(m, MIG_JOB_POLL_MS);
		return;
	}
	mig_again(m, m->not_before_ms > vhca_now_ms() ? m->not_before_ms - vhca_now_ms() : 0);
}

/* ---- life ---- */

static int make_timers(struct vhca_migrations *ms, struct vhca_mig *m)
{
	int r = vhca_timer_new(ms->args.loop, "migration", on_timer, m, &m->timer);

	if (!r)
		r = vhca_timer_new(ms->args.loop, "hand-over", on_timer, m, &m->hand_timer);
	if (r < 0)
		vhca_timer_free(m->timer);
	return r;
}

/* Somebody will call back with it. */
static bool is_awaited(const struct vhca_mig *m)
{
	return m->effect != VHCA_MIG_EFFECT_NONE || m->handing || m->cancelling;
}

struct vhca_mig *mig_new(struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	struct vhca_mig *m = calloc(1, sizeof(*m)), *old, *next;

	if (!m || make_timers(ms, m) < 0) {
		free(m);
		return NULL;
	}
	m->owner = ms;
	m->id = *id;
	m->started_ms = m->updated_ms = vhca_wall_ms();
	m->entered_ms = vhca_now_ms();
	m->backoff = m->hand_backoff =
		(struct vhca_backoff){.first_ms = ms->args.retry_ms, .cap_ms = MIG_RETRY_CAP_MS};
	STAILQ_INIT(&m->waiters);
	for (old = TAILQ_FIRST(&ms->list); old && ms->n > VHCA_MIGRATION_HISTORY_MAX; old = next) {
		next = TAILQ_NEXT(old, link);
		if (vhca_mig_state_is_final(old->state) && !is_awaited(old))
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
	vhca_timer_free(m->hand_timer);
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
	if (!ms->args.renew_ms)
		ms->args.renew_ms = MIG_RENEW_MS;
	if (!ms->args.alone_ms)
		ms->args.alone_ms = MIG_ALONE_MS;
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
					VHCA_UUID_STR(&m->id), vhca_mig_state_to_string(m->state));
	TAILQ_FOREACH (m, &ms->list, link) {
		mig_own_what_was_asked_for(m);
		mig_owe_what_was_lent(m);
	}
	mig_end_leftovers(ms);
	ms->listener = (struct vhca_engine_listener){.fn = on_round, .arg = ms};
	vhca_engine_listen(args->engine, &ms->listener);
	*ret = ms;
	return 0;
}

struct vhca_migrations *vhca_migrations_free(struct vhca_migrations *ms)
{
	if (!ms)
		return NULL;
	if (ms->listener.fn)
		vhca_engine_unlisten(ms->args.engine, &ms->listener);
	while (TAILQ_FIRST(&ms->list))
		mig_drop(TAILQ_FIRST(&ms->list));
	free(ms);
	return NULL;
}
