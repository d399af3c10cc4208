/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the subnet manager answers to reports, and asks for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/vf/report.h"
#include "agent/vf/request.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/http/json.h"

static const struct {
	enum vhca_claim_answer sm_answer;
	const char *word;
} answers[] = {
	[VHCA_SM_ACCEPTED] = {VHCA_ANSWER_ACCEPTED, "accepted"},
	[VHCA_SM_SUPERSEDED] = {VHCA_ANSWER_SUPERSEDED, "superseded: another owner is known"},
	[VHCA_SM_REFUSED] = {VHCA_ANSWER_REFUSED, "refused"},
	[VHCA_SM_RETRY] = {VHCA_ANSWER_UNREACHABLE, "not in effect yet"},
};

/* What the SM knows of a vGUID that it does not give us. */
struct known_owner {
	uint64_t epoch;
	uint64_t port_guid; /* 0 = not said */
	bool bound;	    /* false: that owner has given it up */
};

static bool parse_owner(struct json_object *doc, struct known_owner *ret)
{
	const char *port = NULL;

	*ret = (struct known_owner){.bound = true};
	return doc &&
	       vhca_json_opt_u64(doc, "known_epoch", UINT64_MAX - 2, &ret->epoch, NULL) >= 0 &&
	       vhca_json_opt_bool(doc, "bound", &ret->bound, NULL) >= 0 &&
	       vhca_json_opt_string(doc, "port_guid", &port, NULL) >= 0 &&
	       (!port || vhca_guid_parse(port, &ret->port_guid) == 0);
}

/*
 * The one after an epoch may be promised: to the destination of a migration that the SM has not
 * heard of yet, and that goes on when the SM cannot be asked.
 */
static uint64_t above_promised_epoch(uint64_t epoch)
{
	return epoch + 2;
}

/*
 * Why a later epoch may be ours, *ret: nobody is robbed, or an operator answers for it. NULL = it
 * may not.
 */
static const char *why_ours(struct vhca_engine *e, const struct vhca_claim *c,
			    const struct known_owner *owner, uint64_t *ret)
{
	*ret = above_promised_epoch(owner->epoch);
	if (owner->epoch < c->epoch)
		return NULL;
	/* What was handed over is raised by who handed it over. */
	if (c->migrating && !vhca_claim_is_withheld(c) && c->custody != VHCA_CUSTODY_RESTORED)
		return NULL;
	if (!owner->bound)
		return "of a place that gave it up"; /* this VM was stopped on another host */
	if (owner->port_guid == c->vf->hca->ports[c->vf->hca->port - 1].port_guid)
		return "of this port"; /* our database was lost */
	if (!vhca_epoch_next_generation(owner->epoch, ret))
		return NULL;
	return engine_takes_over(e, c) ? "of a host that is taken over from" : NULL;
}

static void raise_epoch(struct vhca_engine *e, struct vhca_claim *c, uint64_t epoch)
{
	c->epoch = epoch;
	c->sm_answer_ms = vhca_now_ms();
	(void)vhca_model_set_epoch(&e->model, c->identity.guid,
				   c->epoch); /* known: no memory needed */
	engine_save_and_report(e, c->vf);
}

/*
 * An earlier claim was withdrawn at the epoch that is ours now (before a reboot, say), and the SM
 * has not heard so, else it had refused this one: that request may still come, and would bury it.
 * Now that the SM has accepted it from here, it is ours to raise.
 */
static void leave_old_epoch(struct vhca_engine *e, struct vhca_claim *c)
{
	if (vhca_claim_is_withheld(c) || c->migrating || vhca_claim_is_ending(c)) {
		c->reused = false; /* whoever moves or ends it has its own way with epochs */
	} else if (c->vf->committing) {
		engine_report(e, c); /* the SM will say it again */
	} else {
		c->reused = false;
		raise_epoch(e, c, above_promised_epoch(c->epoch));
	}
}

/*
 * The SM has refused an epoch. True: the answer is not the last word, another report is under way.
 */
static bool go_on_from(struct vhca_engine *e, struct vhca_claim *c, struct json_object *doc)
{
	struct known_owner owner;
	uint64_t epoch;
	const char *why = parse_owner(doc, &owner) ? why_ours(e, c, &owner, &epoch) : NULL;

	if (!why)
		return false;
	if (c->vf->committing) {
		engine_report(e, c); /* the claim is being written: the SM will say it again */
		return true;
	}
	vhca_events_add(e->args.events, "sm", VHCA_GUID_STR(c->identity.guid),
			"the SM knows epoch %" PRIu64 ", %s: going on with %" PRIu64, owner.epoch,
			why, epoch);
	engine_forget_answer(c);
	c->reused = c->disputed = c->asked_before = false;
	vhca_model_dispute(&e->model, c->identity.guid, false);
	raise_epoch(e, c, epoch);
	return true;
}

/* Of an answer to what is asked for now. */
static void end_lid(struct vhca_engine *e, struct vhca_claim *c,
		    const struct vhca_sm_binding *binding, const char *why)
{
	if (c->follow_lid != binding->from_lid || c->follow_port != binding->from_port_guid)
		return;
	engine_end_lid(e, c, why);
	engine_save_soon(e, c);
}

void vhca_engine_sm_keeps_lid(void *engine, const struct vhca_sm_binding *binding,
			      const char *reason)
{
	struct vhca_engine *e = engine;
	struct vhca_claim *c = vhca_model_claim_by_guid(&e->model, binding->vguid);

	if (c && c->epoch == binding->epoch)
		end_lid(e, c, binding, reason);
}

/* It was down for want of a partition, or may be. */
static void raise_link(const struct vhca_claim *c)
{
	struct vhca_vf *vf = c->vf;

	if (!vf || vhca_hca_identity(vf->hca)->host_pkey_map ||
	    (vf->state != VHCA_VF_PROGRAMMED && vf->state != VHCA_VF_ATTACHED) ||
	    (vf->hw_known && vf->hw.policy != VHCA_LINK_DOWN))
		return;
	vf->reprogram = true;
	vf->outdated |= vf->host.effect != VHCA_EFFECT_NONE;
}

/*
 * Where only the SM has partitions, its no is durable: an agent that starts would take them for
 * accepted. Its yes is not asked for again then: an SM that is away takes nothing back.
 */
static void note_word(struct vhca_engine *e, struct vhca_claim *c, enum vhca_word word)
{
	bool changes = word == VHCA_WORD_NO || c->word == VHCA_WORD_NO;

	c->word = word;
	if (changes && c->vf && !vhca_hca_identity(c->vf->hca)->host_pkey_map)
		engine_save_soon(e, c);
}

/*
 * The SM asks for a ticket of the very source that was silent, and knows nobody above what that has
 * promised: so the source has not taken it back, and its tickets are still to come. What is not the
 * source's own it could not have promised.
 */
static bool signer_is_away(const struct vhca_engine *e, const struct vhca_claim *c,
			   struct json_object *doc)
{
	struct json_object *signers = NULL;

	if (!c->awaited_signer[0] || vhca_engine_proof(e, c) ||
	    !json_object_object_get_ex(doc, "signers", &signers) ||
	    !json_object_is_type(signers, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(signers); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(signers, i));

		if (name && strcmp(name, c->awaited_signer) == 0)
			return true;
	}
	return false;
}

void vhca_engine_sm_answer(void *engine, const struct vhca_sm_binding *binding,
			   enum vhca_sm_answer answer, const char *reason, struct json_object *doc)
{
	struct vhca_engine *e = engine;
	struct vhca_claim *c = vhca_model_claim_by_guid(&e->model, binding->vguid);
	static const char *const codes[] = {VHCA_CODE_NOT_THE_OWNER, VHCA_CODE_TICKET_NOT_VALID};
	bool refused, waits;
	int code;

	if (!binding->bound || !c || c->epoch != binding->epoch)
		return;
	if (engine_is_changing(e, c->vf, false))
		return; /* of the list before: one of the two is reported anew */
	if (answer == VHCA_SM_ACCEPTED &&
	    (binding->n_pkeys != c->identity.n_pkeys ||
	     memcmp(binding->pkeys, c->identity.pkeys,
		    binding->n_pkeys * sizeof(binding->pkeys[0])) != 0))
		return; /* the partitions have changed since, and that is reported */
	code = vhca_json_problem_find(doc, codes, VHCA_ARRAY_SIZE(codes));
	waits = code >= 0 && strcmp(codes[code], VHCA_CODE_NOT_THE_OWNER) == 0 &&
		signer_is_away(e, c, doc);
	if (waits) {
		answer = VHCA_SM_RETRY;
		c->disputed = true;
		vhca_model_dispute(&e->model, c->identity.guid, true);
	}
	refused = answer == VHCA_SM_REFUSED || answer == VHCA_SM_SUPERSEDED;
	if (answer == VHCA_SM_ACCEPTED || answer == VHCA_SM_SUPERSEDED)
		vhca_model_dispute(&e->model, c->identity.guid, answer != VHCA_SM_ACCEPTED);
	if (answer == VHCA_SM_ACCEPTED) {
		raise_link(c);
		vhca_model_own_epoch(&e->model, c->identity.guid, c->epoch);
		note_word(e, c, VHCA_WORD_YES);
		c->ownership_unconfirmed = c->disputed = c->asked_before = false;
		if (c->awaited_signer[0]) {
			c->awaited_signer[0] = '\0';
			engine_save_soon(e, c);
			vhca_engine_declare_members(e); /* its binding has its keys on the port */
		}
		vhca_engine_prove(c, NULL); /* before the next report, which would show it again */
		if (binding->follow_lid)
			end_lid(e, c, binding, NULL);
		else if (c->follow_lid && c->vf->state == VHCA_VF_ATTACHED)
			engine_report(e, c); /* one of before the guest came has replaced that */
		if (c->reused)
			leave_old_epoch(e, c);
	}
	if (refused && c->custody != VHCA_CUSTODY_RESERVED && go_on_from(e, c, doc))
		return;
	c->sm_code = code < 0 ? NULL : codes[code];
	if (waits || (refused && c->awaited_signer[0]))
		vhca_engine_declare_members(e);
	if (c->sm_answer != answers[answer].sm_answer) {
		c->sm_answer = answers[answer].sm_answer;
		c->sm_answer_ms = vhca_now_ms();
		vhca_events_add(e->args.events, refused ? "alarm" : "sm",
				VHCA_GUID_STR(c->identity.guid), "report %s%s%s",
				answers[answer].word, reason[0] ? ": " : "", reason);
		if (refused && c->custody != VHCA_CUSTODY_RESERVED)
			note_word(e, c, VHCA_WORD_NO);
	}
	(void)snprintf(c->sm_answer_reason, sizeof(c->sm_answer_reason), "%s",
		       reason[0] ? reason : answers[answer].word);
	if (c->vf)
		engine_tell_word(e, c->vf);
	if (c->vf)
		engine_mark(e, c->vf);
}

void vhca_engine_sm_named_other(void *engine, const struct vhca_sm_binding *binding)
{
	struct vhca_engine *e = engine;
	struct vhca_claim *c = vhca_model_claim_by_guid(&e->model, binding->vguid);

	if (!binding->bound || !c || c->epoch != binding->epoch ||
	    c->sm_answer == VHCA_ANSWER_ACCEPTED)
		return;
	c->disputed = true;
	vhca_model_dispute(&e->model, c->identity.guid, true);
}

/* Its yes gives nothing, and only who keeps something for a guest is asked for a no. */
void vhca_engine_sm_would_answer(void *engine, const struct vhca_sm_binding *binding,
				 enum vhca_sm_answer answer, const char *reason,
				 struct json_object *doc)
{
	struct vhca_engine *e = engine;
	struct vhca_claim *c = vhca_model_claim_by_guid(&e->model, binding->vguid);

	if (answer == VHCA_SM_SUPERSEDED && c && engine_is_kept_for_guest(e, c))
		vhca_engine_sm_answer(e, binding, answer, reason, doc);
}

void vhca_engine_snapshot(void *engine)
{
	struct vhca_engine *e = engine;
	struct vhca_hca *hca;

	vhca_events_add(e->args.events, "sm", e->conf->node_name,
			"the SM rebuilds: all bindings are reported again");
	TAILQ_FOREACH (hca, &e->model.hcas, link)
		engine_report_hca(e, hca);
}
