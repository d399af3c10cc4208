/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The decision: what is to be done for a VF, now.
 *
 * `steps` is the one table, a function for each state; agent/vf/engine.h says in words what each
 * does. A step looks at the level of things (the model: what the kernel shows, what is in live
 * XML, what the SM has said, what was read of the hardware), not at what has just happened, and
 * makes at most one move or starts at most one effect. A VF is stepped whenever anything that a
 * step looks at may have changed, and at the time that the last step has asked for
 * (engine_again()). So a lost event costs time, never truth, and a step too many does nothing.
 *
 * Before the table comes what holds in each state, in this order: an effect on the VF's hardware
 * runs (nothing is decided before its outcome); a transaction is under way; flags of the claim are
 * not saved yet; the kernel shows the VF at another place of its card; the claim is of an earlier
 * boot; libvirt is being called for the VF (only isolation is tended meanwhile); the kernel does
 * not show the VF.
 *
 * Isolation goes before service: a step of a VF with a claim first asks whether a stranger has it
 * (engine_seized()), and of a VF in a guest whether its map still leads to the claim's keys
 * (engine_follow_table()).
 *
 * What may fail:
 *   an effect          its outcome (outcome.c) says what that means, and delays the next one
 *   a claim            claim->failure says why: a step sends its VF towards scrubbing
 *   a proof            the VF is quarantined, and given to nobody until a later proof succeeds
 *   libvirt is away    nothing that rests on live XML is decided before it is back
 */
#include "agent/vf/step.h"

#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/request.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "pkey/guid.h"

static bool used_by_own_domain(struct vhca_engine *e, const struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	return user && vf->claim && vhca_uuid_equal(&user->info->uuid, &vf->claim->domain);
}

static void step_unmanaged(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	if (engine_adopt_step(e, vf) || !vhca_hca_gives_vfs(vf->hca))
		return;
	if (!vhca_engine_manages(e, vf)) {
		engine_reason(vf, "left out by the configuration (exclude)");
		return;
	}
	if (user) {
		engine_reason(vf, "in use by domain %s without a claim; nothing of it is touched",
			      user->info->name);
		engine_forget_probe(vf);
		return;
	}
	if (!vhca_vf_is_probed(vf)) {
		engine_start(e, vf, VHCA_EFFECT_PROBE);
		return;
	}
	if (vf->use == VHCA_USE_SOMEBODY) {
		engine_forget_probe(vf);
		engine_again(e, vf, PROBE_AGAIN_MS);
		return;
	}
	engine_no_reason(vf);
	engine_move(e, vf, VHCA_VF_PREPARING);
}

static void step_preparing(struct vhca_engine *e, struct vhca_vf *vf)
{
	engine_start(e, vf, VHCA_EFFECT_PREPARE);
}

static void step_free(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	if (vf->claim) {
		engine_move(e, vf, VHCA_VF_CLAIMED);
	} else if (vf->reprogram) { /* it shows somebody's identity, whoever has it */
		engine_move(e, vf, VHCA_VF_PREPARING);
	} else if (user) {
		engine_reason(vf, "in use by domain %s without a claim", user->info->name);
		engine_move(e, vf, VHCA_VF_UNMANAGED);
	} else if (vhca_vf_rests(vf)) {
		engine_reason(vf, "failed %u times in a row, tried again after %d min; last: %s",
			      vf->failures, VHCA_VF_REST_MIN, vf->fault);
		engine_move(e, vf, VHCA_VF_QUARANTINED);
	} else if (!vhca_engine_manages(e, vf)) {
		engine_reason(vf, "no longer managed (configuration)");
		engine_move(e, vf, VHCA_VF_UNMANAGED);
	} else if (strcmp(vf->driver, "vfio-pci") != 0) {
		engine_reason(vf, "bound to %s instead of vfio-pci",
			      vf->driver[0] ? vf->driver : "no driver");
		engine_move(e, vf, VHCA_VF_PREPARING);
	} else {
		engine_rest_free(e, vf);
	}
}

static void give_up_claim(struct vhca_engine *e, struct vhca_vf *vf)
{
	engine_reason(vf, "%s", vf->claim->failure.msg);
	engine_move(e, vf, VHCA_VF_SCRUBBING);
}

/*
 * The SM has given the vGUID to another host at a higher epoch (a take-over, or an eviction while
 * this host was cut off): the claim is over. A cloud's port leaves its guest, and is reserved until
 * the cloud releases it. In a migration that is for the migration to judge.
 */
static void note_superseded(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	struct vhca_error why;

	if (c->sm_answer != VHCA_ANSWER_SUPERSEDED || vhca_claim_is_withheld(c) || c->migrating ||
	    vhca_claim_is_ending(c) || c->custody == VHCA_CUSTODY_LEAVING)
		return;
	vhca_error_set(&why, VHCA_ERR_CONFLICT, VHCA_CODE_SUPERSEDED, 0,
		       "another host owns GUID %s now: %s", VHCA_GUID_STR(c->identity.guid),
		       c->sm_answer_reason);
	vhca_error_hint(&why, "if domain %s runs twice, stop the copy that is not wanted",
			c->domain_name);
	engine_alarm(e, vf, why.msg);
	if (vhca_claim_is_port(c)) {
		c->custody = VHCA_CUSTODY_LEAVING;
		return;
	}
	c->end = VHCA_END_ASKED;
	c->failure = why;
}

/*
 * A claim that hot-plugs is over when its domain does not run; one that was made for an XML to
 * come, or that a migration brings, is not.
 */
static bool claim_over(struct vhca_engine *e, const struct vhca_claim *c)
{
	if (vhca_claim_is_ending(c) || c->failure.kind)
		return true;
	return c->origin != VHCA_ORIGIN_CLAIM && !c->migrating && e->virt_synced &&
	       !engine_claim_domain(e, c);
}

/* Everything else hangs on the GUID: the report to the SM, the epoch, the attach. */
static void await_choice(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;

	if (vhca_now_ms() - c->sm_answer_ms < e->conf->pkey_timeout_ms) {
		engine_start(e, vf, VHCA_EFFECT_AWAIT_SM_GUID);
		return;
	}
	vhca_error_set(&c->failure, VHCA_ERR_UNAVAILABLE, "no_guid_from_sm", 0,
		       "the SM has chosen no GUID for %s", VHCA_BDF_STR(vf->bdf));
	vhca_error_hint(&c->failure, "is the port ACTIVE, and does the SM assign alias GUIDs? "
				     "guid=\"auto\" needs nobody");
	give_up_claim(e, vf);
}

/* The hook says that a domain begins before libvirt shows it. */
static bool is_done_with(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	uint64_t now = vhca_now_ms();

	if (engine_runs_here(e, c))
		c->run = VHCA_RUN_SEEN;
	if (!vhca_claim_is_port(c) || c->migrating || !e->virt_synced || engine_claim_domain(e, c))
		return false;
	if (!vf->deadline_ms)
		vf->deadline_ms = now + BEGIN_MS;
	if (c->run == VHCA_RUN_SEEN || now >= vf->deadline_ms)
		return true;
	engine_again(e, vf, vf->deadline_ms - now);
	return false;
}

/* A cloud's guest has begun here, and where it came from is about to give its GUID up. */
static bool is_held_back(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	uint64_t waited = vhca_now_ms() - c->sm_answer_ms;

	if (c->sm_answer != VHCA_ANSWER_SUPERSEDED || !vhca_claim_is_port(c))
		return false;
	c->disputed = true;
	engine_reason(vf,
		      "waits until the SM knows nobody else who has GUID %s: %s; if that host is "
		      "dead and fenced: vhcactl takeover %s EVIDENCE",
		      VHCA_GUID_STR(c->identity.guid), c->sm_answer_reason,
		      VHCA_UUID_STR(&c->domain));
	if (waited < HELD_BACK_MS && !vhca_engine_vouched_since(e, &c->domain, c->sm_answer_ms)) {
		engine_again(e, vf, HELD_BACK_MS - waited);
	} else {
		c->sm_answer_ms = vhca_now_ms();
		engine_save_and_report(e, vf);
	}
	return true;
}

static void step_claimed(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (engine_seized(e, vf))
		return;
	if (claim_over(e, vf->claim)) {
		give_up_claim(e, vf);
		return;
	}
	engine_tend_lease(e, vf);
	if (vhca_guid_is_stand_in(vf->claim->identity.guid)) {
		await_choice(e, vf);
		return;
	}
	/* Its guest may run elsewhere with that GUID. */
	if (vf->claim->custody == VHCA_CUSTODY_RESERVED) {
		engine_reason(vf, "reserved: programmed when domain %s begins here",
			      vf->claim->domain_name);
		if (!engine_runs_here(e, vf->claim)) {
			if (vf->claim->run == VHCA_RUN_LEFT)
				vf->claim->run = VHCA_RUN_UNSEEN;
		} else if (vf->claim->run != VHCA_RUN_LEFT) {
			engine_use_reserved(e, vf->claim);
		}
		return;
	}
	if (is_done_with(e, vf)) {
		engine_move(e, vf, VHCA_VF_SCRUBBING);
		return;
	}
	if (is_held_back(e, vf))
		return;
	if (vhca_claim_is_withheld(vf->claim)) {
		engine_reason(vf, "identity withheld: the VM is on its way");
		if (vf->claim->custody == VHCA_CUSTODY_BARE)
			engine_start(e, vf, VHCA_EFFECT_PROGRAM);
		return;
	}
	switch (engine_membership(e, vf)) {
	case ENGINE_MEMBER:
		engine_start(e, vf, VHCA_EFFECT_PROGRAM);
		break;
	case ENGINE_REFUSED:
		give_up_claim(e, vf);
		break;
	case ENGINE_WAIT:
		break;
	}
}

/*
 * The SM is asked once more whose the identity of a guest is that runs here and was not seen
 * coming: its answer is waited for, and a no is one.
 */
static bool awaits_owner(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_domain *dom)
{
	const struct vhca_claim *c = vf->claim;

	if (!c->arbitration_asked || !e->args.fenced || !dom || dom->incoming)
		return false;
	if (c->sm_answer == VHCA_ANSWER_SUPERSEDED)
		return true;
	if (c->sm_answer != VHCA_ANSWER_NONE || engine_patience_ms(e, c) == 0)
		return false;
	engine_again(e, vf, engine_patience_ms(e, c));
	return true;
}

static void step_programmed(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *dom = engine_claim_domain(e, vf->claim);
	const struct vhca_dom_hostdev *dev = NULL;

	if (engine_seized(e, vf))
		return;
	note_superseded(e, vf);
	if (used_by_own_domain(e, vf)) {
		if (vhca_model_user(&e->model, vf->bdf, &dev) && dev->has_guest_addr) {
			vf->claim->has_guest = true;
			vf->claim->guest = dev->guest;
		}
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_ATTACHED);
	} else if (claim_over(e, vf->claim)) {
		give_up_claim(e, vf);
	} else if (vf->claim->custody == VHCA_CUSTODY_LEAVING || is_done_with(e, vf)) {
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_SCRUBBING);
	} else if (vf->reprogram) {
		/*
		 * Kept for a guest that is on its way: after a restart nobody has confirmed yet
		 * that it is still ours.
		 */
		if (awaits_owner(e, vf, dom))
			engine_reason(vf, "waits for the SM's answer");
		else if (dom || !vf->claim->migrating)
			engine_start(e, vf, VHCA_EFFECT_PROGRAM);
	} else if (vf->claim->origin == VHCA_ORIGIN_CLAIM) {
		engine_tend_lease(e, vf);
		engine_look_again(e,
				  vf); /* it may stand so for long, and the hook vouches for it */
	} else if (dom && !dom->incoming && !engine_awaits_xml(e, vf)) {
		engine_start(e, vf, VHCA_EFFECT_ATTACH);
	}
}

/* A guest that has ejected it unasked may get it again: its domain asks for it still. */
static void note_left(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_claim *c = vf->claim;

	if (engine_returns_to_guest(e, c))
		vhca_events_add(e->args.events, "vf", VHCA_BDF_STR(vf->bdf),
				"left its guest after the unplug was given up; it goes back");
	else if (!vhca_claim_is_ending(c) && c->custody != VHCA_CUSTODY_LEAVING && !c->migrating &&
		 !c->failure.kind && c->origin == VHCA_ORIGIN_METADATA && engine_claim_domain(e, c))
		engine_request_ejected(e, vf);
}

static void step_attached(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (engine_seized(e, vf))
		return;
	if (vhca_engine_has_left(e, vf)) {
		note_left(e, vf);
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_SCRUBBING);
		return;
	}
	if (engine_follow_table(e, vf))
		return;
	note_superseded(e, vf);
	if (vhca_claim_is_ending(vf->claim) || vf->claim->custody == VHCA_CUSTODY_LEAVING) {
		engine_move(e, vf, VHCA_VF_DETACHING);
		return;
	}
	if (!vf->reprogram)
		engine_await_grant(e, vf);
}

/* A guest that does not let go must not keep what leads to another tenant's key. */
static void step_detaching(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (engine_seized(e, vf) || engine_follow_table(e, vf))
		return;
	if (e->virt_synced) {
		engine_detach(e, vf);
		return;
	}
	engine_reason(vf, "waits for libvirt");
	if (!vf->reprogram)
		engine_look_again(e, vf);
}

static void step_scrubbing(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (engine_seized(e, vf))
		return;
	/*
	 * Invariant 4: never while any live XML has the address. An attach that was under way when
	 * the claim ended has come after all.
	 */
	if (used_by_own_domain(e, vf)) {
		engine_move(e, vf, VHCA_VF_DETACHING);
		return;
	}
	if (!vf->deadline_ms) /* entered in an earlier life of the agent */
		engine_begin_scrub(vf);
	if (!engine_awaits_xml(e, vf))
		engine_start(e, vf, VHCA_EFFECT_SCRUB);
}

static void strip_again(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();

	if (now >= vf->look_ms)
		engine_start(e, vf, VHCA_EFFECT_SCRUB_IN_GUEST);
	else
		engine_again(e, vf, vf->look_ms - now);
}

static void step_quarantined(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms(), until;

	/*
	 * It started again, or somebody plugged it in by hand; what that guest's QPs hold, nobody
	 * knows.
	 */
	if (used_by_own_domain(e, vf)) {
		engine_move(e, vf, VHCA_VF_DETACHING);
		return;
	}
	if (vhca_model_user(&e->model, vf->bdf, NULL)) {
		strip_again(e, vf);
		return;
	}
	if (engine_unreadable(e, vf))
		return;
	/* Not the back-off of effects: a guest that gets the VF meanwhile must not wait for it. */
	if (!vf->deadline_ms)
		vf->deadline_ms = now + vhca_backoff_next(&vf->host.backoff);
	until = vhca_vf_rests(vf) && vf->rests_until_ms > vf->deadline_ms ? vf->rests_until_ms
									  : vf->deadline_ms;
	if (now >= until)
		engine_move(e, vf, VHCA_VF_PREPARING);
	else
		engine_again(e, vf, until - now);
}

static void (*const steps[VHCA_VF_STATE_COUNT])(struct vhca_engine *e, struct vhca_vf *vf) = {
	[VHCA_VF_UNMANAGED] = step_unmanaged,
	[VHCA_VF_PREPARING] = step_preparing,
	[VHCA_VF_FREE] = step_free,
	[VHCA_VF_CLAIMED] = step_claimed,
	[VHCA_VF_PROGRAMMED] = step_programmed,
	[VHCA_VF_ATTACHED] = step_attached,
	[VHCA_VF_DETACHING] = step_detaching,
	[VHCA_VF_SCRUBBING] = step_scrubbing,
	[VHCA_VF_QUARANTINED] = step_quarantined,
};

/* A call at libvirt may take long, or hang: meanwhile no guest shows what is another's. */
static void step_beside(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->state == VHCA_VF_QUARANTINED) {
		if (vhca_model_user(&e->model, vf->bdf, NULL))
			strip_again(e, vf);
	} else if (!engine_seized(e, vf) && !engine_follow_table(e, vf) && !vf->reprogram) {
		engine_look_again(e, vf);
	}
}

/* Its tickets have not come; whoever has the role admin may have said whose it is. */
static void ask_owner_again(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_claim *c = vf->claim;
	uint64_t waited = vhca_now_ms() - c->sm_answer_ms;

	if (c->sm_answer != VHCA_ANSWER_UNREACHABLE || !c->sm_code)
		return;
	if (waited < OWNER_AGAIN_MS) {
		engine_again(e, vf, OWNER_AGAIN_MS - waited);
		return;
	}
	c->sm_answer_ms = vhca_now_ms();
	engine_report(e, c);
}

void engine_step(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->host.effect != VHCA_EFFECT_NONE)
		return;
	if (vf->committing) {
		if (e->disk.kind)
			engine_guard(e, vf);
		return;
	}
	if (engine_save_pending(e, vf))
		return;
	if (!engine_settle_place(e, vf))
		return;
	if (vf->claim && vf->claim->boot == VHCA_BOOT_EARLIER) {
		engine_end_orphan(e, vf);
		return;
	}
	engine_tell_word(e, vf);
	if (vf->virt.effect != VHCA_EFFECT_NONE) {
		if (vf->present)
			step_beside(e, vf);
		return;
	}
	if (!vf->present) {
		engine_step_absent(e, vf);
		return;
	}
	if (vf->claim && vf->claim->awaited_signer[0])
		ask_owner_again(e, vf);
	steps[vf->state](e, vf);
}
