/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest is asked for its VF until it lets go or the time is over: by hot-unplug, and by policy
 * through its own agent (docs/design/0011-unresponsive-guests.md).
 */
#include <string.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

/* ---- the guest's own agent ---- */

static bool may_ask_guest(const struct vhca_engine *e, const struct vhca_domain *user)
{
	if (user->info->escalation == VHCA_DOM_ESCALATION_UNSAID)
		return e->conf->detach_escalation == VHCA_ESCALATION_GUEST_AGENT;
	return user->info->escalation == VHCA_DOM_ESCALATION_GUEST_AGENT;
}

static void say_waits(struct vhca_vf *vf)
{
	const struct vhca_error *outcome = &vf->escalation.outcome;

	engine_reason(vf, "waits for the guest to let go%s%s%s%s",
		      outcome->kind ? "; its guest agent was asked: " : "", outcome->msg,
		      outcome->hint[0] ? "; " : "", outcome->hint);
}

/* Each new answer is told once. */
static void note_outcome(struct vhca_engine *e, struct vhca_vf *vf,
			 const struct vhca_error *outcome)
{
	if (strcmp(vf->escalation.outcome.msg, outcome->msg) != 0)
		vhca_events_add(e->args.events, "vf", VHCA_BDF_STR(vf->bdf), "guest agent: %s",
				outcome->msg);
	vf->escalation.outcome = *outcome;
	say_waits(vf);
}

static void end_escalation(struct vhca_engine *e, struct vhca_vf *vf, const char *code,
			   const char *what, const char *hint)
{
	struct vhca_error outcome;

	vhca_error_set(&outcome, VHCA_ERR_CONFLICT, code, 0, "%s", what);
	vhca_error_hint(&outcome, "%s", hint);
	vf->escalation.next_ms = 0;
	note_outcome(e, vf, &outcome);
}

static void escalate(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_dom_hostdev *dev = NULL;
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, &dev);
	bool may = user && may_ask_guest(e, user);

	if (may && dev->path.n) {
		if (!vf->escalation.begun)
			vhca_events_add(
				e->args.events, "vf", VHCA_BDF_STR(vf->bdf),
				"escalated: domain %s does not let go; its guest agent is asked",
				user->info->name);
		vf->escalation.begun = true;
		engine_start(e, vf, VHCA_EFFECT_ASK_GUEST_AGENT);
		return;
	}
	vf->escalation.next_ms = 0;
	if (may)
		end_escalation(e, vf, "no_guest_path",
			       "no way from the guest's bus 0 to the VF is known",
			       "put it behind a pcie-root-port of pcie.0");
	engine_mark(e, vf);
}

void engine_done_ask(struct vhca_engine *e, struct vhca_vf *vf,
		     const struct vhca_effect_result *res)
{
	struct vhca_error running;

	/* Whatever was said: the live XML tells. */
	e->args.effects.refresh(e->args.effects.ctx, &vf->claim->domain);
	vf->escalation.next_ms = vhca_now_ms() + e->conf->detach_retry_ms;
	if (res->rc < 0) {
		note_outcome(e, vf, &res->err);
		return;
	}
	vf->escalation.pid = res->guest.pid;
	if (res->guest.exited) {
		end_escalation(e, vf, "guest_has_answered", vhca_qga_outcome(res->guest.exit_code),
			       "unload the driver of the VF in the guest");
		return;
	}
	vhca_error_set(&running, VHCA_ERR_CONFLICT, "guest_at_it", 0, "the guest is at it");
	note_outcome(e, vf, &running);
}

/* ---- the whole ---- */

/* Why the guest has the VF still. */
static void say_kept(struct vhca_engine *e, const struct vhca_vf *vf, struct vhca_error *err)
{
	const struct vhca_domain *unreadable = engine_unreadable(e, vf);
	const struct vhca_error *tried = &vf->escalation.outcome;

	if (unreadable) {
		(void)vhca_engine_check_readable(unreadable, err);
		vhca_error_prefix(err, "%s: whether the guest has let go of it is not known",
				  VHCA_BDF_STR(vf->bdf));
		return;
	}
	vhca_error_set(err, VHCA_ERR_CONFLICT, "guest_did_not_release", 0,
		       "%s: the guest did not let go of the VF in %u s; it stays attached and "
		       "working%s%s",
		       VHCA_BDF_STR(vf->bdf), (unsigned int)(engine_detach_ms(e, vf) / 1000),
		       tried->kind ? ". Its guest agent was asked: " : "", tried->msg);
	vhca_error_hint(err, "%s",
			tried->hint[0]
				? tried->hint
				: "is the guest running and past its boot loader? unload its "
				  "driver, or try again");
}

static void give_up(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_error err;

	say_kept(e, vf, &err);
	vf->claim->end = vf->claim->released ? VHCA_END_WHEN_LEFT : VHCA_END_NONE;
	if (vf->claim->custody == VHCA_CUSTODY_LEAVING)
		vf->claim->custody = VHCA_CUSTODY_HERE;
	vf->claim->asked = true;
	vf->claim->kept = err;
	engine_tell(e, vf->claim, VHCA_VF_FREE, &err);
	engine_reason(vf, "%s", err.msg);
	engine_move(e, vf, VHCA_VF_ATTACHED);
}

bool engine_returns_to_guest(struct vhca_engine *e, const struct vhca_claim *c)
{
	return c->asked && c->origin != VHCA_ORIGIN_CLAIM && !c->migrating &&
	       !vhca_claim_is_ending(c) && !c->failure.kind && engine_claim_domain(e, c);
}

void engine_detach(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms(), next;
	bool is_over;

	if (!e->virt_synced) {
		engine_reason(vf, "waits for libvirt");
		return;
	}
	if (!vhca_model_user(&e->model, vf->bdf, NULL) && !engine_unreadable(e, vf)) {
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_SCRUBBING);
		return;
	}
	/* An operator has vouched meanwhile, and nobody else wants it out. */
	if (vf->claim->stays && !vhca_claim_is_ending(vf->claim) &&
	    vf->claim->custody != VHCA_CUSTODY_LEAVING) {
		vf->claim->stays = false;
		vf->claim->asked = true;
		engine_no_reason(vf);
		engine_move(e, vf, VHCA_VF_ATTACHED);
		return;
	}
	is_over = vf->deadline_ms && now >= vf->deadline_ms;
	if (is_over && vf->claim->end != VHCA_END_FORCED) {
		give_up(e, vf);
		return;
	}
	/* After a restart; and a VF that has to go gets one round after the other. */
	if (is_over || !vf->deadline_ms)
		engine_begin_detach(e, vf);
	if (vf->escalation.next_ms && now >= vf->escalation.next_ms) {
		escalate(e, vf);
	} else if (now >= vf->look_ms && vf->unread && vf->present) {
		vf->unread = false;
		engine_start(e, vf, VHCA_EFFECT_READ);
	} else if (now >= vf->look_ms) {
		vf->look_ms = now + e->conf->detach_retry_ms;
		say_waits(vf);
		engine_start(e, vf, VHCA_EFFECT_DETACH);
	} else {
		next = vf->look_ms < vf->deadline_ms ? vf->look_ms : vf->deadline_ms;
		if (vf->escalation.next_ms && vf->escalation.next_ms < next)
			next = vf->escalation.next_ms;
		if (vf->host.not_before_ms > now && vf->host.not_before_ms < next)
			next = vf->host.not_before_ms;
		engine_again(e, vf, next - now);
	}
}
