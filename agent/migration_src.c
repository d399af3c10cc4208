/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The source's side, one step function per state. */
#include <errno.h>
#include <string.h>

#include "agent/migration_int.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"

static const struct vhca_error cancelled = {
	.kind = VHCA_ERR_CONFLICT,
	.code = "cancelled",
	.msg = "cancelled by request",
};

static bool all(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c))
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!is(c))
			return false;
	return true;
}

static bool is_away(const struct vhca_claim *c)
{
	return c->away && vhca_claim_rests_in(c, VHCA_VF_CLAIMED);
}

/* In the guest with its identity, and read back so. */
static bool is_back(const struct vhca_claim *c)
{
	unsigned int missing;

	return c->vf->state == VHCA_VF_ATTACHED && !c->vf->committing && !c->away &&
	       c->vf->hw_known && vhca_identity_matches(&c->vf->hw, &c->identity, &missing);
}

static bool is_ours(const struct vhca_claim *c)
{
	return !c->away;
}

static bool is_accepted(const struct vhca_claim *c)
{
	return c->told == VHCA_TOLD_ACCEPTED;
}

/* Says nothing, or yes, so far. */
static bool is_open(const struct vhca_claim *c)
{
	return c->told == VHCA_TOLD_NOT_YET || c->told == VHCA_TOLD_ACCEPTED;
}

static bool is_undisputed(const struct vhca_claim *c)
{
	return c->told != VHCA_TOLD_SUPERSEDED;
}

/* Away and at rest, whether its VF went into the guest or not. */
static bool is_withheld(const struct vhca_claim *c)
{
	return c->away && (vhca_claim_rests_in(c, VHCA_VF_CLAIMED) ||
			   vhca_claim_rests_in(c, VHCA_VF_PROGRAMMED) ||
			   vhca_claim_rests_in(c, VHCA_VF_ATTACHED));
}

static bool is_unheard(const struct vhca_claim *c)
{
	return c->told == VHCA_TOLD_NOT_YET;
}

/* Somebody wants it to stop, or the guest has gone: true if that was seen to. */
static bool interrupted(struct vhca_mig *m)
{
	if (m->cancel) {
		mig_fail(m, &cancelled);
		mig_move(m, VHCA_MIG_ABORTING);
	} else if (vhca_engine_virt_synced(m->owner->args.engine) && !mig_domain(m)) {
		mig_fail_to(m, VHCA_MIG_ABORTING, VHCA_ERR_CONFLICT, "domain_gone",
			    "the domain stopped before it was copied");
	} else {
		return false;
	}
	return true;
}

static void step_claiming(struct vhca_mig *m)
{
	if (!interrupted(m))
		mig_start(m, VHCA_MIG_EFFECT_CLAIM);
}

/* Nothing was touched, or all of it can be taken back: a peer that stays silent is given up. */
static void peer_answered(struct vhca_mig *m, const struct vhca_mig_result *res,
			  enum vhca_mig_state next)
{
	if (res->rc == 0) {
		mig_move(m, next);
	} else if (res->err.kind == VHCA_ERR_UNAVAILABLE &&
		   vhca_now_ms() - m->entered_ms < MIG_CLAIM_TRIES_MS) {
		mig_retry(m, &res->err);
	} else {
		mig_fail(m, &res->err);
		mig_move(m, VHCA_MIG_ABORTING);
	}
}

static void done_claim(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	peer_answered(m, res, VHCA_MIG_DETACHING);
}

/* A VF that the guest did not let go is attached again and no longer leaving. */
static bool stayed(const struct vhca_claim *c)
{
	return c->vf->state == VHCA_VF_ATTACHED && !c->leaving && !c->vf->committing;
}

static void step_detaching(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (interrupted(m))
		return;
	if (!m->answered)
		mig_members(
			m); /* the keys stay on the port: a roll-back must not wait for the SM */
	while ((c = vhca_migration_claim(m, c))) {
		if (!stayed(c))
			continue;
		if (m->answered) {
			mig_fail_to(m, VHCA_MIG_ABORTING, VHCA_ERR_CONFLICT,
				    "guest_did_not_release", "the guest did not let go of a VF");
			return;
		}
		vhca_engine_leave(m->owner->args.engine, c, &m->id);
	}
	m->answered = true; /* asked every VF to leave, once in this life */
	if (!all(m, is_away))
		return;
	if (m->marked)
		mig_move(m, VHCA_MIG_HANDING_OVER);
	else
		mig_start(m, VHCA_MIG_EFFECT_MARK);
}

static void done_mark(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (res->rc < 0)
		mig_retry(m, &res->err);
	else
		m->marked = true;
}

/* The epoch is spent before it is promised: after a crash the same one is promised again. */
static void step_handing_over(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (!m->handed) {
		while ((c = vhca_migration_claim(m, c)))
			vhca_engine_set_epoch(m->owner->args.engine, c, c->epoch + 1);
		m->handed = true;
		mig_move(m, VHCA_MIG_HANDING_OVER);
		return;
	}
	if (!all(m, is_away))
		return; /* its epoch is not durable yet */
	if (!interrupted(m))
		mig_start(m, VHCA_MIG_EFFECT_HANDOVER);
}

static void done_handover(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	peer_answered(m, res, VHCA_MIG_COPYING);
}

static void step_copying(struct vhca_mig *m)
{
	if (m->cancel && m->effect == VHCA_MIG_EFFECT_COPY && !m->cancelling) {
		struct vhca_mig_effects *e = &m->owner->args.effects;

		/* Again and again until the copy ends: libvirt cannot abort what it has not begun. */
		m->cancelling = true;
		e->start(e->ctx, m, VHCA_MIG_EFFECT_CANCEL);
		return;
	}
	/* libvirt goes on with a copy when we die: look before starting another one. */
	mig_start(m, m->loaded || m->answered ? VHCA_MIG_EFFECT_JOB : VHCA_MIG_EFFECT_COPY);
}

static void done_copy(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (res->rc == 0) {
		mig_move(m, VHCA_MIG_FINISHING);
		return;
	}
	if (m->cancel) /* libvirt tells of "the client", not of who asked us */
		mig_fail(m, &cancelled);
	mig_fail(m, &res->err);
	m->answered = true; /* where the domain really is, JOB tells */
}

/* The epoch that was promised to the destination is no longer ours to use: the next one is. */
static void outbid(struct vhca_mig *m, enum vhca_mig_state to)
{
	struct vhca_claim *c = NULL;

	while (m->handed && (c = vhca_migration_claim(m, c)))
		vhca_engine_set_epoch(m->owner->args.engine, c, c->epoch + 1);
	m->handed = false;
	mig_reason(m, "%s", m->failure.msg);
	mig_move(m, to);
}

/* What the SM has not heard of yet waits in the outbox; what it refused is asked again: the other owner may have gone. */
static void contest(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (m->handed) {
		outbid(m, VHCA_MIG_ARBITRATING); /* durable before the SM hears of it */
		return;
	}
	while ((c = vhca_migration_claim(m, c)))
		if (!is_accepted(c) && c->told != VHCA_TOLD_UNREACHABLE)
			vhca_engine_contest(m->owner->args.engine, c);
}

/* Is the guest here, and nowhere else? Only libvirt can tell; who has its identity, only the destination and the SM. */
static void done_look(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	m->answered = true;
	m->runs_here = res->rc == 0 && res->active && !res->copying && !res->held;
	if (m->runs_here && vhca_engine_fenced(m->owner->args.engine))
		contest(m);
}

static void done_job(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (m->state == VHCA_MIG_ARBITRATING) {
		done_look(m, res);
	} else if (res->rc < 0) {
		mig_retry(m, &res->err);
	} else if (!res->active) {
		mig_move(m, VHCA_MIG_FINISHING);
	} else if (res->copying) {
		m->not_before_ms = vhca_now_ms() + MIG_JOB_POLL_MS;
	} else {
		mig_fail_to(m, VHCA_MIG_ABORTING, VHCA_ERR_CONFLICT, "copy_failed",
			    "the copy did not take place");
	}
}

static void step_finishing(struct vhca_mig *m)
{
	mig_start(m, VHCA_MIG_EFFECT_STATUS);
}

static void let_go(struct vhca_mig *m)
{
	struct vhca_claim *c, *next;

	for (c = vhca_migration_claim(m, NULL); c; c = next) {
		next = vhca_migration_claim(m, c);
		vhca_engine_drop(m->owner->args.engine, c);
	}
	mig_members(m);
}

static void done_status(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (res->rc < 0) {
		mig_retry(m, &res->err);
		return;
	}
	if (res->n_vfs) {
		memcpy(m->vfs, res->vfs, sizeof(m->vfs));
		m->n_vfs = res->n_vfs;
	}
	if (!res->attached && !res->ended) {
		m->not_before_ms = vhca_now_ms() + MIG_STATUS_POLL_MS;
		return;
	}
	let_go(m);
	m->failure = (struct vhca_error)VHCA_ERROR_INIT;
	/* The domain is there all the same, and asks for VFs itself: nothing is left to do here. */
	m->degraded = !res->attached;
	mig_reason(m, "%s", res->attached ? "" : "the destination had given up the VFs for it");
	mig_move(m, VHCA_MIG_DONE);
}

static void step_aborting(struct vhca_mig *m)
{
	/* Claims that are on their way out of the guest come to rest first. */
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!is_away(c) && !stayed(c) && mig_domain(m))
			return;
	if (mig_domain(m) && mig_domain(m)->info->has_away && !m->unmarked)
		mig_start(m, VHCA_MIG_EFFECT_UNMARK);
	else
		mig_start(m, VHCA_MIG_EFFECT_ABORT);
}

static const char *arbiter_says(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	if (!vhca_engine_fenced(m->owner->args.engine))
		return "there is no SM that could decide (sm.backend)";
	if (!m->runs_here)
		return "libvirt does not say that the guest runs here, and nowhere else";
	while ((c = vhca_migration_claim(m, c)))
		if (!is_accepted(c))
			break;
	return c && !is_unheard(c) ? c->told_reason : "the SM has not answered";
}

/* The destination is asked as long as the SM has not decided. */
static void done_late_abort(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (res->rc == 0 && all(m, is_undisputed)) {
		outbid(m, VHCA_MIG_RESTORING);
		return;
	}
	m->answered = false; /* looks for the guest, and asks the SM, again */
	mig_retry(m, &res->err);
	mig_reason(m, "identity withheld: %s; %s",
		   res->rc < 0 ? res->err.msg : "the destination gave it up", arbiter_says(m));
}

static void done_abort(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (res->rc < 0 && res->err.code && !strcmp(res->err.code, "too_late")) {
		mig_move(m, VHCA_MIG_FINISHING);
	} else if (m->state == VHCA_MIG_ARBITRATING) {
		done_late_abort(m, res);
	} else if (res->rc == 0 || !m->handed) {
		/* Without an epoch the destination can do nothing; its lease cleans up what the abort did not reach. */
		outbid(m, VHCA_MIG_RESTORING);
	} else if (vhca_now_ms() - m->entered_ms >= m->owner->args.abort_tries_ms) {
		mig_move(m, VHCA_MIG_ARBITRATING);
	} else {
		m->degraded = true;
		mig_retry(m, &res->err);
	}
}

/* No word of the SM, or not a good one: the guest gets its device, which shows nobody's identity. */
static void go_bare(struct vhca_mig *m)
{
	uint64_t waited = vhca_now_ms() - m->entered_ms,
		 limit = 2ULL * m->owner->args.conf->sm_timeout_ms;
	struct vhca_claim *c = NULL;

	if (!vhca_engine_fenced(m->owner->args.engine) || waited >= limit || !all(m, is_open)) {
		while ((c = vhca_migration_claim(m, c)))
			vhca_engine_go_bare(m->owner->args.engine, c);
	} else {
		mig_again(m, limit - waited);
	}
}

/* Nobody here needs the identity any more. If the SM was asked for it, it is ours to withdraw; if not, it is the destination's, where
 * the guest may well be running. */
static void guest_gone(struct vhca_mig *m)
{
	if (!m->handed) {
		mig_move(m, VHCA_MIG_RESTORING);
		return;
	}
	let_go(m);
	mig_move(m, VHCA_MIG_FAILED);
}

static void step_arbitrating(struct vhca_mig *m)
{
	struct vhca_engine *e = m->owner->args.engine;
	bool fenced = vhca_engine_fenced(e);

	m->degraded = true;
	if (fenced && vhca_engine_virt_synced(e) && !mig_domain(m)) {
		guest_gone(m);
	} else if (!m->answered) {
		mig_start(m, VHCA_MIG_EFFECT_JOB);
	} else if (m->runs_here && fenced && !m->handed && all(m, is_accepted)) {
		outbid(m, VHCA_MIG_RESTORING);
	} else {
		mig_start(m, VHCA_MIG_EFFECT_ABORT);
		if (m->runs_here)
			go_bare(m);
	}
}

static void give_back(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (is_withheld(c))
			vhca_engine_return(m->owner->args.engine, c, c->epoch);
}

static void step_restoring(struct vhca_mig *m)
{
	bool gone = vhca_engine_virt_synced(m->owner->args.engine) && !mig_domain(m);
	struct vhca_claim *c, *next;

	give_back(m);
	if (!all(m, is_ours) || (!gone && !all(m, is_back)))
		return;
	mig_members(m);
	for (c = vhca_migration_claim(m, NULL); c; c = next) {
		next = vhca_migration_claim(m, c);
		vhca_engine_settle(m->owner->args.engine, c);
	}
	m->degraded = false;
	mig_move(m, VHCA_MIG_FAILED);
}

void (*const mig_source_steps[VHCA_MIG_STATE_COUNT])(struct vhca_mig *m) = {
	[VHCA_MIG_CLAIMING] = step_claiming,	     [VHCA_MIG_DETACHING] = step_detaching,
	[VHCA_MIG_HANDING_OVER] = step_handing_over, [VHCA_MIG_COPYING] = step_copying,
	[VHCA_MIG_FINISHING] = step_finishing,	     [VHCA_MIG_ABORTING] = step_aborting,
	[VHCA_MIG_ARBITRATING] = step_arbitrating,   [VHCA_MIG_RESTORING] = step_restoring,
};

static void done_unmark(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (res->rc < 0 && res->err.kind != VHCA_ERR_NOT_FOUND)
		mig_retry(m, &res->err);
	else
		m->unmarked = true;
}

static void done_cancel(struct vhca_mig *m, const struct vhca_mig_result *res)
{
	if (res->rc < 0)
		mig_reason(m, "cannot cancel: %s", res->err.msg);
}

/* In which states (two at most) an answer counts. */
static const struct {
	enum vhca_mig_state state, or_state;
	void (*done)(struct vhca_mig *m, const struct vhca_mig_result *res);
} dones[] = {
	[VHCA_MIG_EFFECT_CLAIM] = {VHCA_MIG_CLAIMING, VHCA_MIG_CLAIMING, done_claim},
	[VHCA_MIG_EFFECT_HANDOVER] = {VHCA_MIG_HANDING_OVER, VHCA_MIG_HANDING_OVER, done_handover},
	[VHCA_MIG_EFFECT_STATUS] = {VHCA_MIG_FINISHING, VHCA_MIG_FINISHING, done_status},
	[VHCA_MIG_EFFECT_ABORT] = {VHCA_MIG_ABORTING, VHCA_MIG_ARBITRATING, done_abort},
	[VHCA_MIG_EFFECT_MARK] = {VHCA_MIG_DETACHING, VHCA_MIG_DETACHING, done_mark},
	[VHCA_MIG_EFFECT_UNMARK] = {VHCA_MIG_ABORTING, VHCA_MIG_ATTACHING, done_unmark},
	[VHCA_MIG_EFFECT_COPY] = {VHCA_MIG_COPYING, VHCA_MIG_COPYING, done_copy},
	[VHCA_MIG_EFFECT_CANCEL] = {VHCA_MIG_COPYING, VHCA_MIG_COPYING, done_cancel},
	[VHCA_MIG_EFFECT_JOB] = {VHCA_MIG_COPYING, VHCA_MIG_ARBITRATING, done_job},
};

void mig_source_done(struct vhca_mig *m, enum vhca_mig_effect effect,
		     const struct vhca_mig_result *res)
{
	/* An answer to a question of an earlier state has nothing to say any more. */
	if (effect < VHCA_ARRAY_SIZE(dones) && dones[effect].done &&
	    (dones[effect].state == m->state || dones[effect].or_state == m->state))
		dones[effect].done(m, res);
}
