/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The source while it waits for somebody else: for the orchestrator's migration (ready), or for the
 * end of whatever the VFs are in the way of (parked). The guest is without its VFs meanwhile, so a
 * lease limits it.
 */
#include "agent/migration/claims.h"
#include "agent/migration/handover.h"
#include "agent/migration/progress.h"
#include "agent/migration/table.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"

static bool lease_is_over(const struct vhca_mig *m)
{
	return m->lease_until && vhca_now_ms() >= m->lease_until;
}

/* ---- ready ---- */

/*
 * Counted from its end: a destination that is silent holds each renewal up for longer than they are
 * apart, and the job has its turn between two of them.
 */
static void note_renewal(struct vhca_mig *m)
{
	m->renewed_ms = vhca_now_ms();
}

static void note_whether_begun(struct vhca_mig *m)
{
	note_renewal(m);
	m->begun = m->begun || m->res->begun;
	mig_reason(m, "%s", "");
}

/* Does not answer, or does not say that it has given the migration up. */
static bool nothing_is_known(const struct vhca_mig *m)
{
	return m->res->err.kind != VHCA_ERR_CONFLICT && m->res->err.kind != VHCA_ERR_NOT_FOUND;
}

static void say_why_not_renewed(struct vhca_mig *m)
{
	note_renewal(m);
	mig_reason(m, "%s", m->res->err.msg);
}

/*
 * The destination has given it up. What that means, the job says: nothing is rolled back under a
 * copy.
 */
static void note_given_up(struct vhca_mig *m)
{
	note_renewal(m);
	mig_fail_as_told(m);
	m->begun = true;
}

static bool a_job_is_under_way(const struct vhca_mig *m)
{
	return m->res->copying || m->res->held;
}

/*
 * A copy has been begun there, or nobody waits for it there any more, and here is none: it failed.
 */
static bool copy_was_tried(const struct vhca_mig *m)
{
	return m->begun;
}

static void fail_copy_failed(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "copy_failed", "the orchestrator's migration failed");
}

static void fail_lease_over(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "lease_over", "nobody migrated the domain in time");
}

/* ---- parked ---- */

static void fail_park_over(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "lease_over", "nobody wanted the VFs out any longer");
}

static void end_claims(struct vhca_mig *m)
{
	mig_let_go(m);
	mig_reason(m, "%s", "");
}

static void await_lease(struct vhca_mig *m)
{
	if (m->lease_until)
		mig_again(m, m->lease_until - vhca_now_ms());
}

static const struct mig_rule rules[] = {
	MIG_RULE(MIG_IN(READY), EXTEND, NULL, mig_start_lease, NONE, VHCA_MIG_READY),
	MIG_RULE(MIG_IN(READY), LOOK, mig_renewal_is_due, NULL, HANDOVER, MIG_STAY),
	MIG_RULE(MIG_IN(READY), LOOK, NULL, NULL, JOB, MIG_STAY),
	MIG_RULE(MIG_IN(READY), HANDOVER, mig_succeeded, note_whether_begun, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(READY), HANDOVER, nothing_is_known, say_why_not_renewed, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(READY), HANDOVER, NULL, note_given_up, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(READY), JOB, mig_cannot_tell, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(READY), JOB, mig_domain_is_elsewhere, NULL, NONE, VHCA_MIG_FINISHING),
	MIG_RULE(MIG_IN(READY), JOB, a_job_is_under_way, NULL, NONE, VHCA_MIG_COPYING),
	MIG_RULE(MIG_IN(READY), JOB, mig_is_cancelled, mig_fail_cancelled, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(READY), JOB, copy_was_tried, fail_copy_failed, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(READY), JOB, lease_is_over, fail_lease_over, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(READY), JOB, NULL, mig_check_job_later, NONE, MIG_STAY),

	MIG_RULE(MIG_IN(PARKED), EXTEND, NULL, mig_start_lease, NONE, VHCA_MIG_PARKED),
	MIG_RULE(MIG_IN(PARKED), LOOK, mig_guest_is_gone, end_claims, NONE, VHCA_MIG_DONE),
	MIG_RULE(MIG_IN(PARKED), LOOK, mig_is_cancelled, mig_fail_cancelled, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(PARKED), LOOK, lease_is_over, fail_park_over, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(PARKED), LOOK, NULL, await_lease, NONE, MIG_STAY),
};
const struct mig_rules mig_waiting_rules = {rules, VHCA_ARRAY_SIZE(rules)};
