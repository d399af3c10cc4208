/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A VF's place: its PF, and its number there. Identities are written to the place, but claims,
 * journal and domains know the VF by its PCI address, and addresses pass from place to place when
 * the number of VFs changes on a card with two PFs. What the VF at an address was proven to show is
 * then another one's: a free VF is prepared at the new place, a claimed one is quarantined.
 */
#include <errno.h>

#include "agent/vf/engine_int.h"

void engine_see_place(struct vhca_vf *vf, struct vhca_hca *hca, uint16_t index)
{
	bool moves = hca != vf->hca || index != vf->index;

	vf->to_hca = moves ? hca : NULL;
	vf->to_index = index;
}

/* Its identity stayed behind, on whatever VF is there now. */
static void end_claim(struct vhca_engine *e, struct vhca_vf *vf, const struct vhca_hca *from,
		      uint16_t index)
{
	struct vhca_claim *c = vf->claim;

	c->ending = c->forced = c->stripped = true;
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

	return c && c->migrating && c->away && !c->ending && vf->state == VHCA_VF_CLAIMED;
}

static void settle(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct vhca_hca *from = vf->hca;
	uint16_t index = vf->index;

	vhca_model_move_vf(vf, vf->to_hca, vf->to_index);
	vf->to_hca = NULL;
	vf->hw_known = vf->probed = false;
	vf->reprogram = vf->state == VHCA_VF_FREE;
	if (is_withheld(vf))
		engine_reason(vf, "is at another place of its card: it is scrubbed there first");
	else if (vf->claim && !vf->claim->orphan)
		end_claim(e, vf, from, index);
	if (!vf->claim || vf->claim->orphan || vf->state == VHCA_VF_QUARANTINED)
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

bool engine_place_taken(const struct vhca_vf *vf)
{
	const struct vhca_vf *other;

	TAILQ_FOREACH (other, &vf->hca->vfs, link)
		if (other != vf && other->index == vf->index && other->present && !other->to_hca)
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
