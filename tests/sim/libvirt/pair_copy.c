/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/libvirt/pair_copy.h"

int pair_copy_refused(struct vhca_error *err)
{
	return vhca_error_set(err, VHCA_ERR_CONFLICT, "has_snapshots", 0, "it has snapshots");
}

int pair_copy_begin(struct pair *p, unsigned int from, struct vhca_error *err)
{
	const struct world *w = &p->w[from];
	const struct vhca_dom_info *info = &w->domains[0].info;

	if (!w->domains[0].running)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "domain_gone", 0, "no such domain");
	for (unsigned int v = 0; v < WORLD_VFS; v++)
		pair_must(!w->vfs[v].group_open || !vhca_uuid_equal(&w->vfs[v].user, &info->uuid),
			  "a migration was begun with a VF in the guest");
	if (p->copy_refused)
		return pair_copy_refused(err);
	if (!p->ms[1 - from] ||
	    (info->has_away &&
	     vhca_migrations_begin(p->ms[1 - from], &info->away, &info->uuid, err) < 0))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "hook_refused", 0,
				      "the destination's hook refused");
	p->copying = true;
	return 0;
}

void pair_copy_comes(struct pair *p, unsigned int to)
{
	if (p->w[to].domains[0].running)
		return;
	p->w[to].domains[0].info = p->w[1 - to].domains[0].info;
	world_incoming(&p->w[to], 0, true);
}

int pair_copy_end(struct pair *p, unsigned int from, struct vhca_error *err)
{
	p->copying = false;
	if (p->copy_cancelled || p->copy_fails) {
		p->copy_cancelled = p->copy_fails = false;
		world_domain_stop(&p->w[1 - from], 0);
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "migration_failed", 0,
				      "the copy failed");
	}
	world_incoming(&p->w[1 - from], 0, false);
	world_domain_stop(&p->w[from], 0);
	p->copies++;
	return 0;
}
