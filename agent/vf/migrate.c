/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a migration asks of the engine: claims that are away, come back, or end. Everything is
 * journaled before it is acted upon.
 */
#include <errno.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/request.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/text.h"

int vhca_engine_reserve(struct vhca_engine *e, const struct vhca_reservation *res,
			struct vhca_claim **ret, struct vhca_error *err)
{
	struct vhca_claim *c = NULL;
	int r;

	if (res->epoch < vhca_model_epoch(&e->model, res->identity.guid))
		return vhca_error_set(
			err, VHCA_ERR_CONFLICT, "stale_epoch", 0,
			"GUID %s: epoch %llu is older than %llu", VHCA_GUID_STR(res->identity.guid),
			(unsigned long long)res->epoch,
			(unsigned long long)vhca_model_epoch(&e->model, res->identity.guid));
	r = engine_check_partitions(e, &res->identity, err);
	if (r == 0)
		r = engine_make_claim(e, &res->req, &res->identity, res->epoch, &c, err);
	/* Whose it is here, is no business of the peer that is answered so. */
	if (r < 0 && vhca_error_is(err, "guid_in_use"))
		vhca_error_set(err, VHCA_ERR_CONFLICT, "guid_in_use", EEXIST,
			       "GUID %s is in use on this host", VHCA_GUID_STR(res->identity.guid));
	if (r < 0)
		return r;
	c->migrating = c->on_loan = true;
	c->custody = VHCA_CUSTODY_WITHHELD;
	c->migration = res->migration;
	c->has_guest = res->has_guest;
	c->guest = res->guest;
	c->from_port_guid = res->from_port_guid;
	c->from_gid_index = res->from_gid_index;
	c->from_lid = res->from_lid;
	engine_plan_lid(e, c, res);
	*ret = c;
	return 0;
}

void vhca_engine_leave(struct vhca_engine *e, struct vhca_claim *claim,
		       const struct vhca_uuid *migration)
{
	claim->migrating = true;
	claim->custody = VHCA_CUSTODY_LEAVING;
	claim->removed_us = 0;
	claim->migration = *migration;
	engine_save_soon(e, claim);
}

/* Whatever was said of the claim's binding was said of another epoch. */
static void raise_epoch(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch)
{
	claim->epoch = epoch;
	claim->withdrawn = claim->arbitration_asked = false;
	engine_forget_answer(claim);
	(void)vhca_model_set_epoch(&e->model, claim->identity.guid,
				   epoch); /* known: no memory needed */
}

static void give_back(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch,
		      enum vhca_custody custody)
{
	if (claim->vf->committing)
		return; /* the caller looks again when the transaction has ended */
	claim->custody = custody;
	claim->kept_epoch = 0;
	claim->vf->reprogram = claim->vf->state != VHCA_VF_CLAIMED; /* bare until now */
	raise_epoch(e, claim, epoch);
	engine_save_and_report(e, claim->vf);
}

void vhca_engine_return(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch)
{
	give_back(e, claim, epoch, VHCA_CUSTODY_HERE);
}

void vhca_engine_restore(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch)
{
	give_back(e, claim, epoch, VHCA_CUSTODY_RESTORED);
}

void vhca_engine_pass_on(struct vhca_claim *claim)
{
	claim->kept_epoch = 0;
}

void vhca_engine_await_tickets(struct vhca_claim *claim, const char *signer)
{
	(void)vhca_strcpy(claim->awaited_signer, sizeof(claim->awaited_signer), signer); /* size */
}

void vhca_engine_contest(struct vhca_engine *e, struct vhca_claim *claim)
{
	claim->arbitration_asked = true;
	engine_tell_sm(e, claim);
}

void vhca_engine_go_bare(struct vhca_engine *e, struct vhca_claim *claim)
{
	if (claim->custody != VHCA_CUSTODY_WITHHELD || !vhca_hca_identity(claim->vf->hca)->in_place)
		return;
	claim->custody = VHCA_CUSTODY_BARE;
	engine_mark(e, claim->vf);
}

bool vhca_engine_fenced(const struct vhca_engine *e)
{
	return e->args.fenced;
}

void vhca_engine_set_epoch(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch)
{
	raise_epoch(e, claim, epoch);
	engine_save_soon(e, claim);
}

void vhca_engine_spend_epoch(struct vhca_engine *e, struct vhca_claim *claim)
{
	raise_epoch(e, claim, claim->epoch + 1);
}

void vhca_engine_unspend_epoch(struct vhca_engine *e, struct vhca_claim *claim)
{
	raise_epoch(e, claim, claim->epoch - 1);
	claim->withdrawn = true;
}

void vhca_engine_begin_generation(struct vhca_engine *e, struct vhca_claim *claim)
{
	uint64_t epoch;

	if (vhca_epoch_next_generation(claim->epoch, &epoch))
		raise_epoch(e, claim, epoch);
}

void vhca_engine_put_withheld(struct vhca_engine *e, struct vhca_txn *txn,
			      const struct vhca_uuid *migration)
{
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		if (c->migrating && vhca_uuid_equal(&c->migration, migration) &&
		    vhca_claim_is_withheld(c) && !c->vf->committing)
			vhca_journal_claim(txn, c);
}

static void leave_epoch(struct vhca_engine *e, uint64_t guid, uint64_t epoch)
{
	struct vhca_claim *c = vhca_model_claim_by_guid(&e->model, guid);
	struct vhca_txn *txn;

	/* Made since; whoever moves or ends it has its own way with epochs. */
	if (c && !c->migrating && !vhca_claim_is_withheld(c) && !vhca_claim_is_ending(c) &&
	    c->boot != VHCA_BOOT_EARLIER) {
		raise_epoch(e, c, epoch + 1);
		/* Behind what is on its way to the disk, which may be the claim's end. */
		if (c->vf->committing)
			engine_owe(c->vf, VHCA_OWED_REPORT);
		else
			engine_save_and_report(e, c->vf);
	}
	(void)vhca_model_set_epoch(&e->model, guid, epoch + 1); /* known: no memory needed */
	txn = vhca_txn_new(e->args.store);
	vhca_journal_epoch(txn, guid, epoch + 1);
	vhca_txn_commit(txn, NULL, NULL);
}

void vhca_engine_leave_stranded(struct vhca_engine *e, const struct vhca_uuid *migration)
{
	const struct vhca_epoch *left;

	while ((left = vhca_model_stranded(&e->model, migration)))
		leave_epoch(e, left->guid, left->epoch);
}

void vhca_engine_settle(struct vhca_engine *e, struct vhca_claim *claim)
{
	claim->migrating = claim->on_loan = false;
	claim->from_port_guid = 0;
	if (!vhca_claim_is_withheld(claim))
		claim->custody = VHCA_CUSTODY_HERE;
	engine_save_soon(e, claim);
	/* That was for the migration to judge. Now it is asked for like any other. */
	if (claim->sm_answer == VHCA_ANSWER_SUPERSEDED) {
		engine_forget_answer(claim);
		engine_report(e, claim);
	} else if (e->conf->tls_certificate[0] && claim->vf->state == VHCA_VF_ATTACHED) {
		engine_report(e, claim); /* settled */
	}
	vhca_timer_arm_ms(e->requests, 0); /* for what its domain lacks */
}

void vhca_claim_join(struct vhca_claim *claim, const struct vhca_uuid *migration)
{
	claim->migrating = true;
	claim->migration = *migration;
}

void vhca_claim_unjoin(struct vhca_claim *claim)
{
	claim->migrating = false;
}

void vhca_claim_recover(struct vhca_claim *claim)
{
	if (claim->boot == VHCA_BOOT_EARLIER)
		claim->custody = VHCA_CUSTODY_HERE;
	else
		claim->arbitration_asked = vhca_claim_is_withheld(claim);
}

void vhca_engine_mark_loaned(struct vhca_engine *e, struct vhca_claim *claim, bool is_on_loan)
{
	claim->on_loan = is_on_loan;
	/* What an earlier life has not got rid of would take it as well as a new report. */
	if (e->outbox && engine_is_kept_for_guest(e, claim))
		vhca_outbox_drop_bound(e->outbox, claim->identity.guid);
}

bool vhca_claim_rests_in(const struct vhca_claim *claim, enum vhca_vf_state state)
{
	return claim->vf->state == state && !claim->vf->committing &&
	       vhca_vf_effect(claim->vf) == VHCA_EFFECT_NONE;
}

/* ---- a host that is emptied ---- */

void vhca_engine_set_drained(struct vhca_engine *e, bool drained)
{
	struct vhca_domain *dom;

	e->drained = drained;
	if (drained)
		return;
	TAILQ_FOREACH (dom, &e->model.domains, link)
		engine_ask_again(e, dom);
}
