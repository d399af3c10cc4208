/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The destination's side, one step function per state. */
#include <errno.h>

#include "agent/migration_int.h"
#include "common/base/file.h"

static bool all_in(const struct vhca_mig *m, enum vhca_vf_state state)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!vhca_claim_rests_in(c, state))
			return false;
	return true;
}

/* Cancelled, or nobody came back in time: true if that was seen to. */
static bool over(struct vhca_mig *m)
{
	uint64_t now = vhca_now_ms();
	struct vhca_claim *c = NULL;

	if (m->cancel) {
		mig_move(m, VHCA_MIG_ENDING);
		return true;
	}
	if (!vhca_migration_claim(m, NULL)) {
		mig_fail_to(m, VHCA_MIG_ENDING, VHCA_ERR_CONFLICT, "claims_lost",
			    "this host was restarted");
		return true;
	}
	while ((c = vhca_migration_claim(m, c))) {
		if (c->told == VHCA_TOLD_SUPERSEDED) {
			mig_fail_to(m, VHCA_MIG_ENDING, VHCA_ERR_CONFLICT, "superseded",
				    "the SM has given the identity to a later owner");
			return true;
		}
		if (!c->failure.kind)
			continue;
		mig_fail(m, &c->failure);
		mig_move(m, VHCA_MIG_ENDING);
		return true;
	}
	if (m->pinned && (m->answered || !vhca_engine_virt_synced(m->owner->args.engine)))
		return false;
	if (now >= m->lease_until) {
		mig_fail_to(m, VHCA_MIG_ENDING, VHCA_ERR_UNAVAILABLE, "lease_over",
			    "the source did not go on in time");
		return true;
	}
	mig_again(m, m->lease_until - now);
	return false;
}

static bool keys_there(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!vhca_claim_keys_on_port(c))
			return false;
	return true;
}

static void announce(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		vhca_engine_announce(m->owner->args.engine, c);
}

static void step_reserving(struct vhca_mig *m)
{
	const struct vhca_conf *conf = m->owner->args.conf;
	uint64_t waited = vhca_now_ms() - m->entered_ms;

	if (over(m) || !all_in(m, VHCA_VF_CLAIMED))
		return;
	if (!m->answered) {
		m->answered = true;
		mig_members(m);
	}
	if (keys_there(m)) {
		mig_reason(m, "%s", "");
		announce(m);
		mig_move(m, VHCA_MIG_RESERVED);
	} else if (waited >= conf->pkey_timeout_ms) {
		/* The guest would be cut off where it goes to: better not to begin. */
		mig_fail_to(m, VHCA_MIG_ENDING, VHCA_ERR_CONFLICT, "pkey_not_on_port",
			    "a P_Key of the domain is not in the table of the destination's port");
	} else {
		mig_reason(m, "waits for the P_Keys on the port");
		mig_again(m, conf->pkey_timeout_ms - waited);
	}
}

static void step_reserved(struct vhca_mig *m)
{
	(void)over(m);
}

static void step_programming(struct vhca_mig *m)
{
	if (!over(m) && all_in(m, VHCA_VF_PROGRAMMED))
		mig_move(m, VHCA_MIG_INCOMING);
}

static void step_incoming(struct vhca_mig *m)
{
	const struct vhca_domain *dom = mig_domain(m);

	if (dom && !dom->incoming) {
		mig_move(m, VHCA_MIG_ATTACHING);
		return;
	}
	/* The incoming domain was here and has gone: the copy failed. The source will say so; if it cannot, the lease ends it. */
	if (dom) {
		m->answered = m->pinned = true; /* on its way in: no lease frees its VFs */
	} else if (m->pinned && m->answered && vhca_engine_virt_synced(m->owner->args.engine)) {
		m->pinned = m->answered = false;
		m->lease_until = vhca_now_ms() + MIG_INCOMING_GONE_MS;
	}
	(void)over(m);
}

static void step_attaching(struct vhca_mig *m)
{
	struct vhca_claim *c, *next;

	if (!mig_domain(m) && vhca_engine_virt_synced(m->owner->args.engine)) {
		mig_fail_to(m, VHCA_MIG_ENDING, VHCA_ERR_CONFLICT, "domain_gone",
			    "the domain stopped after it had arrived");
		return;
	}
	if (!vhca_migration_attached(m))
		return;
	if (!m->unmarked) {
		mig_start(m, VHCA_MIG_EFFECT_UNMARK);
		return;
	}
	for (c = vhca_migration_claim(m, NULL); c; c = next) {
		next = vhca_migration_claim(m, c);
		vhca_engine_settle(m->owner->args.engine, c);
	}
	mig_members(m);
	m->failure = (struct vhca_error)VHCA_ERROR_INIT;
	mig_reason(m, "%s", "");
	mig_move(m, VHCA_MIG_DONE);
}

static void step_ending(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;
	unsigned int left = 0;

	while ((c = vhca_migration_claim(m, c))) {
		left++;
		if (!c->ending)
			vhca_engine_drop(m->owner->args.engine, c);
	}
	mig_members(m);
	if (left == 0)
		mig_move(m, VHCA_MIG_ENDED);
}

void (*const mig_destination_steps[VHCA_MIG_STATE_COUNT])(struct vhca_mig *m) = {
	[VHCA_MIG_RESERVING] = step_reserving,	   [VHCA_MIG_RESERVED] = step_reserved,
	[VHCA_MIG_PROGRAMMING] = step_programming, [VHCA_MIG_INCOMING] = step_incoming,
	[VHCA_MIG_ATTACHING] = step_attaching,	   [VHCA_MIG_ENDING] = step_ending,
};
