/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * VFs that are not where they were. One that the kernel does not show: its adapter is being reset
 * or loaded anew, or it will never come back (pulled out, or fewer VFs than before). A claim that
 * is over does not wait for it for ever: what the adapter lets nobody scrub is quarantined without
 * a claim, and the SM gets the GUID back. Should the VF be seen again, it is scrubbed first.
 *
 * One that the kernel shows at another place, which is its PF and its number there. Identities are
 * written to the place, but claims, journal and domains know the VF by its PCI address, and
 * addresses pass from place to place when the number of VFs changes on a card with two PFs. What
 * the VF at an address was proven to show is then another one's: a free VF is prepared at the new
 * place, a claimed one is quarantined.
 */
#include <errno.h>

#include "agent/vf/claim.h"
#include "agent/vf/report.h"
#include "agent/vf/step.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

#define GONE "the kernel does not show this VF now"

static uint64_t absence_ms(const struct vhca_engine *e)
{
	return e->args.absent_ms ? e->args.absent_ms : ABSENT_MS;
}

/*
 * Would the claim go on if the VF came back? Not from a state that leads to its end, and not if it
 * waits for no particular VF: its domain may have another one. An orchestrator's is for an XML that
 * names this one; that of a migration is the migration's to end, but if a guest is to get this VF
 * here, the migration has to hear that it will not.
 */
static bool goes_on(const struct vhca_vf *vf)
{
	const struct vhca_claim *c = vf->claim;

	if (vhca_claim_is_ending(c) || c->failure.kind)
		return false;
	if (c->migrating)
		return vhca_claim_is_withheld(c) || vf->state == VHCA_VF_QUARANTINED;
	return c->origin == VHCA_ORIGIN_CLAIM &&
	       (vf->state == VHCA_VF_CLAIMED || vf->state == VHCA_VF_PROGRAMMED);
}

static void fail_claim(struct vhca_claim *c)
{
	if (vhca_claim_is_ending(c) || c->failure.kind)
		return;
	vhca_error_set(&c->failure, VHCA_ERR_DEVICE, "vf_lost", ENODEV,
		       "%s has gone: the kernel does not show it any more",
		       VHCA_BDF_STR(c->vf->bdf));
	vhca_error_hint(&c->failure, "vhcactl explain %s", VHCA_BDF_STR(c->vf->bdf));
}

static void keep_claim(struct vhca_vf *vf)
{
	if (vf->claim->migrating) {
		engine_reason(vf, GONE "; a migration has its claim");
		return;
	}
	engine_reason(vf, GONE "; its claim stays until it is released (vhcactl detach %s %s)",
		      VHCA_UUID_STR(&vf->claim->domain), vf->claim->name);
}

/*
 * It could not be scrubbed. A QEMU that libvirt has forgotten may hold what the kernel is taking
 * away.
 */
static void step_unproven(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (!vhca_vf_is_probed(vf)) {
		engine_start(e, vf, VHCA_EFFECT_PROBE);
	} else if (vf->use == VHCA_USE_SOMEBODY) {
		engine_reason(vf, GONE ", but somebody has its vfio group %d open",
			      vf->iommu_group);
		engine_forget_probe(vf);
		engine_again(e, vf, absence_ms(e));
	} else if (goes_on(vf)) {
		keep_claim(vf);
	} else if (vf->claim->on_loan && !vhca_claim_is_withheld(vf->claim) && !e->args.fenced) {
		/*
		 * A VF that has gone is no proof: its driver remembers GUID and keys, and shows
		 * them again with the VF. The host that has lent the identity would take the end of
		 * the claim for the proof, and show it, too; an SM that fences is asked before.
		 * Who releases the claim vouches for the VF.
		 */
		engine_reason(vf,
			      GONE "; the host that %s came from waits for the proof that GUID %s "
				   "is withdrawn; if the VF never comes back: vhcactl detach %s %s",
			      vf->claim->domain_name, VHCA_GUID_STR(vf->claim->identity.guid),
			      VHCA_UUID_STR(&vf->claim->domain), vf->claim->name);
	} else {
		char label[192];

		fail_claim(vf->claim);
		engine_reason(vf, GONE "; it is scrubbed when it does");
		vhca_events_add(e->args.events, "alarm", VHCA_BDF_STR(vf->bdf),
				"has gone, and what was programmed for %s could not be proven "
				"withdrawn: it stays quarantined until it is seen again",
				engine_claim_label(vf->claim, label));
		engine_end_absent(e, vf);
	}
}

/* Another VF, which the kernel shows, is where this one was. */
static bool is_place_taken(const struct vhca_vf *vf)
{
	const struct vhca_vf *other;

	TAILQ_FOREACH (other, &vf->hca->vfs, link)
		if (other != vf && other->index == vf->index && other->present && !other->to_hca)
			return true;
	return false;
}

/* In no live XML, and away for so long that it is not waited for. */
static void step_unused(struct vhca_engine *e, struct vhca_vf *vf)
{
	switch (vf->state) {
	case VHCA_VF_CLAIMED:
	case VHCA_VF_PROGRAMMED:
		if (goes_on(vf)) {
			keep_claim(vf);
			break;
		}
		fail_claim(vf->claim);
		engine_reason(vf, "%s", vf->claim->failure.kind ? vf->claim->failure.msg : GONE);
		engine_move(e, vf, VHCA_VF_SCRUBBING);
		break;
	case VHCA_VF_SCRUBBING: /* its adapter may reach what PCI does not */
		if (is_place_taken(vf)) {
			engine_reason(vf, GONE ", and another one is in its place");
			engine_move(e, vf, VHCA_VF_QUARANTINED);
		} else {
			engine_start(e, vf, VHCA_EFFECT_SCRUB);
		}
		break;
	case VHCA_VF_PREPARING:
		engine_reason(vf, GONE);
		engine_move(e, vf, VHCA_VF_QUARANTINED);
		break;
	case VHCA_VF_QUARANTINED:
		step_unproven(e, vf);
		break;
	case VHCA_VF_UNMANAGED:
	case VHCA_VF_FREE:
	case VHCA_VF_ATTACHED:
	case VHCA_VF_DETACHING:
	case VHCA_VF_STATE_COUNT:
		break;
	}
}

/* The kernel waits for the guest, whose device this still is. */
static void step_used(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_domain *user)
{
	const struct vhca_claim *c = vf->claim;

	if (vf->state == VHCA_VF_ATTACHED &&
	    (vhca_claim_is_ending(c) || c->custody == VHCA_CUSTODY_LEAVING))
		engine_move(e, vf, VHCA_VF_DETACHING);
	else if (vf->state == VHCA_VF_DETACHING)
		engine_detach(e, vf);
	else
		engine_reason(vf, GONE ", but domain %s has it", user->info->name);
}

/* False: there is nothing to wait for. */
static bool may_come_back(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms(), end = vf->absent_ms + absence_ms(e);

	if (now >= end)
		return false;
	engine_reason(vf, GONE "; it may come back");
	engine_again(e, vf, end - now);
	return true;
}

void engine_step_absent(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	if (!vf->claim || vf->state == VHCA_VF_UNMANAGED || !e->inventory_seen || !e->virt_synced)
		engine_reason(vf, GONE);
	else if (user)
		step_used(e, vf, user);
	else if (engine_awaits_xml(e, vf))
		return;
	else if (vf->state == VHCA_VF_ATTACHED || vf->state == VHCA_VF_DETACHING)
		engine_move(e, vf, VHCA_VF_SCRUBBING);
	else if (vf->state == VHCA_VF_FREE)
		engine_move(e, vf,
			    VHCA_VF_CLAIMED); /* as if it were there: from there it can end */
	else if (!may_come_back(e, vf))
		step_unused(e, vf);
}

/* ---- its place ---- */

void engine_see_place(struct vhca_vf *vf, struct vhca_hca *hca, uint16_t index)
{
	bool moves = hca != vf->hca || index != vf->index;

	vf->to_hca = moves ? hca : NULL;
	vf->to_index = index;
}

/* Its identity stayed behind, on whatever VF is there now. */
static void end_moved_claim(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_hca *from,
			    uint16_t index)
{
	struct vhca_claim *c = vf->claim;

	c->end = VHCA_END_FORCED;
	c->released = c->stripped = true;
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "vf_moved", ENODEV,
		       "%s was VF %u of %s and is VF %u of %s now: what was done for it is not "
		       "on it any more",
		       VHCA_BDF_STR(vf->bdf), index, VHCA_BDF_STR(from->facts.bdf), vf->index,
		       VHCA_BDF_STR(vf->hca->facts.bdf));
	vhca_error_hint(&c->failure,
			"change the number of VFs only while none of the card is claimed");
	engine_alarm(e, vf, c->failure.msg);
	engine_tell(e, c, VHCA_VF_QUARANTINED, &c->failure);
}

/* Its guest is on its way, or parked: nothing of it is on the VF. */
static bool is_withheld(const struct vhca_vf *vf)
{
	const struct vhca_claim *c = vf->claim;

	return c && c->migrating && vhca_claim_is_withheld(c) && !vhca_claim_is_ending(c) &&
	       vf->state == VHCA_VF_CLAIMED;
}

static void settle(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_hca *from = vf->hca;
	uint16_t index = vf->index;

	vhca_model_move_vf(vf, vf->to_hca, vf->to_index);
	vf->to_hca = NULL;
	vf->hw_known = false;
	engine_forget_probe(vf);
	vf->reprogram = vf->state == VHCA_VF_FREE; /* whatever the commit below comes to */
	if (is_withheld(vf))
		engine_reason(vf, "is at another place of its card: it is scrubbed there first");
	else if (vf->claim && vf->claim->boot != VHCA_BOOT_EARLIER)
		end_moved_claim(e, vf, from, index);
	/* In one transaction: what says "free" at the new place would be a proof of the old one. */
	if (vf->state == VHCA_VF_FREE)
		engine_move(e, vf, VHCA_VF_PREPARING);
	else if (!vf->claim || vf->claim->boot == VHCA_BOOT_EARLIER ||
		 vf->state == VHCA_VF_QUARANTINED)
		engine_save(e, vf);
	else
		engine_move(e, vf, VHCA_VF_QUARANTINED);
	engine_settle_port(e, from);
}

/* Of two VFs at one place one is not there any more: what runs for it has to end first. */
static bool is_busy(const struct vhca_vf *vf)
{
	const struct vhca_vf *other;

	TAILQ_FOREACH (other, &vf->hca->vfs, link)
		if (other != vf && other->index == vf->index && other->host.effect)
			return true;
	return false;
}

/* A claim without a row gets that first: then it can end. */
bool engine_settle_place(struct vhca_engine *e, struct vhca_vf *vf)
{
	if (vf->to_hca && !engine_is_unborn(vf)) {
		settle(e, vf);
		return false;
	}
	if (!vf->present || !is_busy(vf))
		return true;
	engine_again(e, vf, GROUP_LOOK_MS);
	return false;
}
