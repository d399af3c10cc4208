/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Journaled transitions: the only place where a VF changes its state, or a claim becomes durable.
 *
 * Which state may follow which is the table in sriov/vf_state.h; a move that is not in it is an
 * error of the caller, is logged, and does nothing. engine_move() collects all that changes with
 * the state (the VF's row, its claim, the report to the SM) in one transaction, and on_commit()
 * makes it true in memory when the store says that it is on disk. The durable state is the intent
 * of an effect: whatever that does later, the store already says why, and a killed agent finds on
 * disk what it was about to do.
 * engine_save() is the same without a change of state, for flags of the claim.
 *
 * While a transaction is under way (vf->committing) its VF is not stepped: no decision is based on
 * a state that may not come true. What a claim learns meanwhile is marked (vf->owed) and goes to
 * the disk behind the transaction.
 *
 * A report to the SM is queued in the transaction that makes it true. The outbox sends it when
 * that is durable (its ticket), and not at all when that has failed.
 *
 * A claim begins with its first move, out of free or unmanaged: before that it has no row, it is
 * unborn. It ends with the move to free, or without a move: one of an earlier boot, whose guest is
 * gone, and one of a quarantined VF that has gone.
 *
 * What may fail:
 *   the first move of a claim    is not tried again: the claim is undone, and who waits hears why;
 *                                what a domain's metadata asks for makes a new one
 *   another move, an end         the VF is stepped again after a back-off, and moves anew
 *   a save                       is marked as unsaved, and is tried again after the back-off
 *   no memory                    the VF is stepped again soon; nothing has changed
 *
 * After an end the claim's domain may be served elsewhere, and remembers why it was not: both is
 * asked of the layers above, through struct engine_callbacks.
 */
#include "agent/vf/transition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vf/report.h"
#include "agent/vf/work.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"

/*
 * Its claim has withdrawn its GUID; one that is born away owns nothing yet, and a bare one nothing
 * any more.
 */
static bool becomes_away(const struct vhca_vf *vf, enum vhca_vf_state to)
{
	return to == VHCA_VF_CLAIMED && vf->state != VHCA_VF_FREE &&
	       (vf->claim->custody == VHCA_CUSTODY_WITHHELD ||
		vf->claim->custody == VHCA_CUSTODY_RESERVED);
}

/*
 * The claim is over and its VF scrubbed: last words to who waits, and its domain may be served
 * again.
 */
static void claim_ended(struct vhca_engine *e, struct vhca_vf *vf, struct vhca_claim *c)
{
	struct vhca_claim gone = *c;
	const struct vhca_error *failure = gone.failure.kind ? &gone.failure : NULL;

	vhca_events_add_claim(e->args.events, "claim", c, "%s released%s%s", VHCA_BDF_STR(vf->bdf),
			      failure ? ": " : "", failure ? failure->msg : "");
	STAILQ_INIT(&gone.waiters);
	STAILQ_CONCAT(&gone.waiters, &c->waiters);
	vf->claim = NULL;
	vhca_model_drop_claim(&e->model, c);
	if (!e->callbacks->serve_elsewhere(e, &gone)) {
		if (failure)
			e->callbacks->request_failed(e, &gone);
		engine_tell(e, &gone, VHCA_VF_FREE, failure);
	}
	vf->granted = false;
	vf->missing = 0;
	engine_settle_port(e, vf->hca);
}

/* The guest takes VFs after all. */
static void forget_failed(struct vhca_engine *e, const struct vhca_claim *c)
{
	struct vhca_domain *dom = engine_claim_domain(e, c);
	struct vhca_vf *vf;

	if (dom)
		vhca_domain_served(dom, c->name);
	VHCA_FOREACH_VF (vf, &e->model)
		if (vhca_uuid_equal(&vf->failed_guest, &c->domain))
			vf->failed_guest = (struct vhca_uuid){{0}};
}

void engine_begin_detach(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();
	uint64_t whole_ms = engine_detach_ms(e, vf);

	vf->deadline_ms = now + whole_ms;
	vf->escalation = (struct vhca_escalation){.next_ms = now + whole_ms / 2};
	vf->claim->kept = (struct vhca_error)VHCA_ERROR_INIT;
}

void engine_begin_scrub(struct vhca_vf *vf)
{
	vf->deadline_ms = vhca_now_ms() + GROUP_CLOSE_MS + engine_memory_ms(vf);
}

static void entered(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_vf_state from)
{
	struct vhca_counters *counters = &e->model.counters;

	counters->quarantines += vf->state == VHCA_VF_QUARANTINED;
	if (vf->state == VHCA_VF_SCRUBBING && from == VHCA_VF_DETACHING && vf->detach_us)
		vhca_histogram_add(&counters->unplug, vhca_now_us() - vf->detach_us);
	vf->detach_us = vf->state == VHCA_VF_DETACHING ? vhca_now_us() : 0;
	vf->since_ms = vhca_wall_ms();
	/* A proof that fails again and again must not be tried at full speed. */
	if (vf->state != VHCA_VF_PREPARING && vf->state != VHCA_VF_SCRUBBING &&
	    vf->state != VHCA_VF_QUARANTINED)
		vhca_backoff_reset(&vf->host.backoff);
	vhca_backoff_reset(&vf->virt.backoff);
	vf->host.not_before_ms = vf->virt.not_before_ms = 0;
	vf->look_ms = from == VHCA_VF_PREPARING && vf->state == VHCA_VF_FREE
			      ? vhca_now_ms() + RESET_LOOK_MS
			      : 0;
	if (vf->state != VHCA_VF_PREPARING && vf->state != VHCA_VF_UNMANAGED)
		engine_forget_probe(vf);
	vf->deadline_ms = 0;
	vf->unread = vf->state == VHCA_VF_DETACHING && from == VHCA_VF_QUARANTINED;
	vf->escalation = (struct vhca_escalation){.next_ms = 0};
	if (vf->claim && vf->state == VHCA_VF_ATTACHED) {
		vf->claim->stripped = false;
		vf->failures = 0;
		forget_failed(e, vf->claim);
	}
	if (vf->state == VHCA_VF_DETACHING)
		engine_begin_detach(e, vf);
	if (vf->state == VHCA_VF_SCRUBBING)
		engine_begin_scrub(vf);
	vhca_events_add(e->args.events, "vf", VHCA_BDF_STR(vf->bdf), "%s -> %s%s%s",
			vhca_vf_state_to_string(from), vhca_vf_state_to_string(vf->state),
			vf->reason[0] ? ": " : "", vf->reason);
	if ((from == VHCA_VF_UNMANAGED) != (vf->state == VHCA_VF_UNMANAGED))
		e->args.effects.vfs_changed(e->args.effects.ctx);
	if (vf->claim)
		engine_tell(e, vf->claim, vf->state, NULL);
}

void engine_undo_claim(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_error *why)
{
	struct vhca_claim *c = vf->claim;

	vf->claim = NULL;
	vf->owed = VHCA_OWED_NOTHING;
	engine_tell(e, c, VHCA_VF_UNMANAGED, why); /* a state that nobody waits for */
	vhca_model_drop_claim(&e->model, c);
	engine_settle_port(e, vf->hca);
}

/* What comes first of a claim is not tried again: who asked for it hears at once, and it is as
 * if he had not. Metadata hears nothing and asks again: the disk may work again before anybody
 * has heard that it did not, and then no end of an outage says so. */
static void birth_failed(struct vhca_engine *e, struct vhca_vf *vf, int rc)
{
	struct vhca_claim *c = vf->claim, *other;
	struct vhca_error why = VHCA_ERROR_INIT;

	if (vhca_engine_check_disk(e, &why) == 0)
		vhca_error_set(&why, VHCA_ERR_EXHAUSTED, "state_disk", -rc,
			       "the claim cannot be written to the state database");
	vhca_events_add_claim(e->args.events, "claim", c, "%s is given back: %s",
			      VHCA_BDF_STR(vf->bdf), why.msg);
	c->failure = why;
	e->callbacks->request_failed(e, c);
	/* A guest comes with all of its VFs, or stays where it is. */
	TAILQ_FOREACH (other, &e->model.claims, link)
		if (other != c && c->migrating && other->migrating &&
		    vhca_uuid_equal(&other->migration, &c->migration)) {
			other->failure = why;
			engine_mark(e, other->vf);
		}
	engine_undo_claim(e, vf, &why);
	engine_no_reason(vf);
	engine_mark(e, vf);
	vhca_timer_arm_ms(e->requests, 0);
}

/* A move is made anew by its VF's next step, and so is an end; a save is not. */
static void commit_failed(const struct engine_commit *c, int rc)
{
	struct vhca_engine *e = c->e;
	struct vhca_vf *vf = c->vf;

	engine_reason(vf, "state database: cannot commit: %s; see the disk of %s", strerror(-rc),
		      e->conf->state_dir);
	vhca_log_error("%s: %s", VHCA_BDF_STR(vf->bdf), vf->reason);
	engine_back_off(e, vf);
	if (c->move || c->ended)
		return;
	engine_owe(vf, c->ticket ? VHCA_OWED_REPORT : VHCA_OWED_SAVE);
	vf->owed_ms = vf->host.not_before_ms;
}

static void no_identity(struct vhca_claim *c, int rc)
{
	struct vhca_error why;

	vhca_error_set(&why, VHCA_ERR_EXHAUSTED, "state_disk", -rc,
		       "the partitions cannot be written to the state database");
	engine_refuse(c, VHCA_VF_CLAIMED, &why);
	engine_refuse(c, VHCA_VF_PROGRAMMED, &why);
	engine_refuse(c, ENGINE_MEMBERS, &why);
	c->word_until_ms = 0;
}

/* What is under way for the VF goes by the identity that its claim had. */
static void identity_saved(struct engine_commit *c, int rc)
{
	char keys[VHCA_PKEYS_STRLEN(VHCA_VF_PKEYS_MAX)];
	struct vhca_vf *vf = c->vf;

	if (!vf->claim)
		return;
	if (rc < 0) {
		vf->claim->identity = *c->before;
		no_identity(vf->claim, rc);
		return;
	}
	(void)vhca_pkeys_format(keys, sizeof(keys), vf->claim->identity.pkeys,
				vf->claim->identity.n_pkeys);
	vhca_events_add_claim(c->e->args.events, "claim", vf->claim, "%s has partitions %s",
			      VHCA_BDF_STR(vf->bdf), keys[0] ? keys : "none");
	vf->outdated |= vf->host.effect != VHCA_EFFECT_NONE;
	vf->reprogram |= vf->state == VHCA_VF_PROGRAMMED || vf->state == VHCA_VF_ATTACHED;
	if (vf->claim->custody != VHCA_CUSTODY_RESERVED)
		vf->claim->word = VHCA_WORD_AWAITED;
}

static void on_commit(void *arg, int rc)
{
	struct engine_commit *c = arg;
	struct vhca_engine *e = c->e;
	struct vhca_vf *vf = c->vf;
	enum vhca_vf_state from = vf->state;
	bool may_declare =
		vf->claim && (vhca_claim_is_port(vf->claim) || vf->claim->awaited_signer[0]);

	engine_release_ticket(e, c->ticket, rc == 0);
	vf->committing--;
	if (c->before)
		identity_saved(c, rc);
	if (rc < 0 && c->move && engine_is_unborn(vf)) {
		birth_failed(e, vf, rc);
	} else if (rc < 0) {
		commit_failed(c, rc);
	} else if (c->move) {
		(void)vhca_fault_in("engine.moved", vhca_vf_state_to_string(c->to));
		vf->state = c->to;
		if (c->ended)
			claim_ended(e, vf, c->ended);
		entered(e, vf, from);
		if (vf->state == VHCA_VF_FREE)
			vhca_timer_arm_ms(e->requests, 0);
	} else if (!c->ended && vf->claim && !vf->committing && vf->owed == VHCA_OWED_NOTHING &&
		   (vf->state != VHCA_VF_PROGRAMMED || !vf->reprogram)) {
		engine_tell(e, vf->claim, vf->state, NULL); /* who waits for what is durable now */
	} else if (c->ended && c->ended->boot == VHCA_BOOT_EARLIER) {
		char label[192];

		vhca_log_info("%s: claim of %s ended with the boot it was made in",
			      engine_claim_label(c->ended, label), VHCA_BDF_STR(vf->bdf));
		vhca_model_drop_claim(&e->model, c->ended);
		vhca_timer_arm_ms(e->requests, 0);
	} else if (c->ended) {
		claim_ended(e, vf, c->ended);
		vhca_timer_arm_ms(e->requests, 0); /* its domain may have another VF */
	}
	if (rc == 0) { /* else after the back-off */
		/* A port's keys come before its guest does, and go behind its binding. */
		if (may_declare)
			vhca_engine_declare_members(e);
		if (vf->claim && !vf->committing && vf->owed == VHCA_OWED_NOTHING)
			engine_tell(e, vf->claim, ENGINE_DURABLE, NULL);
		(void)engine_save_pending(e, vf);
		engine_mark(e, vf);
	}
	engine_free_commit(c);
}

static void put_end(struct vhca_txn *txn, struct engine_commit *c, struct vhca_claim *claim)
{
	c->ended = claim;
	c->ticket = engine_put_last_word(c->e, txn, claim);
	if (!c->ticket && c->e->outbox)
		vhca_outbox_drop_proof(c->e->outbox, txn, claim->identity.guid);
	vhca_journal_claim_end(txn, claim);
}

void engine_move(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_vf_state to)
{
	struct engine_commit *c;
	struct vhca_txn *txn;

	if (!vhca_vf_state_may(vf->state, to)) {
		vhca_log_error("%s: internal error: no transition from %s to %s",
			       VHCA_BDF_STR(vf->bdf), vhca_vf_state_to_string(vf->state),
			       vhca_vf_state_to_string(to));
		return;
	}
	c = engine_new_commit(e, vf, true);
	if (!c) {
		engine_again(e, vf, e->args.retry_ms);
		return;
	}
	c->to = to;
	if (to == VHCA_VF_ATTACHED && vf->state == VHCA_VF_PROGRAMMED)
		vf->claim->asked = false; /* of the device that it had before */
	txn = vhca_txn_new(e->args.store);
	if (engine_is_unborn(vf))
		vhca_txn_fail_fast(txn);
	if (vf->claim && to == VHCA_VF_FREE) {
		put_end(txn, c, vf->claim);
	} else if (vf->claim) {
		/*
		 * It goes on without its identity, which waits for its return or for the next
		 * owner. Whether a port's guest comes back here, nobody knows: that is given up.
		 */
		if (becomes_away(vf, to) && vf->claim->custody != VHCA_CUSTODY_RESERVED)
			vf->claim->kept_epoch = vf->claim->epoch;
		engine_look_at_lid(e, vf->claim, to);
		vhca_journal_claim(txn, vf->claim);
	}
	/* What is adopted is not known to the SM as ours yet. */
	if (vf->claim && ((to == VHCA_VF_CLAIMED &&
			   (!vhca_claim_is_withheld(vf->claim) || becomes_away(vf, to))) ||
			  vf->state == VHCA_VF_UNMANAGED))
		c->ticket =
			engine_put_report(e, txn, vf->claim, !vhca_claim_is_withheld(vf->claim));
	if (vf->claim && engine_lid_is_due(e, vf->claim, to))
		c->ticket = engine_put_report_in(e, txn, vf->claim, true, to);
	vhca_journal_vf(txn, vf, to, e->args.boot_id);
	(void)vhca_fault_in("engine.move", vhca_vf_state_to_string(to));
	vhca_txn_commit(txn, on_commit, c);
}

void engine_save_identity(struct vhca_engine *e, struct vhca_vf *vf,
			  const struct vhca_identity *want)
{
	struct engine_commit *c = engine_new_commit(e, vf, false);
	struct vhca_txn *txn;

	if (c)
		c->before = malloc(sizeof(*c->before));
	if (!c || !c->before) {
		if (c) {
			vf->committing--;
			engine_free_commit(c);
		}
		no_identity(vf->claim, -ENOMEM);
		return;
	}
	*c->before = vf->claim->identity;
	vf->claim->identity = *want;
	vf->outdated |= vf->host.effect != VHCA_EFFECT_NONE; /* it began with the old list */
	engine_forget_answer(vf->claim);
	txn = vhca_txn_new(e->args.store);
	vhca_txn_fail_fast(txn);
	vhca_journal_vf(txn, vf, vf->state, e->args.boot_id);
	vhca_journal_claim(txn, vf->claim);
	if (vf->claim->custody != VHCA_CUSTODY_RESERVED)
		c->ticket = engine_put_report(e, txn, vf->claim, true);
	(void)vhca_fault_in("engine.save", "partitions");
	vhca_txn_commit(txn, on_commit, c);
}

static void save(struct vhca_engine *e, struct vhca_vf *vf, bool report)
{
	struct engine_commit *c = NULL;
	struct vhca_txn *txn;

	/*
	 * Behind one that waits for the disk there is one more at most, however long that takes.
	 * What has no row yet gets it with its first move.
	 */
	if ((!vf->committing || !e->disk.kind) && !engine_is_unborn(vf))
		c = engine_new_commit(e, vf, false);
	if (!c) {
		engine_owe(vf, report ? VHCA_OWED_REPORT : VHCA_OWED_SAVE);
		return;
	}
	txn = vhca_txn_new(e->args.store);
	vhca_journal_vf(txn, vf, vf->state, e->args.boot_id);
	if (vf->claim)
		vhca_journal_claim(txn, vf->claim);
	if (vf->claim && report && vf->claim->custody != VHCA_CUSTODY_RESERVED)
		c->ticket = engine_put_report(e, txn, vf->claim, true);
	vhca_txn_commit(txn, on_commit, c);
}

void engine_save(struct vhca_engine *e, struct vhca_vf *vf)
{
	save(e, vf, false);
}

void engine_save_and_report(struct vhca_engine *e, struct vhca_vf *vf)
{
	save(e, vf, true);
}

bool engine_save_pending(struct vhca_engine *e, struct vhca_vf *vf)
{
	enum vhca_vf_owed owed = vf->owed;

	if (owed == VHCA_OWED_NOTHING || !vf->claim || vf->committing ||
	    vhca_now_ms() < vf->owed_ms || engine_is_unborn(vf))
		return false;
	vf->owed = VHCA_OWED_NOTHING;
	save(e, vf, owed == VHCA_OWED_REPORT);
	return true;
}

void engine_save_soon(struct vhca_engine *e, struct vhca_claim *claim)
{
	if (claim->vf->committing)
		engine_owe(claim->vf, VHCA_OWED_SAVE);
	else
		engine_save(e, claim->vf);
	engine_mark(e, claim->vf);
}

void engine_tell_sm(struct vhca_engine *e, struct vhca_claim *claim)
{
	if (claim->vf->committing)
		engine_report(e, claim);
	else
		engine_save_and_report(e, claim->vf);
}

/*
 * The claim's end without a move of its VF; *ret_txn may say more. NULL when out of memory: the VF
 * is stepped again later.
 */
static struct engine_commit *begin_end(struct vhca_engine *e, struct vhca_vf *vf,
				       struct vhca_txn **ret_txn)
{
	struct engine_commit *c = engine_new_commit(e, vf, false);

	if (!c) {
		engine_again(e, vf, e->args.retry_ms);
		return NULL;
	}
	*ret_txn = vhca_txn_new(e->args.store);
	put_end(*ret_txn, c, vf->claim);
	return c;
}

void engine_end_orphan(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_claim *claim = vf->claim;
	struct vhca_txn *txn;
	struct engine_commit *c = begin_end(e, vf, &txn);

	if (!c)
		return;
	/* It may be promised to the migration's other side, which goes on without the claim. */
	if (claim->migrating) {
		vhca_model_strand_epoch(&e->model, claim->identity.guid, &claim->migration);
		vhca_journal_strand_epoch(txn, claim->identity.guid, &claim->migration);
	}
	vhca_txn_commit(txn, on_commit, c);
}

void engine_end_absent(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_txn *txn;
	struct engine_commit *c = begin_end(e, vf, &txn);

	if (!c)
		return;
	vhca_journal_vf(txn, vf, vf->state, e->args.boot_id);
	vhca_txn_commit(txn, on_commit, c);
}

/* ---- the port that carries VFs' identities ---- */

/*
 * The configuration says which, but what has been programmed is on the port of then: looked for on
 * the other one, it is a foreign key in a guest, and the VF is taken from it. So claims keep their
 * port, over restarts, too.
 */

/* A claim whose VF may be programmed; NULL = none. */
static const struct vhca_claim *keeper(const struct vhca_engine *e, const struct vhca_hca *hca)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c->vf && c->vf->hca == hca && c->boot != VHCA_BOOT_EARLIER)
			return c;
	return NULL;
}

static void take_port(struct vhca_engine *e, struct vhca_hca *hca, uint8_t port)
{
	struct vhca_vf *vf;

	vhca_engine_declare_members(e); /* the old port needs nothing any more */
	hca->port = port;
	/* What was read of the VFs is of the other port. */
	TAILQ_FOREACH (vf, &hca->vfs, link) {
		vf->hw_known = false;
		vf->look_ms = 0;
		engine_mark(e, vf);
	}
	vhca_timer_arm_ms(e->requests, 0);
	engine_declare_again(e, hca);
}

void engine_set_port(struct vhca_engine *e, struct vhca_hca *hca, uint8_t want)
{
	const struct vhca_claim *c = keeper(e, hca);
	uint8_t port = c ? c->port : want;
	bool is_first = !hca->want_port, is_new = hca->want_port != want;
	char label[192];

	hca->want_port = want;
	if (is_first)
		hca->port = port;
	else if (port != hca->port)
		take_port(e, hca, port);
	if (is_new && port != want)
		vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(hca->facts.bdf),
				"port %u is configured; port %u stays the VFs' until the last of "
				"their claims has ended (%s has %s)",
				want, port, engine_claim_label(c, label), VHCA_BDF_STR(c->vf->bdf));
}

void engine_settle_port(struct vhca_engine *e, struct vhca_hca *hca)
{
	if (!hca->want_port || hca->port == hca->want_port || keeper(e, hca))
		return;
	take_port(e, hca, hca->want_port);
	vhca_events_add(e->args.events, "port", VHCA_BDF_STR(hca->facts.bdf),
			"port %u carries the VFs' identities now", hca->port);
}
