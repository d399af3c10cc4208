/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine of a migration. The rules of source.c, waiting.c, rollback.c and destination.c say
 * what happens; this file executes them.
 *
 * A migration has two sides, and each is a struct vhca_mig with a state and a row in its own
 * agent's journal. The source leads: the destination only answers its requests, which are
 * idempotent and carry the migration's id (peer.c there, request.c here).
 *
 * A step begins with an event: something may have changed (MIG_ON_LOOK), an effect has ended, or
 * somebody asks for something. mig_event() takes the first rule of the state for that event whose
 * guard holds (table.c). The rule's action changes memory and never blocks; its effect is one call
 * to libvirt or to the peer, which ends with vhca_migrations_effect_done(); its next state is the
 * migration's state once it is durable.
 *
 * The journal comes first. move_to() writes the next state, and until that is on the disk no rule
 * is looked for. on_commit() then enters the state and looks again. An effect therefore belongs to
 * a state that the journal has, and an agent that was killed begins the same effect again when it
 * has loaded the row. A write that failed leaves the state as it was, and the rule is tried again;
 * if it was the first row, the migration never began.
 *
 * Guards look at levels: the claims, libvirt's domains in the model, deadlines, and the answer that
 * has just come (m->res, which is there while that answer is handled). Every migration is looked at
 * after each round of the engine and when its timer ends, so an event that was lost costs time
 * only. An answer to a question of an earlier state finds no rule and is ignored.
 *
 * One effect is under way at a time; a rule that would begin another one does nothing, and the end
 * of the first looks again. libvirt's copy takes minutes, so two effects run beside it: the
 * hand-over (handover.c) and the cancellation of libvirt's job (source.c).
 *
 * Layers: states.c, list.c, progress.c and wait.c know no rules; claims.c and handover.c have
 * guards and actions of several tables; above them are the tables, table.c, this file, request.c.
 */
#include "agent/migration/migration.h"

#include <stdlib.h>
#include <string.h>

#include "agent/migration/claims.h"
#include "agent/migration/handover.h"
#include "agent/migration/journal.h"
#include "agent/migration/list.h"
#include "agent/migration/progress.h"
#include "agent/migration/table.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"

#define ABORT_TRIES_MS 15000 /* the guest is without its VF meanwhile */
/* ready and copying: the lease there is renewed, and it is asked whether libvirt came */
#define RENEW_MS       2000
#define STATUS_POLL_MS 200 /* is it attached there? */
#define JOB_POLL_MS    500 /* after a restart: is libvirt still copying? */
/* destination: the guest is here, and so long nobody has handed over what was promised for it */
#define ALONE_MS 15000

/* ---- stepping ---- */

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
	if (effect == VHCA_MIG_EFFECT_MARK)
		m->marker = VHCA_MIG_MARKER_ASKED;
	m->owner->args.effects.start(m->owner->args.effects.ctx, m, effect);
}

static void entered(struct vhca_mig *m, enum vhca_mig_state from)
{
	uint64_t now = vhca_now_ms();

	m->step_ms[from] += (uint32_t)(now - m->entered_ms);
	m->entered_ms = now;
	m->updated_ms = vhca_wall_ms();
	m->not_before_ms = 0;
	m->phase = VHCA_MIG_PHASE_NEW;
	if (m->record == VHCA_MIG_RECORD_LOADED)
		m->record = VHCA_MIG_RECORD_RESUMED;
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
			vhca_claim_unjoin(c); /* nobody has written yet that it joined */
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
	enum vhca_mig_state from = m->state, to = m->next;

	m->next = VHCA_MIG_STATE_COUNT;
	if (rc < 0 && m->record == VHCA_MIG_RECORD_NONE) {
		never_began(m, rc);
		return;
	}
	if (rc < 0) {
		vhca_log_error("%s: migration: state database: %s", m->domain_name, strerror(-rc));
		/*
		 * What this was to promise would be sent, or spent again with the next try;
		 * what was promised before, the destination may have.
		 */
		if (m->source && vhca_migration_promised(m) &&
		    (from == VHCA_MIG_DETACHING || (from == VHCA_MIG_FINISHING && from == to)))
			mig_take_promise_back(m);
		mig_again(m, MIG_RETRY_FIRST_MS);
		return;
	}
	(void)vhca_fault_in("migration.moved", vhca_mig_state_to_string(to));
	if (m->record == VHCA_MIG_RECORD_NONE)
		m->record = VHCA_MIG_RECORD_WRITTEN;
	m->state = to;
	entered(m, from);
	mig_tell(m);
	mig_again(m, 0);
	if (vhca_mig_state_is_final(m->state) || m->state == VHCA_MIG_PARKED)
		vhca_engine_stir(m->owner->args.engine); /* a drain may go on with the next one */
}

static void move_to(struct vhca_mig *m, enum vhca_mig_state to)
{
	struct vhca_txn *txn = vhca_txn_new(m->owner->args.store);

	m->next = to;
	(void)vhca_fault_in("migration.move", vhca_mig_state_to_string(to));
	if (m->record == VHCA_MIG_RECORD_NONE)
		vhca_txn_fail_fast(txn);
	/* What is promised is spent once; a generation begins by a word that the agent forgets. */
	if (m->source && !vhca_mig_state_is_final(to))
		vhca_engine_put_withheld(m->owner->args.engine, txn, &m->id);
	mig_journal(txn, m, to);
	vhca_txn_commit(txn, on_commit, m);
}

void mig_event(struct vhca_mig *m, enum mig_event event)
{
	const struct mig_rule *rule;

	if (mig_is_committing(m) || vhca_mig_state_is_final(m->state))
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
		move_to(m, (enum vhca_mig_state)mig_states[m->state].undo);
	else if (rule->next != MIG_STAY)
		move_to(m, (enum vhca_mig_state)rule->next);
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

void vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
				 const struct vhca_mig_result *res)
{
	if (effect == VHCA_MIG_EFFECT_HANDOVER && mig_is_handing_over(m))
		mig_end_hand_over(m);
	else if (effect != VHCA_MIG_EFFECT_CANCEL)
		m->effect = VHCA_MIG_EFFECT_NONE;
	if (effect == VHCA_MIG_EFFECT_COPY)
		mig_note_left(m, VHCA_MIG_REMOVED_TO_MIGRATE, res->called_us);
	/* An answer to a question of an earlier state has no rule any more. */
	m->res = res;
	mig_event(m, mig_event_of(effect));
	m->res = NULL;
	if (effect == VHCA_MIG_EFFECT_CANCEL) {
		m->cancel = VHCA_MIG_CANCEL_WANTED;
		mig_again(m, m->owner->args.job_ms);
		return;
	}
	mig_again(m, m->not_before_ms > vhca_now_ms() ? m->not_before_ms - vhca_now_ms() : 0);
}

/* ---- life ---- */

static int make_timers(struct vhca_mig *m)
{
	struct vhca_loop *loop = m->owner->args.loop;
	int r = vhca_timer_new(loop, "migration", on_timer, m, &m->timer);

	return r < 0 ? r : vhca_timer_new(loop, "hand-over", on_timer, m, &m->hand_timer);
}

struct vhca_mig *mig_new(struct vhca_migrations *ms, const struct vhca_uuid *id)
{
	struct vhca_mig *m = mig_add(ms, id);

	if (m && make_timers(m) < 0) {
		mig_drop(m);
		return NULL;
	}
	return m;
}

/*
 * The end of a migration and the end of its hold on the claims are transactions of their own: an
 * agent that was killed between them does the second one when it starts.
 */
static void end_leftovers(struct vhca_migrations *ms)
{
	struct vhca_claim *c, *next;

	for (c = TAILQ_FIRST(&ms->model->claims); c; c = next) {
		const struct vhca_mig *m;

		next = TAILQ_NEXT(c, link);
		if (!c->migrating || vhca_claim_is_ending(c))
			continue;
		m = mig_find(ms, &c->migration);
		if (m && !vhca_mig_state_is_final(m->state))
			continue;
		/*
		 * The agent was killed before the migration that it reserved this for was written
		 * down.
		 */
		if (vhca_claim_is_withheld(c) ||
		    (m && (m->state == VHCA_MIG_ENDED || (m->source && m->state == VHCA_MIG_DONE))))
			vhca_engine_drop(ms->args.engine, c);
		else
			vhca_engine_settle(ms->args.engine, c);
	}
}

/* What the journal knows; it goes on as soon as the loop runs. */
static int load(struct vhca_migrations *ms, struct vhca_error *err)
{
	struct vhca_mig *m;
	int r = mig_load(ms, err);

	if (r < 0)
		return r;
	TAILQ_FOREACH (m, &ms->list, link) {
		if (make_timers(m) < 0)
			return vhca_error_no_memory(err, "migrations");
		if (!vhca_mig_state_is_final(m->state))
			vhca_log_notice("%s: migration %s goes on: %s", m->domain_name,
					VHCA_UUID_STR(&m->id), vhca_mig_state_to_string(m->state));
	}
	return 0;
}

int vhca_migrations_new(const struct vhca_migrations_args *args, struct vhca_migrations **ret,
			struct vhca_error *err)
{
	struct vhca_migrations *ms = calloc(1, sizeof(*ms));
	struct vhca_mig *m;
	int r;

	if (!ms)
		return vhca_error_no_memory(err, "migrations");
	ms->args = *args;
	if (!ms->args.abort_tries_ms)
		ms->args.abort_tries_ms = ABORT_TRIES_MS;
	if (!ms->args.retry_ms)
		ms->args.retry_ms = MIG_RETRY_FIRST_MS;
	if (!ms->args.renew_ms)
		ms->args.renew_ms = RENEW_MS;
	if (!ms->args.status_ms)
		ms->args.status_ms = STATUS_POLL_MS;
	if (!ms->args.job_ms)
		ms->args.job_ms = JOB_POLL_MS;
	if (!ms->args.alone_ms)
		ms->args.alone_ms = ALONE_MS;
	ms->model = vhca_engine_model(args->engine);
	TAILQ_INIT(&ms->list);
	r = load(ms, err);
	if (r < 0) {
		vhca_migrations_free(ms);
		return r;
	}
	TAILQ_FOREACH (m, &ms->list, link) {
		mig_recover_claims(m);
		mig_mark_loaned_claims(m);
	}
	end_leftovers(ms);
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
