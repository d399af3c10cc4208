/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the outcome of an effect means: one function per effect. */
#include <errno.h>
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/request.h"
#include "agent/vf/step.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"

static void failed(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_error *err)
{
	engine_reason(vf, "%s", err->msg);
	engine_back_off(e, vf);
}

/* Only what the device refuses is its fault, or its card's. */
static void count_failure(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_error *err)
{
	if (err->kind != VHCA_ERR_DEVICE)
		return;
	vf->failures++;
	(void)vhca_strcpy(vf->fault, sizeof(vf->fault), err->msg); /* a message fits */
	if (!vf->claim || vf->failures < VHCA_VF_FAILURES_MAX)
		return;
	vf->rests_until_ms = vhca_now_ms() + 60000ULL * VHCA_VF_REST_MIN;
	vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(vf->bdf),
			"failed %u times in a row, given to nobody for %d min: %s", vf->failures,
			VHCA_VF_REST_MIN, vf->fault);
}

static void done_probe(struct vhca_engine *e, struct vhca_vf *vf,
		       const struct vhca_effect_result *res)
{
	if (res->rc < 0) {
		failed(e, vf, &res->err);
		return;
	}
	vf->use = res->in_use ? VHCA_USE_SOMEBODY : VHCA_USE_NOBODY;
	if (res->in_use)
		engine_reason(vf, "in use: %s; nothing of it is touched", res->err.msg);
}

/*
 * The port of a cloud, whose claim outlives its guest's run: also where the guest was to let go of
 * the VF for what its QPs may hold. A restarted agent may hear of that before it hears that the
 * guest has gone.
 */
static bool is_reserved_again(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	struct vhca_error left;

	if (!vhca_claim_is_port(c) || c->migrating || c->failure.kind || c->released ||
	    c->end == VHCA_END_ASKED)
		return false;
	c->end = VHCA_END_NONE;
	c->custody = VHCA_CUSTODY_RESERVED;
	c->withdrawn = true;
	c->stripped = c->asked = c->has_guest = false;
	c->run = engine_runs_here(e, c) ? VHCA_RUN_LEFT : VHCA_RUN_UNSEEN;
	vf->granted = false;
	vhca_error_set(&left, VHCA_ERR_UNAVAILABLE, "vf_busy", EBUSY,
		       "%s has left its guest meanwhile, and is reserved", VHCA_BDF_STR(vf->bdf));
	engine_refuse(c, VHCA_VF_PROGRAMMED, &left);
	engine_refuse(c, ENGINE_MEMBERS, &left);
	c->word_until_ms = 0;
	c->word = VHCA_WORD_YES;
	engine_forget_answer(c);
	return true;
}

/* Scrubbed and proven: free, or kept (without identity) by a claim that a migration moves. */
static void proven_clean(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;

	engine_no_reason(vf);
	vf->reprogram = false;
	vf->pci_error = VHCA_PCI_ERROR_NONE;
	if (c && engine_returns_to_guest(e, c)) {
		vf->granted = false;
		engine_move(e, vf, VHCA_VF_CLAIMED);
		return;
	}
	if (c && is_reserved_again(e, vf)) {
		engine_move(e, vf, VHCA_VF_CLAIMED);
		return;
	}
	if (!c || !c->migrating || vhca_claim_is_ending(c) || c->failure.kind) {
		engine_move(e, vf, VHCA_VF_FREE);
		return;
	}
	if (c->custody != VHCA_CUSTODY_BARE)
		c->custody = VHCA_CUSTODY_WITHHELD;
	c->withdrawn = true;
	c->asked = false;
	vf->granted = false; /* of the life that ended: nothing that comes later takes it back */
	engine_move(e, vf, VHCA_VF_CLAIMED);
}

static void done_prepare(struct vhca_engine *e, struct vhca_vf *vf,
			 const struct vhca_effect_result *res)
{
	if (res->rc == 0) {
		(void)vhca_strcpy(vf->driver, sizeof(vf->driver), "vfio-pci");
		proven_clean(e, vf);
	} else {
		/*
		 * What was ours may still have an identity: only a VF that was just being taken
		 * over is left alone.
		 */
		bool stays_theirs = res->in_use && vhca_vf_is_probed(vf) && !vf->claim;

		engine_reason(vf, "%s", res->err.msg);
		engine_forget_probe(vf);
		engine_move(e, vf, stays_theirs ? VHCA_VF_UNMANAGED : VHCA_VF_QUARANTINED);
	}
}

static void fail_claim(const struct vhca_engine *e, struct vhca_claim *c,
		       const struct vhca_error *err, bool by_vf)
{
	c->failure = *err;
	/* Replacement forgets at a restart that it has named its VF: a reserved one, or it has no
	 * partition. */
	if (by_vf && c->identity.n_pkeys > 0 && !vhca_engine_reserves(e, c->vf) &&
	    c->replacement == VHCA_REPLACEMENT_MAY)
		c->replacement = VHCA_REPLACEMENT_DUE;
}

/* A few times in a row: then the claim fails and the VF is scrubbed. */
static void program_failed(struct vhca_engine *e, struct vhca_vf *vf,
			   const struct vhca_effect_result *res)
{
	bool is_broken;

	failed(e, vf, &res->err);
	if (vf->state != VHCA_VF_CLAIMED)
		return;
	if (!res->hw.foreign) /* else the SM has changed the table meanwhile */
		count_failure(e, vf, &res->err);
	/* In a migration no other VF takes its place, and it is tried once more. */
	is_broken = vf->failures >= VHCA_VF_FAILURES_MAX && !vf->claim->migrating;
	if (vhca_claim_is_withheld(vf->claim) ||
	    (!is_broken && vf->host.backoff.next_ms <= 8 * e->args.retry_ms))
		return;
	fail_claim(e, vf->claim, &res->err, is_broken);
}

#define TABLE_CHANGED \
	"the port's P_Key table changed while the VF was programmed: QPs may keep a foreign key"

/* Whoever says of a cloud's port that it is UP, or DOWN, hears of nothing else. */
static void note_missing(struct vhca_engine *e, struct vhca_vf *vf, unsigned int missing)
{
	bool differs = vf->missing != VHCA_MISSING_UNKNOWN && vf->missing != missing;

	vf->missing = missing;
	if (!differs || !vhca_claim_is_port(vf->claim))
		return;
	if (missing)
		vhca_events_add_claim(e->args.events, "claim", vf->claim,
				      "%s lacks %u of its partitions: the host's port is not in "
				      "them",
				      VHCA_BDF_STR(vf->bdf), missing);
	else
		vhca_events_add_claim(e->args.events, "claim", vf->claim,
				      "%s has all of its partitions", VHCA_BDF_STR(vf->bdf));
}

static void done_program(struct vhca_engine *e, struct vhca_vf *vf,
			 const struct vhca_effect_result *res)
{
	if (res->hw.foreign && vhca_model_user(&e->model, vf->bdf, NULL))
		engine_force_off(e, vf, TABLE_CHANGED);
	if (res->rc < 0) {
		program_failed(e, vf, res);
		return;
	}
	vhca_backoff_reset(&vf->host.backoff);
	note_missing(e, vf, res->missing);
	vf->reprogram = vf->outdated;
	if (vf->state == VHCA_VF_CLAIMED) {
		if (res->missing && vf->claim->sm_answer == VHCA_ANSWER_ACCEPTED) {
			engine_back_off(
				e,
				/* the port's table moved under us: membership is looked at again */
				vf);
			return;
		}
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_PROGRAMMED);
		return;
	}
	if (!vf->reprogram) /* its partitions have changed in place */
		engine_tell(e, vf->claim, VHCA_VF_PROGRAMMED, NULL);
	engine_tell_word(e, vf);
	engine_update_grant(e, vf);
}

static void done_read(struct vhca_engine *e, struct vhca_vf *vf,
		      const struct vhca_effect_result *res)
{
	char text[VHCA_IDENTITY_TEXT_MAX];
	unsigned int missing = 0;
	struct vhca_identity want;
	bool is_shown;

	if (vf->adopt) {
		engine_adopt_read(vf, res);
		return;
	}
	if (res->rc < 0) {
		failed(e, vf, &res->err);
		return;
	}
	/* What it is compared with has changed since it was begun. */
	if (vf->outdated && vf->state != VHCA_VF_DETACHING) {
		vf->look_ms = 0;
		return;
	}
	/* Of a detach it is the next request, but while one hangs, or none can be made. */
	if (vf->state != VHCA_VF_DETACHING || vf->virt.effect != VHCA_EFFECT_NONE ||
	    !e->virt_synced)
		vf->look_ms = vhca_now_ms() + engine_look_period(e, vf);
	if (vf->state == VHCA_VF_FREE && !vhca_identity_is_clean(&vf->hw)) {
		engine_reason(vf, "somebody changed its identity while it was free");
		vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(vf->bdf), "%s", vf->reason);
		e->model.counters.drifts++;
		vf->reprogram = true;
	}
	if (!vf->claim || (vf->state != VHCA_VF_ATTACHED && vf->state != VHCA_VF_PROGRAMMED &&
			   vf->state != VHCA_VF_DETACHING))
		return;
	vf->claim->stripped |= vf->state == VHCA_VF_DETACHING && vf->hw.requested == VHCA_GUID_ALL1;
	want = vhca_claim_shows(vf->claim);
	/*
	 * A key that the port lacks is not mapped; one more of them, and the port's table as it
	 * was: somebody unmapped it. After a restart nobody knows how many they were: it is tried,
	 * and no alarm.
	 */
	is_shown = want.guid == VHCA_GUID_ALL1 ? vhca_identity_is_clean(&vf->hw)
					       : vhca_identity_matches(&vf->hw, &want, &missing);
	if (!is_shown || (missing > vf->missing && !vf->reprogram)) {
		vhca_identity_describe(&vf->hw, &want, text);
		vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(vf->bdf),
				"is not what was programmed: %s; it is restored", text);
		e->model.counters.drifts++;
		vf->reprogram = true;
	}
	vf->reprogram |= vf->missing == VHCA_MISSING_UNKNOWN ? missing > 0 : missing < vf->missing;
	note_missing(e, vf, missing);
	engine_update_grant(e, vf);
}

/* The guest gets the time to see that they are gone, before the same keys come to other indexes. */
static void done_unmap(struct vhca_engine *e, struct vhca_vf *vf,
		       const struct vhca_effect_result *res)
{
	if (res->rc < 0) {
		failed(e, vf, &res->err);
		return;
	}
	vf->host.not_before_ms = vhca_now_ms() + UNMAPPED_MS;
	engine_again(e, vf, UNMAPPED_MS);
}

static void done_kick(struct vhca_engine *e, struct vhca_vf *vf,
		      const struct vhca_effect_result *res)
{
	vf->look_ms = vhca_now_ms() + GRANT_FIRST_MS; /* what a failure has left, too */
	if (res->rc < 0)
		failed(e, vf, &res->err);
}

/* The claim goes on as if it had asked for this GUID. */
static void take_choice(struct vhca_engine *e, struct vhca_vf *vf, uint64_t guid)
{
	struct vhca_claim *c = vf->claim;

	c->identity.guid = guid;
	c->epoch = vhca_model_epoch(&e->model, guid) + 1;
	engine_forget_answer(c);
	(void)vhca_model_set_epoch(&e->model, guid, c->epoch); /* forgotten: the SM corrects it */
	vhca_events_add_claim(e->args.events, "claim", c, "the SM has chosen GUID %s, epoch %llu",
			      VHCA_GUID_STR(guid), (unsigned long long)c->epoch);
	engine_no_reason(vf);
	engine_save_and_report(e, vf);
}

static void done_choose(struct vhca_engine *e, struct vhca_vf *vf,
			const struct vhca_effect_result *res)
{
	struct vhca_error err = res->err;
	uint64_t guid = res->hw.requested;

	if (res->rc == 0 && res->has_hw && vhca_guid_is_valid(guid) &&
	    engine_check_free(e, guid, &err) == 0) {
		take_choice(e, vf, guid);
		return;
	}
	if (!err.kind)
		vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "no_guid_from_sm", EAGAIN,
			       "the GUID that the SM has chosen cannot be read");
	failed(e, vf, &err);
}

static void done_scrub(struct vhca_engine *e, struct vhca_vf *vf,
		       const struct vhca_effect_result *res)
{
	if (res->rc == 0) {
		vf->look_ms = 0;
		proven_clean(e, vf);
	} else if (res->in_use && vhca_now_ms() < vf->deadline_ms) {
		engine_reason(vf, "waits until nobody has it: %s", res->err.msg);
		vf->host.not_before_ms = vhca_now_ms() + GROUP_LOOK_MS;
	} else {
		engine_reason(vf, "%s", res->err.msg);
		engine_move(e, vf, VHCA_VF_QUARANTINED);
	}
}

static void done_strip(struct vhca_engine *e, struct vhca_vf *vf,
		       const struct vhca_effect_result *res)
{
	if (res->rc < 0) {
		failed(e, vf, &res->err);
		return;
	}
	vf->look_ms = vhca_now_ms() + e->conf->poll_ms;
	if (vf->claim)
		vf->claim->stripped = true;
}

/* Somebody has plugged in another device while the VF was out: then it comes back elsewhere. */
static bool gives_address_up(struct vhca_engine *e, struct vhca_vf *vf,
			     const struct vhca_error *err)
{
	struct vhca_claim *c = vf->claim;

	if (!c->has_guest || !vhca_error_is(err, VHCA_CODE_GUEST_ADDRESS_IN_USE))
		return false;
	vhca_events_add(e->args.events, "vf", VHCA_BDF_STR(vf->bdf),
			"domain %s has another device at %s, where the VF was: it gets another "
			"address",
			c->domain_name, VHCA_BDF_STR(c->guest));
	c->has_guest = false;
	return true;
}

static void done_attach(struct vhca_engine *e, struct vhca_vf *vf,
			const struct vhca_effect_result *res)
{
	bool counts = res->err.kind == VHCA_ERR_DEVICE;
	const struct vhca_vf *other;

	if (!vf->claim->attach_us)
		vf->claim->attach_us = res->called_us;
	/* Whatever was said: the live XML tells. */
	e->args.effects.refresh(e->args.effects.ctx, &vf->claim->domain);
	if (res->rc == 0 || res->err.kind == VHCA_ERR_NOT_FOUND) {
		engine_reason(vf, "attached, and not in the domain's live XML yet");
		engine_virt_back_off(e, vf);
		return;
	}
	if (gives_address_up(e, vf, &res->err))
		return;
	engine_reason(vf, "%s", res->err.msg);
	engine_virt_back_off(e, vf);
	/* The next failures with the same guest, whatever the VF, may be the guest's. */
	VHCA_FOREACH_VF (other, &e->model)
		if (vhca_uuid_equal(&other->failed_guest, &vf->claim->domain))
			counts = false;
	if (counts)
		count_failure(e, vf, &res->err);
	if (res->err.kind == VHCA_ERR_DEVICE)
		vf->failed_guest = vf->claim->domain;
	/*
	 * A claim on the move is the migration's to end; where the guest has arrived, or is back,
	 * it is tried again for ever.
	 */
	if (res->err.kind == VHCA_ERR_UNAVAILABLE || vf->claim->migrating ||
	    vf->claim->failure.kind)
		return;
	fail_claim(e, vf->claim, &res->err, counts);
}

static void done_detach(struct vhca_engine *e, struct vhca_vf *vf,
			const struct vhca_effect_result *res)
{
	e->args.effects.refresh(e->args.effects.ctx, &vf->claim->domain);
	vf->unread = true;
	vf->look_ms = vhca_now_ms() + e->conf->detach_retry_ms;
	if (res->rc < 0 && res->err.kind != VHCA_ERR_NOT_FOUND)
		engine_reason(vf, "%s", res->err.msg);
}

static void (*const dones[])(struct vhca_engine *e, struct vhca_vf *vf,
			     const struct vhca_effect_result *res) = {
	[VHCA_EFFECT_PROBE] = done_probe,
	[VHCA_EFFECT_PREPARE] = done_prepare,
	[VHCA_EFFECT_PROGRAM] = done_program,
	[VHCA_EFFECT_UNMAP] = done_unmap,
	[VHCA_EFFECT_READ] = done_read,
	[VHCA_EFFECT_REREQUEST_GUID] = done_kick,
	[VHCA_EFFECT_AWAIT_SM_GUID] = done_choose,
	[VHCA_EFFECT_SCRUB] = done_scrub,
	[VHCA_EFFECT_SCRUB_IN_GUEST] = done_strip,
	[VHCA_EFFECT_ATTACH] = done_attach,
	[VHCA_EFFECT_DETACH] = done_detach,
	[VHCA_EFFECT_ASK_GUEST_AGENT] = engine_done_ask,
};

void vhca_engine_effect_done(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_effect effect,
			     const struct vhca_effect_result *result)
{
	struct vhca_slot *slot = vhca_vf_slot(vf, effect);
	uint64_t us = vhca_now_us() - slot->begun_us;

	slot->effect = VHCA_EFFECT_NONE;
	e->model.effects[effect].done += result->rc >= 0;
	e->model.effects[effect].failed += result->rc < 0;
	if (result->rc >= 0 && effect == VHCA_EFFECT_PROGRAM)
		vhca_histogram_add(&e->model.counters.program, us);
	if (result->rc >= 0 && effect == VHCA_EFFECT_ATTACH)
		vhca_histogram_add(&e->model.counters.attach, us);
	if (result->has_hw) {
		vf->hw = result->hw;
		vf->hw_known = !vf->outdated;
	}
	if (result->rc < 0)
		vhca_log_debug("%s: %s: %s", VHCA_BDF_STR(vf->bdf), vhca_effect_to_string(effect),
			       result->err.msg);
	dones[effect](e, vf, result);
	engine_mark(e, vf);
}
