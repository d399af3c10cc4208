/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The source's way there: from the request to the end of its claims. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/migration/claims.h"
#include "agent/migration/handover.h"
#include "agent/migration/list.h"
#include "agent/migration/progress.h"
#include "agent/migration/table.h"
#include "agent/state/guest_copy.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"

/* a destination that cannot be reached so long is given up: nothing was touched yet */
#define CLAIM_TRIES_MS	15000
#define ZOMBIE_AFTER_MS 5000 /* libvirt ends a guest without memory within this, or never */

static void fail_guest_gone(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "domain_stopped",
		      "the domain stopped before it was copied");
}

/* Nothing was touched, or all of it can be taken back: who stays silent is given up. */
static bool nobody_answers(const struct vhca_mig *m)
{
	return m->res->err.kind == VHCA_ERR_UNAVAILABLE &&
	       vhca_now_ms() - m->entered_ms < CLAIM_TRIES_MS;
}

/* ---- claiming ---- */

/* In this life of the agent. An orchestrator may ask libvirt for a copy that we would not. */
static bool is_to_be_checked(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_MANAGED && m->phase != VHCA_MIG_PHASE_CHECKED;
}

static void note_vfs_there(struct vhca_mig *m)
{
	if (!m->res->n_vfs)
		return;
	memcpy(m->vfs, m->res->vfs, sizeof(m->vfs));
	m->n_vfs = m->res->n_vfs;
}

static void note_reserved(struct vhca_mig *m)
{
	note_vfs_there(m);
	mig_sign_tickets(m, 1);
}

/* The destination has not heard of it, in no life of the agent. */
static bool nobody_was_told(const struct vhca_mig *m)
{
	return !mig_is_revived(m);
}

/* Without a bandwidth that is asked for, nobody knows how fast libvirt will be. */
static struct vhca_mig_expected expect(const struct vhca_mig *m)
{
	const struct vhca_domain *d = mig_domain(m);
	struct vhca_guest_copy copy = {.memory_kib = d ? d->info->memory.kib : 0,
				       .bandwidth_mib = m->copy.bandwidth_mib,
				       .dirty_is_known = m->res->dirty_is_known,
				       .dirty_mib = m->res->dirty_mib};
	struct vhca_mig_expected e;

	if (m->res->rc < 0 || !copy.memory_kib || !copy.bandwidth_mib)
		return (struct vhca_mig_expected){.is_known = false};
	e = (struct vhca_mig_expected){.is_known = true,
				       .dirty_is_known = copy.dirty_is_known,
				       .dirty_mib = copy.dirty_mib,
				       .ms = vhca_guest_copy_ms(&copy)};
	/* QEMU slows the guest down until the copy ends; nobody knows by how much. */
	if (e.ms == VHCA_COPY_NEVER && m->copy.auto_converge) {
		copy.dirty_is_known = false;
		e.is_slowed = true;
		e.ms = vhca_guest_copy_ms(&copy);
	}
	return e;
}

static bool copy_would_be_too_long(const struct vhca_mig *m)
{
	const struct vhca_mig_expected e = expect(m);

	return e.is_known && m->copy.expected_max_ms && e.ms > m->copy.expected_max_ms;
}

static bool too_long_and_untold(const struct vhca_mig *m)
{
	return copy_would_be_too_long(m) && nobody_was_told(m);
}

static void fail_too_long(struct vhca_mig *m)
{
	char text[200], time[32] = "for ever";

	m->expected = expect(m);
	if (m->expected.ms != VHCA_COPY_NEVER)
		(void)snprintf(time, sizeof(time), "%" PRIu64 " s", (m->expected.ms + 999) / 1000);
	(void)snprintf(text, sizeof(text), "the copy would take %s at %u MiB/s%s; %u s are allowed",
		       time, m->copy.bandwidth_mib,
		       m->expected.dirty_is_known && !m->expected.is_slowed
			       ? ""
			       : " if the guest wrote nothing",
		       m->copy.expected_max_ms / 1000);
	mig_fail_with(m, VHCA_ERR_CONFLICT, "copy_too_long", text);
}

static void note_checked(struct vhca_mig *m)
{
	m->expected = expect(m);
	m->phase = VHCA_MIG_PHASE_CHECKED;
}

/* ---- detaching ---- */

/* The agent was killed before the journal knew whose they are: that one was not asked to leave. */
static bool lacks_claims(const struct vhca_mig *m)
{
	const struct vhca_claim *c;

	VHCA_FOREACH_CLAIM_OF (c, m->owner->model, &m->domain)
		if (!c->migrating || !vhca_uuid_equal(&c->migration, &m->id))
			return true;
	return !vhca_migration_claim(m, NULL);
}

static void fail_claims_lost(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "claims_lost",
		      "its VFs were detached, or the agent was restarted as it began");
}

/*
 * In this life of the agent. It is set while the guest lets go of its VFs: nothing has to wait for
 * it later.
 */
static bool is_to_be_marked(const struct vhca_mig *m)
{
	return !mig_is_parking(m) && m->marker != VHCA_MIG_MARKER_SET;
}

/* In this life of the agent. */
static bool nobody_was_asked_to_leave(const struct vhca_mig *m)
{
	return m->phase != VHCA_MIG_PHASE_LEAVING;
}

static void ask_vfs_to_leave(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	mig_members(m); /* the keys stay on the port: a roll-back must not wait for the SM */
	while ((c = vhca_migration_claim(m, c)))
		if (c->vf->state == VHCA_VF_ATTACHED && c->custody != VHCA_CUSTODY_LEAVING)
			vhca_engine_leave(m->owner->args.engine, c, &m->id);
	m->phase = VHCA_MIG_PHASE_LEAVING;
	mig_again(m, 0);
}

static bool a_vf_stayed(const struct vhca_mig *m)
{
	return mig_any(m, mig_claim_stayed);
}

static bool a_vf_is_stuck(const struct vhca_mig *m)
{
	return mig_any(m, mig_claim_is_stuck);
}

/* A restart between the two forgets why. */
static void fail_not_released(struct vhca_mig *m)
{
	const struct vhca_error *why = NULL;
	struct vhca_claim *c = NULL;
	char text[256] = "";
	struct vhca_strbuf sb;

	while ((c = vhca_migration_claim(m, c)))
		if (mig_claim_stayed(c) && c->kept.kind)
			why = &c->kept;
	vhca_strbuf_init(&sb, text, sizeof(text));
	vhca_strbuf_add(&sb, "%s", why ? why->msg : "the guest did not let go of a VF");
	if (why)
		vhca_strbuf_add(&sb, "; %s", why->hint);
	mig_fail_with(m, VHCA_ERR_CONFLICT, "guest_did_not_release", text);
}

static bool all_are_away(const struct vhca_mig *m)
{
	return mig_all(m, mig_claim_is_away);
}

static bool all_are_away_for_orchestrator(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_EXTERNAL && all_are_away(m);
}

static bool all_parked_away(const struct vhca_mig *m)
{
	return mig_is_parking(m) && all_are_away(m);
}

/* ---- handing over ---- */

static bool some_are_not_away(const struct vhca_mig *m)
{
	return !all_are_away(m);
}

static void start_orchestrators_lease(struct vhca_mig *m)
{
	mig_note_delivered(m);
	mig_start_lease(m);
}

/* ---- copying ---- */

static void begin_copying(struct vhca_mig *m)
{
	mig_spend_an_epoch(m);
	m->copy_until = m->copy.timeout_ms ? vhca_now_ms() + m->copy.timeout_ms : 0;
}

/* An orchestrator has limits of its own. */
static bool is_limited(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_MANAGED && m->copy_until && !mig_is_cancelled(m);
}

static bool copy_takes_too_long(const struct vhca_mig *m)
{
	return is_limited(m) && vhca_now_ms() >= m->copy_until;
}

static void abandon_copy(struct vhca_mig *m)
{
	char text[80];

	(void)snprintf(text, sizeof(text), "the copy has not ended within %u s",
		       m->copy.timeout_ms / 1000);
	mig_fail_with(m, VHCA_ERR_CONFLICT, "copy_timeout", text);
	mig_cancel(m);
}

static void await_limit(struct vhca_mig *m)
{
	mig_again(m, m->copy_until - vhca_now_ms());
}

static bool is_to_stop_copying(const struct vhca_mig *m)
{
	return m->cancel == VHCA_MIG_CANCEL_WANTED && m->effect == VHCA_MIG_EFFECT_COPY;
}

/*
 * Again and again until the copy ends: libvirt cannot abort what it has not begun. Beside the copy,
 * so not by a rule.
 */
static void abort_job(struct vhca_mig *m)
{
	struct vhca_mig_effects *e = &m->owner->args.effects;

	m->cancel = VHCA_MIG_CANCEL_SENDING;
	e->start(e->ctx, m, VHCA_MIG_EFFECT_CANCEL);
}

/* One that an earlier life of the agent has begun. */
static bool job_is_to_be_stopped(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_MANAGED && m->cancel == VHCA_MIG_CANCEL_WANTED &&
	       m->res->copying;
}

/* Or the destination's answer was not: it may have it. */
static bool was_not_heard(const struct vhca_mig *m)
{
	return m->res->err.kind == VHCA_ERR_UNAVAILABLE;
}

/*
 * The destination does not take it: the guest is better off here. Until libvirt has stopped it is
 * asked again, but not all the time.
 */
static void recall_guest(struct vhca_mig *m)
{
	mig_hand_over_later(m);
	mig_fail_as_told(m);
	mig_cancel(m);
}

static void say_why_not_cancelled(struct vhca_mig *m)
{
	if (m->res->rc < 0)
		mig_reason(m, "cannot cancel: %s", m->res->err.msg);
}

/*
 * libvirt goes on with a copy when we die: look before starting another one. An orchestrator starts
 * its own.
 */
static bool may_be_copying(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_EXTERNAL || m->record == VHCA_MIG_RECORD_LOADED ||
	       m->phase == VHCA_MIG_PHASE_COPY_FAILED;
}

/* The copy is what the guest waits for. */
static bool nothing_was_begun(const struct vhca_mig *m)
{
	return !may_be_copying(m) && m->effect == VHCA_MIG_EFFECT_NONE;
}

static void look_again(struct vhca_mig *m)
{
	mig_again(m, 0);
}

static void note_copy_ended(struct vhca_mig *m)
{
	if (mig_is_cancelled(m)) /* libvirt tells of "the client", not of who asked us */
		mig_fail_cancelled(m);
	mig_fail(m, &m->res->err);
	m->phase = VHCA_MIG_PHASE_COPY_FAILED; /* where the domain really is, JOB tells */
}

static bool a_job_is_under_way(const struct vhca_mig *m)
{
	return m->res->copying;
}

static void fail_not_copied(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "copy_failed",
		      m->mode == VHCA_MIG_MODE_EXTERNAL
			      ? "the orchestrator's copy ended, and the guest is still here"
			      : "the copy did not take place");
}

/*
 * libvirt has paused the guest for the orchestrator's migration and does not know how that ended,
 * or is about to end it: the destination knows.
 */
static bool is_held_for_orchestrator(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_EXTERNAL && m->res->held;
}

static void say_held(struct vhca_mig *m)
{
	mig_reason(m, "the guest is paused here by its migration, whose end libvirt does not know");
}

static bool runs_there(const struct vhca_mig *m)
{
	return m->res->rc == 0 && (m->res->attached || m->res->arrived);
}

/* ---- finishing ---- */

/*
 * A destination that was left alone took what was promised: without tickets, which are with the
 * hand-over. Who would hand them over, once this has ended?
 */
static bool is_settled_there(const struct vhca_mig *m)
{
	bool owes_tickets = m->tickets && json_object_array_length(m->tickets) > 0 &&
			    vhca_migration_claim(m, NULL) && !vhca_migration_delivered(m);

	return m->res->ended || (m->res->attached && !(owes_tickets && vhca_migration_promised(m)));
}

/* It went from here, and never set out to there: it was shut down. */
static bool never_set_out(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_EXTERNAL && !m->begun && !m->res->begun;
}

/*
 * We had taken it for lost and bid for the next epoch; but the guest is there, and nothing was
 * handed over yet.
 */
static bool awaits_withdrawal(const struct vhca_mig *m)
{
	return m->res->waits && !vhca_migration_promised(m) && all_are_away(m);
}

static void look_there_later(struct vhca_mig *m)
{
	note_vfs_there(m);
	m->not_before_ms = vhca_now_ms() + m->owner->args.status_ms;
}

/*
 * It runs there, and libvirt has it here, too, paused by its migration: about to be ended, or for
 * ever, because the word of that was lost.
 */
static bool copy_is_left(const struct vhca_mig *m)
{
	const struct vhca_domain *d = vhca_model_domain(m->owner->model, &m->domain);

	return m->res->attached && d && d->incoming;
}

static bool copy_may_start(const struct vhca_mig *m)
{
	const struct vhca_domain *d = vhca_model_domain(m->owner->model, &m->domain);

	return copy_is_left(m) &&
	       vhca_now_ms() - m->entered_ms <
		       ZOMBIE_AFTER_MS + vhca_guest_memory_ms(d->info->memory.kib);
}

/*
 * The next boot would start it beside the guest. Its autostart has gone to the destination with the
 * marker; an orchestrator's is its own business.
 */
static bool copy_may_start_with_host(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_MANAGED && copy_is_left(m) &&
	       m->phase != VHCA_MIG_PHASE_START_ASKED;
}

/* Tried once: what libvirt refuses it will refuse again, and the guest runs. */
static void note_start_asked(struct vhca_mig *m)
{
	m->phase = VHCA_MIG_PHASE_START_ASKED;
	if (m->res->rc < 0)
		vhca_events_add(m->owner->args.events, "alarm", m->domain_name,
				"a copy of the domain is left here, and may start with the host: "
				"%s; virsh autostart --disable %s",
				m->res->err.msg, VHCA_DOMAIN_WORD(m->domain_name, &m->domain));
}

/* Else the last word to the SM is said at that epoch. */
static bool is_away_uncontested(const struct vhca_claim *c)
{
	return vhca_claim_is_withheld(c) && !c->arbitration_asked;
}

static void end_claims(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	note_vfs_there(m);
	if (!m->res->attached) { /* what was promised is over for both sides */
		mig_leave_epoch(m, is_away_uncontested);
		mig_recall_epoch(m);
	}
	while (m->res->attached && (c = vhca_migration_claim(m, c)))
		vhca_engine_pass_on(c);
	mig_let_go(m);
	m->failure = (struct vhca_error)VHCA_ERROR_INIT;
	/* The domain is there all the same, and asks for VFs itself: nothing is left to do here. */
	m->degraded = !m->res->attached;
	mig_reason(m, "%s", m->res->attached ? "" : "the destination had given up the VFs for it");
	if (!copy_is_left(m))
		return;
	/* It is given no VF (engine_requests()), and who may resume it, nobody here can know. */
	m->degraded = true;
	mig_reason(m,
		   "zombie_source: the domain runs at %s, and libvirt still has a paused copy of "
		   "it here; never resume that: virsh destroy %s",
		   m->peer, VHCA_DOMAIN_WORD(m->domain_name, &m->domain));
	vhca_events_add(m->owner->args.events, "alarm", m->domain_name, "%s", m->reason);
}

/*
 * The destination is silent, and an operator vouches that the domain runs nowhere but here. What he
 * said before it set out was of another host.
 */
static bool is_vouched_for(const struct vhca_mig *m)
{
	return m->res->rc < 0 && mig_domain(m) && vhca_migration_claim(m, NULL) &&
	       vhca_engine_vouched_since(m->owner->args.engine, &m->domain, m->known_ms);
}

static bool is_written(const struct vhca_claim *c)
{
	return !c->vf->committing;
}

/* What is on its way to the disk may be at an epoch of the generation that ends. */
static bool can_take_over(const struct vhca_mig *m)
{
	return mig_guest_runs_here(m) && mig_all(m, is_written);
}

/* Its claims go on as what is taken over does: the SM evicts the destination first. */
static void take_over(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "destination_lost",
		      "the destination was lost with the domain, which was started again here");
	mig_begin_generation(m);
}

#define BEFORE_COPY (MIG_IN(CLAIMING) | MIG_IN(DETACHING) | MIG_IN(HANDING_OVER))

static const struct mig_rule rules[] = {
	MIG_RULE(MIG_NEW, START, mig_is_parking, NULL, NONE, VHCA_MIG_DETACHING),
	MIG_RULE(MIG_NEW, START, NULL, NULL, NONE, VHCA_MIG_CLAIMING),

	/* Restarted, the agent proves anew that all are away: not even a cancellation is first. */
	MIG_RULE(MIG_IN(HANDING_OVER), LOOK, some_are_not_away, NULL, NONE, MIG_STAY),

	MIG_RULE(BEFORE_COPY, LOOK, mig_is_cancelled, mig_fail_cancelled, NONE, MIG_UNDO),
	MIG_RULE(BEFORE_COPY, LOOK, mig_guest_is_gone, fail_guest_gone, NONE, MIG_UNDO),

	MIG_RULE(MIG_IN(CLAIMING), LOOK, is_to_be_checked, NULL, CHECK, MIG_STAY),
	MIG_RULE(MIG_IN(CLAIMING), CHECK, too_long_and_untold, fail_too_long, NONE,
		 VHCA_MIG_RESTORING),
	MIG_RULE(MIG_IN(CLAIMING), CHECK, copy_would_be_too_long, fail_too_long, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(CLAIMING), CHECK, mig_succeeded, note_checked, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(CLAIMING), CHECK, nobody_answers, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(CLAIMING), CHECK, nobody_was_told, mig_fail_as_told, NONE,
		 VHCA_MIG_RESTORING),
	MIG_RULE(MIG_IN(CLAIMING), CHECK, NULL, mig_fail_as_told, NONE, MIG_UNDO),

	MIG_RULE(MIG_IN(CLAIMING), LOOK, NULL, NULL, CLAIM, MIG_STAY),
	MIG_RULE(MIG_IN(CLAIMING), CLAIM, mig_succeeded, note_reserved, NONE, VHCA_MIG_DETACHING),
	MIG_RULE(MIG_IN(CLAIMING), CLAIM, nobody_answers, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(CLAIMING), CLAIM, NULL, mig_fail_as_told, NONE, MIG_UNDO),

	MIG_RULE(MIG_IN(DETACHING), LOOK, lacks_claims, fail_claims_lost, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(DETACHING), LOOK, nobody_was_asked_to_leave, ask_vfs_to_leave, NONE,
		 MIG_STAY),
	MIG_RULE(MIG_IN(DETACHING), LOOK, a_vf_stayed, fail_not_released, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(DETACHING), LOOK, a_vf_is_stuck, mig_fail_stuck, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(DETACHING), LOOK, is_to_be_marked, NULL, MARK, MIG_STAY),
	MIG_RULE(MIG_IN(DETACHING), LOOK, all_parked_away, mig_start_lease, NONE, VHCA_MIG_PARKED),
	MIG_RULE(MIG_IN(DETACHING), LOOK, all_are_away_for_orchestrator, mig_spend_an_epoch, NONE,
		 VHCA_MIG_HANDING_OVER),
	MIG_RULE(MIG_IN(DETACHING), LOOK, all_are_away, begin_copying, NONE, VHCA_MIG_COPYING),
	MIG_RULE(MIG_IN(DETACHING), MARK, mig_succeeded, mig_note_marked, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(DETACHING), MARK, NULL, mig_ask_again_later, NONE, MIG_STAY),

	MIG_RULE(MIG_IN(HANDING_OVER), LOOK, NULL, NULL, HANDOVER, MIG_STAY),
	MIG_RULE(MIG_IN(HANDING_OVER), HANDOVER, mig_succeeded, start_orchestrators_lease, NONE,
		 VHCA_MIG_READY),
	MIG_RULE(MIG_IN(HANDING_OVER), HANDOVER, nobody_answers, mig_ask_again_later, NONE,
		 MIG_STAY),
	MIG_RULE(MIG_IN(HANDING_OVER), HANDOVER, NULL, mig_fail_as_told, NONE, MIG_UNDO),

	MIG_RULE(MIG_IN(COPYING), LOOK, copy_takes_too_long, abandon_copy, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), LOOK, is_to_stop_copying, abort_job, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), LOOK, nothing_was_begun, look_again, COPY, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), LOOK, mig_hand_over_is_due, mig_hand_over, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), LOOK, may_be_copying, NULL, JOB, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), LOOK, is_limited, await_limit, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), HANDOVER, mig_succeeded, mig_note_delivered, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), HANDOVER, was_not_heard, mig_hand_over_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), HANDOVER, NULL, recall_guest, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), CANCEL, NULL, say_why_not_cancelled, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), COPY, mig_succeeded, NULL, NONE, VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(COPYING), COPY, NULL, note_copy_ended, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), JOB, mig_cannot_tell, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), JOB, mig_domain_is_elsewhere, NULL, NONE, VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(COPYING), JOB, job_is_to_be_stopped, abort_job, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), JOB, a_job_is_under_way, mig_check_job_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), JOB, is_held_for_orchestrator, say_held, STATUS, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), STATUS, runs_there, NULL, NONE, VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(COPYING), STATUS, NULL, mig_check_job_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(COPYING), JOB, mig_is_cancelled, mig_fail_cancelled, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(COPYING), JOB, NULL, fail_not_copied, NONE, MIG_UNDO),

	MIG_RULE(MIG_IN(FINISHING), LOOK, mig_hand_over_is_due, mig_hand_over, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), LOOK, NULL, NULL, STATUS, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), HANDOVER, mig_succeeded, mig_note_delivered, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), HANDOVER, NULL, mig_hand_over_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), STATUS, is_vouched_for, NULL, JOB, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), STATUS, mig_cannot_tell, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), STATUS, copy_may_start, look_there_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), STATUS, copy_may_start_with_host, NULL, NO_START, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), STATUS, is_settled_there, end_claims, NONE, VHCA_MIG_DONE),
	MIG_RULE(MIG_IN(FINISHING), STATUS, never_set_out, fail_guest_gone, NONE,
		 VHCA_MIG_ABORTING),
	MIG_RULE(MIG_IN(FINISHING), STATUS, awaits_withdrawal, mig_spend_an_epoch, NONE,
		 VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(FINISHING), STATUS, NULL, look_there_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), NO_START, was_not_heard, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), NO_START, NULL, note_start_asked, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(FINISHING), JOB, can_take_over, take_over, NONE, VHCA_MIG_RESTORING),
	MIG_RULE(MIG_IN(FINISHING), JOB, NULL, mig_check_job_later, NONE, MIG_STAY),
};
const struct mig_rules mig_source_rules = {rules, VHCA_ARRAY_SIZE(rules)};
