/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What no guest may keep: a VF that is claimed for another domain, and the map that leads to a
 * foreign key after the port's P_Key table has changed.
 */
#include <stdio.h>

#include "agent/vf/claim.h"
#include "agent/vf/transition.h"
#include "agent/vf/work.h"
#include "common/base/file.h"

bool engine_seized(struct vhca_engine *e, struct vhca_vf *vf)
{
	const struct vhca_domain *dom = vhca_model_stranger(&e->model, vf);
	struct vhca_claim *c = vf->claim;

	if (!dom)
		return false;
	engine_ask_end(c);
	vhca_error_set(&c->failure, VHCA_ERR_CONFLICT, "vf_seized", 0,
		       "%s was plugged into domain %s, which it is not claimed for; its identity "
		       "is withdrawn",
		       VHCA_BDF_STR(vf->bdf), dom->info->name);
	vhca_error_hint(&c->failure, "unplug it from %s: virsh detach-device", dom->info->name);
	engine_alarm(e, vf, c->failure.msg);
	engine_tell(e, c, VHCA_VF_QUARANTINED, &c->failure);
	engine_move(e, vf, VHCA_VF_QUARANTINED);
	return true;
}

/*
 * A QP keeps the physical index that it was given when it was modified. So once the map of a VF in
 * a guest has led to another key than its own, whoever wrote the map or the table, a QP may talk
 * with that key for ever, whatever the map says later.
 */
void engine_force_off(struct vhca_engine *e, struct vhca_vf *vf, const char *why)
{
	struct vhca_claim *c = vf->claim;

	if (c->end == VHCA_END_FORCED)
		return;
	engine_alarm(e, vf, why);
	if (e->conf->index_policy != VHCA_INDEX_FORCE_OFF)
		return;
	c->end = VHCA_END_FORCED;
	engine_save(e, vf); /* before the map is repaired: a restart would find nothing wrong */
}

static void name_foreign(const struct vhca_vf *vf, char *buf, size_t size)
{
	const struct vhca_identity id = vhca_claim_shows(vf->claim);

	for (unsigned int i = 0; i < vf->hw.n_virtual; i++) {
		if (!vhca_identity_is_foreign(&vf->hw, &id, i))
			continue;
		(void)snprintf(buf, size,
			       "virtual P_Key index %u led to %s at physical index %d of the port "
			       "instead of %s: QPs may keep it",
			       i, VHCA_PKEY_STR(vf->hw.value[i]), vf->hw.map[i],
			       i < id.n_pkeys ? VHCA_PKEY_STR(id.pkeys[i]) : "none");
		return;
	}
	if (vf->hw.other_maps)
		(void)snprintf(
			buf, size,
			"P_Keys were mapped on a port that is not the VF's: QPs may keep them");
}

/* The map is looked at before it is repaired: it may have to be remembered first. A disk that
 * cannot remember it is not waited for: the guest would show a foreign key as long. What is
 * foreign goes at once, from all VFs of the adapter, before one of them gets its keys at their
 * new places. */
bool engine_follow_table(struct vhca_engine *e, struct vhca_vf *vf)
{
	uint64_t now = vhca_now_ms();
	char why[200] = "";

	if (!vf->reprogram)
		return false;
	if (now < vf->host.not_before_ms) {
		engine_again(e, vf, vf->host.not_before_ms - now);
		return false;
	}
	if (!vf->hw_known) {
		engine_start(e, vf, VHCA_EFFECT_READ);
		return true;
	}
	name_foreign(vf, why, sizeof(why));
	if (why[0])
		engine_force_off(e, vf, why);
	if (!vf->committing || e->disk.kind)
		engine_start(e, vf, why[0] ? VHCA_EFFECT_UNMAP : VHCA_EFFECT_PROGRAM);
	return true;
}

void engine_guard(struct vhca_engine *e, struct vhca_vf *vf)
{
	bool in_guest =
		vf->state == VHCA_VF_ATTACHED || vf->state == VHCA_VF_DETACHING ||
		(vf->state == VHCA_VF_PROGRAMMED && vhca_model_user(&e->model, vf->bdf, NULL));

	/* Under a stranger its identity is withdrawn, not restored. */
	if (in_guest && vf->present && !vf->to_hca && vf->claim &&
	    !vhca_model_stranger(&e->model, vf))
		(void)engine_follow_table(e, vf);
}
