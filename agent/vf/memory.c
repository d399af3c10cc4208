/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a guest's memory means for its VFs: none can be plugged in below a limit, and more of it
 * takes longer to pin and to let go.
 */
#include "agent/vf/engine_int.h"

int vhca_engine_check_memory(struct vhca_engine *e, const struct vhca_domain *dom,
			     struct vhca_error *err)
{
	int r = vhca_guest_memory_check_limit(&dom->info->memory, dom->info->name, err);

	/* libvirt tells nobody that a limit was raised: who asks again shall find it. */
	if (r < 0)
		e->args.effects.refresh(e->args.effects.ctx, &dom->info->uuid);
	return r;
}

int engine_check_plug(struct vhca_engine *e, const struct vhca_domain *dom, struct vhca_error *err)
{
	/* With a host device in the guest it is pinned already, whatever the limit says now. */
	return dom->info->n_hostdevs || dom->info->has_far_hostdev
		       ? 0
		       : vhca_engine_check_memory(e, dom, err);
}

void engine_note_memory(struct vhca_engine *e, const struct vhca_dom_info *info)
{
	struct vhca_claim *c;

	TAILQ_FOREACH (c, &e->model.claims, link)
		if (vhca_uuid_equal(&c->domain, &info->uuid))
			c->memory_kib = info->memory.kib;
}

uint64_t engine_detach_ms(const struct vhca_engine *e, const struct vhca_vf *vf)
{
	return e->conf->detach_timeout_ms + engine_memory_ms(vf);
}

uint64_t engine_memory_ms(const struct vhca_vf *vf)
{
	return vf->claim ? vhca_guest_memory_ms(vf->claim->memory_kib) : 0;
}
