/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The destination's side. */
#include <errno.h>

#include "agent/migration/claims.h"
#include "agent/migration/list.h"
#include "agent/migration/progress.h"
#include "agent/migration/table.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"

/* the incoming domain vanished; the source's abort should come, or the copy again */
#define INCOMING_GONE_MS 30000

static bool all_in(const struct vhca_mig *m, enum vhca_vf_state state)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		if (!vhca_claim_rests_in(c, state))
			return false;
	return true;
}

static bool has_failed(const struct vhca_mig *m)
{
	return m->failure.kind != VHCA_ERR_NONE;
}

/* ---- what ends it before the guest is here ---- */

static bool has_no_claims(const struct vhca_mig *m)
{
	return !vhca_migration_claim(m, NULL);
}

static void fail_claims_lost(struct vhca_mig *m)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_engine_check_disk(m->owner->args.engine, &err) < 0)
		mig_fail(m, &err); /* they could not be written */
	else
		mig_fail_with(m, VHCA_ERR_CONFLICT, "claims_lost",
			      "its VFs were detached, or this host was restarted");
}

static bool in_order(const struct vhca_claim *c)
{
	return c->sm_answer != VHCA_ANSWER_SUPERSEDED && !c->failure.kind;
}

static bool a_claim_failed(const struct vhca_mig *m)
{
	return !mig_all(m, in_order);
}

static void fail_with_claim(struct vhca_mig *m)
{
	struct vhca_claim *c = vhca_migration_claim(m, NULL);

	while (in_order(c))
		c = vhca_migration_claim(m, c);
	if (c->sm_answer == VHCA_ANSWER_SUPERSEDED)
		mig_fail_with(m, VHCA_ERR_CONFLICT, VHCA_CODE_SUPERSEDED,
			      "the SM has given the identity to a later owner");
	else
		mig_fail(m, &c->failure);
}

static bool guest_runs_here(const struct vhca_mig *m)
{
	return mig_domain(m) && !mig_domain(m)->incoming;
}

/* It may run here: only libvirt can tell. */
static bool location_is_unknown(const struct vhca_mig *m)
{
	return (m->pinned || mig_is_revived(m)) && !mig_domain(m) &&
	       !vhca_engine_virt_synced(m->owner->args.engine);
}

static bool is_called_back(const struct vhca_mig *m)
{
	return mig_is_cancelled(m) && !location_is_unknown(m) && !(m->pinned && guest_runs_here(m));
}

static bool lease_counts(const struct vhca_mig *m)
{
	if (location_is_unknown(m))
		return false;
	return !m->pinned ||
	       (m->phase == VHCA_MIG_PHASE_NEW && vhca_engine_virt_synced(m->owner->args.engine));
}

static bool lease_is_over(const struct vhca_mig *m)
{
	return lease_counts(m) && vhca_now_ms() >= m->lease_until;
}

static void fail_lease_over(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "lease_over", "the source did not go on in time");
}

static void await_lease(struct vhca_mig *m)
{
	if (lease_counts(m))
		mig_again(m, m->lease_until - vhca_now_ms());
}

/* ---- reserving ---- */

static bool keys_are_undeclared(const struct vhca_mig *m)
{
	return m->phase != VHCA_MIG_PHASE_KEYS_DECLARED && all_in(m, VHCA_VF_CLAIMED);
}

static void declare_keys(struct vhca_mig *m)
{
	m->phase = VHCA_MIG_PHASE_KEYS_DECLARED;
	mig_members(m);
	mig_again(m, 0);
}

static bool vfs_and_keys_are_there(const struct vhca_mig *m)
{
	return all_in(m, VHCA_VF_CLAIMED) && mig_all(m, vhca_claim_keys_on_port);
}

static void announce(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	mig_reason(m, "%s", "");
	while ((c = vhca_migration_claim(m, c)))
		vhca_engine_announce(m->owner->args.engine, c);
}

static uint64_t waited_ms(const struct vhca_mig *m)
{
	return vhca_now_ms() - m->entered_ms;
}

static bool keys_are_late(const struct vhca_mig *m)
{
	return all_in(m, VHCA_VF_CLAIMED) && waited_ms(m) >= m->owner->args.conf->pkey_timeout_ms;
}

/* The guest would be cut off where it goes to: better not to begin. */
static void fail_key_not_on_port(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "pkey_not_on_port",
		      "a P_Key of the domain is not in the table of the destination's port");
}

static bool vfs_are_there(const struct vhca_mig *m)
{
	return all_in(m, VHCA_VF_CLAIMED);
}

static void await_keys(struct vhca_mig *m)
{
	uint64_t waited = waited_ms(m), limit = m->owner->args.conf->pkey_timeout_ms;

	mig_reason(m, "waits for the P_Keys on the port");
	await_lease(m);
	if (waited < limit && vhca_now_ms() + limit - waited < m->lease_until)
		mig_again(m, limit - waited);
}

/* ---- the guest is here before the hand-over ---- */

/*
 * It runs here, and no copy of it was let in: it was started here, after its source had died. What
 * is kept is promised by a host that will not hand it over; what the guest gets, its metadata asks
 * for. (A managed copy may have been let in by an agent that was killed before it wrote so.)
 */
static bool was_started_here(const struct vhca_mig *m)
{
	return guest_runs_here(m) &&
	       (m->mode != VHCA_MIG_MODE_MANAGED || !(m->pinned || mig_is_revived(m)));
}

static void fail_started_here(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "started_here",
		      "the domain was started here, not migrated");
}

/*
 * Its VFs at the source are withdrawn and the next epoch is in the journal there: without that no
 * managed copy begins.
 */
static bool guest_came_first(const struct vhca_mig *m)
{
	return m->mode == VHCA_MIG_MODE_MANAGED && m->pinned && guest_runs_here(m);
}

static void await_handover(struct vhca_mig *m)
{
	uint64_t now = vhca_now_ms();

	if (!m->arrived_ms)
		m->arrived_ms = now;
	if (now < m->arrived_ms + m->owner->args.alone_ms)
		mig_again(m, m->arrived_ms + m->owner->args.alone_ms - now);
	mig_reason(m, "the guest is here; its addresses are not handed over yet");
}

/* The source is dead, or cut off: its promise is as good as its word. */
static bool nobody_hands_over(const struct vhca_mig *m)
{
	return guest_came_first(m) && m->arrived_ms &&
	       vhca_now_ms() >= m->arrived_ms + m->owner->args.alone_ms &&
	       mig_all(m, mig_claim_can_take);
}

static void take_promised_epoch(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	vhca_events_add(m->owner->args.events, "migration", m->domain_name,
			"the source is silent; the guest is here and goes on with the addresses "
			"that were promised");
	mig_reason(m, "%s", "");
	m->handover = VHCA_MIG_HANDOVER_TAKEN;
	while ((c = vhca_migration_claim(m, c))) {
		if (!vhca_claim_is_withheld(c))
			continue;
		mig_await_tickets(m, c);
		vhca_engine_return(m->owner->args.engine, c, c->epoch + 1);
	}
}

/* ---- programming, incoming ---- */

static void note_handed(struct vhca_mig *m)
{
	m->handover = VHCA_MIG_HANDOVER_DELIVERED;
}

/*
 * Where the guest is here already, the first of several may be in it before the last is programmed.
 */
static bool is_programmed(const struct vhca_claim *c)
{
	return vhca_claim_rests_in(c, VHCA_VF_PROGRAMMED) || c->vf->state == VHCA_VF_ATTACHED;
}

static bool vfs_are_programmed(const struct vhca_mig *m)
{
	return mig_all(m, is_programmed);
}

static bool guest_comes(const struct vhca_mig *m)
{
	return mig_domain(m) && !(m->phase == VHCA_MIG_PHASE_GUEST_SEEN && m->pinned);
}

/* On its way in: no lease frees its VFs. */
static void note_guest_comes(struct vhca_mig *m)
{
	m->phase = VHCA_MIG_PHASE_GUEST_SEEN;
	m->pinned = true;
	mig_again(m, 0);
}

/*
 * The incoming domain was here and has gone: the copy failed. The source will say so; if it cannot,
 * the lease ends it.
 */
static bool guest_vanished(const struct vhca_mig *m)
{
	return m->pinned && m->phase == VHCA_MIG_PHASE_GUEST_SEEN && mig_guest_is_gone(m);
}

static void shorten_lease(struct vhca_mig *m)
{
	m->phase = VHCA_MIG_PHASE_NEW;
	m->pinned = false;
	m->lease_until = vhca_now_ms() + INCOMING_GONE_MS;
	mig_again(m, 0);
}

/*
 * Started here, it seems, after its source had died; it may have been elsewhere in between, and its
 * identities with it. (Or it was too quick for us: then the SM says again what it said before.)
 */
static bool guest_was_not_seen_coming(const struct vhca_mig *m)
{
	return guest_runs_here(m) && (!m->pinned || mig_is_revived(m));
}

static void ask_sm_again(struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;

	while ((c = vhca_migration_claim(m, c)))
		vhca_engine_contest(m->owner->args.engine, c);
}

/* ---- attaching ---- */

/* Since the agent was restarted. Before libvirt had shown it, nothing was reported of its VFs. */
static bool guest_is_here_again(const struct vhca_mig *m)
{
	return m->record == VHCA_MIG_RECORD_LOADED && m->phase == VHCA_MIG_PHASE_NEW &&
	       guest_runs_here(m);
}

static void note_guest_and_ask_sm(struct vhca_mig *m)
{
	m->phase = VHCA_MIG_PHASE_GUEST_SEEN;
	ask_sm_again(m);
	mig_again(m, 0);
}

static void fail_guest_gone(struct vhca_mig *m)
{
	mig_fail_with(m, VHCA_ERR_CONFLICT, "domain_stopped",
		      "the domain stopped after it had arrived");
}

static bool has_another_owner(const struct vhca_claim *c)
{
	return c->sm_answer == VHCA_ANSWER_SUPERSEDED;
}

/*
 * The guest was started here, it seems, and the SM has another owner of what it asks for: nobody
 * but that one hands it over.
 */
static bool is_superseded(const struct vhca_mig *m)
{
	return mig_any(m, has_another_owner);
}

static bool vfs_are_attached(const struct vhca_mig *m)
{
	return vhca_migration_attached(m);
}

static bool vfs_are_attached_and_marked(const struct vhca_mig *m)
{
	return vfs_are_attached(m) && m->marker != VHCA_MIG_MARKER_REMOVED;
}

static void settle(struct vhca_mig *m)
{
	mig_settle_claims(m);
	m->failure = (struct vhca_error)VHCA_ERROR_INIT;
	mig_reason(m, "%s", "");
}

#define ADMITTED     (MIG_IN(RESERVED) | MIG_IN(PROGRAMMING) | MIG_IN(INCOMING))
#define NOT_HERE_YET (MIG_IN(RESERVING) | ADMITTED)
#define NOT_HANDED   (MIG_IN(RESERVING) | MIG_IN(RESERVED))

static const struct mig_rule rules[] = {
	MIG_RULE(MIG_NEW, OFFER, has_failed, NULL, NONE, VHCA_MIG_ENDING),
	MIG_RULE(MIG_NEW, OFFER, NULL, NULL, NONE, VHCA_MIG_RESERVING),
	/* Some of its VFs were not known. */
	MIG_RULE(MIG_IN(RESERVED), OFFER, NULL, NULL, NONE, VHCA_MIG_RESERVING),

	/* Once the guest runs here, nobody can call it back. */
	MIG_RULE(MIG_IN(INCOMING), LOOK, guest_was_not_seen_coming, ask_sm_again, NONE,
		 VHCA_MIG_ATTACHING),
	MIG_RULE(MIG_IN(INCOMING), LOOK, guest_runs_here, NULL, NONE, VHCA_MIG_ATTACHING),
	MIG_RULE(NOT_HANDED, LOOK, was_started_here, fail_started_here, NONE, MIG_UNDO),
	MIG_RULE(ADMITTED, LOOK, guest_comes, note_guest_comes, NONE, MIG_STAY),
	MIG_RULE(ADMITTED, LOOK, guest_vanished, shorten_lease, NONE, MIG_STAY),

	MIG_RULE(NOT_HERE_YET, LOOK, is_called_back, NULL, NONE, MIG_UNDO),
	MIG_RULE(NOT_HERE_YET, LOOK, has_no_claims, fail_claims_lost, NONE, MIG_UNDO),
	MIG_RULE(NOT_HERE_YET, LOOK, a_claim_failed, fail_with_claim, NONE, MIG_UNDO),
	MIG_RULE(NOT_HERE_YET, LOOK, lease_is_over, fail_lease_over, NONE, MIG_UNDO),

	MIG_RULE(MIG_IN(RESERVING), LOOK, keys_are_undeclared, declare_keys, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(RESERVING), LOOK, vfs_and_keys_are_there, announce, NONE,
		 VHCA_MIG_RESERVED),
	MIG_RULE(MIG_IN(RESERVING), LOOK, keys_are_late, fail_key_not_on_port, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(RESERVING), LOOK, vfs_are_there, await_keys, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(RESERVED), HANDED, NULL, note_handed, NONE, VHCA_MIG_PROGRAMMING),
	MIG_RULE(MIG_IN(RESERVED), LOOK, nobody_hands_over, take_promised_epoch, NONE,
		 VHCA_MIG_PROGRAMMING),
	MIG_RULE(MIG_IN(RESERVED), LOOK, guest_came_first, await_handover, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(PROGRAMMING), LOOK, vfs_are_programmed, NULL, NONE, VHCA_MIG_INCOMING),
	MIG_RULE(NOT_HERE_YET, LOOK, NULL, await_lease, NONE, MIG_STAY),

	MIG_RULE(MIG_IN(ATTACHING), LOOK, mig_guest_is_gone, fail_guest_gone, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(ATTACHING), LOOK, guest_is_here_again, note_guest_and_ask_sm, NONE,
		 MIG_STAY),
	MIG_RULE(MIG_IN(ATTACHING), LOOK, is_superseded, fail_with_claim, NONE, MIG_UNDO),
	MIG_RULE(MIG_IN(ATTACHING), LOOK, vfs_are_attached_and_marked, NULL, UNMARK, MIG_STAY),
	MIG_RULE(MIG_IN(ATTACHING), LOOK, vfs_are_attached, settle, NONE, VHCA_MIG_DONE),
	MIG_RULE(MIG_IN(ATTACHING), UNMARK, mig_cannot_unmark, mig_ask_again_later, NONE, MIG_STAY),
	MIG_RULE(MIG_IN(ATTACHING), UNMARK, NULL, mig_note_unmarked, NONE, MIG_STAY),

	MIG_RULE(MIG_IN(ENDING), LOOK, has_no_claims, mig_members, NONE, VHCA_MIG_ENDED),
	MIG_RULE(MIG_IN(ENDING), LOOK, NULL, mig_let_go, NONE, MIG_STAY),
};
const struct mig_rules mig_destination_rules = {rules, VHCA_ARRAY_SIZE(rules)};
