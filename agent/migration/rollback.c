/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The source's way back: the destination withdraws, or the subnet manager decides, and the guest
 * has its VFs again.
 */
#include <string.h>

#include "agent/migration/claims.h"
#include "agent/migration/handover.h"
#include "agent/migration/list.h"
#include "agent/migration/progress.h"
#include "agent/migration/table.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"

/* In the guest with its identity, and read back so. */
static bool is_back(const struct vhca_claim *c)
{
	unsigned int missing;

	return c->vf->state == VHCA_VF_ATTACHED && !c->vf->committing &&
	       !vhca_claim_is_withheld(c) && c->vf->hw_known &&
	       vhca_identity_matches(&c->vf->hw, &c->identity, &missing);
}

static bool is_ours(const struct vhca_claim *c)
{
	return !vhca_claim_is_withheld(c);
}

static bool is_away(const struct vhca_claim *c)
{
	return vhca_claim_is_withheld(c);
}

static bool is_accepted(const struct vhca_claim *c)
{
	return c->sm_answer == VHCA_ANSWER_ACCEPTED;
}

/* Says nothing, or yes, so far. */
static bool is_open(const struct vhca_claim *c)
{
	return c->sm_answer == VHCA_ANSWER_NONE || c->sm_answer == VHCA_ANSWER_ACCEPTED;
}

static bool is_undisputed(const struct vhca_claim *c)
{
	return c->sm_answer != VHCA_ANSWER_SUPERSEDED;
}

/* Away and at rest, whether its VF went into the guest or not. */
static bool is_withheld(const struct vhca_claim *c)
{
	return vhca_claim_is_withheld(c) && (vhca_claim_rests_in(c, VHCA_VF_CLAIMED) ||
					     vhca_claim_rests_in(c, VHCA_VF_PROGRAMMED) ||
					     vhca_claim_rests_in(c, VHCA_VF_ATTACHED));
}

/*
 * The epoch that was promised to the destination is no longer ours to use: the next one is, which
 * is durable before the SM hears of it.
 */
static void outbid(struct vhca_mig *m)
{
	if (vhca_migration_promised(m))
		mig_leave_epoch(m, NULL);
	mig_recall_epoch(m);
	mig_reason(m, "%s", m->failure.msg);
}

/* ---- aborting ---- */

/*
 * What has left was withdrawn at its epoch, handed over or not, and the SM may still get to hear so
 * after all that is said from now on.
 */
static void leave_epoch(struct vhca_mig *m)
{
	mig_leave_epoch(m, is_away);
	mig_recall_epoch(m);
	mig_reason(m, "%s", m->failure.msg);
}

/*
 * Claims that are on their way out of the guest come to rest first; those of quarantined VFs would
 * not.
 */
static bool is_moving(const struct vhca_claim *c)
{
	return !mig_claim_is_away(c) && !mig_claim_stayed(c) && !mig_claim_is_stuck(c);
}

static bool vfs_are_moving(const struct vhca_mig *m)
{
	return mig_domain(m) && mig_any(m, is_moving);
}

/*
 * The XML that was read last may be older than the marker. As long as libvirt has not said what
 * runs here, or what stands in its XML, it may be; and libvirt may still be writing for an agent
 * that was killed.
 */
static bool is_marked(const struct vhca_mig *m)
{
	const struct vhca_domain *dom = mig_domain(m);

	if (m->marker != VHCA_MIG_MARKER_UNKNOWN)
		return m->marker != VHCA_MIG_MARKER_REMOVED;
	if (dom)
		return dom->info->has_away || dom->unreadable.kind ||
		       (!mig_is_parking(m) && mig_is_revived(m));
	return !vhca_engine_virt_synced(m->owner->args.engine);
}

static bool is_too_late(const struct vhca_mig *m)
{
	return m->res->rc < 0 && vhca_error_is(&m->res->err, VHCA_CODE_TOO_LATE);
}

/*
 * Without an epoch the destination can do nothing; its lease cleans up what the abort did not
 * reach.
 */
static bool has_no_binding(const struct vhca_mig *m)
{
	return mig_succeeded(m) || !vhca_migration_promised(m);
}

static bool is_held_up_too_long(const struct vhca_mig *m)
{
	return vhca_now_ms() - m->entered_ms >= m->owner->args.abort_tries_ms;
}

static void abort_again_later(struct vhca_mig *m)
{
	m->degraded = true;
	mig_ask_again_later(m);
}

/* ---- arbitrating ---- */

static bool is_fenced(const struct vhca_mig *m)
{
	return vhca_engine_fenced(m->owner->args.engine);
}

/* Nobody here needs the identity any more. The SM was asked for it: it is ours to withdraw. */
static bool is_gone_after_arbitration(const struct vhca_mig *m)
{
	return is_fenced(m) && mig_guest_is_gone(m) && !vhca_migration_promised(m);
}

/* It is the destination's, where the guest may well be running. */
static bool is_gone_before_arbitration(const struct vhca_mig *m)
{
	return is_fenced(m) && mig_guest_is_gone(m) && vhca_migration_promised(m);
}

/* It may be running there without its VFs: nobody knows whether the destination was told. */
static bool is_gone_before_handover(const struct vhca_mig *m)
{
	return is_gone_before_arbitration(m) && !vhca_migration_delivered(m);
}

static bool has_not_looked(const struct vhca_mig *m)
{
	return m->phase == VHCA_MIG_PHASE_NEW;
}

static bool sm_has_accepted(const struct vhca_mig *m)
{
	return m->phase == VHCA_MIG_PHASE_HERE && is_fenced(m) && !vhca_migration_promised(m) &&
	       mig_all(m, is_accepted);
}

/*
 * No word of the SM, or not a good one: the guest gets its device, which shows nobody's identity.
 */
static void go_bare_in_time(struct vhca_mig *m)
{
	uint64_t waited = vhca_now_ms() - m->entered_ms,
		 limit = 2ULL * m->owner->args.conf->sm_timeout_ms;
	struct vhca_claim *c = NULL;

	if (m->phase != VHCA_MIG_PHASE_HERE)
		return;
	if (!is_fenced(m) || waited >= limit || !mig_all(m, is_open)) {
		while ((c = vhca_migration_claim(m, c)))
			vhca_engine_go_bare(m->owner->args.engine, c);
	} else {
		mig_again(m, limit - waited);
	}
}

static bool must_outbid(const struct vhca_mig *m)
{
	return mig_guest_runs_here(m) && is_fenced(m) && vhca_migration_promised(m);
}

/*
 * What the SM has not heard of yet waits in the outbox; what it refused is asked again: the other
 * owner may have gone.
 */
static void note_where_and_ask_sm(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	m->phase = mig_guest_runs_here(m) ? VHCA_MIG_PHASE_HERE : VHCA_MIG_PHASE_NOT_HERE;
	if (m->phase != VHCA_MIG_PHASE_HERE || !is_fenced(m))
		return;
	while ((c = vhca_migration_claim(m, c)))
		if (!is_accepted(c) && c->sm_answer != VHCA_ANSWER_UNREACHABLE)
			vhca_engine_contest(m->owner->args.engine, c);
}

/*
 * The destination had the guest, which was lost with it and runs here again: the SM says when the
 * identity may follow. Without an SM to decide, what ends it is that word.
 */
static bool is_gone_there(const struct vhca_mig *m)
{
	return is_too_late(m) && is_fenced(m) && m->phase == VHCA_MIG_PHASE_HERE;
}

static const char *arbiter_says(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (!is_fenced(m))
		return "there is no SM that could decide (sm.backend)";
	if (m->phase != VHCA_MIG_PHASE_HERE)
		return "libvirt does not say that the guest runs here, and nowhere else";
	while ((c = vhca_migration_claim(m, c)))
		if (!is_accepted(c))
			break;
	return c && c->sm_answer != VHCA_ANSWER_NONE ? c->sm_answer_reason
						     : "the SM has not answered";
}

static bool withdrew_undisputed(const struct vhca_mig *m)
{
	return mig_succeeded(m) && mig_all(m, is_undisputed);
}

/* The destination is asked as long as the SM has not decided. */
static void ask_all_again(struct vhca_mig *m)
{
	const struct vhca_mig_result *res = m->res;

	mig_ask_again_later(m);
	mig_reason(m, "identity withheld: %s; %s",
		   res->rc < 0 ? res->err.msg : "the destination gave it up", arbiter_says(m));
	m->phase = VHCA_MIG_PHASE_NEW; /* looks for the guest, and asks the SM, again */
}

/* One that has failed may have left the claim of a VF that is stuck to its end. */
#define MAY_HAVE_ASKED (MIG_IN(ARBITRATING) | MIG_IN(RESTORING) | MIG_IN(FAILED))

/*
 * What was promised is the destination's, whose word the SM may not have heard yet: a claim that
 * ended with its boot, or that a killed agent had to end, withdraws nothing.
 */
void mig_recover_claims(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while (m->source && (c = vhca_migration_claim(m, c))) {
		if (!vhca_migration_promised(m) && MAY_HAVE_ASKED & 1U << m->state)
			vhca_claim_recover(c);
		else if (vhca_migration_promised(m) &&
			 (m->state == VHCA_MIG_DONE || c->boot == VHCA_BOOT_EARLIER))
			vhca_engine_pass_on(c);
	}
}

/* ---- restoring ---- */

static bool some_are_withheld(const struct vhca_mig *m)
{
	return mig_any(m, is_withheld);
}

/*
 * A VF that was quarantined has come to rest after the others, and after they had left the epoch;
 * and a restart forgets that one is left. One that begins a generation is left for another such: by
 * that mark the SM has to have evicted the last owner before anything is programmed.
 */
static uint64_t unused_epoch(const struct vhca_claim *c)
{
	uint64_t next;

	if (c->withdrawn && vhca_epoch_begins_generation(c->epoch) &&
	    vhca_epoch_next_generation(c->epoch, &next))
		return next;
	return c->epoch + c->withdrawn;
}

static void give_back(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (is_withheld(c))
			vhca_engine_restore(m->owner->args.engine, c, unused_epoch(c));
	mig_again(m, 0);
}

static bool all_back_or_gone(const struct vhca_mig *m)
{
	return mig_all(m, is_ours) && (mig_guest_is_gone(m) || mig_all(m, is_back));
}

static bool is_back_or_stuck(const struct vhca_claim *c)
{
	return mig_claim_is_stuck(c) || is_back(c);
}

static bool all_but_stuck_are_back(const struct vhca_mig *m)
{
	return mig_all(m, is_back_or_stuck);
}

/* A scrub that failed once mostly succeeds when it is tried again. */
static bool unstuck_claims_are_back(const struct vhca_mig *m)
{
	return is_held_up_too_long(m) && all_but_stuck_are_back(m);
}

static void await_stuck_claims(struct vhca_mig *m)
{
	mig_again(m, m->entered_ms + m->owner->args.abort_tries_ms - vhca_now_ms());
}

/*
 * What is quarantined is no longer this guest's: when it has been scrubbed, the domain's request is
 * served anew.
 */
static void settle_unstuck_claims(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	mig_fail_stuck(m);
	mig_reason(m, "%s", m->failure.msg);
	while ((c = vhca_migration_claim(m, c)))
		if (mig_claim_is_stuck(c))
			vhca_engine_drop(m->owner->args.engine, c);
		else
			vhca_engine_settle(m->owner->args.engine, c);
	mig_members(m);
	m->degraded = true;
}

static void settle(struct vhca_mig *m)
{
	mig_settle_claims(m);
	m->degraded = false;
}

static const struct mig_rule rules[] = {
	MIG_RULE(MIG_IN(ABORTING), LOOK, vfs_are_moving, NULL, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(ABORTING), LOOK, is_marked, NULL, UNMARK, MIG_STAY),
	MIG_RULE(MIG_IN(ABORTING), LOOK, mig_is_parking, leave_epoch, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(ABORTING), LOOK, NULL, NULL, ABORT, MIG_STAY),
	MIG_RULE(MIG_IN(ABORTING), UNMARK, mig_cannot_unmark, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(ABORTING), UNMARK, NULL, mig_note_unmarked, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(ABORTING), ABORT, is_too_late, NULL, NONE, VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(ABORTING), ABORT, has_no_binding, leave_epoch, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(ABORTING), ABORT, is_held_up_too_long, NULL, NONE, VHCA_MIG_ARBITRATING),
	MIG_RULE(MIG_IN(ABORTING), ABORT, NULL, abort_again_later, NONE, MIG_STAY),

	MIG_RULE(MIG_IN(ARBITRATING), LOOK, is_gone_after_arbitration, NULL, NONE,
		 VHCA_MIG_RESTORING),
	MIG_RULE(MIG_IN(ARBITRATING), LOOK, is_gone_before_handover, NULL, NONE,
		 VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(ARBITRATING), LOOK, is_gone_before_arbitration, mig_let_go, NONE,
		 VHCA_MIG_FAILED),
	MIG_RULE(MIG_IN(ARBITRATING), LOOK, has_not_looked, NULL, JOB, MIG_STAY),
	MIG_RULE(MIG_IN(ARBITRATING), LOOK, sm_has_accepted, outbid, NONE, VHCA_MIG_RESTORING),
	MIG_RULE(MIG_IN(ARBITRATING), LOOK, NULL, go_bare_in_time, ABORT, MIG_STAY),
	MIG_RULE(MIG_IN(ARBITRATING), JOB, must_outbid, outbid, NONE, VHCA_MIG_ARBITRATING),
	MIG_RULE(MIG_IN(ARBITRATING), JOB, NULL, note_where_and_ask_sm, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(ARBITRATING), ABORT, is_gone_there, ask_all_again, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(ARBITRATING), ABORT, is_too_late, NULL, NONE, VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(ARBITRATING), ABORT, withdrew_undisputed, outbid, NONE, VHCA_MIG_RESTORING),
	MIG_RULE(MIG_IN(ARBITRATING), ABORT, NULL, ask_all_again, NONE, MIG_STAY),

	MIG_RULE(MIG_IN(RESTORING), LOOK, some_are_withheld, give_back, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(RESTORING), LOOK, all_back_or_gone, settle, NONE, VHCA_MIG_FAILED),
	MIG_RULE(MIG_IN(RESTORING), LOOK, unstuck_claims_are_back, settle_unstuck_claims, NONE,
		 VHCA_MIG_FAILED),
	MIG_RULE(MIG_IN(RESTORING), LOOK, all_but_stuck_are_back, await_stuck_claims, NONE,
		 MIG_STAY),
};
const struct mig_rules mig_rollback_rules = {rules, VHCA_ARRAY_SIZE(rules)};
