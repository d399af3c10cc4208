/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/libvirt/pair_copy.h"

#include "tests/sim/libvirt/sim_copy.h"
#include "tests/sim/libvirt/sim_domain.h"

int pair_copy_refused(struct vhca_error *err)
{
	return vhca_error_set(err, VHCA_ERR_CONFLICT, "has_snapshots", 0, "it has snapshots");
}

int pair_copy_begin(struct pair *p, unsigned int from, struct vhca_error *err)
{
	const struct world *w = &p->w[from];
	const struct vhca_dom_info *info = &w->domains[0].info;

	if (!w->domains[0].running)
		return sim_virt_gone(err);
	pair_must(!world_has_vf(w, 0), "a migration was begun with a VF in the guest");
	if (p->copy_refused)
		return pair_copy_refused(err);
	if (!p->ms[1 - from] || info->has_away) {
		int r = sim_copy_ask(p->ms[1 - from], info, err);

		if (r < 0)
			return r;
	}
	p->copying = true;
	return 0;
}

void pair_copy_comes(struct pair *p, unsigned int to)
{
	if (p->w[to].domains[0].running)
		return;
	sim_copy_comes(&p->w[1 - to], &p->w[to], 0);
}

int pair_copy_end(struct pair *p, unsigned int from, struct vhca_error *err)
{
	p->copying = false;
	if (p->copy_cancelled || p->copy_fails) {
		p->copy_cancelled = p->copy_fails = false;
		world_domain_stop(&p->w[1 - from], 0);
		return sim_virt_failed(err, "the copy failed");
	}
	world_incoming(&p->w[1 - from], 0, false);
	world_domain_stop(&p->w[from], 0);
	p->copies++;
	return 0;
}
